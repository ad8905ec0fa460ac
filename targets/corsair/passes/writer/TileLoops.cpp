//===- TileLoops.cpp - what loops over tiles do ---------------------------===//
#include "TileLoops.h"
#include "TileForms.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IntegerSet.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <map>

using namespace mlir;
using namespace dmxc;
using affine_ext::VecExtType;

/// Steps of a product's loops that are followed: more than the tiles of any matrix in GM take.
static constexpr int64_t kMostSteps = int64_t(1) << 26;

namespace {

/// A value while the loops run: an index, the place of a tile in a grid, or of the operands of a sum and what it has.
struct Item {
  int64_t first = 0, second = 0;
  int terms = -1;
  int64_t bias = -1;
  int grid = -1;                     ///< of a tile of numbers that was loaded
  int unit = -1;                     ///< what the sum became
  int64_t beside = -1, besideAt = 0; ///< the row and column of the tiles in that
};

/// Runs the loops on places of tiles instead of on tiles.
class Follower {
public:
  explicit Follower(TileLoops &loops) : loops(loops) {}

  bool run(affine::AffineForOp loop) {
    for (affine::AffineLoadOp load : loadsBefore(loop))
      if (!read(load, code))
        return false;
    if (!read(loop, code))
      return false;
    items.resize(slots.size());
    for (auto [slot, value] : constants)
      items[slot].first = value;
    return execute(code) && (loops.store || refuse(loop, "stores no tile"));
  }

private:
  struct Map {
    AffineMap map;
    SmallVector<unsigned, 4> operands;
  };
  /// An op with the numbers of its values.
  struct Code {
    Operation *op = nullptr;
    SmallVector<unsigned, 4> in, out;
    Map map, upper; ///< of indices, or the bounds of a loop
    std::vector<Code> body;
    std::pair<int, corsair::Addition> last = {-2, {}}; ///< that a product added to which terms ..
    int made = -1;           ///< .. and which these became; of a load which it is, of a function which unit it was
    bool isFunction = false; ///< of tiles of numbers
  };

  bool refuse(Operation *op, const std::string &why) {
    loops.at = op;
    loops.problem = why;
    return false;
  }

  //--- ops
  unsigned slotOf(Value value) { return slots.try_emplace(value, slots.size()).first->second; }

  bool readMap(Operation *op, AffineMap map, ValueRange operands, Map &to) {
    to.map = map;
    for (Value operand : operands) {
      const bool known = slots.contains(operand);
      to.operands.push_back(slotOf(operand));
      if (known)
        continue;
      std::optional<int64_t> constant = getConstantIntValue(operand);
      if (!constant)
        return refuse(op, "has an index that is no sum of the counters of its loops");
      constants.push_back({to.operands.back(), *constant});
    }
    return true;
  }
  bool readValues(Operation *op, ValueRange values, SmallVectorImpl<unsigned> &to) {
    for (Value value : values) {
      if (!slots.contains(value))
        return refuse(op, "takes a tile that no op of its loops loads or makes");
      to.push_back(slotOf(value));
    }
    return true;
  }
  void readResults(Operation *op, Code &to) {
    for (Value result : op->getResults())
      to.out.push_back(slotOf(result));
  }

  bool read(Operation *op, std::vector<Code> &into) {
    Code made;
    made.op = op;
    const bool known =
        llvm::TypeSwitch<Operation *, bool>(op)
            .Case([&](affine::AffineForOp loop) { return readLoop(loop, made); })
            .Case([&](affine::AffineIfOp condition) { return readCondition(condition, made); })
            .Case([&](affine::AffineLoadOp load) {
              std::optional<TileForm> form = formOf(load.getType());
              const bool fits = form && load.getMemRefType().getRank() == (*form == TileForm::Bias ? 1 : 2);
              made.made = units.grid(load.getMemRef());
              return fits ? readMap(op, load.getAffineMap(), load.getMapOperands(), made.map)
                          : refuse(op, "loads what is no tile of a matrix or of a bias");
            })
            .Case([&](affine::AffineStoreOp store) {
              if (formOf(store.getValueToStore().getType()) != TileForm::Number || store.getMemRefType().getRank() != 2)
                return refuse(op, "stores what is no tile of numbers of a matrix");
              if (loops.out && loops.out != store.getMemRef())
                return refuse(op, "stores tiles of a second matrix");
              loops.out = store.getMemRef(), loops.store = store;
              return readValues(op, store.getValueToStore(), made.in) &&
                     readMap(op, store.getAffineMap(), store.getMapOperands(), made.map);
            })
            .Case([&](affine::AffineApplyOp apply) {
              return readMap(op, apply.getAffineMap(), apply.getMapOperands(), made.map);
            })
            .Case([&](lldmir::MatMulOp product) { return readProduct(product, made); })
            .Case([&](lldmir::SimdOp unit) { return readUnit(unit, made); })
            .Case<affine::AffineYieldOp>([&](auto yield) { return readValues(op, yield.getOperands(), made.in); })
            .Case<arith::ConstantOp>([](auto) { return true; })
            .Default([&](Operation *other) { return refuse(other, "is not known in the loops of a product"); });
    if (!known)
      return false;
    if (!isa<affine::AffineForOp, affine::AffineIfOp, arith::ConstantOp>(op))
      readResults(op, made);
    if (!isa<arith::ConstantOp>(op))
      into.push_back(std::move(made));
    return true;
  }

