//===- VectorDevice.cpp - what the vector device computes -----------------===//
#include "VectorDevice.h"

#include "targets/corsair/decide/Ops.h"

#include "schemas/corsair/simd/SimdJob.h"

#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using hw::SimdFunction;

namespace {

/// A job over any number of dims: what an instruction does not walk over is a loop around it.
struct Walk {
  hw::SimdJob job;
  Dims dims;
  SmallVector<Dims, 4> steps; ///< of the result, then of each operand
  SmallVector<std::byte *, 4> data;

  hw::SimdOperand &operand(size_t i) {
    hw::SimdOperand *all[] = {&job.d, &job.a, &job.b, &job.c};
    return *all[i];
  }

  void add(const View &view, Dims walked) {
    if (steps.size() < 4)
      operand(steps.size()).kind = view.kind;
    steps.push_back(std::move(walked));
    data.push_back(view.data());
  }

  Status run() {
    job.hasB = steps.size() > 2, job.hasC = steps.size() > 3;
    const bool mayLack = job.function == SimdFunction::LayerNorm || job.function == SimdFunction::RmsNorm ||
                         job.function == SimdFunction::DepthwiseConv; // a gain, a bias
    const int given = static_cast<int>(steps.size()) - 1, wanted = hw::operandCount(job.function);
    if (given > wanted || (given < wanted && !(mayLack && given > 0)))
      return modelError("has not as many operands as its function");
    if (const char *wrong = hw::checkKinds(job))
      return modelError("computes with kinds of numbers that do not go together: " + std::string(wrong));
    if (job.inner > 4)
      return modelError("has rows over more than four dims");
    while (dims.size() < 4) {
      dims.insert(dims.begin(), 1);
      for (Dims &each : steps)
        each.insert(each.begin(), 0);
    }
    if (!llvm::is_contained(dims, 0))
      loop(0, data);
    return Status::ok();
  }

  void loop(size_t dim, SmallVector<std::byte *, 4> at) {
    if (dims.size() - dim == 4)
      return compute(dim, at);
    for (int64_t i = 0; i < dims[dim]; ++i) {
      loop(dim + 1, at);
      for (auto [pointer, step] : llvm::zip(at, steps))
        pointer += step[dim];
    }
  }

  void compute(size_t dim, ArrayRef<std::byte *> at) {
    for (size_t i = 0; i < 4; ++i)
      job.n[i] = dims[dim + i];
    for (size_t number = 0; number < steps.size(); ++number) {
      operand(number).data = at[number];
      std::copy_n(steps[number].begin() + dim, 4, operand(number).step);
    }
    if (hw::isWindowFunction(job.function))
      hw::computeWindows(job);
    else if (hw::isRowFunction(job.function))
      hw::computeRows(job);
    else
      hw::computeElementwise(job);
  }
};

} // namespace

static bool broadcasts(const View &view, ArrayRef<int64_t> to) {
  if (view.rank() > to.size())
    return false;
  return llvm::all_of(llvm::zip(view.shape, to.take_back(view.rank())),
                      [](auto dims) { return std::get<0>(dims) == 1 || std::get<0>(dims) == std::get<1>(dims); });
}

Status dmxc::corsair::stages::mapped(const Mapped &op, const View &out, ArrayRef<View> inputs) {
  Walk walk;
  walk.job.function = op.function;
  walk.job.imm0 = op.imm0, walk.job.imm1 = op.imm1, walk.job.inner = op.inner;
  walk.dims = out.shape;
  walk.add(out, out.steps);
  const bool rotates = op.function == SimdFunction::Rope || op.function == SimdFunction::RopeInterleaved;
  for (auto [number, input] : llvm::enumerate(inputs)) {
    Dims to = out.shape;
    if (rotates && number > 0) // angles of pairs
      to.back() /= 2;
    if (!broadcasts(input, to))
      return modelError("has operands that do not broadcast to its result");
    walk.add(input, input.broadcast(to).steps);
  }
  if (rotates && (out.shape.empty() || out.shape.back() % 2))
    return modelError("turns no rows of pairs");
  return walk.run();
}

