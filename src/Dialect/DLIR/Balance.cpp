//===- Balance.cpp - whether rings are filled as often as drained ---------===//
//
// The balance equations of a graph. Each queue of each unit fills, drains, puts and gets so much in a pass: its groups
// once, or a trip of its endless loop; what stands before that is done once. What is filled is drained and what is put
// is got, so that passes of one queue are a known number of passes of another; those of queues that end are one in a
// run. Where two ways from queue to queue give different numbers, slots would be waited for for ever. Channels are
// followed first: what does not fit is a ring.
//
//===----------------------------------------------------------------------===//
#include "Rings.h"

#include "dmxc/Dialect/DLIR/Sum.h"

#include "llvm/ADT/StringExtras.h"

#include <map>
#include <numeric>

using namespace mlir;
using namespace dmxc::dlir;

namespace {

constexpr size_t kMostActors = 1 << 16; ///< queues in all units; of a larger grid nothing is counted

/// Numbers of registers that a run decides, in order: their product.
using Product = std::vector<unsigned>;
Product merged(const Product &a, const Product &b) {
  Product both;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}
/// What of a is not in b.
Product without(const Product &a, const Product &b) {
  Product rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  return rest;
}

/// A positive number as a fraction, times registers and by registers.
struct Ratio {
  int64_t up = 1, down = 1;
  Product over, under;
  bool operator==(const Ratio &) const = default;
};
/// nullopt beyond 64 bits.
std::optional<Ratio> times(const Ratio &a, const Ratio &b) {
  int64_t one = std::gcd(a.up, b.down), other = std::gcd(b.up, a.down);
  Product over = merged(a.over, b.over), under = merged(a.under, b.under);
  Ratio out{1, 1, without(over, under), without(under, over)};
  if (__builtin_mul_overflow(a.up / one, b.up / other, &out.up) ||
      __builtin_mul_overflow(a.down / other, b.down / one, &out.down))
    return std::nullopt;
  return out;
}
Ratio inverse(const Ratio &a) { return {a.down, a.up, a.under, a.over}; }

/// How often: a sum of products of registers that a run decides, each with a factor.
using Count = std::map<Product, int64_t>;
/// Whether one is another one times a ratio.
bool isProduct(const Count &a, const Count &b, const Ratio &ratio) {
  return llvm::all_of(b, [&](const auto &term) {
    Product registers = merged(term.first, ratio.over), rest = without(registers, ratio.under);
    auto found = registers.size() == rest.size() + ratio.under.size() ? a.find(rest) : a.end();
    int64_t left = 0, right = 0;
    return found != a.end() && !__builtin_mul_overflow(found->second, ratio.down, &left) &&
           !__builtin_mul_overflow(term.second, ratio.up, &right) && left == right;
  });
}
/// What one is as a multiple of another, of two that are not zero; nullopt where it is none.
std::optional<Ratio> quotient(const Count &a, const Count &b) {
  const auto &[registers, factor] = *a.begin();
  if (a.size() == b.size())
    for (const auto &[others, otherFactor] : b) {
      int64_t shared = std::gcd(factor, otherFactor) * (otherFactor < 0 ? -1 : 1);
      Ratio ratio{factor / shared, otherFactor / shared, without(registers, others), without(others, registers)};
      if (ratio.up > 0 && isProduct(a, b, ratio))
        return ratio;
    }
  return std::nullopt;
}

/// An element of a channel.
using Stream = std::pair<StringRef, SmallVector<int64_t>>;

/// A queue in a unit, and what it does in a pass.
struct Actor {
  DispatchQueueOp queue;
  SmallVector<int64_t> place;
  bool isEndless = false, isKnown = true;
  size_t begins = 0;                  ///< of an endless one: the actor that is what it does before its loop
  std::map<Operation *, Count> turns; ///< fills or drains of a ring
  std::map<Stream, Count> puts, gets; ///< bytes
};

/// Bits of an element of a kind that ends with their number: "bf16".
std::optional<int64_t> bitsOf(StringRef kind) {
  int64_t bits = 0;
  StringRef digits = kind.substr(kind.find_last_not_of("0123456789") + 1);
  return kind == "raw"                                                      ? std::optional<int64_t>(8)
         : digits.getAsInteger(10, bits) || kind.contains('_') || bits > 64 ? std::nullopt
                                                                            : std::optional(bits);
}

std::optional<int64_t> bitsMoved(DescriptorOp descriptor) {
  std::optional<int64_t> bits = bitsOf(descriptor.getKind());
  int64_t count = descriptor.getUnit();
  if (!bits || descriptor.getLow() || descriptor.getHigh() || __builtin_mul_overflow(*bits, count, &count))
    return std::nullopt;
  for (int64_t dim : descriptor.getDims())
    if (__builtin_mul_overflow(count, dim, &count))
      return std::nullopt;
  return count;
}

class Balance {
public:
  explicit Balance(ScheduledGraphOp graph) : graph(graph), program(cast<DeviceProgramOp>(graph->getParentOp())) {}

