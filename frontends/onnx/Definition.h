//===- Definition.h - a node against its operator's definition --*- C++ -*-===//
//
// What every definition says of operands, results and attributes is checked here for all operators alike, so that
// nothing of a node is left unread: an operand that the operator does not have would change what other tools compute.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "NodeAttributes.h"
#include "OpTable.h"
#include "Shared.h"

namespace dmxc::onnxfe {

/// Fails unless the operator has all these attributes, of these kinds.
void requireAttributes(const OpRow &row, const NodeAttributes &attributes);
/// Fails when there are more than the operator has. Those left out at the end do not count.
void requireCounts(const OpRow &row, size_t operands, size_t results);
/// Fails unless the tensors among the operands have types that are accepted, and one type where the definition has one
/// variable.
void requireTypes(const OpRow &row, const std::vector<Val> &operands);

} // namespace dmxc::onnxfe
