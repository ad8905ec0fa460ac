//===- Reshapes.cpp - tasks of the reshape engine -------------------------===//
#include "Tasks.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using hw::ElemKind;
using hw::Memory;

namespace {

class Reshape {
public:
  Reshape(engine::ReshapeOp op, const TaskSite &site) : op(op), site(site), numbers(op, site, access) {}

  Status run() { return (op.getFunction() == "transpose" ? transpose() : move()) ? Status::ok() : access.status(); }

private:
  bool transpose();
  bool transposeOne(Wide from, Wide to, int64_t rows, int64_t columns, int64_t element);
  bool move();
  bool moveIndexed(bool gathers);
  bool moveWindows(int64_t pixel);
  bool moveItems(const int64_t (&n)[4], Wide from, Wide to);
  bool moveItem(Wide from, Wide to, int64_t bytes);
  std::optional<int64_t> indexAt(Wide place);
  bool findCells();

  engine::ReshapeOp op;
  const TaskSite &site;
  Accesses access;
  TaskNumbers numbers;
  Cell *source = nullptr, *target = nullptr;
  Walked walked;
  Wide from = 0, to = 0;
};

bool Reshape::findCells() {
  const auto slice = static_cast<int64_t>(op.getSlice().value_or(0));
  const Memory first = memoryOf(op.getBuffers()[0]), second = memoryOf(op.getBuffers()[1]);
  if (slice < 0 || slice >= site.machine().slices)
    return access.fail("names slice " + std::to_string(slice) + ", a quad has " +
                       std::to_string(site.machine().slices));
  const bool transposes = op.getFunction() == "transpose";
  if ((first != Memory::GM && first != Memory::DRE && (transposes || first != Memory::DDR)) ||
      (second != Memory::GM && (transposes || second != Memory::DDR)))
    return access.fail("moves from " + std::string(hw::nameOf(first)) + " to " + std::string(hw::nameOf(second)) +
                       ", which its engine does not");
  source = &site.card.cellOf(op.getBuffers()[0], site.quad, slice);
  target = &site.card.cellOf(op.getBuffers()[1], site.quad, slice);
  from = numbers.place(0), to = numbers.place(1);
  return static_cast<bool>(access.status());
}

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

bool Reshape::transpose() {
  constexpr hw::Opcode opcode = hw::Opcode::Transpose;
  const int64_t rows = numbers.of(op.getRows(), otherwiseOf(opcode, "rows")),
                columns = numbers.of(op.getColumns(), otherwiseOf(opcode, "cols")),
                batch = numbers.of(op.getBatch(), otherwiseOf(opcode, "batch")),
                element = given(op.getElement(), opcode, "esize"),
                fromStep = given(op.getSourceBatch(), opcode, "sbatch"),
                toStep = given(op.getTargetBatch(), opcode, "dbatch");
  if (!findCells())
    return false;
  if (rows < 0 || columns < 0 || batch < 0 || !llvm::is_contained({1, 2, 4, 8}, element))
    return access.fail("transposes " + std::to_string(batch) + " matrices of " + std::to_string(rows) + " x " +
                       std::to_string(columns) + " elements of " + std::to_string(element) + " bytes");
  if (!access.isAligned(*source, from, element) || !access.isAligned(*target, to, element))
    return false;
  for (int64_t i = 0; i < batch && rows && columns; ++i)
    if (!transposeOne(from + Wide(i) * fromStep, to + Wide(i) * toStep, rows, columns, element))
      return false;
  return true;
}

bool Reshape::transposeOne(Wide in, Wide out, int64_t rows, int64_t columns, int64_t element) {
  constexpr hw::Opcode opcode = hw::Opcode::Transpose;
  const int64_t fromPitch = given(op.getSourcePitch(), opcode, "spitch"),
                toPitch = given(op.getTargetPitch(), opcode, "dpitch");
  const Area all{in, columns * element, {{rows, fromPitch}}}, made{out, rows * element, {{columns, toPitch}}};
  if (!access.read(*source, all, ElemKind::Raw))
    return false;
  const ElemKind kind = source->kinds[static_cast<int64_t>(in)]; // of all of them
  if (!access.read(*source, all, kind) || !access.write(*target, made, kind))
    return false;
  const std::byte *first = source->data() + static_cast<int64_t>(in);
  std::byte *into = target->data() + static_cast<int64_t>(out);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(into + column * toPitch + row * element, first + row * fromPitch + column * element, element);
  return true;
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

bool Reshape::move() {
  if (!walked.read(op.getDescriptor().getDefiningOp<dlir::DescriptorOp>(), access) ||
      !walked.replaceCount(numbers.of(op.getCount(), -1), access) || !findCells())
    return false;
  if (walked.kind == ElemKind::Raw || walked.to != walked.kind || walked.sourceRows || walked.targetRows)
    return access.fail("neither converts, nor knows rows of tiles or raw bytes");
  const int64_t pixel = numbers.of(op.getPixel(), 0), element = unitBytes(walked.kind);
  if (pixel < 0)
    return access.fail("begins at pixel " + std::to_string(pixel));
  if (!access.status() || !access.isAligned(*source, from, element) || !access.isAligned(*target, to, element))
    return false;
  const StringRef rule = op.getRule().value_or("strided");
  return rule == "strided"  ? moveItems(walked.n, from, to)
         : rule == "window" ? moveWindows(pixel)
                            : moveIndexed(rule == "gather");
}

bool Reshape::moveItem(Wide in, Wide out, int64_t bytes) {
  const std::byte *bytesIn = access.read(*source, in, bytes, walked.kind);
  std::byte *bytesOut = bytesIn ? access.write(*target, out, bytes, walked.kind) : nullptr;
  if (bytesOut)
    std::memmove(bytesOut, bytesIn, bytes);
  return bytesOut != nullptr;
}

bool Reshape::moveItems(const int64_t (&n)[4], Wide in, Wide out) {
  return eachItem(n, [&](const int64_t (&i)[4]) {
    return moveItem(in + dot(i, walked.s), out + dot(i, walked.t), unitBytes(walked.kind) * walked.unit);
  });
}

std::optional<int64_t> Reshape::indexAt(Wide place) {
  const Cell &cell = site.card.cellOf(op.getBuffers()[2], site.quad);
  if (walked.indexKind != ElemKind::I32 && walked.indexKind != ElemKind::I64) {
    access.fail("has indices that are neither i32 nor i64");
    return std::nullopt;
  }
  const std::byte *at = access.read(cell, place, hw::elementBytes(walked.indexKind), walked.indexKind);
  if (!at)
    return std::nullopt;
  const int64_t index = hw::readInteger(at, walked.indexKind), range = walked.indexRange;
  if (index >= -range && index < range)
    return index < 0 ? index + range : index;
  access.fail("has index " + std::to_string(index) + " of an axis of " + std::to_string(range));
  return std::nullopt;
}

bool Reshape::moveIndexed(bool gathers) {
  const int64_t one[4] = {1, walked.n[1], walked.n[2], walked.n[3]};
  const int64_t first = numbers.place(2);
  for (int64_t i = 0; i < walked.n[0]; ++i) {
    std::optional<int64_t> index = indexAt(first + Wide(i) * walked.indexPitch);
    if (!index ||
        !moveItems(one, from + Wide(gathers ? *index : i) * walked.s[0], to + Wide(gathers ? i : *index) * walked.t[0]))
      return false;
  }
  return true;
}

/// The places of a kernel, for each output pixel side by side; zeros outside of the image.
bool Reshape::moveWindows(int64_t pixel) {
  const hw::Window &win = walked.window;
  const int64_t bytes = unitBytes(walked.kind) * walked.channels;
  for (int64_t i = 0; i < walked.n[0]; ++i)
    for (int64_t k = 0; k < win.kh * win.kw; ++k) {
      const int64_t p = pixel + i, h = p / win.ow * win.sh - win.ph + k / win.kw * win.dh,
                    w = p % win.ow * win.sw - win.pw + k % win.kw * win.dw;
      const Wide out = to + Wide(i) * walked.t[0] + Wide(k) * walked.t[1];
      if (h >= 0 && h < win.h && w >= 0 && w < win.w) {
        if (!moveItem(from + Wide(h) * walked.s[1] + Wide(w) * walked.s[2], out, bytes))
          return false;
        continue;
      }
      std::byte *zeros = access.write(*target, out, bytes, walked.kind);
      if (!zeros)
        return false;
      std::memset(zeros, 0, bytes);
    }
  return true;
}

} // namespace

Status dmxc::corsair::stages::runTask(engine::ReshapeOp op, const TaskSite &site) { return Reshape(op, site).run(); }