  bool readLoop(affine::AffineForOp loop, Code &made) {
    if (!readMap(loop, loop.getLowerBoundMap(), loop.getLowerBoundOperands(), made.map) ||
        !readMap(loop, loop.getUpperBoundMap(), loop.getUpperBoundOperands(), made.upper) ||
        !readValues(loop, loop.getInits(), made.in))
      return false;
    for (Value argument : loop.getBody()->getArguments())
      made.out.push_back(slotOf(argument));
    for (Operation &op : *loop.getBody())
      if (!read(&op, made.body))
        return false;
    for (Value result : loop->getResults()) // what was carried last
      made.out.push_back(slotOf(result));
    return true;
  }

  /// Trips that are left out: what stands in a condition is done or not.
  bool readCondition(affine::AffineIfOp condition, Code &made) {
    const IntegerSet set = condition.getIntegerSet();
    if (condition.getNumResults() || condition.hasElse())
      return refuse(condition, "is a choice of two values or works");
    const AffineMap map = AffineMap::get(set.getNumDims(), set.getNumSymbols(), set.getConstraints(), set.getContext());
    return readMap(condition, map, condition.getOperands(), made.map) &&
           llvm::all_of(condition.getThenBlock()->without_terminator(),
                        [&](Operation &op) { return read(&op, made.body); });
  }

  bool readProduct(lldmir::MatMulOp product, Code &made) {
    for (auto [tiles, form] : {std::pair(product.getActivations(), TileForm::Activations),
                               std::pair(product.getWeights(), TileForm::Weights)})
      for (Value tile : tiles)
        if (formOf(tile.getType()) != form)
          return refuse(product, "multiplies tiles of other types than 64x64 of BFP16_64R and BFP16_64C");
    if (product.getRows().value_or(64) != 64)
      return refuse(product, "computes a part of the rows of a tile");
    if (product.getInit() && !readValues(product, product.getInit(), made.in))
      return false;
    loops.products.push_back(product);
    return readValues(product, product.getActivations(), made.in) &&
           readValues(product, product.getWeights(), made.in) &&
           sameGrid(product, product.getActivations(), loops.left) &&
           sameGrid(product, product.getWeights(), loops.right);
  }
  /// The grid that tiles of operands are loaded from.
  bool sameGrid(Operation *op, ValueRange tiles, Value &grid) {
    for (Value tile : tiles) {
      if (auto cast = tile.getDefiningOp<lldmir::SimdOp>())
        tile = cast.getInputs()[0];
      auto load = tile.getDefiningOp<affine::AffineLoadOp>();
      if (!load || (grid && grid != load.getMemRef()))
        return refuse(op, "multiplies tiles of more than one matrix from either side");
      grid = load.getMemRef();
    }
    return true;
  }

