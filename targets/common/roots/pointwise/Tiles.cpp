//===- Tiles.cpp - elementwise and data-movement regions in tiles --------------===//

#include "Plan.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <tuple>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

bool dmxc::kernels::hasFewLast(const PointwisePlan &plan) {
  constexpr int64_t most = 8;
  std::optional<int64_t> size = plan.groups.back().size.known();
  return size && *size > 1 && *size <= most && llvm::isPowerOf2_64(*size);
}

namespace {

/// Lanes lie along the channels of a block; tiles of a whole block are computed along positions, if they are turned.
class BlockEmitter {
public:
  BlockEmitter(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan)
      : b(b), e(b, body.block), writer(e, body), body(body), plan(plan), at(plan.groups.size()),
        dim(body.resultType().getDimSize(plan.blockedAxis)) {
    lanes = std::min(chooseLanes(body.results, b.processor()), plan.block);
    while (plan.groups[blocks].first != plan.blockedAxis)
      ++blocks;
  }

  void emit() {
    emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
      for (auto [g, position] : llvm::enumerate(outer))
        at[g] = e.at(position);
      block = outer[blocks];
      start = b.mulC(block, plan.block);
      if (!plan.across)
        return channels();
      Value whole = b.add(lo, b.mulC(b.floorDiv(b.sub(hi, lo), b.idx(lanes)), lanes));
      if (dim % plan.block)
        whole = arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::sle, b.addC(start, plan.block), b.idx(dim)),
                                        whole, lo);
      b.forLoop(lo, whole, b.idx(lanes), [&](Value q) { tile(q); });
      b.forLoop(whole, hi, b.idx(1), [&](Value q) {
        at.back() = e.at(q);
        channels();
      });
    });
  }

private:
  Indices index() { return spread(e, plan.groups, at, body.resultType().getRank()); }
  /// Lanes of a block from one of its channels on.
  Index lanesFrom(int64_t channel) {
    Value first = b.addC(start, channel);
    e.knowDivision(first, plan.block, block, b.idx(channel));
    return e.at(first, lanes, lanes > 1);
  }
  void channels() {
    for (int64_t lane = 0; lane < plan.block; lane += lanes) {
      at[blocks] = lanesFrom(lane);
      Value inside = b.sub(b.idx(dim), at[blocks].base);
      auto write = [&] { writer.write(index()); };
      if (dim % plan.block == 0) {
        ElementExpr::Lanes all(e, lanes);
        write();
      } else if (lanes == 1) {
        b.ifThen(b.cmp(arith::CmpIPredicate::sgt, inside, b.idx(0)), write);
      } else {
        ElementExpr::Lanes some(e, lanes, b.headMask(lanes, inside));
        write();
      }
    }
  }
  void tile(Value q) {
    ElementExpr::Lanes all(e, lanes);
    for (int64_t lane = 0; lane < plan.block; lane += lanes) {
      SmallVector<Value> rows;
      at.back() = e.at(q, lanes, lanes > 1);
      for (int64_t i = 0; i < lanes; ++i) {
        at[blocks] = e.at(b.addC(start, lane + i));
        rows.append(writer.evaluate(index()));
      }
      at[blocks] = lanesFrom(lane);
      for (auto [i, row] : llvm::enumerate(lanes > 1 ? b.transposed(rows) : rows)) {
        at.back() = e.at(b.addC(q, static_cast<int64_t>(i)));
        writer.store(row, index());
      }
      e.forget();
    }
  }

  KernelBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  const RegionBody &body;
  const PointwisePlan &plan;
  SmallVector<Index> at;
  int64_t lanes, dim;
  unsigned blocks = 0; ///< the group that counts them
  Value block, start;  ///< the one that is written, and its first channel
};

/// Lanes lie along one group where values are computed, and along the last one where they are stored.
class TurnedEmitter {
public:
  TurnedEmitter(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan)
      : b(b), e(b, body.block), writer(e, body), body(body), plan(plan), at(plan.groups.size()) {
    lanes = std::min(chooseLanes(body.results, b.processor(), &narrowest), kTurned);
  }

