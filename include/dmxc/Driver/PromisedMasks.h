//===- PromisedMasks.h - inputs that are masks by a promise -----*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <utility>
#include <vector>

namespace dmxc::driver {

/// {input, rule}, as --mask has them.
using Promises = std::vector<std::pair<std::string, std::string>>;

/// Puts rules in the place of inputs, which leave the signature: of bools true where the rule holds, of integers 1 or
/// 0, of floats 0 or -inf.
Status promiseMasks(mlir::ModuleOp module, const Promises &promises);

/// Whether what was given for an input is what its rule says; the first element that is not is named. Of floats what is
/// not kept may be any number that replaces a score.
Status checkPromise(const std::pair<std::string, std::string> &promise, const Tensor &given);

} // namespace dmxc::driver
