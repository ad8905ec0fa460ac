//===- Rows.cpp - parts of rows -------------------------------------------===//
#include "dmxc/Dialect/DMIR/Rows.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

/// The slice that makes a value, if it cuts rows and nothing else.
static SliceOp cutOf(Value value) {
  auto slice = value.getDefiningOp<SliceOp>();
  if (!slice || slice.getDims() || slice.getStarts().empty())
    return {};
  ArrayRef<int64_t> whole = shapeOf(slice.getInput());
  for (size_t i = 0; i + 1 < whole.size(); ++i)
    if (slice.getStarts()[i] != 0 || slice.getSteps()[i] != 1 || slice.getSizes()[i] != whole[i])
      return {};
  return slice;
}

RowPart dmxc::dmir::partOfRows(Value value) {
  RowPart part{value};
  while (SliceOp slice = cutOf(part.whole)) {
    part.start = slice.getStarts().back() + part.start * slice.getSteps().back();
    part.step *= slice.getSteps().back();
    part.whole = slice.getInput();
  }
  return part;
}
