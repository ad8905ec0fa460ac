//===- Configure.h - the configuration of an array as register writes *- C++ -*-===//
#pragma once

#include "Registers.h"

namespace dmx::aie {

struct RegisterWrite {
  uint32_t address = 0, value = 0;
  uint32_t mask = UINT32_MAX; ///< bits that change
  bool operator==(const RegisterWrite &) const = default;
};

/// Collects writes. What the machine does not have, or a word cannot hold, is an error, after which nothing is added.
class Configuration {
public:
  explicit Configuration(const Machine &machine) : machine(machine) {}

  void lock(Tile tile, uint32_t lock, int64_t value);
  void bd(Tile tile, uint32_t number, const Bd &bd);
  void start(Tile tile, Direction direction, uint32_t channel, const QueueWord &task);
  /// A circuit through the tile's switch.
  void connect(Tile tile, Port from, Port to);
  /// A packet route: a master that takes what an arbiter selects, and a rule of a slave. The slave is opened for
  /// packets.
  void master(Tile tile, Port to, const MasterWord &word);
  void rule(Tile tile, Port from, uint32_t number, const RuleWord &word);
  /// Joins the shim's DMA to a south port of its switch: to enter by it (MM2S) or leave by it.
  void shimDma(Tile tile, Direction direction, uint32_t south);
  void coreControl(Tile tile, bool enable, bool reset);
  void data(Tile tile, uint32_t word, uint32_t value);

  const std::vector<RegisterWrite> &writes() const { return all; }
  const std::string &error() const { return firstError; }

private:
  void fail(Tile tile, const std::string &why);
  /// The address of a register; an error, and nullopt, where the tile does not have it.
  std::optional<uint32_t> find(Tile tile, const Register &what);
  void write(Tile tile, const Register &what, uint32_t value);
  void writePort(Tile tile, Side side, Port port, RegisterKind kind, uint32_t word, uint32_t value);

  const Machine &machine;
  std::vector<RegisterWrite> all;
  std::string firstError;
};

} // namespace dmx::aie
