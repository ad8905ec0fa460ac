//===- RouteFlows.cpp - flows to switchboxes ------------------------------===//
#include "Lower.h"
#include "Route.h"

#include "llvm/ADT/MapVector.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

class FlowRouter {
public:
  explicit FlowRouter(DeviceOp device) : device(device), machine(device.table()), builder(device.getContext()) {}

  LogicalResult run();

private:
  std::optional<End> endOf(Value tile, WireBundle bundle, int32_t channel, hw::Direction direction);
  LogicalResult collect();
  Value tileValue(hw::Tile tile);
  template <typename Switch, typename Connections> void write(hw::Tile tile, const Connections &connections);

  DeviceOp device;
  hw::Machine machine;
  OpBuilder builder;
  std::vector<Flow> flows;
  std::map<End, size_t> bySource;
  std::map<hw::Tile, std::set<std::pair<hw::Port, hw::Port>>> switches, muxes;
};

/// A shim's DMA is joined to a south port of its switch.
std::optional<End> FlowRouter::endOf(Value tile, WireBundle bundle, int32_t channel, hw::Direction direction) {
  hw::Tile at = tileOf(tile);
  hw::Port port = portOf(bundle, channel);
  if (machine.kindOf(at.row) != hw::TileKind::Shim || bundle != WireBundle::DMA)
    return End{at, port};
  if (channel < 0 || channel >= machine.tile(hw::TileKind::Shim).channels)
    return std::nullopt;
  uint32_t south = hw::shimPort(direction, port.index);
  hw::Port north{hw::Bundle::North, south};
  muxes[at].insert(direction == hw::Direction::MM2S ? std::pair(port, north) : std::pair(north, port));
  return End{at, {hw::Bundle::South, south}};
}

LogicalResult FlowRouter::collect() {
  for (auto flow : device.getBody().getOps<FlowOp>()) {
    std::optional<End> source = endOf(flow.getSource(), flow.getSourceBundle(),
                                      static_cast<int32_t>(flow.getSourceChannel()), hw::Direction::MM2S);
    std::optional<End> sink =
        endOf(flow.getDest(), flow.getDestBundle(), static_cast<int32_t>(flow.getDestChannel()), hw::Direction::S2MM);
    if (!source || !sink)
      return flow.emitOpError("names a channel of a shim's DMA, which has ")
             << machine.tile(hw::TileKind::Shim).channels << " of each direction";
    auto [found, isNew] = bySource.try_emplace(*source, flows.size());
    if (isNew)
      flows.push_back({*source, {}});
    flows[found->second].sinks.push_back(*sink);
  }
  return success();
}

Value FlowRouter::tileValue(hw::Tile tile) {
  for (auto op : device.getBody().getOps<TileOp>())
    if (op.tile() == tile)
      return op;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&device.getBody().front());
  return TileOp::create(builder, device.getLoc(), builder.getIndexType(), tile.column, tile.row);
}

template <typename Switch, typename Connections> void FlowRouter::write(hw::Tile tile, const Connections &connections) {
  OpBuilder::InsertionGuard guard(builder);
  auto box = Switch::create(builder, device.getLoc(), builder.getIndexType(), tileValue(tile));
  builder.setInsertionPointToStart(&box.getBody().emplaceBlock());
  for (const auto &[from, to] : connections)
    ConnectOp::create(builder, device.getLoc(), bundleOf(from.bundle), from.index, bundleOf(to.bundle), to.index);
  EndOp::create(builder, device.getLoc());
}

LogicalResult FlowRouter::run() {
  if (failed(checkLimits(device)))
    return failure();
  auto all = device.getBody().getOps<FlowOp>();
  if (all.empty())
    return success();
  auto boxes = device.getBody().getOps<SwitchboxOp>();
  if (!boxes.empty())
    return (*boxes.begin()).emitOpError("stands beside flows that are to be routed");
  if (failed(collect()))
    return failure();
  std::string error;
  for (const Connection &connection : route(machine, flows, error))
    switches[connection.tile].insert({connection.from, connection.to});
  if (!error.empty())
    return device.emitOpError("cannot be routed: ") << error;
  for (FlowOp flow : all) // behind the last one, where all tiles are
    builder.setInsertionPointAfter(flow);
  for (const auto &[tile, connections] : switches)
    write<SwitchboxOp>(tile, connections);
  for (const auto &[tile, connections] : muxes)
    write<ShimMuxOp>(tile, connections);
  for (FlowOp flow : llvm::make_early_inc_range(all))
    flow.erase();
  return success();
}

} // namespace

LogicalResult aie::routeFlows(DeviceOp device) { return FlowRouter(device).run(); }