Status dmxc::corsair::stages::filled(const View &out, double value) {
  Walk walk;
  walk.job.function = SimdFunction::Fill;
  walk.job.imm0 = static_cast<float>(value);
  walk.job.index = hw::isIntegerKind(out.kind) ? static_cast<int64_t>(value) : 0;
  walk.job.inner = 0;
  walk.dims = out.shape;
  walk.add(out, out.steps);
  return walk.run();
}

/// Dims as they lie in memory, the outermost first; those of one element go with their neighbours.
static SmallVector<unsigned> orderInMemory(const View &view) {
  SmallVector<unsigned> dims(llvm::to_vector(llvm::seq<unsigned>(0, view.rank())));
  auto stepOf = [&](unsigned dim) {
    while (dim < view.rank() && view.shape[dim] == 1)
      ++dim;
    return dim < view.rank() ? std::abs(view.steps[dim]) : 0;
  };
  llvm::stable_sort(dims, [&](unsigned a, unsigned b) { return stepOf(a) > stepOf(b); });
  return dims;
}

static double ofNothing(SimdFunction function) {
  if (function == SimdFunction::ReduceMean)
    return std::numeric_limits<double>::quiet_NaN();
  return function == SimdFunction::ReduceProd ? 1 : 0;
}

Status dmxc::corsair::stages::rows(SimdFunction function, const View &input, const View &out, ArrayRef<int64_t> axes,
                                   float imm0) {
  const auto rank = static_cast<int64_t>(input.rank());
  if (llvm::any_of(axes, [&](int64_t axis) { return axis < 0 || axis >= rank; }))
    return modelError("has rows along dims that its operand does not have");
  if (input.elements() == 0)
    return filled(out, ofNothing(function));
  const bool kept = out.rank() == input.rank();
  Walk walk;
  walk.job.function = function;
  walk.job.imm0 = imm0, walk.job.inner = static_cast<int64_t>(axes.size());
  Dims from, to;
  const SmallVector<unsigned> order = orderInMemory(input);
  for (const bool ofRows : {false, true})
    for (unsigned dim : order) {
      const bool isRow = llvm::is_contained(axes, dim);
      if (isRow != ofRows)
        continue;
      const auto gone = llvm::count_if(axes, [&](int64_t axis) { return axis < dim; });
      const size_t position = dim - (kept ? 0 : gone);
      const bool reduced = isRow && (!kept || out.shape[dim] != input.shape[dim]);
      if (!reduced && (position >= out.rank() || out.shape[position] != input.shape[dim]))
        return modelError("has a result of other rows than its operand");
      walk.dims.push_back(input.shape[dim]);
      from.push_back(input.steps[dim]);
      to.push_back(reduced ? 0 : out.steps[position]);
    }
  walk.add(out, to);
  walk.add(input, from);
  return walk.run();
}

/// Rows that follow one another, from `row` on.
static Status maskedRows(const Masked &op, const View &input, const View &out, int64_t row) {
  if (op.weighs) {
    Walk walk;
    walk.job.function = SimdFunction::Softmax;
    walk.job.inner = 1, walk.job.causal = 3, walk.job.index = row + *op.upper + 1;
    walk.dims = out.shape;
    walk.add(out, out.steps);
    walk.add(input, input.steps);
    return walk.run();
  }
  copyInto(input, out);
  const int64_t columns = out.shape.back(), count = out.shape[out.rank() - 2];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = op.lower ? std::clamp<int64_t>(row + i + *op.lower, 0, columns) : 0,
                  last = op.upper ? std::clamp<int64_t>(row + i + *op.upper + 1, 0, columns) : columns;
    const View line = out.slice(out.rank() - 2, i, 1);
    for (const auto &[from, size] : {std::pair(int64_t(0), first), std::pair(last, columns - last)})
      if (size > 0)
        if (Status done = filled(line.slice(out.rank() - 1, from, size), op.fill); !done)
          return done;
  }
  return Status::ok();
}

