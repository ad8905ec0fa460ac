//===- Shorthands.cpp - the ops that front ends build most often ----------===//
#include "Emitter.h"

using namespace mlir;

namespace dmxc::frontend {

Val Emitter::compare(dmir::Compare kind, const Val &a, const Val &b) {
  return emit<dmir::CompareOp>({a, b}, {attr("kind", dmir::CompareAttr::get(context(), kind))});
}

Val Emitter::cast(const Val &value, DType type, bool saturate) {
  if (value.dtype() == type)
    return value;
  if (value.dtype() == DType::F8E8M0)
    return castFromScale(value, type, saturate);
  if (type == DType::F8E8M0)
    return castToScale(value, saturate, ScaleRounding::Up);
  return emitAs<dmir::CastOp>(typeOf(type, value.dims()), {value}, {attr("saturate", saturate)});
}

Val Emitter::reshape(const Val &value, const Dims &dims) {
  if (value.dims() == dims)
    return value;
  RankedTensorType type = typeOf(value.dtype(), dims);
  Dim from = value.elements(), to = dmir::product(dims);
  if (from.isStatic() && to.isStatic() && !(from == to))
    fail("op-shape", value.describe() + " cannot be reshaped to " + dimsString(dims));
  if (value.state->sizes)
    return sizes(value.sizes(), type);
  if (value.isConstant() && type.hasStaticShape()) { // the same bytes: they may stay in their file
    Val::State &state = *value.state;
    return stored(state.tensor.reshaped(Shape(type.getShape().begin(), type.getShape().end())), state.path,
                  state.offset, state.name);
  }
  return emitAs<dmir::ReshapeOp>(type, {value});
}

Val Emitter::broadcast(const Val &value, const Dims &dims) {
  if (value.dims() == dims)
    return value;
  std::optional<SmallVector<Dim>> joined = dmir::broadcastDims(value.dims(), dims);
  bool fits = joined && joined->size() == dims.size();
  for (size_t i = 0; fits && i < dims.size(); ++i) // with symbols, the rest is checked at run time
    fits = (*joined)[i] == dims[i] || !(*joined)[i].isStatic() || !dims[i].isStatic();
  if (!fits)
    fail("op-shape", value.describe() + " cannot be broadcast to " + dimsString(dims));
  return emitAs<dmir::BroadcastOp>(typeOf(value.dtype(), dims), {value});
}

Val Emitter::transpose(const Val &value, ArrayRef<int64_t> permutation) {
  bool identity = true;
  for (size_t i = 0; i < permutation.size(); ++i)
    identity &= permutation[i] == static_cast<int64_t>(i);
  if (identity && static_cast<int64_t>(permutation.size()) == value.rank())
    return value;
  return emit<dmir::TransposeOp>({value}, {attr("permutation", permutation)});
}

Val Emitter::transposeLast(const Val &value) {
  std::vector<int64_t> permutation(value.rank());
  for (size_t i = 0; i < permutation.size(); ++i)
    permutation[i] = i;
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(value, permutation);
}

Val Emitter::slice(const Val &value, const Dims &starts, const Dims &sizes, ArrayRef<int64_t> steps) {
  bool whole = value.dims() == sizes;
  for (size_t i = 0; i < steps.size(); ++i)
    whole &= steps[i] == 1 || sizes[i].is(0) || sizes[i].is(1);
  if (whole)
    return value;
  Dims dynamic;
  SmallVector<NamedAttribute> attributes{attr("starts", starts, dynamic), attr("sizes", sizes, dynamic),
                                         attr("steps", steps)};
  addDims(attributes, dynamic);
  return emit<dmir::SliceOp>({value}, attributes);
}

Val Emitter::sliceAxis(const Val &value, int64_t axis, Dim start, Dim size, int64_t step) {
  Dims starts(value.rank(), 0), sizes = value.dims();
  std::vector<int64_t> steps(value.rank(), 1);
  starts[axis] = start;
  sizes[axis] = size;
  steps[axis] = step;
  return slice(value, starts, sizes, steps);
}

Val Emitter::concat(ArrayRef<Val> values, int64_t axis) {
  if (values.size() == 1)
    return values.front();
  return emit<dmir::ConcatOp>(values, {attr("axis", axis)});
}

Val Emitter::gather(const Val &data, const Val &indices, int64_t axis) {
  return emit<dmir::GatherOp>({data, indices}, {attr("axis", axis)});
}

Val Emitter::pad(const Val &value, const Val &fill, const Dims &low, const Dims &high, ArrayRef<int64_t> interior,
                 dmir::PadMode mode) {
  std::vector<int64_t> between(interior.begin(), interior.end());
  between.resize(value.rank(), 0);
  auto zero = [](Dim x) { return x.is(0); };
  if (llvm::all_of(low, zero) && llvm::all_of(high, zero) && llvm::all_of(between, zero))
    return value;
  Dims dynamic;
  SmallVector<NamedAttribute> attributes{attr("low", low, dynamic), attr("high", high, dynamic),
                                         attr("interior", ArrayRef<int64_t>(between)),
                                         attr("mode", dmir::PadModeAttr::get(context(), mode))};
  addDims(attributes, dynamic);
  return emit<dmir::PadOp>({value, fill}, attributes);
}

Val Emitter::reduce(dmir::Reduction kind, const Val &value, ArrayRef<int64_t> axes, bool keepDims) {
  if (axes.empty())
    return value;
  return emit<dmir::ReduceOp>({value}, {attr("kind", dmir::ReductionAttr::get(context(), kind)), attr("axes", axes),
                                        attr("keepDims", keepDims)});
}

Val Emitter::softmax(const Val &value, int64_t axis, bool log) {
  return emit<dmir::SoftmaxOp>({value}, {attr("axis", axis), attr("log", log)});
}

Val Emitter::iota(DType type, const Dims &dims, int64_t axis) {
  return emitAs<dmir::IotaOp>(typeOf(type, dims), {}, {attr("axis", axis)});
}

} // namespace dmxc::frontend
