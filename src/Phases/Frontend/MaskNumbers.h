//===- MaskNumbers.h - what is added to scores: masks and biases -*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"

#include <optional>

namespace dmxc {

/// Scores above are numbers like others: nothing would be left out.
inline constexpr double kMostFill = -1000;

/// Whether a value that is added to scores can leave some out: numbers of it are fills (-inf, a least number, a large
/// negative one, of `most` or less), or are multiplied to be that. A bias has none.
bool holdsFill(mlir::Value addend, double most = kMostFill);

/// The least number of a constant of floats; nothing for other values.
std::optional<double> leastNumber(mlir::Value value);

/// Whether a select among scores and something else masks them: by a fill, or by what does not depend on the scores.
/// One that looks at the scores, as an activation's, does not.
bool isMaskingSelect(dmir::SelectOp select);

/// Whether a value is one that the graph's caller brings, moved or cast: whether it is a mask only a run knows.
bool isOfCaller(mlir::Value value);

} // namespace dmxc