  LogicalResult run();

private:
  bool addActors();
  void count(Actor &actor, Block &body);
  bool addQueue(DispatchQueueOp queue, ArrayRef<int64_t> place);
  bool count(Actor &actor, Block &block, const Count &times);
  bool countEnd(Actor &actor, Operation *op, const Count &times);
  std::optional<Count> countOf(AffineMap map, ValueRange indices, Actor &actor);
  std::optional<int64_t> valueOf(RegisterOp reg, Actor &actor);
  static bool add(Count &to, const Count &more, int64_t factor);
  static std::optional<Count> product(const Count &a, const Count &b);

  bool joinEnds(const Stream &stream, size_t source, size_t sink);
  LogicalResult followChannels();
  LogicalResult followRing(RingOp ring);
  /// The actor's passes as a multiple of those of the first of its tree.
  std::pair<size_t, std::optional<Ratio>> find(size_t actor);
  /// `one` does `count` of it in a pass and `other` as much as in all; false where that cannot be.
  bool join(size_t one, const Count &count, size_t other, const Count &otherCount);
  /// How much of it one does for how much the other does.
  std::string compared(size_t one, const Count &count, size_t other, const Count &otherCount);

  ScheduledGraphOp graph;
  DeviceProgramOp program;
  std::vector<Actor> actors; ///< behind the first, which is a run
  std::vector<size_t> parents;
  std::vector<std::optional<Ratio>> weights;
};

//===--- what a queue does in a pass ------------------------------------------------------===//

bool Balance::add(Count &to, const Count &more, int64_t factor) {
  if (!factor)
    return true;
  for (const auto &[registers, times] : more) {
    int64_t product = 0;
    if (__builtin_mul_overflow(times, factor, &product) ||
        __builtin_add_overflow(to[registers], product, &to[registers]))
      return false;
  }
  return true;
}

std::optional<Count> Balance::product(const Count &a, const Count &b) {
  Count out;
  for (const auto &[registers, times] : a)
    for (const auto &[moreRegisters, moreTimes] : b) {
      Product both = merged(registers, moreRegisters);
      int64_t factor = 0;
      if (__builtin_mul_overflow(times, moreTimes, &factor) || __builtin_add_overflow(out[both], factor, &out[both]))
        return std::nullopt;
    }
  return out;
}

/// What the launch puts into a register; nullopt of those that a run decides.
std::optional<int64_t> Balance::valueOf(RegisterOp reg, Actor &actor) {
  int64_t number = reg.getNumber(), unit = 0;
  if (llvm::is_contained(program.getDimRegisters().value_or(ArrayRef<int64_t>()), number))
    return std::nullopt;
  for (auto argument : program.getBody().getOps<ArgumentOp>())
    if (argument.getToRegister() && static_cast<int64_t>(*argument.getToRegister()) == number)
      return std::nullopt;
  for (auto [index, extent] : llvm::zip(actor.place, actor.queue.grid()))
    unit = unit * extent + index;
  ArrayRef<int64_t> values = reg.getValues();
  if (values.size() == 1)
    return values[0];
  return unit < static_cast<int64_t>(values.size()) ? std::optional(values[static_cast<size_t>(unit)]) : std::nullopt;
}

/// A sum over registers that a run decides; nullopt where it is of other things that are not known.
std::optional<Count> Balance::countOf(AffineMap map, ValueRange indices, Actor &actor) {
  std::optional<Sum> sum = sumOf(map, indices);
  if (!sum)
    return std::nullopt;
  int64_t base = sum->base;
  Count out;
  for (auto [index, scale] : sum->terms) {
    auto reg = index.getDefiningOp<RegisterOp>();
    auto argument = dyn_cast<BlockArgument>(index);
    bool isPlace = argument && isa<DispatchQueueOp, ScheduledGraphOp>(argument.getOwner()->getParentOp()) &&
                   argument.getArgNumber() < actor.place.size();
    std::optional<int64_t> value = reg       ? valueOf(reg, actor)
                                   : isPlace ? std::optional(actor.place[argument.getArgNumber()])
                                             : std::nullopt;
    if (!value && !reg)
      return std::nullopt;
    int64_t part = 0;
    if (value && (__builtin_mul_overflow(*value, scale, &part) || __builtin_add_overflow(base, part, &base)))
      return std::nullopt;
    if (!value && scale)
      out[Product{static_cast<unsigned>(reg.getNumber())}] += scale;
  }
  std::erase_if(out, [](const auto &entry) { return entry.second == 0; });
  if (base > 0 || (base && !out.empty()))
    out[{}] = base;
  return out;
}

bool Balance::countEnd(Actor &actor, Operation *op, const Count &times) {
  auto add = [&](auto end, std::map<Stream, Count> &to) {
    auto descriptor = end.getDescriptor().template getDefiningOp<DescriptorOp>();
    std::optional<int64_t> bits = bitsMoved(descriptor);
    std::optional<Count> all = times;
    if (bits && end.getCount()) { // in the place of the first dim
      ArrayRef<int64_t> dims = descriptor.getDims();
      std::optional<Count> count = countOf(*end.getCount(), end.getIndices(), actor);
      all = count && !dims.empty() && dims[0] ? product(times, *count) : std::nullopt;
      bits = all ? *bits / dims[0] : 0;
    }
    Stream stream{end.getChannel(), {}};
    if (end.getElement())
      stream.second = *valuesAt(*end.getElement(), end.getIndices(), actor.place); // C4 of the end
    return bits && all && Balance::add(to[stream], *all, *bits);
  };
  if (auto put = dyn_cast<PutOp>(op))
    return add(put, actor.puts);
  if (auto get = dyn_cast<GetOp>(op))
    return add(get, actor.gets);
  return true;
}

bool Balance::count(Actor &actor, Block &block, const Count &times) {
  return llvm::all_of(block, [&](Operation &op) {
    if (auto loop = dyn_cast<LoopOp>(op)) {
      std::optional<Count> trips = countOf(loop.getTimes(), loop.getIndices(), actor);
      std::optional<Count> all = trips ? product(times, *trips) : std::nullopt;
      return all && count(actor, loop.getBody().front(), *all);
    }
    for (Value ring : ringsOf(&op))
      if (!add(actor.turns[ring.getDefiningOp()], times, isa<FillOp>(op) ? ring.getDefiningOp<RingOp>().getUses() : 1))
        return false;
    if (isa<TaskGroupOp, FillOp, DrainOp>(op))
      return count(actor, op.getRegion(0).front(), times);
    return countEnd(actor, &op, times);
  });
}

void Balance::count(Actor &actor, Block &body) { actor.isKnown = count(actor, body, Count{{{}, 1}}); }

/// What stands before an endless loop is done once, as by a queue that ends.
bool Balance::addQueue(DispatchQueueOp queue, ArrayRef<int64_t> place) {
  Block &body = queue.getBody().front();
  auto loop = body.empty() ? LoopOp() : dyn_cast<LoopOp>(body.back());
  bool isEndless = loop && loop.getTimes().isSingleConstant() && loop.getTimes().getSingleConstantResult() == kForever;
  Actor actor{queue, SmallVector<int64_t>(place), isEndless};
  if (isEndless && !llvm::hasSingleElement(body)) {
    Actor &before = actors.emplace_back(Actor{queue, SmallVector<int64_t>(place)});
    before.isKnown = llvm::all_of(body, [&](Operation &op) {
      if (&op == loop.getOperation())
        return true;
      for (Value ring : ringsOf(&op))
        add(before.turns[ring.getDefiningOp()], Count{{{}, 1}},
            isa<FillOp>(op) ? ring.getDefiningOp<RingOp>().getUses() : 1);
      return isa<FillOp, DrainOp>(op) && count(before, op.getRegion(0).front(), Count{{{}, 1}});
    });
    actor.begins = actors.size() - 1;
  }
  count(actor, isEndless ? loop.getBody().front() : body);
  actors.push_back(std::move(actor));
  return actors.size() <= kMostActors;
}

bool Balance::addActors() {
  actors.emplace_back();
  for (auto queue : graph.getBody().getOps<DispatchQueueOp>()) {
    SmallVector<SmallVector<int64_t>> places = placesOf(queue.grid());
    if (actors.size() + places.size() > kMostActors)
      return false;
    for (ArrayRef<int64_t> place : places)
      if (!addQueue(queue, place))
        return false;
  }
  parents.resize(actors.size());
  std::iota(parents.begin(), parents.end(), 0);
  weights.assign(actors.size(), Ratio());
  for (size_t i = 1; i < actors.size(); ++i)
    if (!actors[i].isEndless)
      parents[i] = 0;
  return true;
}

//===--- how passes of queues go together ---------------------------------------------------===//

std::pair<size_t, std::optional<Ratio>> Balance::find(size_t actor) {
  std::optional<Ratio> all = Ratio();
  for (; parents[actor] != actor; actor = parents[actor])
    all = all && weights[actor] ? times(*all, *weights[actor]) : std::nullopt;
  return {actor, all};
}

bool Balance::join(size_t one, const Count &count, size_t other, const Count &otherCount) {
  if (!actors[one].isKnown || !actors[other].isKnown || (count.empty() && otherCount.empty()))
    return true;
  if (count.empty() || otherCount.empty())
    return false;
  std::optional<Ratio> ratio = quotient(otherCount, count);
  auto [root, weight] = find(one);
  auto [otherRoot, otherWeight] = find(other);
  if (!ratio || !weight || !otherWeight)
    return !weight || !otherWeight;                          // beyond 64 bits nothing is known
  std::optional<Ratio> wanted = times(*ratio, *otherWeight); // passes of `one`, by those of the other's root
  if (root == otherRoot)
    return !wanted || *wanted == *weight;
  bool runs = root == 0;
  parents[runs ? otherRoot : root] = runs ? root : otherRoot;
  std::optional<Ratio> edge = wanted ? times(*wanted, inverse(*weight)) : std::nullopt;
  weights[runs ? otherRoot : root] = edge && runs ? std::optional(inverse(*edge)) : edge;
  return true;
}

std::string Balance::compared(size_t one, const Count &count, size_t other, const Count &otherCount) {
  std::optional<Ratio> ratio = count.empty() || otherCount.empty() ? std::nullopt : quotient(count, otherCount);
  std::optional<Ratio> weight = find(one).second, otherWeight = find(other).second;
  std::optional<Ratio> all = weight && otherWeight ? times(*weight, inverse(*otherWeight)) : std::nullopt;
  ratio = ratio && all ? times(*ratio, *all) : std::nullopt;
  if (ratio)
    return std::to_string(ratio->up) + " times where it is drained " + std::to_string(ratio->down);
  return count.empty()        ? "never, and drained"
         : otherCount.empty() ? "and never drained"
                              : "otherwise than it is drained";
}

/// Of a queue that gets some before its loop, the loop gets what is left of a run.
bool Balance::joinEnds(const Stream &stream, size_t source, size_t sink) {
  Count put = actors[source].puts[stream];
  bool isBefore = llvm::any_of(actors, [&](Actor &other) { return other.begins == sink && other.gets.count(stream); });
  if (isBefore)
    return true; // of its loop
  if (size_t before = actors[sink].begins; before && actors[before].gets.count(stream)) {
    if (actors[source].isEndless || !actors[before].isKnown || !add(put, actors[before].gets[stream], -1))
      return true; // nothing is known
    std::erase_if(put, [](const auto &entry) { return entry.second == 0; });
  }
  return join(source, put, sink, actors[sink].gets[stream]);
}

LogicalResult Balance::followChannels() {
  std::map<Stream, std::vector<size_t>> puts, gets;
  for (size_t i = 1; i < actors.size(); ++i) {
    for (const auto &[stream, bits] : actors[i].puts)
      puts[stream].push_back(i);
    for (const auto &[stream, bits] : actors[i].gets)
      gets[stream].push_back(i);
  }
  for (const auto &[stream, sources] : puts)
    for (size_t sink : sources.size() == 1 ? gets[stream] : std::vector<size_t>()) // a join says who puts when
      if (size_t source = sources[0]; !joinEnds(stream, source, sink))
        return program.lookupSymbol(stream.first)->emitOpError("C7: @")
               << stream.first << (stream.second.empty() ? "" : "[")
               << llvm::join(llvm::map_range(stream.second, [](int64_t i) { return std::to_string(i); }), ", ")
               << (stream.second.empty() ? "" : "]") << " is given other bytes in a run than are got from it";
  return success();
}

LogicalResult Balance::followRing(RingOp ring) {
  std::map<SmallVector<int64_t>, std::vector<size_t>> units;
  for (size_t i = 1; i < actors.size(); ++i)
    if (actors[i].turns.count(ring))
      units[actors[i].place].push_back(i);
  for (const auto &[place, ends] : units) {
    auto first = llvm::find_if(ends, [&](size_t i) {
      return llvm::any_of(ring.getResult().getUsers(), [&](Operation *user) {
        return isa<FillOp>(user) && user->getParentOfType<DispatchQueueOp>() == actors[i].queue;
      });
    });
    for (size_t end : ends)
      if (first != ends.end() && end != *first &&
          !join(*first, actors[*first].turns[ring], end, actors[end].turns[ring]))
        return ring.emitOpError("C7: ") << nameOf(ring) << " is filled "
                                        << compared(*first, actors[*first].turns[ring], end, actors[end].turns[ring])
                                        << " by \"" << actors[end].queue.getEngine() << "\" "
                                        << actors[end].queue.getIndex()
                                        << ", by what the queues of a run do: the two are as many";
  }
  return success();
}

LogicalResult Balance::run() {
  if (!addActors())
    return success();
  if (failed(followChannels()))
    return failure();
  for (auto ring : graph.getBody().getOps<RingOp>())
    if (failed(followRing(ring)))
      return failure();
  return success();
}

} // namespace

LogicalResult dmxc::dlir::verifyBalance(ScheduledGraphOp graph) {
  return graph.getBody().getOps<RingOp>().empty() ? success() : Balance(graph).run();
}
