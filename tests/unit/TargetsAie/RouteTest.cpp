//===- RouteTest.cpp - flows through switches -----------------------------===//
#include "targets/aie/lower/Route.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace dmxc::aie;
using dmx::aie::Bundle;
using dmx::aie::Direction;
using dmx::aie::Machine;
using dmx::aie::Port;
using dmx::aie::Tile;
using dmx::aie::TileKind;

namespace {

/// All ends of DMAs of one direction.
std::vector<End> endsOf(const Machine &machine, Direction direction) {
  std::vector<End> ends;
  for (uint32_t column = 0; column < machine.columns; ++column)
    for (uint32_t row = 0; row < machine.rows; ++row) {
      TileKind kind = machine.kindOf(row);
      for (uint32_t i = 0; i < machine.tile(kind).channels; ++i)
        ends.push_back(
            {{column, row},
             kind == TileKind::Shim ? Port{Bundle::South, dmx::aie::shimPort(direction, i)} : Port{Bundle::Dma, i}});
    }
  return ends;
}

/// Follows a stream switch by switch, by rules of its own; each sink once.
void follow(const Machine &machine, const std::map<std::pair<Tile, Port>, std::vector<Port>> &switches, Tile tile,
            Port from, std::vector<End> &sinks, int depth = 0) {
  ASSERT_LT(depth, 100) << "a circle";
  auto at = switches.find({tile, from});
  if (at == switches.end())
    return;
  for (Port to : at->second) {
    EXPECT_EQ(dmx::aie::refuses(machine.kindOf(tile.row), from, to), nullptr)
        << dmx::aie::textOf(tile) << ": " << dmx::aie::textOf(from) << " to " << dmx::aie::textOf(to);
    bool ends = to.bundle == Bundle::Dma || (to.bundle == Bundle::South && tile.row == 0);
    if (ends) {
      sinks.push_back({tile, to});
      continue;
    }
    Tile next = tile;
    next.row += (to.bundle == Bundle::North) - (to.bundle == Bundle::South);
    next.column += (to.bundle == Bundle::East) - (to.bundle == Bundle::West);
    ASSERT_TRUE(machine.has(next));
    static const std::map<Bundle, Bundle> other = {{Bundle::North, Bundle::South},
                                                   {Bundle::South, Bundle::North},
                                                   {Bundle::East, Bundle::West},
                                                   {Bundle::West, Bundle::East}};
    follow(machine, switches, next, {other.at(to.bundle), to.index}, sinks, depth + 1);
  }
}

void expectRouted(const Machine &machine, const std::vector<Flow> &flows, const std::vector<Connection> &connections) {
  std::set<std::pair<Tile, Port>> masters;
  std::map<std::pair<Tile, Port>, std::vector<Port>> switches;
  for (const Connection &each : connections) {
    EXPECT_TRUE(masters.insert({each.tile, each.to}).second) << "a port twice";
    switches[{each.tile, each.from}].push_back(each.to);
  }
  size_t sinksReached = 0;
  for (const Flow &flow : flows) {
    std::vector<End> reached, expected = flow.sinks;
    follow(machine, switches, flow.source.tile, flow.source.port, reached);
    std::sort(reached.begin(), reached.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(reached, expected);
    sinksReached += reached.size();
  }
  EXPECT_GE(connections.size(), sinksReached);
}

} // namespace

TEST(AieRoute, RandomFlows) {
  std::mt19937_64 random(5);
  int routed = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    Machine machine = *dmx::aie::machineOf(i % 3 == 0 ? "npu1_2col" : i % 3 == 1 ? "npu1" : "npu4");
    std::vector<End> sources = endsOf(machine, Direction::MM2S), sinks = endsOf(machine, Direction::S2MM);
    std::shuffle(sources.begin(), sources.end(), random);
    std::shuffle(sinks.begin(), sinks.end(), random);
    std::vector<Flow> flows;
    size_t most = 2 + random() % 22;
    while (flows.size() < most && !sources.empty() && sinks.size() > 4) {
      Flow flow{sources.back(), {}};
      sources.pop_back();
      for (uint64_t count = 1 + (random() % 3 == 0 ? random() % 4 : 0); count > 0; --count) {
        flow.sinks.push_back(sinks.back());
        sinks.pop_back();
      }
      flows.push_back(flow);
    }
    std::string error;
    std::vector<Connection> connections = route(machine, flows, error);
    if (error.empty()) {
      ++routed;
      expectRouted(machine, flows, connections);
    } else {
      ++refused;
      bool named = error.find("wires") != error.npos || error.find("several flows still want") != error.npos ||
                   error.find("no way leads from") != error.npos;
      EXPECT_TRUE(named) << error;
    }
  }
  std::printf("%d of 300 flow sets routed, %d refused\n", routed, refused);
  EXPECT_GT(routed, 200);
}

TEST(AieRoute, BroadcastsAndJoinsOfAWholeArray) {
  Machine machine = *dmx::aie::machineOf("npu1");
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 4; ++i) {
    Flow row{{{i, 1}, {Bundle::Dma, 0}}, {}}, column{{{i, 1}, {Bundle::Dma, 1}}, {}};
    for (uint32_t j = 0; j < 4; ++j) {
      row.sinks.push_back({{j, 2 + i}, {Bundle::Dma, 0}});
      column.sinks.push_back({{i, 2 + j}, {Bundle::Dma, 1}});
      flows.push_back({{{i, 2 + j}, {Bundle::Dma, 0}}, {{{i, 1}, {Bundle::Dma, 2 + j}}}});
    }
    flows.push_back(row);
    flows.push_back(column);
    for (uint32_t channel : {0u, 1u})
      flows.push_back({{{i, 0}, {Bundle::South, dmx::aie::shimPort(Direction::MM2S, channel)}},
                       {{{i, 1}, {Bundle::Dma, channel}}}});
    flows.push_back({{{i, 1}, {Bundle::Dma, 2}}, {{{i, 0}, {Bundle::South, dmx::aie::shimPort(Direction::S2MM, 0)}}}});
  }
  std::string error;
  std::vector<Connection> connections = route(machine, flows, error);
  ASSERT_EQ(error, "");
  expectRouted(machine, flows, connections);
}

TEST(AieRoute, WhatHasNoWayIsNamed) {
  Machine machine = *dmx::aie::machineOf("npu1_1col");
  std::vector<Flow> flows;
  for (uint32_t i = 0; i < 5; ++i) // from the cores down to the memory tile, which has 4 wires from above
    flows.push_back({{{0, 2 + i / 2}, {Bundle::Dma, i % 2}}, {{{0, 1}, {Bundle::Dma, i}}}});
  std::string error;
  EXPECT_TRUE(route(machine, flows, error).empty());
  EXPECT_EQ(error, "5 flows have to go south between row 2 and 1, where there are 4 wires");
  flows.resize(1);
  flows.push_back(flows[0]);
  EXPECT_TRUE(route(machine, flows, error).empty());
  EXPECT_EQ(error, "two flows begin at DMA 0 of tile (0,2)");
  flows[1].source.port.index = 1;
  EXPECT_TRUE(route(machine, flows, error).empty());
  EXPECT_EQ(error, "two flows end at DMA 0 of tile (0,1)");
  flows[1].sinks[0].port.index = 6;
  EXPECT_TRUE(route(machine, flows, error).empty());
  EXPECT_EQ(error, "no stream can end at DMA 6 of tile (0,1)");
}
