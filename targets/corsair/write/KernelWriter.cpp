//===- KernelWriter.cpp - one kernel's program ----------------------------===//

#include "KernelWriter.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include <limits>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

KernelWriter::KernelWriter(Operation *kernel, int quads, const hw::Machine &machine, bool fromDdr)
    : name(SymbolTable::getSymbolName(kernel).str()), location(kernel->getLoc()), quads(quads), machine(machine),
      fromDdr(fromDdr), registers(launchRegisters()), builder(kernel), writer(builder, kernel->getLoc(), name),
      buffers(writer, machine) {}

/// The programs' shape is fixed; a machine may be described that cannot run them.
static std::optional<std::string> machineLacks(bool multiplies, const hw::Machine &machine) {
  if (machine.queuesPerQuad < kQueues)
    return "dispatch.queues_per_quad is " + std::to_string(machine.queuesPerQuad) + ", programs need " +
           std::to_string(kQueues);
  return multiplies ? lacksForProducts(machine) : std::nullopt;
}

Status KernelWriter::begin(bool multiplies) {
  if (std::optional<std::string> lack = machineLacks(multiplies, machine))
    return Error{ErrorKind::Constraint, "kernel '" + name + "' does not run on the machine '" + machine.name +
                                            "': " + *lack + "; nodes on the host (--place 'NODE=cpu') may help"};
  init = std::make_unique<Program>(writer, buffers, "init", quads, registers);
  main = std::make_unique<Program>(writer, buffers, "main", quads, registers);
  return Status::ok();
}

Status KernelWriter::finish(const MemoryUse &permanent) {
  main->noteUses();
  MemoryUse used = buffers.placeTemporaries(permanent);
  if (std::optional<hw::Memory> memory = exceeded(used, machine)) {
    const auto number = static_cast<int>(*memory);
    int64_t room = static_cast<int64_t>(machine.memory(*memory).size) - permanent[number];
    for (int buffer : buffers.permanentIn(*memory))
      room += buffers[buffer].size;
    Error error = doesNotFit(*memory, used[number]);
    for (int buffer : buffers.inTheWay(*memory, room))
      llvm::append_range(error.nodes, nodesAt(buffer));
    return error;
  }
  init->finish();
  main->finish();
  if (const size_t tokens = main->tokenCount(); !userTokens.empty() && tokens > hw::kTokens)
    return Error{ErrorKind::Constraint, "kernel '" + name + "' has " + std::to_string(tokens) + " tokens, " +
                                            std::to_string(userTokens.size()) +
                                            " of them of kernels that users wrote, and a quad has " +
                                            std::to_string(hw::kTokens)};
  buffers.finish();
  return Status::ok();
}

Error KernelWriter::doesNotFit(hw::Memory memory, int64_t needed) const {
  const std::string lack = std::string(hw::nameOf(memory)) + " holds " + std::to_string(machine.memory(memory).size) +
                           " bytes, the model needs " + std::to_string(needed);
  const char *advice = memory != hw::Memory::ST ? "a smaller batch (--dim)"
                       : fromDdr                ? "a larger team (-t corsair:quads=N)"
                                                : "a larger team (-t corsair:quads=N) or capacity mode";
  return {ErrorKind::Constraint,
          "kernel '" + name + "' does not fit the device: " + lack + "; " + advice +
              " or some nodes on the host (--place 'NODE=cpu') may help",
          {},
          lack};
}

void KernelWriter::collectPermanent(hw::Memory memory, std::vector<Kept> &kept) const {
  for (int buffer : buffers.permanentIn(memory))
    kept.push_back({buffers[buffer].size, nodesAt(buffer)});
}

