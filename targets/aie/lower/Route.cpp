//===- Route.cpp - streams through the switches ---------------------------===//
#include "Route.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>

namespace dmxc::aie {
namespace {

using hw::Bundle;
using hw::Port;
using hw::Side;
using hw::Tile;

constexpr int kRounds = 100;
constexpr double kHistory = 1, kFirstPresent = 0.5, kRaise = 1.3;

/// Where streams leave a tile: the bundle, the neighbour, and the bundle by which they enter it.
struct Way {
  Bundle out, in;
  int column, row;
  const char *name;
};
constexpr Way kWays[] = {{Bundle::North, Bundle::South, 0, 1, "north"},
                         {Bundle::South, Bundle::North, 0, -1, "south"},
                         {Bundle::East, Bundle::West, 1, 0, "east"},
                         {Bundle::West, Bundle::East, -1, 0, "west"}};

/// A port by which a stream enters a switch: an end, or the far end of a wire between two tiles.
using Entry = End;

class Router {
public:
  Router(const hw::Machine &machine, const std::vector<Flow> &flows) : machine(machine), flows(flows) {}

  std::vector<Connection> run(std::string &error);

private:
  /// What a flow uses: by the port that a stream enters, where it is from.
  struct Tree {
    std::map<Entry, Connection> reached; ///< all but the source
    std::vector<Connection> last;        ///< to the sinks
  };

  std::string checkEnds() const;
  bool grow(const Flow &flow, const End &sink, Tree &tree) const;
  Tree treeOf(const Flow &flow, std::string &error) const;
  template <typename Visit> void eachNext(const Entry &at, Visit visit) const;
  double price(const Entry &entry) const;
  std::string cut() const;
  std::string tooMany() const;

