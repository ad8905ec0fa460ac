//===- Arguments.h - between the host's tensors and the card ----*- C++ -*-===//
#pragma once

#include "Cells.h"

namespace dmxc::corsair::stages {

/// An argument of a program with where its parts lie, by ISA.md (9).
struct CardArgument {
  dlir::ArgumentOp op;
  llvm::SmallVector<dlir::PieceOp> pieces;
  hw::ElemKind form = hw::ElemKind::Raw;
  mlir::RankedTensorType type;
};

/// Those of a program, in order.
Result<std::vector<CardArgument>> argumentsOf(dlir::DeviceProgramOp program);

/// What the host brings, converted to the form, into each piece; of a constant its packed bytes as they are.
Status bring(const CardArgument &argument, const Tensor &tensor, Card &card);
/// What it takes. Fails where the pieces are not all of the tensor, or nobody has written them.
Result<Tensor> take(const CardArgument &argument, Card &card);

/// A constant as its task's program says it is packed: of what is packed already itself.
Result<Tensor> packed(const CardArgument &argument, const Tensor &constant, mlir::DictionaryAttr form,
                      const hw::Machine &machine);

} // namespace dmxc::corsair::stages