std::vector<std::string> KernelWriter::nodesAt(int buffer) const {
  llvm::SetVector<StringAttr> all;
  dmir::collectNodes(location, all);
  std::vector<std::string> users = main->usersOf(buffer), nodes;
  if (all.empty()) // of a text without names
    return users;
  for (StringAttr node : all)
    if (llvm::is_contained(users, node.getValue()))
      nodes.push_back(node.str());
  if (nodes.empty()) // an argument that is stored as it came, seen otherwise
    for (StringAttr node : all)
      nodes.push_back(node.str());
  return nodes;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

DeviceTensor KernelWriter::allocate(ArrayRef<int64_t> shape, hw::ElemKind kind, ArrayRef<unsigned> order) {
  DeviceTensor tensor = DeviceTensor::dense(kind, shape, order);
  tensor.address.buffer = buffers.add(hw::Memory::GM, node, tensor.elements() * tensor.elementSize());
  return tensor;
}

void KernelWriter::copyInto(const DeviceTensor &from, const DeviceTensor &to) { map(hw::SimdFunction::Copy, to, from); }

void KernelWriter::fill(const DeviceTensor &tensor, double value) {
  SimdOp op{hw::SimdFunction::Fill, tensor.shape};
  op.result = SimdOp::operand(tensor, tensor.shape);
  if (tensor.kind == hw::ElemKind::F16)
    op.imm0 = static_cast<float>(value);
  else
    op.index.offset = static_cast<int64_t>(value);
  simd(std::move(op));
}

void KernelWriter::map(hw::SimdFunction function, const DeviceTensor &result, ArrayRef<DeviceTensor> operands,
                       float imm0, float imm1, unsigned inner) {
  SimdOp op{function, result.shape, inner};
  op.imm0 = imm0, op.imm1 = imm1;
  op.result = SimdOp::operand(result, result.shape);
  for (const DeviceTensor &operand : operands)
    op.sources.push_back(SimdOp::operand(operand, result.shape));
  simd(std::move(op));
}

void KernelWriter::task(Operation *op) {
  node = dmir::nodeName(op);
  writer.loc = op->getLoc();
  main->task(node);
}

bool KernelWriter::simd(SimdOp op) {
  main->task(node);
  return emitSimd(*main, std::move(op), machine.slices);
}

/// What a row without elements is reduced to; the host has the extremes, which are infinite.
static double reducedNothing(hw::SimdFunction function) {
  if (function == hw::SimdFunction::ReduceMean)
    return std::numeric_limits<double>::quiet_NaN();
  return function == hw::SimdFunction::ReduceProd ? 1 : 0;
}

bool KernelWriter::rows(hw::SimdFunction function, const DeviceTensor &source, const DeviceTensor &result,
                        ArrayRef<int64_t> axes, float imm0) {
  const bool reduces = result.shape != source.shape, kept = result.rank() == source.rank();
  if (source.elements() == 0) { // rows without elements
    fill(result, reducedNothing(function));
    return true;
  }
  // The axes of a row come last, in the order in which they lie in memory.
  SmallVector<unsigned> dims;
  for (unsigned dim : source.order())
    if (!llvm::is_contained(axes, dim))
      dims.push_back(dim);
  for (unsigned dim : source.order())
    if (llvm::is_contained(axes, dim))
      dims.push_back(dim);
  SimdOp simdOp{function, {}, static_cast<unsigned>(axes.size())};
  simdOp.result = {result.kind, result.address, {}};
  simdOp.sources = {{source.kind, source.address, {}}};
  simdOp.imm0 = imm0;
  for (unsigned dim : dims) {
    bool isRow = llvm::is_contained(axes, dim);
    unsigned position = dim;
    if (!kept)
      for (int64_t axis : axes)
        position -= axis < dim;
    simdOp.dims.push_back(source.shape[dim]);
    simdOp.sources[0].strides.push_back(source.strides[dim]);
    simdOp.result.strides.push_back(reduces && isRow ? 0 : result.strides[position]);
  }
  return simd(std::move(simdOp));
}

bool KernelWriter::masked(hw::SimdFunction function, const DeviceTensor &source, const DeviceTensor &result,
                          const Address &index, bool turned, float imm0) {
  if (source.elements() == 0)
    return true;
  SimdOp op{function, result.shape, function == hw::SimdFunction::Softmax ? 1U : 0U};
  op.result = SimdOp::operand(result, result.shape);
  op.sources = {SimdOp::operand(source, result.shape)};
  op.imm0 = imm0, op.index = index;
  op.countFromRow(turned);
  return simd(std::move(op));
}

void KernelWriter::gatherRows(const DeviceTensor &data, const DeviceTensor &indices, const DeviceTensor &to,
                              int64_t axis) {
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i)
    outer *= data.shape[i];
  for (size_t i = axis + 1; i < data.rank(); ++i)
    inner *= data.shape[i];
  const int64_t count = indices.elements(), size = data.elementSize(), row = inner * size;
  DmaSpec spec{hw::nameOf(data.kind)};
  spec.unit = inner;
  spec.dims = {{count, row, row}, {outer, data.shape[axis] * row, count * row}};
  reshapeByIndex("extract", "gather", data, to, indices, spec, indices.elementSize(), data.shape[axis]);
}

void KernelWriter::reshapeByIndex(StringRef function, StringRef rule, const DeviceTensor &from, const DeviceTensor &to,
                                  const DeviceTensor &indices, DmaSpec spec, int64_t pitch, int64_t range) {
  spec.indexKind = hw::nameOf(indices.kind);
  spec.indexPitch = pitch;
  spec.indexRange = range;
  QueueWriter vector = main->on(Queue::Vector);
  TaskWriter reshape = vector.task("corsair.reshape");
  reshape.text("function", function).text("rule", rule).with(vector.descriptor(spec));
  vector.reads(reshape, from.address);
  vector.writes(reshape, to.address);
  vector.reads(reshape, indices.address);
  reshape.create();
}

Status KernelWriter::scatterRows(const DeviceTensor &updates, const DeviceTensor &indices, const DeviceTensor &to,
                                 size_t axis) {
  if (updates.elements() == 0)
    return Status::ok();
  DeviceTensor rows = updates, places = to; // of one index
  places.shape = rows.shape;
  rows.shape[axis] = places.shape[axis] = 1;
  SmallVector<CopyDim> dims = copyDims(rows, places);
  if (dims.size() > 4)
    return Error{ErrorKind::Constraint,
                 "the rows that node '" + node + "' scatters have too many dims apart",
                 {node},
                 "the rows that it scatters have too many dims apart"};
  DmaSpec spec{hw::nameOf(to.kind)};
  spec.unit = dims.back().extent / to.elementSize();
  spec.dims = {{updates.shape[axis], updates.strides[axis], to.strides[axis]}};
  addDims(spec, ArrayRef(dims).drop_back());
  reshapeByIndex("insert", "scatter", updates, to, indices, spec, indices.strides[axis], to.shape[axis]);
  return Status::ok();
}

void KernelWriter::addUp(const DeviceTensor &sums, const DeviceTensor &to) {
  const int64_t elements = to.elements();
  const SimdOperand first{hw::ElemKind::F32, sums.address, {4}};
  for (int quad = 1; quad < quads; ++quad) {
    SimdOp add{hw::SimdFunction::Add, {elements}};
    add.sources = {first, {hw::ElemKind::F32, sums.address.plus(quad * elements * 4), {4}}};
    add.result = quad + 1 < quads ? first : SimdOperand{to.kind, to.address, {2}};
    simd(std::move(add));
  }
}
