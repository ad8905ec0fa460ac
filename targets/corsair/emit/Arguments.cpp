//===- Arguments.cpp - between the host's buffers and GM ------------------===//

#include "Constants.h"
#include "KernelLowering.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

SmallVector<unsigned> dmxc::corsair::preferredOrder(Value value, size_t rank) {
  bool image = rank == 4 && llvm::any_of(value.getUsers(), [&](Operation *user) {
                 return isa<dmir::ConvOp, dmir::PoolOp>(user) && user->getOperand(0) == value;
               });
  return image ? SmallVector<unsigned>{0, 2, 3, 1} : rowMajor(rank);
}

bool dmxc::corsair::isTable(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && gather.getData() == use.get() && gather.getIndices() != use.get();
  });
}

Status KernelLowering::addArgument(BlockArgument argument, DictionaryAttr form) {
  const std::string name = node = "arg" + std::to_string(argument.getArgNumber());
  if (form) {
    auto type = cast<RankedTensorType>(argument.getType());
    StringRef packing = form.getAs<StringAttr>("form").getValue();
    const int64_t bytes = form.getAs<IntegerAttr>("size").getInt();
    if (packing == forms::kTiles)
      tiles[argument] = addPackedConstant(name, form);
    else if (packing == forms::kBias)
      values[argument] = addPlainConstant(name, hw::ElemKind::Bfp32, bytes / 4, /*inDdr=*/false);
    else
      values[argument] = addPlainConstant(name, *deviceKind(type.getElementType()), type.getShape(), isTable(argument));
    return Status::ok();
  }
  if (stateResults.contains(argument.getArgNumber())) {
    addState(argument);
    return Status::ok();
  }
  auto type = cast<RankedTensorType>(argument.getType());
  if (crossesAsTiles(argument, deal.packed)) {
    values[argument] = addTiles(name, type, rowsOfTiles(argument, deal), deal.at(argument));
    return Status::ok();
  }
  values[argument] = addInput(name, type, preferredOrder(argument, type.getRank()), deal.at(argument));
  return Status::ok();
}

Address KernelLowering::residentTiles(Value constant) {
  return KernelWriter::residentTiles(tiles.find(constant)->second);
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

/// Every quad of the team has a copy in its GM, and all keep theirs up to date.
void KernelLowering::declareState(Type type, const DeviceTensor &state, const std::string &name) {
  SmallVector<unsigned> order = rowMajor(state.rank());
  std::vector<hw::Piece> pieces(quads, wholePiece(state, order));
  for (int quad = 0; quad < quads; ++quad)
    pieces[quad].unit = quad;
  declare(dlir::ArgumentRole::state, name, type, state.kind, order, state.address.buffer, pieces);
}

void KernelLowering::addState(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  DeviceTensor tensor =
      DeviceTensor::dense(*deviceKind(type.getElementType()), type.getShape(), rowMajor(type.getRank()));
  const std::string name = "state" + std::to_string(argument.getArgNumber());
  const int64_t bytes = tensor.elements() * tensor.elementSize();
  tensor.address = {buffers.add(hw::Memory::GM, name, bytes, /*permanent=*/true), 0, {}};
  declareState(type, tensor, name);
  values[argument] = tensor;
  states[stateResults[argument.getArgNumber()]] = tensor;
}

/// A state's next value: it is in place already, or is copied there.
Status KernelLowering::keepState(Value value, const DeviceTensor &state, const std::string &name) {
  if (values[value].address.buffer != state.address.buffer) {
    if (values[value].split)
      makeWhole(value);
    copyInto(values[value], state, {});
  }
  declareState(value.getType(), state, name);
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

Status KernelLowering::addResult(Value value, unsigned index) {
  if (auto state = states.find(index); state != states.end()) {
    node = "state";
    return keepState(value, state->second, "state_result" + std::to_string(index));
  }
  storeResult(values[value], value.getType(), index);
  return Status::ok();
}
