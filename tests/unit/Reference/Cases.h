//===- Cases.h - table-driven tests of the interpreter ----------*- C++ -*-===//
//
// A case is one op on literal tensors. Literals name their type as MLIR does: "2x3xf32: 1 2 3 4 5 6", "i64: -1" for a
// scalar, "0xf32:" for an empty tensor. Values may be nan, inf, -inf, hexadecimal floats, true, false.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dmxc::reference::test {

struct Case {
  std::string op;         ///< without "dmir."; a leading keyword follows: "reduce sum"
  std::string attributes; ///< "axis = 1, keepDims = false"
  std::vector<std::string> inputs, outputs;
  /// "{T}" in the literals stands for each of these element types in turn (separated by blanks); "" = no such type.
  std::string types = "";
  /// Allowed relative error; 0 = every bit (NaNs are alike).
  double tolerance = 0;
  /// What the error must contain, for cases that fail at run time.
  std::string error = "";
};

// Element types by class, for Case::types. Values of rows over all floats must be exact in f4E2M1FN, that is, among
// 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; of rows over all integers in 0 .. 7.
inline const std::string kSigned = "i4 i8 i16 i32 i64";
inline const std::string kUnsigned = "ui4 ui8 ui16 ui32 ui64";
inline const std::string kInts = kSigned + " " + kUnsigned;
inline const std::string kWideFloats = "f16 bf16 f32 f64";
inline const std::string kFloats = kWideFloats + " f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f4E2M1FN";
inline const std::string kNumbers = kInts + " " + kFloats;
inline const std::string kAll = "i1 " + kNumbers;

/// A named table of cases; defining one at namespace scope registers it.
class Family {
public:
  Family(std::string name, std::vector<Case> cases);
  static const std::vector<Family> &all();

  std::string name;
  std::vector<Case> cases;
};

/// The ops that MathTest.cpp compares with libm, without "dmir.".
std::vector<std::string> mathFunctions();

/// A context with the dialects the tests need.
mlir::MLIRContext &context();
mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
Tensor tensorOf(const std::string &literal);
/// Checks one tensor against another; the message shows both.
void expectTensor(const Tensor &got, const Tensor &want, double tolerance);
/// Runs the case for each of its types.
void runCase(const Case &testCase);
/// The function named "main" of a module given as text, run on literals.
Result<std::vector<Tensor>> runText(const std::string &text, const std::vector<std::string> &inputs,
                                    const OpObserver &observer = {});

} // namespace dmxc::reference::test