  void emit() {
    emitItems(b, plan.work, [&](ArrayRef<Value> outer, Value lo, Value hi) {
      const Value *position = outer.begin();
      for (unsigned g = 0; g < plan.groups.size(); ++g)
        if (g != plan.laneGroup && g != *plan.across && !(plan.joined && g + 1 == plan.laneGroup))
          at[g] = e.at(*position++);
      Dim along = plan.groups[plan.laneGroup].size;
      if (plan.joined)
        along *= plan.groups[plan.laneGroup - 1].size;
      Value first = b.mulC(outer.back(), kTurned),
            last = b.minS(b.addC(first, kTurned), b.idx(plan.inOrder ? plan.groups[*plan.across].size : along));
      if (plan.inOrder)
        item(lo, hi, first, last);
      else
        item(first, last, lo, hi);
    });
  }

private:
  Indices index(Index along, Index across) {
    at[plan.laneGroup] = along;
    if (plan.joined) { // further on in the last group is the next one of the group before it
      std::tie(at[plan.laneGroup - 1], at[plan.laneGroup]) =
          e.divRem(e.at(along.base), plan.groups[plan.laneGroup].size);
      at[plan.laneGroup].stride = along.stride;
    }
    at[*plan.across] = across;
    return spread(e, plan.groups, at, body.resultType().getRank());
  }
  /// Whole tiles, then what is left of both groups.
  void item(Value first, Value last, Value lo, Value hi) {
    auto whole = [&](Value from, Value to) {
      return b.add(from, b.mulC(b.floorDiv(b.sub(to, from), b.idx(lanes)), lanes));
    };
    Value hiWhole = whole(lo, hi), one = b.idx(1), step = b.idx(lanes);
    if (hasFewLast(plan) && !plan.joined) {
      b.forLoop(lo, hiWhole, step, [&](Value q) { interleave(q); });
      return b.forLoop(hiWhole, hi, one, [&](Value q) {
        b.forLoop(first, last, one, [&](Value p) { writer.write(index(e.at(p), e.at(q))); });
      });
    }
    Value lastWhole = whole(first, last);
    b.forLoop(first, lastWhole, step, [&](Value p) { b.forLoop(lo, hiWhole, step, [&](Value q) { tile(p, q); }); });
    b.forLoop(hiWhole, hi, one, [&](Value q) {
      if (plan.joined)
        return b.forLoop(first, last, one, [&](Value p) { writer.write(index(e.at(p), e.at(q))); });
      laneLoop(e, first, last, lanes, narrowest, kTurned, [&](Index p) { writer.write(index(p, e.at(q))); });
    });
    b.forLoop(lastWhole, last, one,
              [&](Value p) { b.forLoop(lo, hiWhole, one, [&](Value q) { writer.write(index(e.at(p), e.at(q))); }); });
  }
  /// All elements of the last group, beside each other for each of the positions.
  void interleave(Value q) {
    ElementExpr::Lanes all(e, lanes);
    SmallVector<Value> rows;
    for (int64_t i = 0; i < *plan.groups.back().size.known(); ++i)
      rows.append(writer.evaluate(index(e.at(i), e.at(q, lanes, lanes > 1))));
    for (auto [i, row] : llvm::enumerate(zipped(rows))) // further on in the last group is the next position
      writer.store(row, index(e.at(b.idx(static_cast<int64_t>(i) * lanes), lanes, lanes > 1), e.at(q)));
    e.forget();
  }
  /// The elements of vectors in turn, as as many vectors.
  SmallVector<Value> zipped(ArrayRef<Value> rows) {
    if (rows.size() == 1 || lanes == 1)
      return llvm::to_vector(rows);
    SmallVector<Value> parts[2], result;
    for (auto [i, row] : llvm::enumerate(rows))
      parts[i % 2].push_back(row);
    for (auto [even, odd] : llvm::zip(zipped(parts[0]), zipped(parts[1])))
      for (int64_t half = 0; half < 2; ++half) {
        SmallVector<int64_t> from;
        for (int64_t i = half * lanes / 2; i < (half + 1) * lanes / 2; ++i)
          from.append({i, lanes + i});
        result.push_back(vector::ShuffleOp::create(b, even, odd, from));
      }
    return result;
  }
  void tile(Value p, Value q) {
    ElementExpr::Lanes all(e, lanes);
    SmallVector<Value> rows;
    for (int64_t i = 0; i < lanes; ++i)
      rows.append(writer.evaluate(index(e.at(b.addC(p, i)), e.at(q, lanes, lanes > 1))));
    for (auto [i, row] : llvm::enumerate(lanes > 1 ? b.transposed(rows) : rows))
      writer.store(row, index(e.at(p, lanes, lanes > 1), e.at(b.addC(q, static_cast<int64_t>(i)))));
    e.forget();
  }

  KernelBuilder &b;
  ElementExpr e;
  ResultWriter writer;
  const RegionBody &body;
  const PointwisePlan &plan;
  SmallVector<Index> at;
  int64_t lanes;
  unsigned narrowest = 8;
};

} // namespace

void dmxc::kernels::emitBlocks(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan) {
  BlockEmitter(b, body, plan).emit();
}

void dmxc::kernels::emitTurned(KernelBuilder &b, const RegionBody &body, const PointwisePlan &plan) {
  TurnedEmitter(b, body, plan).emit();
}
