//===- Route.h - streams through the switches -------------------*- C++ -*-===//
#pragma once

#include "schemas/aie/Registers.h"

namespace dmxc::aie {

namespace hw = dmx::aie;

/// A port of a tile's switch at which a stream begins (a slave) or ends (a master): of a DMA, or of a shim the south
/// port that its DMA has (hw::shimPort).
struct End {
  hw::Tile tile;
  hw::Port port;
  bool operator==(const End &) const = default;
  auto operator<=>(const End &) const = default;
};
/// One stream: all sinks get every word.
struct Flow {
  End source;
  std::vector<End> sinks;
};
/// A circuit through a switch.
struct Connection {
  hw::Tile tile;
  hw::Port from, to;
  bool operator==(const Connection &) const = default;
  auto operator<=>(const Connection &) const = default;
};

/// Circuits for all flows, each port for one flow. Shortest paths with a price for wires that several flows want,
/// raised from round to round until each has its own (negotiated congestion: McMurchie and Ebeling, PathFinder, 1995).
/// None, and why, where an end is none, two flows share one, or no way is found: then the cut that is too narrow, or
/// the wires that too many want.
std::vector<Connection> route(const hw::Machine &machine, const std::vector<Flow> &flows, std::string &error);

} // namespace dmxc::aie
