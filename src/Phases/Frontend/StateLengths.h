//===- StateLengths.h - states that grow by rows of a run -------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace dmxc {

/// The pairs that --state means for a function: those with '*' are one for each input that matches, whose texts stand
/// in the output's places. Fails where none does, with an error.
mlir::FailureOr<std::vector<std::pair<std::string, std::string>>>
statePairs(mlir::func::FuncOp function, const std::vector<std::pair<std::string, std::string>> &given);

/// present = concat(past, rows) along an open axis of `past`: the state has room for as many rows as its dim may be,
/// and the session knows how many are there.
class StateLengths {
public:
  StateLengths(mlir::func::FuncOp function, const PhaseContext &context) : function(function), context(context) {}

  /// The concatenation that makes a value of an argument's open axis; null where there is none.
  static dmir::ConcatOp growthOf(mlir::Value past, mlir::Value present);
  /// Why a pair that grows is no state with a length, beside those that were asked about before; nothing where it is.
  std::optional<std::string> refusal(mlir::BlockArgument past, dmir::ConcatOp concat);
  /// Makes `past` a tensor of such elements with that much room and a result of the function that tensor with the
  /// concatenation's rows in their place.
  static void growInPlace(mlir::BlockArgument past, unsigned result, dmir::ConcatOp concat, Dim room,
                          mlir::Type element);
  /// Makes the pair a state with a length; `flag` is what errors begin with.
  mlir::LogicalResult bind(mlir::BlockArgument past, unsigned result, const std::string &flag);
  /// The function's type, and what its states are.
  void finish();

private:
  mlir::func::FuncOp function;
  const PhaseContext &context;
  std::map<std::string, Dim> lengths; ///< by name: after a run
};

/// Makes caches that are inputs and outputs of a run tensors that the caller may bind once, where all targets run on
/// the host.
void keepCallerCaches(mlir::func::FuncOp function, const PhaseContext &context);

} // namespace dmxc
