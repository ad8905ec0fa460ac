//===- TapCopies.cpp - windows tap by tap to shared memory --------------------===//

#include "TapCopies.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

static constexpr int64_t kWarpgroup = 128;

static Value both(CudaBuilder &b, Value x, Value y) { return !x ? y : !y ? x : Value(arith::AndIOp::create(b, x, y)); }

/// Of the warpgroup that copies.
Value TapCopies::thread() { return b.addC(b.threadInBlock(), -tile.consumers() * kWarpgroup); }

/// Where a tile has fewer columns than there are threads, several share a column: which of its units is the thread's.
Value TapCopies::share() { return tile.columns < kWarpgroup ? b.floorDiv(thread(), b.idx(tile.columns)) : b.idx(0); }

/// `number`: which of the thread's. Neighbouring threads have neighbouring columns.
TapCopies::Pixel TapCopies::pixelAt(int64_t number, Value column) {
  Pixel pixel;
  pixel.row = tile.columns < kWarpgroup ? b.rem(thread(), b.idx(tile.columns)) : b.addC(thread(), number * kWarpgroup);
  Value rest = words.from(b.add(column, pixel.row));
  if (*product.n.known() % tile.columns) {
    pixel.isThere = words.isBelow(rest, words.size(product.n));
    rest = words.min(rest, words.size(product.n - 1));
  }
  pixel.first.resize(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    const Windows::Axis &axis = axes[i];
    Value out = rest;
    if (i)
      std::tie(rest, out) = words.divRem(rest, *axis.out.known());
    pixel.first[i] = words.addC(words.mulC(out, axis.stride), -*axis.low.known());
    auto add = [&](Value at, Value &sum) {
      Value place = words.mulC(at, *axis.apart.known());
      sum = sum ? words.add(sum, place) : place;
    };
    add(pixel.first[i], pixel.place);
    add(words.max(words.min(pixel.first[i], words.of(*axis.in.known() - 1)), words.of(0)), pixel.near);
  }
  return pixel;
}

void TapCopies::enter(Value column, Value first) {
  source = b.elementPtr(b.getIntegerType(16), b.buffer(product.right.buffer), first);
  pixels.clear();
  for (int64_t number = 0; number < std::max<int64_t>(1, tile.columns / kWarpgroup); ++number)
    pixels.push_back(pixelAt(number, column));
}

TapCopies::Tap TapCopies::tapOf(Value unit) {
  auto [number, first] = words.divRem(unit, taps.unitsOfTap());
  Tap tap;
  tap.channel = words.mulC(first, TapForm::kUnit);
  if (taps.pitch() % kTileRowElements)
    tap.isOne = words.isBelow(number, words.of(taps.taps));
  tap.ofChannel = words.mulC(tap.channel, *product.windows->channelsApart.known());
  tap.place = words.of(0);
  tap.along.resize(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    const Windows::Axis &axis = axes[i];
    Value along = number;
    if (i)
      std::tie(number, along) = words.divRem(number, *axis.taps.known());
    tap.along[i] = words.mulC(along, axis.dilation);
    tap.place = words.add(tap.place, words.mulC(tap.along[i], *axis.apart.known()));
  }
  return tap;
}

Value TapCopies::isInside(const Pixel &pixel, const Tap &tap) {
  Value inside = both(b, pixel.isThere, tap.isOne);
  for (auto [axis, first, along] : llvm::zip(axes, pixel.first, tap.along))
    if (!axis.isPointwise())
      inside = both(b, inside, words.isBelow(words.add(first, along), words.size(axis.in)));
  return inside;
}

/// `channel`: units behind the tap's first one. Instead of what is not there a neighbour is read.
TapCopies::Loaded TapCopies::load(const Pixel &pixel, const Tap &tap, Value isThere, int64_t channel) {
  Type i16 = b.getIntegerType(16);
  const int64_t apart = *product.windows->channelsApart.known(), all = taps.channelsOfSet(),
                ahead = channel * TapForm::kUnit;
  Value place = words.add(pixel.place, tap.place);
  if (isThere)
    place = arith::SelectOp::create(b, isThere, place, pixel.near);
  place = words.add(words.add(place, tap.ofChannel), words.of(ahead * apart));
  Value from = b.elementPtr(i16, source, words.index(place));
  Loaded loaded;
  for (int64_t i = 0; i < TapForm::kUnit; ++i) {
    Value has = isThere, own = from;
    if (all % TapForm::kUnit && i >= all % TapForm::kUnit) { // only the last unit of a tap lacks it
      if (all < TapForm::kUnit) {
        loaded.terms.push_back({});
        loaded.has.push_back({});
        continue;
      }
      Value isChannel = words.isBelow(words.addC(tap.channel, ahead + i), words.of(all));
      has = both(b, has, isChannel);
      own = b.elementPtr(i16, source,
                         words.index(arith::SelectOp::create(b, has, words.addC(place, i * apart), words.of(0))));
    } else {
      own = b.elementPtr(i16, from, b.idx(i * apart));
    }
    loaded.terms.push_back(b.load(i16, own, b.idx(0)));
    loaded.has.push_back(has);
  }
  return loaded;
}