  const hw::Machine &machine;
  const std::vector<Flow> &flows;
  std::map<Entry, int> uses;
  std::map<Entry, double> history;
  double present = kFirstPresent;
};

std::string textOf(const End &end) { return hw::textOf(end.port) + " of tile " + hw::textOf(end.tile); }

std::string Router::checkEnds() const {
  std::set<End> sources, sinks;
  for (const Flow &flow : flows) {
    auto there = [&](const End &end, Side side) {
      return machine.has(end.tile) && hw::numberOf(machine.kindOf(end.tile.row), side, end.port);
    };
    if (!there(flow.source, Side::Slave))
      return "no stream can begin at " + textOf(flow.source);
    if (!sources.insert(flow.source).second)
      return "two flows begin at " + textOf(flow.source);
    if (flow.sinks.empty())
      return "the flow from " + textOf(flow.source) + " leads nowhere";
    for (const End &sink : flow.sinks) {
      if (!there(sink, Side::Master))
        return "no stream can end at " + textOf(sink);
      if (!sinks.insert(sink).second)
        return "two flows end at " + textOf(sink);
    }
  }
  return {};
}

/// Calls visit(port that leaves, where that leads) for each wire that a stream which enters there may take.
template <typename Visit> void Router::eachNext(const Entry &at, Visit visit) const {
  hw::TileKind kind = machine.kindOf(at.tile.row);
  for (const Way &way : kWays) {
    Tile next{at.tile.column + static_cast<uint32_t>(way.column), at.tile.row + static_cast<uint32_t>(way.row)};
    if (!machine.has(next))
      continue;
    uint32_t count = std::min(hw::portCount(kind, Side::Master, way.out),
                              hw::portCount(machine.kindOf(next.row), Side::Slave, way.in));
    for (uint32_t i = 0; i < count; ++i)
      if (Port out{way.out, i}; !hw::refuses(kind, at.port, out))
        visit(out, Entry{next, {way.in, i}});
  }
}

double Router::price(const Entry &entry) const {
  auto before = history.find(entry);
  auto now = uses.find(entry);
  return (1 + (before == history.end() ? 0 : before->second)) * (1 + (now == uses.end() ? 0 : present * now->second));
}

/// Adds the cheapest way from what the flow has to a sink; false where there is none.
bool Router::grow(const Flow &flow, const End &sink, Tree &tree) const {
  std::map<Entry, std::pair<double, Connection>> best; // and by which circuit
  using Item = std::pair<double, Entry>;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> open;
  auto begin = [&](const Entry &entry) {
    best[entry] = {0, {}};
    open.emplace(0, entry);
  };
  begin(flow.source);
  for (const auto &[entry, by] : tree.reached)
    begin(entry);
  while (!open.empty()) {
    auto [cost, at] = open.top();
    open.pop();
    if (cost > best.at(at).first)
      continue;
    bool fits = at.tile == sink.tile && !hw::refuses(machine.kindOf(at.tile.row), at.port, sink.port);
    if (fits) {
      tree.last.push_back({sink.tile, at.port, sink.port});
      for (Entry back = at; best.at(back).first > 0;) {
        const Connection &by = best.at(back).second;
        tree.reached[back] = by;
        back = {by.tile, by.from};
      }
      return true;
    }
    eachNext(at, [&](Port out, const Entry &next) {
      double total = cost + price(next);
      auto [found, isNew] = best.try_emplace(next, total, Connection{at.tile, at.port, out});
      if (!isNew && total >= found->second.first)
        return;
      found->second = {total, {at.tile, at.port, out}};
      open.emplace(total, next);
    });
  }
  return false;
}

Router::Tree Router::treeOf(const Flow &flow, std::string &error) const {
  Tree tree;
  for (const End &sink : flow.sinks)
    if (!grow(flow, sink, tree)) {
      error = "no way leads from " + textOf(flow.source) + " to " + textOf(sink);
      break;
    }
  return tree;
}

/// A straight line through the array that more flows have to cross one way than it has wires; empty where there is
/// none.
std::string Router::cut() const {
  for (const Way &way : kWays) {
    bool rows = way.row != 0;
    int step = way.row + way.column;
    for (uint32_t line = 1; line < (rows ? machine.rows : machine.columns); ++line) { // between line - 1 and line
      auto behind = [&](Tile tile) { return ((rows ? tile.row : tile.column) >= line) == (step > 0); };
      uint32_t wires = 0;
      size_t crossing = 0;
      for (uint32_t other = 0; other < (rows ? machine.columns : machine.rows); ++other) {
        uint32_t row = rows ? (step > 0 ? line - 1 : line) : other, to = rows ? (step > 0 ? line : line - 1) : other;
        wires += std::min(hw::portCount(machine.kindOf(row), Side::Master, way.out),
                          hw::portCount(machine.kindOf(to), Side::Slave, way.in));
      }
      for (const Flow &flow : flows)
        crossing += !behind(flow.source.tile) && std::any_of(flow.sinks.begin(), flow.sinks.end(),
                                                             [&](const End &sink) { return behind(sink.tile); });
      if (crossing > wires)
        return std::to_string(crossing) + " flows have to go " + way.name + " between " + (rows ? "row " : "column ") +
               std::to_string(step > 0 ? line - 1 : line) + " and " + std::to_string(step > 0 ? line : line - 1) +
               ", where there are " + std::to_string(wires) + " wires";
    }
  }
  return {};
}

std::string Router::tooMany() const {
  std::string text;
  for (const auto &[entry, count] : uses)
    if (count > 1)
      text += (text.empty() ? "" : ", ") + textOf(entry) + " (" + std::to_string(count) + " flows)";
  return "after " + std::to_string(kRounds) + " rounds several flows still want " + text;
}

std::vector<Connection> Router::run(std::string &error) {
  error = checkEnds();
  std::vector<Tree> trees(flows.size());
  for (int round = 0; round < kRounds && error.empty(); ++round, present *= kRaise) {
    for (size_t i = 0; i < flows.size() && error.empty(); ++i) {
      for (const auto &[entry, by] : trees[i].reached)
        --uses[entry];
      trees[i] = treeOf(flows[i], error);
      for (const auto &[entry, by] : trees[i].reached)
        ++uses[entry];
    }
    bool shared = false;
    for (const auto &[entry, count] : uses)
      if (count > 1) {
        shared = true;
        history[entry] += kHistory * (count - 1);
      }
    if (shared || !error.empty())
      continue;
    std::set<Connection> all;
    for (const Tree &tree : trees) {
      all.insert(tree.last.begin(), tree.last.end());
      for (const auto &[entry, by] : tree.reached)
        all.insert(by);
    }
    return {all.begin(), all.end()};
  }
  if (std::string narrow = error.empty() ? cut() : std::string(); !narrow.empty())
    error = narrow;
  else if (error.empty())
    error = tooMany();
  return {};
}

} // namespace

std::vector<Connection> route(const hw::Machine &machine, const std::vector<Flow> &flows, std::string &error) {
  return Router(machine, flows).run(error);
}

} // namespace dmxc::aie
