//===- Moe.h - mixtures of experts ------------------------------*- C++ -*-===//
#pragma once

#include "Contrib.h"

namespace dmxc::onnxfe {

/// A linear layer of each expert: weights f32 [experts, n, k] and a bias [experts, n], which may be null.
struct ExpertLayer {
  Val weights, bias;
  explicit operator bool() const { return static_cast<bool>(weights); }
};

struct Experts {
  ExpertLayer fc1, fc2, fc3;
};

/// What the attributes say of the function between the layers.
struct ExpertActivation {
  std::string name;
  double alpha, beta;
  std::optional<double> limit;
  bool limitAfter;
  int64_t fusion; ///< 0: gate and up are fc1 and fc3; 1: rows of fc1 in turn; 2: halves of fc1
  bool gated() const { return name == "swiglu" || name == "geglu"; }
  /// How many rows of fc1 there are for one of fc2's columns.
  int64_t rows() const { return gated() && fusion ? 2 : 1; }
};
ExpertActivation expertActivationOf(NodeContext &c);

/// The experts that each token takes, i64 [tokens, k], and what each counts, f32 of the same shape.
struct Route {
  Val experts, weights;
};
/// What an expert counts is the softmax over all of them, or what `given` says; divided by the sum of those chosen
/// where the attribute says so.
Route routeOf(NodeContext &c, const Val &given = {});

/// The result of a MoE node, with the type and the shape of its input.
Val mixedExperts(NodeContext &c, const Experts &experts, const ExpertActivation &activation, const Route &route);

/// Fails unless the layers fit each other, the input and the router.
void requireLayer(NodeContext &c, const ExpertLayer &layer, const Dims &dims, const char *what);

} // namespace dmxc::onnxfe