Status dmxc::corsair::stages::masked(const Masked &op, const View &input, const View &out) {
  const size_t rank = out.rank();
  if (rank < 2 || input.shape != out.shape || (op.weighs && !op.upper))
    return modelError("masks no rows of scores");
  if (!op.folded)
    return maskedRows(op, input, out, op.row);
  const int64_t half = out.shape[rank - 2] / 2;
  if (out.shape[rank - 2] % 2)
    return modelError("folds an odd number of rows");
  if (Status done = maskedRows(op, input.slice(rank - 2, 0, half), out.slice(rank - 2, 0, half), op.row); !done)
    return done;
  return maskedRows(op, input.slice(rank - 2, half, half), out.slice(rank - 2, half, half), *op.folded - half - op.row);
}

//===----------------------------------------------------------------------===//
// Ops of DMIR
//===----------------------------------------------------------------------===//

/// Images as they are walked over: rows, columns, channels last.
static Dims ofPixels(const View &view) {
  return view.rank() == 3 ? Dims{view.steps[0], 0, view.steps[2], view.steps[1]}
                          : Dims{view.steps[0], view.steps[2], view.steps[3], view.steps[1]};
}

static Status windowed(Operation *named, const View &out, ArrayRef<View> inputs) {
  auto pool = dyn_cast<dmir::PoolOp>(named);
  if ((out.rank() != 3 && out.rank() != 4) || inputs.size() != (pool ? 1U : 2U) ||
      llvm::any_of(inputs, [&](const View &each) { return each.rank() != out.rank(); }))
    return modelError("has no window over images that fits its operands");
  auto numbers = [&](StringRef key) { return named->getAttrOfType<DenseI64ArrayAttr>(key).asArrayRef(); };
  SmallVector<StringRef> keys{"strides", "dilations", "low"};
  if (pool)
    keys.push_back("window");
  if (pool && !named->getAttr("kind"))
    return modelError("has no 'kind' of pooling");
  for (StringRef key : keys)
    if (auto given = named->getAttrOfType<DenseI64ArrayAttr>(key); !given || given.size() + 2 != int64_t(out.rank()))
      return modelError("has no '" + key.str() + "' of each axis");
  const View &image = inputs[0];
  const ArrayRef<int64_t> kernel = pool ? pool.getWindow() : ArrayRef(inputs[1].shape).drop_front(2);
  Walk walk;
  walk.job.function = !pool                                      ? SimdFunction::DepthwiseConv
                      : pool.getKind() == dmir::Pooling::average ? SimdFunction::PoolAvg
                                                                 : SimdFunction::PoolMax;
  walk.job.countPad = pool && pool.getKind() == dmir::Pooling::average && pool.getCountPadding();
  walk.job.inner = 0;
  walk.job.window =
      corsair::windowOf(image.shape, out.shape, kernel, numbers("strides"), numbers("dilations"), numbers("low"));
  walk.dims = {out.shape[0], out.rank() == 3 ? 1 : out.shape[2], out.shape.back(), out.shape[1]};
  walk.add(out, ofPixels(out));
  walk.add(image, ofPixels(image));
  if (!pool) { // [o, 1, kh, kw]
    Dims steps = ofPixels(inputs[1]);
    steps[3] = steps[0], steps[0] = 0;
    walk.add(inputs[1], steps);
  }
  return walk.run();
}

