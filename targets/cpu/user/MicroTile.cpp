//===- MicroTile.cpp - a product's tiles that a user's code computes ------===//
//
// The kernel keeps its loops, packs A (and a B of the run), and calls the code for whole tiles alone; what is cut off
// by the edges of C it computes itself. Sums come to lie in scratch, where the epilogue takes them from.
//
//===----------------------------------------------------------------------===//

#include "UserKernel.h"

#include "targets/cpu/product/GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

std::optional<std::string> dmxc::cpu::whyNoMicroKernel(const GemmKernel &spec, const MicroKernel &micro) {
  if (!spec.aType.isF32() || !spec.bType.isF32() || !spec.accType.isF32() || spec.blocks)
    return "its operands are not f32";
  if (spec.grouped || spec.runs)
    return "its rows are in groups, or parts of its weights are left out";
  if (spec.depth() <= 0)
    return "k is known in a run alone";
  if (spec.skinny() || (spec.rows() >= 0 && spec.rows() < micro.rows()))
    return "it has " + std::to_string(spec.rows()) + " rows, and a tile " + std::to_string(micro.rows());
  if (spec.columns() >= 0 && spec.columns() < micro.columns())
    return "it has " + std::to_string(spec.columns()) + " columns, and a tile " + std::to_string(micro.columns());
  return std::nullopt;
}

/// `sums`, a tile of C in scratch, becomes the product of depths [k0, k0 + depth), or what it is and that. Long ones
/// are summed in stretches, as tiles of ours are.
void GemmEmitter::microTile(const Item &item, const RowTile &tile, const RightSource &source, Value k0, Value depth,
                            Value sums, bool adds) {
  Value left = rowPointers(item, tile, k0).front();
  Value panel = spec.copiesB() ? b.idx(MicroKernel::kPanel) : b.mulC(item.panelRows, MicroKernel::kPanel);
  Value stretch = b.idx(productStretch(spec.depth(), /*fewRows=*/false));
  DictionaryAttr body = spec.micro->bodyAt(b.isa());
  b.forLoop(b.idx(0), depth, stretch, [&](Value from) {
    Value right = b.add(b.mul(from, source.kStride), source.vectorOffset.front());
    Value isLater = adds ? b.constantInt(b.getI1Type(), 1) : b.cmp(arith::CmpIPredicate::sgt, from, b.idx(0));
    callBody(b, body, LLVM::LLVMVoidType::get(b.getContext()),
             {b.elementPtr(spec.accType, left, b.mulC(from, tile.rows)),
              b.elementPtr(source.element, source.base, right), sums, b.minS(stretch, b.sub(depth, from)),
              source.kStride, panel, b.idx(t.columns()), arith::ExtUIOp::create(b, b.getI32Type(), isLater)});
  });
}