  bool readUnit(lldmir::SimdOp unit, Code &made) {
    SmallVector<std::optional<TileForm>> forms;
    for (Value input : unit.getInputs())
      forms.push_back(formOf(input.getType()));
    const std::optional<TileForm> to =
        unit.getResults().size() == 1 ? formOf(unit.getResult(0).getType()) : std::nullopt;
    const bool casts =
        unit.getFunction() == "cast" && forms.size() == 1 && to &&
        (forms[0] == TileForm::Sum ? *to == TileForm::Number
                                   : forms[0] == TileForm::Number && unit.getInputs()[0].getDefiningOp() &&
                                         isa<affine::AffineLoadOp>(unit.getInputs()[0].getDefiningOp()) &&
                                         (*to == TileForm::Activations || *to == TileForm::Weights));
    const bool adds = unit.getFunction() == "add" && forms.size() == 2 && forms[0] == TileForm::Sum &&
                      forms[1] == TileForm::Bias && to == TileForm::Sum;
    made.isFunction = !casts && !adds;
    if (made.isFunction) {
      auto isF16 = [](Type type) {
        return formOf(type) == TileForm::Number && cast<VecExtType>(type).getElementType().isF16();
      };
      if (!to || !llvm::all_of(unit->getOperandTypes(), isF16) || !isF16(unit.getResult(0).getType()))
        return refuse(unit,
                      "of \"" + unit.getFunction().str() +
                          "\" is of no tiles of f16, which the vector device computes; a cast makes them of a sum");
    }
    if (adds) {
      auto load = unit.getInputs()[1].getDefiningOp<affine::AffineLoadOp>();
      if (!load || (loops.bias && loops.bias != load.getMemRef()))
        return refuse(unit, "adds more than one bias");
      loops.bias = load.getMemRef();
    }
    return readValues(unit, unit.getInputs(), made.in);
  }

  //--- trips
  ArrayRef<int64_t> numbersOf(const Map &map) {
    numbers.clear();
    for (unsigned slot : map.operands)
      numbers.push_back(items[slot].first);
    return numbers;
  }
  int64_t indexOf(const Map &map, unsigned result) {
    const ArrayRef<int64_t> all = numbersOf(map);
    return evaluate(map.map.getResult(result), all.take_front(map.map.getNumDims()),
                    all.drop_front(map.map.getNumDims()));
  }
  int64_t boundOf(const Map &map, bool lower) {
    int64_t bound = indexOf(map, 0);
    for (unsigned i = 1; i < map.map.getNumResults(); ++i)
      bound = lower ? std::max(bound, indexOf(map, i)) : std::min(bound, indexOf(map, i));
    return bound;
  }

  bool execute(std::vector<Code> &ops) {
    return llvm::all_of(ops, [&](Code &each) { return execute(each); });
  }

  bool execute(Code &each) {
    if (++steps > kMostSteps)
      return refuse(each.op, "is reached too often to be a product's");
    return llvm::TypeSwitch<Operation *, bool>(each.op)
        .Case([&](affine::AffineForOp loop) { return executeLoop(loop, each); })
        .Case([&](affine::AffineIfOp condition) {
          return !holds(condition.getIntegerSet(), numbersOf(each.map)) || execute(each.body);
        })
        .Case([&](affine::AffineLoadOp load) {
          if (!place(each, load.getMemRefType(), items[each.out[0]]))
            return false;
          items[each.out[0]].grid = each.made;
          return true;
        })
        .Case([&](affine::AffineStoreOp store) { return executeStore(store, each); })
        .Case([&](affine::AffineApplyOp) {
          items[each.out[0]].first = indexOf(each.map, 0);
          return true;
        })
        .Case([&](lldmir::MatMulOp product) { return executeProduct(product, each); })
        .Case([&](lldmir::SimdOp unit) {
          if (each.isFunction)
            return executeFunction(unit, each);
          Item &made = items[each.out[0]];
          made = items[each.in[0]];
          if (each.in.size() < 2)
            return true;
          if (made.bias >= 0)
            return refuse(unit, "adds a second bias");
          made.bias = items[each.in[1]].first;
          return true;
        })
        .Default([](Operation *) { return true; }); // a yield
  }

  bool place(Code &each, MemRefType grid, Item &to) {
    to = Item();
    for (unsigned dim = 0; dim < grid.getRank(); ++dim) {
      const int64_t index = indexOf(each.map, dim);
      if (index < 0 || index >= grid.getDimSize(dim))
        return refuse(each.op, "is of tile " + std::to_string(index) + " along dim " + std::to_string(dim) +
                                   " of a grid that has " + std::to_string(grid.getDimSize(dim)));
      (dim ? to.second : to.first) = index;
    }
    return true;
  }

