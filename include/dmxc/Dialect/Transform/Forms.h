//===- Forms.h - normal forms of loops --------------------------*- C++ -*-===//
//
// A form is a set of properties. Of each there is a check, which decides while a script runs, and a way to bring it
// about.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/Transform/Transform.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"

namespace dmxc::transform {

enum Property : unsigned { Normalized = 1, MultiTrip = 2, Hoisted = 4, OneLoop = 8 };

/// What a name stands for: properties, and forms that the script defines.
struct Form {
  unsigned properties = 0;
  mlir::SmallVector<DefineFormOp> own; ///< what they extend before them
};

/// A form, or several with '+' between them. Forms of a script are those that `from` sees; null: none.
Result<Form> findForm(llvm::StringRef name, mlir::Operation *from);
/// The table that --print-forms shows.
std::string describeForms();
/// The forms of that table, and what each means.
std::vector<std::pair<llvm::StringRef, llvm::StringRef>> forms();

/// Why a nest has not all of `properties`; no op where it has. `depth`: of as many loops alone; 0: of all.
struct Finding {
  mlir::Operation *at = nullptr;
  std::string why;
};
Finding lacking(mlir::affine::AffineForOp root, unsigned properties, unsigned depth = 0);

/// What came of bringing properties about.
struct Reached {
  mlir::affine::AffineForOp root; ///< of the nest now; null where no loop is left
  std::string did;                ///< "1 op sunk"; "" where nothing was to be done
  Finding left;                   ///< why not all properties are there
};
Reached bringAbout(mlir::RewriterBase &rewriter, mlir::affine::AffineForOp root, unsigned properties,
                   unsigned depth = 0);

/// What ends what a message says of a normalisation that an op asked for.
inline constexpr llvm::StringLiteral kLogMark = " [schedule-log]";

/// Brings about what an op of a script needs of a nest, says so in the log, and may exchange the root.
mlir::DiagnosedSilenceableFailure require(mlir::transform::TransformOpInterface op, mlir::RewriterBase &rewriter,
                                          mlir::affine::AffineForOp &root, llvm::StringRef form, unsigned depth);
/// Checks what an op promised.
mlir::DiagnosedSilenceableFailure ensure(mlir::transform::TransformOpInterface op, mlir::affine::AffineForOp root,
                                         llvm::StringRef form, unsigned depth);

} // namespace dmxc::transform
