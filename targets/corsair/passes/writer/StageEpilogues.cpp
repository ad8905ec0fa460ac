//===- StageEpilogues.cpp - functions of a product's tiles ----------------===//
//
// Between OB and the result tiles lie in the memory of the vector device. One place is enough for functions one after
// the other; a tile that a later function reads again keeps its own.
//
//===----------------------------------------------------------------------===//
#include "../ElementFunctions.h"
#include "../Views.h"
#include "StageWriter.h"
#include "TileLoops.h"

#include "schemas/corsair/SimdFunctions.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

Result<Epilogue> StageWriter::epilogue(ArrayRef<TileUnit> units) {
  Epilogue made;
  SmallVector<SmallVector<int, 3>> inputs;
  for (const TileUnit &unit : units)
    inputs.push_back(unit.inputs);
  const SmallVector<int> places = corsair::placesOf(inputs);
  for (auto [number, unit] : llvm::enumerate(units)) {
    lldmir::SimdOp op = unit.op;
    const std::optional<ElementFunction> function = elementwise(op);
    if (!function)
      return fail(op, "names the function '" + op.getFunction() + "', which the vector device does not have of tiles")
          .takeError();
    if (static_cast<int>(unit.inputs.size()) != hw::operandCount(function->function))
      return fail(op, "has not as many operands as '" + op.getFunction() + "'").takeError();
    EpilogueStep &step = made.steps.emplace_back(EpilogueStep{function->function, function->imm0, function->imm1, {}});
    for (int input : unit.inputs)
      step.sources.push_back(input >= TileUnit::kSum ? places[input + 1] : input + 1);
    if (number + 1 < units.size()) {
      step.to = places[number + 1];
      made.places = std::max(made.places, step.to + 1);
    }
  }
  made.node = dmir::nodeName(units.back().op);
  if (made.places > placesOfTiles(machine))
    return fail(units.back().op, "needs " + Twine(made.places) +
                                     " tiles of each sum at once; memories.SIMD.size of the " +
                                     "machine has room for " + Twine(placesOfTiles(machine)))
        .takeError();
  return made;
}

Result<StageWriter::Epilogues> StageWriter::epiloguesOf(affine::AffineForOp loop, const TileLoops &loops,
                                                        const DeviceTensor &out) {
  Epilogues made;
  for (const std::vector<TileUnit> &units : loops.epilogues) {
    Result<Epilogue> each = epilogue(units);
    if (!each)
      return each.takeError();
    made.all.push_back(std::move(*each));
  }
  for (Value grid : loops.beside) {
    Result<DeviceTensor> matrix = matricesOf(loop, grid);
    if (!matrix)
      return matrix.takeError();
    if (matrix->shape != out.shape || matrix->kind != hw::ElemKind::F16)
      return fail(loops.store, "stores what a matrix of another shape or kind has a part in").takeError();
    made.beside.push_back(*matrix);
  }
  return made;
}

Result<StageWriter::Epilogues> StageWriter::epiloguesOf(lldmir::ConvOp conv, const DeviceTensor &out) {
  Epilogues made;
  for (Value buffer : conv.getBeside()) {
    Result<DeviceTensor> tensor = tensorOf(conv, buffer);
    if (!tensor)
      return tensor.takeError();
    if (tensor->kind != out.kind || !tensor->liesAs(out))
      return fail(conv, "has beside it what does not lie as its result does").takeError();
    made.beside.push_back(*tensor);
  }
  if (!conv.getEpilogue())
    return made;
  std::vector<OwningOpRef<lldmir::SimdOp>> ops;
  std::vector<TileUnit> units;
  for (Attribute unit : conv.getEpilogueAttr()) {
    ops.push_back(functionOf(conv, unit));
    const ArrayRef<int64_t> inputs = cast<DictionaryAttr>(unit).getAs<DenseI64ArrayAttr>("inputs").asArrayRef();
    units.push_back({ops.back().get(), SmallVector<int, 3>(inputs.begin(), inputs.end())});
  }
  Result<Epilogue> epilogue = this->epilogue(units);
  if (!epilogue)
    return epilogue.takeError();
  made.all.push_back(std::move(*epilogue));
  return made;
}

//===----------------------------------------------------------------------===//
// Nothing is read that nobody has written
//===----------------------------------------------------------------------===//

Value StageWriter::rootOf(Value buffer) {
  for (;;) {
    Value root = dmxc::rootOf(buffer);
    Value given = outside(root);
    if (!given)
      return root;
    buffer = given;
  }
}

/// What an op by itself reads of memory, or writes.
template <typename Effect> static SmallVector<Value> touchedBy(Operation *op) {
  SmallVector<Value> touched;
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  for (Value operand : op->getOperands())
    if (effects && isa<MemRefType>(operand.getType()) && effects.template getEffectOnValue<Effect>(operand))
      touched.push_back(operand);
  return touched;
}

bool StageWriter::hasBands(Operation *loop) {
  return loop
      ->walk([](affine::AffineForOp inner) {
        return inner->hasAttr(lldmir::kBandsAttr) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

Status StageWriter::checkWritten(Operation *op) {
  Status status = Status::ok();
  const bool mayCross = isa<affine::AffineForOp>(op) && !hasBands(op);
  op->walk([&](Operation *inner) {
    for (Value buffer : touchedBy<MemoryEffects::Write>(inner))
      written.insert(rootOf(buffer));
  });
  op->walk([&](Operation *inner) {
    for (Value buffer : touchedBy<MemoryEffects::Read>(inner)) {
      const Value root = rootOf(buffer);
      if (root.getDefiningOp<memref::AllocOp>() && !written.contains(root) &&
          cast<MemRefType>(root.getType()).getNumElements())
        status = fail(inner, "reads a buffer that nothing before it fills");
      else if (!mayCross)
        status = checkArrived(inner, buffer);
    }
    return status ? WalkResult::advance() : WalkResult::interrupt();
  });
  return status;
}
