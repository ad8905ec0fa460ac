//===- MaskReasons.cpp - why a mask is no rule -----------------------------===//
#include "MaskReasons.h"

#include "../MaskNumbers.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

std::optional<double> dmxc::fillOf(ArrayRef<Piece> pieces) {
  std::optional<double> fill;
  for (const Piece &piece : pieces)
    if (piece.leaf.kind == Leaf::Number && piece.leaf.number <= kMostFill)
      fill = std::min(fill.value_or(0), piece.leaf.number);
  return fill;
}

static std::string text(double number) {
  std::string result;
  llvm::raw_string_ostream(result) << llvm::format("%g", number);
  return result;
}

static std::string dimsText(Value value) {
  return llvm::join(llvm::map_range(dimsOf(value), [](Dim dim) { return dim.str(); }), " x ");
}

/// The least of numbers that are all known: those of a constant, whatever their order, or of pieces.
static std::optional<double> leastOf(Value mask, ArrayRef<Piece> pieces) {
  if (std::optional<double> least = leastNumber(mask))
    return least;
  double least = 0;
  for (const Piece &piece : pieces) {
    if (piece.leaf.kind != Leaf::Number)
      return std::nullopt;
    least = std::min(least, piece.leaf.number);
  }
  return least;
}

/// What is wrong with a mask whose pieces are all known.
static std::string reasonOfPieces(ArrayRef<Piece> pieces, SoftmaxOp softmax, Operation *op, bool isBool) {
  std::optional<double> fill = fillOf(pieces);
  if (!fill && !isBool)
    return "its numbers are added to scores and replace none";
  if (dimsOf(op->getResult(0)) != dimsOf(softmax.getInput()))
    return "it meets scores of " + dimsText(op->getResult(0)) + ", which are reshaped to " +
           dimsText(softmax.getInput()) + " before the softmax";
  if (isa<SelectOp>(op))
    return "scores may be as low as the number that it puts in their place";
  bool addsMore = llvm::any_of(pieces, [&](const Piece &p) { return !p.leaf.isNumber(0) && !p.leaf.isNumber(*fill); });
  return addsMore ? "it adds other numbers beside 0 and " + text(*fill)
                  : "scores may be as low as those that it adds " + text(*fill) + " to";
}

std::string dmxc::reasonAgainst(IndexFunctions &functions, SoftmaxOp softmax, Operation *op, Value mask,
                                const std::string &failure) {
  Pieces pieces = functions.ofBroadcast(mask);
  std::string name = "the mask";
  if (Operation *from = mask.getDefiningOp())
    name = "'" + nodeName(from) + "' (" + from->getName().getStringRef().str() + ")";
  const bool isBool = elementOf(mask).isInteger(1);
  // Whatever order they have, as those of shifted windows of images.
  if (std::optional<double> least = isBool ? std::nullopt : leastOf(mask, pieces); least && *least > kMostFill)
    return name + ": the least number that it adds is " + text(*least) + ": weights are small there, and not 0";
  if (llvm::any_of(pieces, [](const Piece &piece) { return piece.leaf.kind == Leaf::Unknown; }))
    return functions.unreadable();
  return name + ": " + (failure.empty() ? reasonOfPieces(pieces, softmax, op, isBool) : failure);
}
