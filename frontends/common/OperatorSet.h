//===- OperatorSet.h - operators that other formats may name ----*- C++ -*-===//
#pragma once

#include "Emitter.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace dmxc::frontend {

/// What a node says beside its operands, whatever form its file gave that.
using OperatorAttribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                                       std::vector<std::string>, Tensor>;
using OperatorAttributes = std::map<std::string, OperatorAttribute>;

/// The operators of a front end, for models of other formats that name them. A Frontend publishes its set, and the
/// driver hands those of the build to every import.
class OperatorSet {
public:
  virtual ~OperatorSet() = default;
  /// The results of an operator as of `version`, the newest where it is not given. Null operands are left out; results
  /// that the operator does not give are null. Fails as nodes do.
  virtual std::vector<Val> import(Emitter &e, const std::string &op, std::vector<Val> operands,
                                  const OperatorAttributes &attributes, size_t results,
                                  std::optional<int64_t> version) const = 0;
};

} // namespace dmxc::frontend