  bool executeLoop(affine::AffineForOp loop, Code &each) {
    const int64_t lower = boundOf(each.map, true), upper = boundOf(each.upper, false);
    const auto step = static_cast<uint64_t>(loop.getStepAsInt());
    const uint64_t trips = upper > lower ? (uint64_t(upper) - uint64_t(lower) - 1) / step + 1 : 0;
    const size_t carried = each.in.size();
    for (size_t i = 0; i < carried; ++i)
      items[each.out[1 + i]] = items[each.in[i]];
    SmallVector<Item> next(carried);
    for (uint64_t trip = 0; trip < trips; ++trip) {
      items[each.out[0]].first = static_cast<int64_t>(uint64_t(lower) + trip * step);
      if (!execute(each.body))
        return false;
      const Code &yield = each.body.back();
      for (size_t i = 0; i < carried; ++i)
        next[i] = items[yield.in[i]];
      for (size_t i = 0; i < carried; ++i)
        items[each.out[1 + i]] = next[i];
    }
    for (size_t i = 0; i < carried; ++i)
      items[each.out[1 + carried + i]] = items[each.out[1 + i]];
    return true;
  }

  bool executeProduct(lldmir::MatMulOp product, Code &each) {
    const size_t init = product.getInit() ? 1 : 0, count = product.getActivations().size();
    Item made;
    if (init)
      made = items[each.in[0]];
    if (made.bias >= 0)
      return refuse(product, "adds to a sum that has its bias already");
    const ArrayRef<unsigned> a = ArrayRef(each.in).drop_front(init).take_front(count),
                             w = ArrayRef(each.in).drop_front(init + count);
    corsair::Addition next{
        items[w[0]].first, static_cast<int>(product.getNumImc()), static_cast<int>(product.getPprMode()), {}};
    const int64_t row = items[a[0]].first, column = items[w[0]].second;
    const ArrayRef<int64_t> kept = keptOf(column);
    for (unsigned slot : kept.empty() ? ArrayRef<unsigned>() : w)
      if (!llvm::is_contained(kept, items[slot].first))
        return refuse(product, "multiplies by tile " + std::to_string(items[slot].first) + " along K of column " +
                                   std::to_string(column) + ", which the form of the weights leaves out as zeros");
    auto placeOf = [&](const Item &weight) {
      return kept.empty() ? weight.first : static_cast<int64_t>(llvm::find(kept, weight.first) - kept.begin());
    };
    next.first = placeOf(items[w[0]]);
    for (size_t i = 0; i < count; ++i) {
      if (items[a[i]].first != row || items[w[i]].second != column)
        return refuse(product, "adds tiles of several rows or columns");
      if (placeOf(items[w[i]]) != next.first + static_cast<int64_t>(i))
        return refuse(product, "multiplies by tile " + std::to_string(items[w[i]].first) + " along K on core " +
                                   std::to_string(i) + ", where " + std::to_string(next.first + i) +
                                   " is: weights of neighbouring cores are neighbours");
      next.activations.push_back(items[a[i]].second);
    }
    if (made.terms >= 0 && (made.first != row || made.second != column))
      return refuse(product, "adds to a sum of another row or column");
    if (each.last.first != made.terms || !(each.last.second == next)) {
      each.last = {made.terms, next};
      each.made = termsWith(made.terms, next);
    }
    items[each.out[0]] = {row, column, each.made};
    return true;
  }

  bool executeFunction(lldmir::SimdOp unit, Code &each) {
    Item made;
    TileUnit next{unit, {}};
    for (unsigned slot : each.in) {
      const Item &input = items[slot];
      const bool isSum = input.terms >= 0;
      const int64_t beside = isSum ? input.beside : input.first, at = isSum ? input.besideAt : input.second;
      if (isSum && made.terms >= 0 &&
          (made.terms != input.terms || made.first != input.first || made.second != input.second ||
           made.bias != input.bias))
        return refuse(unit, "is of tiles of several sums");
      if (beside >= 0 && made.beside >= 0 && (beside != made.beside || at != made.besideAt))
        return refuse(unit, "is of tiles of several rows or columns");
      if (isSum)
        made.first = input.first, made.second = input.second, made.terms = input.terms, made.bias = input.bias;
      if (beside >= 0)
        made.beside = beside, made.besideAt = at;
      next.inputs.push_back(isSum ? input.unit : TileUnit::kSum - 1 - input.grid);
    }
    if (made.terms < 0)
      return refuse(unit, "is of no tile that the product makes");
    each.made = units.add(next, each.made);
    made.unit = each.made;
    items[each.out[0]] = made;
    return true;
  }

  /// The blocks along K that the weights of a column of tiles have, in the order in which they lie; empty: all.
  ArrayRef<int64_t> keptOf(int64_t column) const {
    const corsair::TileForm *form = loops.right ? loops.formOf(loops.right) : nullptr;
    if (!form || form->kept.empty())
      return {};
    const int64_t all = (form->n + 63) / 64; // quads have the same of theirs
    return form->kept[form->roundOf(column % all)];
  }

