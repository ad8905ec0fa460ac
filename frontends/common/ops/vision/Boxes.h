//===- Boxes.h - boxes that overlap -----------------------------*- C++ -*-===//
#pragma once

#include "../../Emitter.h"

namespace dmxc::frontend {

/// Corners of boxes, [lines, boxes] each or what broadcasts to it: y1 <= y2, x1 <= x2.
struct Boxes {
  Val y1, x1, y2, x2;
};

/// Of the boxes of a line, best first, those candidates (bool [lines, boxes]) that no kept one before overlaps by more
/// than `overlap` (a scalar; intersection over union), at most `limit` (an i64 scalar) of them: bool [lines, boxes].
Val keptBoxes(Emitter &e, const Boxes &boxes, const Val &candidates, const Val &overlap, const Val &limit);

} // namespace dmxc::frontend