void TapCopies::store(const Loaded &loaded, const Unit &unit, Value row, Value to) {
  Type i16 = b.getIntegerType(16), i32 = b.getI32Type();
  SmallVector<Value> all;
  for (size_t i = 0; i < loaded.terms.size(); i += 2) {
    auto termAt = [&](size_t at) { return loaded.terms[at] ? loaded.terms[at] : b.constantInt(i16, 0); };
    const bool same = loaded.has[i] == loaded.has[i + 1];
    auto own = [&](size_t at) {
      return same || !loaded.has[at]
                 ? termAt(at)
                 : Value(arith::SelectOp::create(b, loaded.has[at], termAt(at), b.constantInt(i16, 0)));
    };
    Value pair = vector::FromElementsOp::create(b, VectorType::get({2}, i16), ValueRange{own(i), own(i + 1)});
    Value word = vector::ExtractOp::create(b, vector::BitCastOp::create(b, VectorType::get({1}, i32), pair), 0);
    all.push_back(same && loaded.has[i] ? Value(arith::SelectOp::create(b, loaded.has[i], word, b.constantInt(i32, 0)))
                                        : word);
  }
  // As swizzled() has it, of an offset in a tile: units of 16 bytes change places by the row.
  Value turned = arith::XOrIOp::create(b, b.addC(share(), unit.number), b.rem(row, b.idx(kPatternRows)));
  Value place = b.add(b.add(to, b.mulC(row, kTileRowBytes)), b.mulC(turned, TapForm::kUnit * 2));
  auto type = VectorType::get({static_cast<int64_t>(all.size())}, i32);
  LLVM::StoreOp::create(b, vector::FromElementsOp::create(b, type, all), async.shared(place), /*alignment=*/16);
}

int64_t TapCopies::groups() const { return tile.columns * kStepUnits / kWarpgroup / atOnce; }

SmallVector<TapCopies::Unit> TapCopies::unitsOf(int64_t group) const {
  const int64_t sharing = std::max<int64_t>(1, kWarpgroup / tile.columns);
  SmallVector<Unit> units;
  for (const Pixel &pixel : pixels)
    for (int64_t number = 0; number < kStepUnits; number += sharing)
      units.push_back({&pixel, number});
  return SmallVector<Unit>(ArrayRef(units).slice(static_cast<size_t>(group * atOnce), static_cast<size_t>(atOnce)));
}

SmallVector<Value> TapCopies::load(Value k, int64_t group) {
  Value first = words.add(words.divRem(words.from(k), TapForm::kUnit).first, words.from(share()));
  std::optional<Tap> tap;
  if (isOneTap())
    tap = tapOf(first);
  SmallVector<Value> values;
  pattern.clear();
  for (const Unit &unit : unitsOf(group)) {
    Tap own = tap ? *tap : tapOf(words.addC(first, unit.number));
    pattern.push_back(load(*unit.pixel, own, isInside(*unit.pixel, own), tap ? unit.number : 0));
    for (const auto *all : {&pattern.back().terms, &pattern.back().has})
      llvm::copy_if(*all, std::back_inserter(values), [](Value value) { return static_cast<bool>(value); });
  }
  return values;
}

/// Where a thread has two columns its places are computed anew each time: kept from step to step they take too many
/// registers.
void TapCopies::store(ArrayRef<Value> loaded, int64_t group, Value to) {
  const bool anew = pixels.size() > 1;
  Value own = anew ? b.addC(async.threadNow(), -tile.consumers() * kWarpgroup) : Value();
  auto rowOf = [&](const Unit &unit) {
    return anew ? b.addC(own, (unit.pixel - pixels.data()) * kWarpgroup) : unit.pixel->row;
  };
  for (auto [unit, form] : llvm::zip(unitsOf(group), pattern)) {
    Loaded taken;
    auto take = [&](ArrayRef<Value> form, SmallVector<Value> &into) {
      for (Value value : form) {
        into.push_back(value ? loaded.front() : Value());
        loaded = loaded.drop_front(value ? 1 : 0);
      }
    };
    take(form.terms, taken.terms);
    take(form.has, taken.has);
    store(taken, unit, rowOf(unit), to);
  }
}
