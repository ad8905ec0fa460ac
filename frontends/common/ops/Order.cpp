//===- Order.cpp - order along an axis ------------------------------------===//
#include "Order.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {

std::vector<Val> sorted(Emitter &e, const Val &x, int64_t axis, Dim count, bool largest) {
  Dims k{count}, dynamic;
  llvm::SmallVector<mlir::NamedAttribute> attributes{e.attr("k", splitDims(k, dynamic).front()), e.attr("axis", axis),
                                                     e.attr("largest", largest)};
  e.addDims(attributes, dynamic);
  return e.emitAll<TopKOp>({x}, attributes);
}

Val argExtremum(Emitter &e, Extremum kind, const Val &x, int64_t axis, bool keep, bool last) {
  return e.emit<ArgReduceOp>({x}, {e.attr("kind", ExtremumAttr::get(e.context(), kind)), e.attr("axis", axis),
                                   e.attr("keepDims", keep), e.attr("selectLast", last)});
}

Val cumulativeSum(Emitter &e, const Val &x, int64_t axis, bool exclusive, bool reverse) {
  return e.emit<CumSumOp>({x}, {e.attr("axis", axis), e.attr("exclusive", exclusive), e.attr("reverse", reverse)});
}

Val scatterElements(Emitter &e, const Val &data, const Val &indices, const Val &updates, int64_t axis,
                    ScatterMode mode) {
  return e.emit<ScatterElementsOp>({data, indices, updates},
                                   {e.attr("axis", axis), e.attr("mode", ScatterModeAttr::get(e.context(), mode))});
}

Val scatterND(Emitter &e, const Val &data, const Val &indices, const Val &updates, ScatterMode mode) {
  return e.emit<ScatterNDOp>({data, indices, updates}, {e.attr("mode", ScatterModeAttr::get(e.context(), mode))});
}

} // namespace dmxc::frontend
