//===- View.cpp - numbers in a quad's memory ------------------------------===//
#include "View.h"

#include "targets/corsair/decide/Ops.h"
#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "schemas/corsair/simd/SimdJob.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;

static Dims rowMajorSteps(ArrayRef<int64_t> shape, int64_t size) {
  Dims steps(shape.size());
  for (size_t i = shape.size(); i-- > 0; size *= shape[i])
    steps[i] = size;
  return steps;
}

View View::zeros(hw::ElemKind kind, ArrayRef<int64_t> shape) {
  View view{kind, Dims(shape), rowMajorSteps(shape, hw::elementBytes(kind))};
  view.memory = std::make_shared<std::vector<std::byte>>(view.elements() * hw::elementBytes(kind));
  return view;
}

View View::strided(hw::ElemKind kind, ArrayRef<int64_t> shape, ArrayRef<int64_t> steps) {
  View view{kind, Dims(shape), Dims(steps)};
  int64_t last = 0;
  for (auto [step, extent] : llvm::zip(view.steps, shape)) {
    step *= hw::elementBytes(kind);
    last += std::max<int64_t>(extent - 1, 0) * step;
  }
  view.memory = std::make_shared<std::vector<std::byte>>(last + hw::elementBytes(kind));
  return view;
}

bool View::isInside() const {
  if (elements() == 0)
    return true;
  int64_t first = offset, last = offset + hw::elementBytes(kind);
  for (auto [extent, step] : llvm::zip(shape, steps))
    (step < 0 ? first : last) += (extent - 1) * step;
  return first >= 0 && last <= static_cast<int64_t>(memory->size());
}

bool View::isRowMajor() const {
  int64_t size = hw::elementBytes(kind);
  for (size_t i = rank(); i-- > 0; size *= shape[i])
    if (shape[i] != 1 && steps[i] != size)
      return false;
  return true;
}

View View::part(ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) const {
  View made = *this;
  for (size_t i = 0; i < rank(); ++i) {
    made.offset += offsets[i] * steps[i];
    made.shape[i] = sizes[i];
    made.steps[i] = strides[i] * steps[i];
  }
  return made;
}

View View::slice(size_t dim, int64_t first, int64_t size) const {
  View made = *this;
  made.offset += first * steps[dim];
  made.shape[dim] = size;
  return made;
}

View View::transposed(ArrayRef<int64_t> permutation) const {
  View made = *this;
  for (auto [to, from] : llvm::enumerate(permutation)) {
    made.shape[to] = shape[from];
    made.steps[to] = steps[from];
  }
  return made;
}

View View::broadcast(ArrayRef<int64_t> to) const {
  View made = *this;
  made.shape.assign(to.begin(), to.end());
  made.steps.assign(to.size(), 0);
  const size_t missing = to.size() - rank();
  for (size_t i = 0; i < rank(); ++i)
    made.steps[i + missing] = shape[i] == 1 && to[i + missing] != 1 ? 0 : steps[i];
  return made;
}

View View::reshaped(ArrayRef<int64_t> to) const {
  View made = isRowMajor() ? *this : copy();
  made.shape.assign(to.begin(), to.end());
  made.steps = rowMajorSteps(to, hw::elementBytes(kind));
  return made;
}

View View::copy(std::optional<hw::ElemKind> as) const {
  View made = zeros(as.value_or(kind), shape);
  copyInto(*this, made);
  return made;
}

/// What is quantised or leaves the card is the exact value: there f16 subnormal numbers are what they are.
static double exactFloat(const std::byte *from, hw::ElemKind kind) {
  if (kind != hw::ElemKind::F16)
    return hw::readFloat(from, kind);
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return hw::f16Widen(bits);
}

static void copyElement(const std::byte *from, hw::ElemKind kind, std::byte *to, hw::ElemKind as) {
  if (kind == as)
    return void(std::memcpy(to, from, hw::elementBytes(kind)));
  if (hw::isIntegerKind(kind) && hw::isIntegerKind(as))
    hw::writeInteger(to, as, hw::readInteger(from, kind));
  else if (hw::isIntegerKind(kind))
    hw::writeFloat(to, as, static_cast<double>(hw::readInteger(from, kind)));
  else if (hw::isIntegerKind(as))
    hw::writeTruncated(to, as, hw::readFloat(from, kind));
  else
    hw::writeFloat(to, as, as == hw::ElemKind::F32 ? exactFloat(from, kind) : hw::readFloat(from, kind));
}

static void copyDims(const View &from, const View &to, size_t dim, const std::byte *source, std::byte *target) {
  if (dim == from.rank())
    return copyElement(source, from.kind, target, to.kind);
  const int64_t size = hw::elementBytes(from.kind);
  if (dim + 1 == from.rank() && from.kind == to.kind && from.steps[dim] == size && to.steps[dim] == size)
    return void(std::memmove(target, source, from.shape[dim] * size));
  for (int64_t i = 0; i < from.shape[dim]; ++i)
    copyDims(from, to, dim + 1, source + i * from.steps[dim], target + i * to.steps[dim]);
}

void dmxc::corsair::stages::copyInto(const View &from, const View &to) {
  if (from.elements())
    copyDims(from, to, 0, from.data(), to.data());
}

std::optional<hw::ElemKind> dmxc::corsair::stages::kindOf(Type element) {
  if (auto tile = dyn_cast<affine_ext::VecExtType>(element))
    return kindOf(tile.getElementType());
  if (auto block = dyn_cast<dmir::BlockFpType>(element))
    return block.hasBlocks() ? hw::ElemKind::F32 : hw::ElemKind::Bfp32;
  return element.isF32() ? std::optional(hw::ElemKind::F32) : deviceKind(element);
}

std::optional<hw::ElemKind> dmxc::corsair::stages::deviceKindOf(Type element) {
  return isa<dmir::BlockFpType>(element) ? kindOf(element) : deviceKind(element);
}

View dmxc::corsair::stages::fromHost(const Tensor &tensor, hw::ElemKind kind) {
  View view = View::zeros(kind, tensor.shape());
  const int64_t size = hw::elementBytes(kind);
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i)
    if (hw::isIntegerKind(kind))
      hw::writeInteger(view.data() + i * size, kind, tensor.asInt(i));
    else
      hw::writeFloat(view.data() + i * size, kind, tensor.asDouble(i));
  return view;
}

Tensor dmxc::corsair::stages::toHost(const View &view, DType type) {
  const View all = view.isRowMajor() ? view : view.copy();
  Tensor tensor(type, Shape(view.shape.begin(), view.shape.end()));
  const int64_t size = hw::elementBytes(view.kind);
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i)
    if (hw::isIntegerKind(view.kind))
      tensor.setInt(i, hw::readInteger(all.data() + i * size, view.kind));
    else
      tensor.setDouble(i, exactFloat(all.data() + i * size, view.kind));
  return tensor;
}