  /// The number of the terms that some and an addition are.
  int termsWith(int number, const corsair::Addition &next) {
    std::vector<int64_t> key{number, next.first, next.imc, next.ppr};
    llvm::append_range(key, next.activations);
    auto [found, isNew] = known.try_emplace(key, static_cast<int>(sums.size()));
    if (isNew) {
      corsair::TileTerms all = number < 0 ? corsair::TileTerms() : sums[number];
      all.additions.push_back(next);
      sums.push_back(std::move(all));
    }
    return found->second;
  }

  bool executeStore(affine::AffineStoreOp store, Code &each) {
    const Item &sum = items[each.in[0]];
    if (sum.terms < 0)
      return refuse(store, "stores a tile that no product made");
    Item to;
    if (!place(each, store.getMemRefType(), to))
      return false;
    if (!written.insert({to.first, to.second}).second)
      return refuse(store, "stores tile [" + std::to_string(to.first) + ", " + std::to_string(to.second) + "] again");
    if (sum.beside >= 0 && (sum.beside != to.first || sum.besideAt != to.second))
      return refuse(store, "stores tile [" + std::to_string(to.first) + ", " + std::to_string(to.second) +
                               "] of what tile [" + std::to_string(sum.beside) + ", " + std::to_string(sum.besideAt) +
                               "] of another matrix has a part in");
    auto [found, isNew] = stored.try_emplace({sum.terms, sum.bias >= 0, sum.unit}, loops.terms.size());
    if (isNew) {
      loops.terms.push_back(sums[sum.terms]);
      loops.terms.back().biased = sum.bias >= 0;
      if (sum.unit >= 0) {
        loops.terms.back().epilogue = static_cast<int>(loops.epilogues.size());
        loops.epilogues.push_back(units.epilogue(sum.unit, loops.beside));
      }
    }
    // What has the same terms may have another number of tiles along K.
    if ((isNew || !keptOf(sum.second).empty()) && !coversK(store, loops.terms[found->second], sum.second))
      return false;
    loops.tiles.push_back(
        {{to.first, to.second, sum.first, sum.second, std::max<int64_t>(sum.bias, 0)}, found->second});
    return true;
  }

  bool coversK(affine::AffineStoreOp store, const corsair::TileTerms &terms, int64_t column) {
    const ArrayRef<int64_t> kept = keptOf(column);
    auto blockAt = [&](int64_t place) { return std::to_string(kept.empty() ? place : kept[place]); };
    std::vector<int> times(
        kept.empty() ? cast<MemRefType>(loops.right.getType()).getDimSize(0) : static_cast<int64_t>(kept.size()), 0);
    for (const corsair::Addition &addition : terms.additions)
      for (int64_t i = 0; i < addition.count(); ++i)
        if (++times[addition.first + i] > 1)
          return refuse(store,
                        "stores a sum with tile " + blockAt(addition.first + i) + " along K of the weights twice");
    auto missing = llvm::find(times, 0);
    return missing == times.end() ? true
                                  : refuse(store, "stores a sum without tile " + blockAt(missing - times.begin()) +
                                                      " along K of the weights");
  }

  TileLoops &loops;
  std::vector<Code> code;
  llvm::DenseMap<Value, unsigned> slots;
  SmallVector<std::pair<unsigned, int64_t>> constants;
  std::vector<Item> items; ///< by slot
  SmallVector<int64_t> numbers;
  int64_t steps = 0;
  std::vector<corsair::TileTerms> sums;
  std::map<std::vector<int64_t>, int> known;
  std::map<std::tuple<int, bool, int>, size_t> stored;
  TileUnits units;
  llvm::DenseSet<std::pair<int64_t, int64_t>> written;
};

} // namespace

bool TileLoops::follow(affine::AffineForOp loop) { return Follower(*this).run(loop); }

int64_t TileLoops::widest() const {
  int64_t most = 1;
  for (const corsair::TileTerms &each : terms)
    for (const corsair::Addition &addition : each.additions)
      most = std::max<int64_t>(most, addition.imc);
  return most;
}

bool TileLoops::isInOrder() const {
  return llvm::all_of(terms, [](const corsair::TileTerms &each) {
    int64_t k = 0;
    for (const corsair::Addition &addition : each.additions) {
      if (addition.first != k)
        return false;
      for (int64_t block : addition.activations)
        if (block != k++)
          return false;
    }
    return true;
  });
}
