//===- Routes.cpp - the ways of streams, as switches have them ------------===//
#include "Array.h"

namespace dmxrt::aie {

using hw::Bundle;
using hw::Side;

/// No circuit passes so many switches without coming back to one.
static constexpr uint32_t kMostHops = 256;

/// Finds the ways of all channels anew. Words that are on the way when switches change would be lost.
void Array::trace() {
  for (const Path &path : paths)
    if (!path.words.empty())
      return fail("port-conflict",
                  cat("switches change while words are on the way from ", nameOf(channels[path.source].thread.number)));
  for (Channel &channel : channels) {
    channel.out.clear();
    channel.in = nullptr;
  }
  paths.clear();
  routed = true;
  for (const TileState &tile : tiles) {
    bool isShim = tile.kind == TileKind::Shim;
    for (uint32_t i = 0; i < machine.tile(tile.kind).channels; ++i) {
      uint32_t south = hw::shimPort(Direction::MM2S, i);
      if (isShim && (tile.mux >> *hw::muxBit(south) & 3) != 1)
        continue; // the DMA is not joined to the switch
      hw::Port port = isShim ? hw::Port{Bundle::South, south} : hw::Port{Bundle::Dma, i};
      follow(tile, *hw::numberOf(tile.kind, Side::Slave, port), channel(tile, Direction::MM2S, i).thread.number - 1u,
             0);
    }
  }
}

void Array::follow(const TileState &tile, uint32_t slave, uint32_t source, uint32_t hops) {
  hw::SlaveWord open;
  std::string where =
      cat("slave port ", hw::textOf(*hw::portAt(tile.kind, Side::Slave, slave)), " of tile ", hw::textOf(tile.tile));
  if (!hw::decode(tile.slaves[slave], open))
    return fail("illegal-connection", where + " has bits that no field has");
  if (open.enabled && open.packets)
    return fail("illegal-connection", where + " is for packets, which this device does not route yet");
  if (!open.enabled)
    return;
  if (hops > kMostHops)
    return fail("illegal-connection", where + " is on a way that comes back to itself");
  for (uint32_t number = 0; number < tile.masters.size() && fault.empty(); ++number) {
    hw::MasterWord master;
    hw::Port from = *hw::portAt(tile.kind, Side::Slave, slave), to = *hw::portAt(tile.kind, Side::Master, number);
    bool sound = hw::decode(tile.masters[number], master);
    if (sound && (!master.enabled || master.packets || master.slave != slave))
      continue;
    if (!sound)
      return fail("illegal-connection", cat("master port ", hw::textOf(to), " of tile ", hw::textOf(tile.tile),
                                            " has bits that no field has"));
    if (const char *why = hw::refuses(tile.kind, from, to))
      return fail("illegal-connection", cat(where, " to ", hw::textOf(to), ": ", why));
    leave(tile, to, source, hops + 1);
  }
}

/// From a switch's master port on.
void Array::leave(const TileState &tile, hw::Port port, uint32_t source, uint32_t hops) {
  Tile next = tile.tile;
  Bundle side = Bundle::South;
  switch (port.bundle) {
  case Bundle::Dma:
    return arrive(tile, port.index, source, hops);
  case Bundle::South:
    if (tile.kind == TileKind::Shim) {
      std::optional<uint32_t> bit = hw::demuxBit(port.index);
      if (bit && (tile.demux >> *bit & 3) == 1 && port.index < 4) // SOUTH 2, 3 are S2MM 0, 1
        return arrive(tile, port.index - 2, source, hops);
      return fail("unrouted-stream", cat("the stream of ", nameOf(channels[source].thread.number), " leaves tile ",
                                         hw::textOf(tile.tile), " by ", hw::textOf(port), ", where no DMA takes it"));
    }
    --next.row;
    side = Bundle::North;
    break;
  case Bundle::North:
    ++next.row;
    break;
  case Bundle::West:
    --next.column;
    side = Bundle::East;
    break;
  case Bundle::East:
    ++next.column;
    side = Bundle::West;
    break;
  default:
    return fail("unrouted-stream", cat("the stream of ", nameOf(channels[source].thread.number), " ends at ",
                                       hw::textOf(port), " of tile ", hw::textOf(tile.tile)));
  }
  const TileState *to = find(next);
  std::optional<uint32_t> slave;
  if (to)
    slave = hw::numberOf(to->kind, Side::Slave, {side, port.index});
  if (!slave)
    return fail("unrouted-stream",
                cat("the stream of ", nameOf(channels[source].thread.number), " leaves tile ", hw::textOf(tile.tile),
                    " by ", hw::textOf(port), ", behind which there is none"));
  follow(*to, *slave, source, hops);
}

void Array::arrive(const TileState &tile, uint32_t number, uint32_t source, uint32_t hops) {
  Channel &to = channel(tile, Direction::S2MM, number);
  if (to.in)
    return fail("port-conflict", cat("two streams lead to ", nameOf(to.thread.number)));
  Path &path = paths.emplace_back();
  path.source = source;
  path.sink = to.thread.number - 1u;
  path.hops = hops;
  path.latency = hops * machine.hopClocks;
  path.capacity = static_cast<size_t>(hops * machine.hopWords);
  to.in = &path;
  channels[source].out.push_back(&path);
}

} // namespace dmxrt::aie
