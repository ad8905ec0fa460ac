//===- Facts.h - what is known of products' operands, and used --*- C++ -*-===//
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace dmxc::driver {

/// A fact of `dmir.sparsity` that a product could leave work out by, in a module after partition.
struct ProductFact {
  std::string node;           ///< of the product
  std::string of;             ///< "its right operand", "its result": then what is demanded
  std::string rule;           ///< where it is not zero, or where it is demanded; "nowhere"
  std::string from;           ///< the op that the fact began at
  std::string kernel;         ///< "matmul-runs on cpu"
  std::optional<double> kept; ///< of all elements; nothing where sizes are open
  double operations = 0;      ///< of the product as the model has it; 0 where sizes are open
  double issued = 0;          ///< as the strategy counts them
  std::string reason;         ///< why it is not used; "" where it is
  bool isUsed() const { return reason.empty(); }
};

std::vector<ProductFact> productFacts(mlir::ModuleOp module);

/// What --sparsity-report says of them; "" and an empty array where there are none.
std::string factsText(const std::vector<ProductFact> &all);
nlohmann::ordered_json factsJson(const std::vector<ProductFact> &all);

} // namespace dmxc::driver