Status dmxc::corsair::stages::vectorOp(Operation *named, const View &out, ArrayRef<View> inputs) {
  if (std::optional<RowsOp> of = rowsOp(named))
    return inputs.size() == 1 ? rows(of->function, inputs[0], out, of->axes, of->imm0)
                              : Status(modelError("takes one operand of rows"));
  if (isa<dmir::PoolOp, dmir::ConvOp>(named))
    return windowed(named, out, inputs);
  if (std::optional<SimdFunction> function = elementwiseFunction(named))
    return mapped({*function}, out, inputs);
  if (isa<dmir::IsInfOp>(named)) { // the largest magnitude, which infinities saturate to
    View sizes = View::zeros(inputs[0].kind, inputs[0].shape), largest = View::zeros(inputs[0].kind, {});
    if (Status done = filled(largest, hw::kF16Largest); !done)
      return done;
    if (Status done = mapped({SimdFunction::Abs}, sizes, inputs); !done)
      return done;
    return mapped({SimdFunction::Ge}, out, {sizes, largest});
  }
  return modelError("names the function '" + named->getName().stripDialect().str() +
                    "', which the vector device does not have");
}

//===----------------------------------------------------------------------===//
// By index
//===----------------------------------------------------------------------===//

static Result<int64_t> indexAt(const View &indices, int64_t number, int64_t extent) {
  const int64_t given = hw::readInteger(indices.data() + number * hw::elementBytes(indices.kind), indices.kind);
  if (given < -extent || given >= extent)
    return modelError("has index " + std::to_string(given) + " of an axis of " + std::to_string(extent));
  return given < 0 ? given + extent : given;
}

Status dmxc::corsair::stages::gathered(const View &data, const View &indices, const View &out, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(data.rank()) || !hw::isIntegerKind(indices.kind) ||
      data.kind != out.kind)
    return modelError("gathers along no axis of its operand");
  const int64_t count = indices.elements(), extent = data.shape[axis];
  if (!extent || data.elements() / extent * count != out.elements())
    return modelError("gathers other rows than its result has");
  Dims shape(data.shape);
  shape[axis] = count;
  const View numbers = indices.isRowMajor() ? indices : indices.copy();
  View to = out.isRowMajor() ? out : out.copy();
  to = to.reshaped(shape);
  for (int64_t i = 0; i < count; ++i) {
    Result<int64_t> at = indexAt(numbers, i, extent);
    if (!at)
      return at.takeError();
    copyInto(data.slice(axis, *at, 1), to.slice(axis, i, 1));
  }
  if (!out.isRowMajor())
    copyInto(to.reshaped(out.shape), out);
  return Status::ok();
}

Status dmxc::corsair::stages::scattered(const View &updates, const View &indices, const View &out, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(out.rank()) || updates.shape != indices.shape ||
      updates.rank() != out.rank() || updates.kind != out.kind || !hw::isIntegerKind(indices.kind))
    return modelError("scatters other rows than its buffer has");
  if (updates.elements() == 0)
    return Status::ok();
  for (int64_t i = 0; i < updates.shape[axis]; ++i) {
    View first = indices.slice(axis, i, 1);
    Result<int64_t> at = indexAt(first, 0, out.shape[axis]);
    if (!at)
      return at.takeError();
    View to = out.slice(axis, *at, 1);
    for (size_t dim = 0; dim < out.rank(); ++dim)
      to.shape[dim] = static_cast<int64_t>(dim) == axis ? 1 : std::min(to.shape[dim], updates.shape[dim]);
    copyInto(updates.slice(axis, i, 1), to);
  }
  return Status::ok();
}

Status dmxc::corsair::stages::summed(const View &parts, const View &out) {
  if (parts.rank() != out.rank() + 1 || ArrayRef(parts.shape).drop_front() != ArrayRef(out.shape) ||
      parts.kind != hw::ElemKind::F32 || parts.shape[0] < 2)
    return modelError("does not add up parts of its result");
  auto part = [&](int64_t number) {
    View view = parts.slice(0, number, 1);
    view.shape.erase(view.shape.begin()), view.steps.erase(view.steps.begin());
    return view;
  };
  View sum = part(0).copy();
  for (int64_t i = 1; i < parts.shape[0]; ++i)
    if (Status done = mapped({SimdFunction::Add}, i + 1 < parts.shape[0] ? sum : out, {sum, part(i)}); !done)
      return done;
  return Status::ok();
}
