//===- Functions.cpp - tasks of the vector device -------------------------===//
//
// Which elements each slice computes, by ISA.md (7); a function of them is that of schemas/corsair/simd.
//
//===----------------------------------------------------------------------===//
#include "Tasks.h"

#include <set>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using namespace dmxc::corsair::stages;
using hw::ConfigKey;
using hw::ElemKind;
using hw::Memory;
using hw::SimdFunction;

namespace {

class Function {
public:
  Function(engine::SimdOp op, const TaskSite &site) : op(op), site(site) {}

  Status run() {
    const bool done = decode() && isMeant() && eachOf(slices, site.machine().slices, [&](int64_t slice, int64_t rank) {
                        return runSlice(slice, rank);
                      });
    return done ? Status::ok() : access.status();
  }

private:
  bool decode();
  void decodeNumbers(const TaskNumbers &numbers);
  bool decodeOperands(const TaskNumbers &numbers);
  bool isMeant();
  bool runSlice(int64_t slice, int64_t rank);
  bool bind(hw::SimdJob &job, int64_t slice, unsigned number);
  bool readValid(const hw::SimdJob &job, const Cell &cell, Wide base);
  bool readImage(const hw::SimdJob &job, const Cell &cell, Wide base);
  Area areaOf(const hw::SimdJob &job, unsigned number, Wide base) const;
  Wide originOf(const hw::SimdJob &job, unsigned number);
  bool rotates() const {
    return whole.function == SimdFunction::Rope || whole.function == SimdFunction::RopeInterleaved;
  }
  bool sees() const { return hw::isWindowFunction(whole.function); }
  static hw::SimdOperand &operandOf(hw::SimdJob &job, unsigned number) {
    hw::SimdOperand *all[] = {&job.d, &job.a, &job.b, &job.c};
    return *all[number];
  }
  static const hw::SimdOperand &operandOf(const hw::SimdJob &job, unsigned number) {
    return operandOf(const_cast<hw::SimdJob &>(job), number);
  }

  engine::SimdOp op;
  const TaskSite &site;
  Accesses access;
  hw::SimdJob whole;
  int64_t slices = 1, split = 1, operands = 0; ///< operands: those that are read
  int64_t place[4] = {};
};

bool Function::decode() {
  std::optional<SimdFunction> function = hw::simdFunctionFromName(op.getFunction());
  if (!function)
    return access.fail("names the function '" + op.getFunction().str() + "', which the vector device does not have");
  whole.function = *function;
  const TaskNumbers numbers(op, site, access);
  decodeNumbers(numbers);
  return decodeOperands(numbers) && readWindow(op.getWindow(), whole.window, access) &&
         static_cast<bool>(access.status());
}

/// The innermost of four dims are the last; dims and slices are counted in those that the text has.
void Function::decodeNumbers(const TaskNumbers &numbers) {
  const auto missing = static_cast<int64_t>(4 - op.getDims().size());
  std::fill(std::begin(whole.n), std::end(whole.n), 1);
  llvm::copy(op.getDims(), whole.n + missing);
  const int64_t count = numbers.of(op.getCount(), -1);
  if (count < -1)
    access.fail("counts " + std::to_string(count) + " items");
  whole.n[0] = count < 0 ? whole.n[0] : count;
  auto dim = [&](std::optional<uint64_t> text, ConfigKey key) {
    const auto number = static_cast<int64_t>(text.value_or(0));
    return !text ? otherwiseOf(key) : number ? number + missing : 0;
  };
  split = dim(op.getSplit(), ConfigKey::Split);
  whole.causal = dim(op.getCausal(), ConfigKey::Causal);
  whole.inner = given(op.getInner(), ConfigKey::Inner);
  slices = given(op.getSlices(), hw::Opcode::ExecSimd, "slices");
  whole.index = numbers.of(op.getIndex(), 0);
  whole.countPad = op.getCountPad();
  whole.imm0 = op.getImm0() ? op.getImm0()->convertToFloat() : 0;
  whole.imm1 = op.getImm1() ? op.getImm1()->convertToFloat() : 0;
}

bool Function::decodeOperands(const TaskNumbers &numbers) {
  const std::optional<StringRef> kinds[] = {op.getToKind(), op.getAKind(), op.getBKind(), op.getCKind()};
  const std::optional<ArrayRef<int64_t>> steps[] = {op.getToStrides(), op.getAStrides(), op.getBStrides(),
                                                    op.getCStrides()};
  for (unsigned i = 0; i < 4; ++i) {
    hw::SimdOperand &operand = operandOf(whole, i);
    operand.kind = ElemKind::Raw;
    if (!kinds[i])
      continue;
    if (!readKind(*kinds[i], operand.kind, access))
      return false;
    llvm::copy(*steps[i], operand.step + (4 - steps[i]->size()));
    place[i] = numbers.place(i);
  }
  whole.hasB = whole.b.kind != ElemKind::Raw, whole.hasC = whole.c.kind != ElemKind::Raw;
  return true;
}

bool Function::isMeant() {
  constexpr Wide most = Wide(1) << 34;
  operands = hw::operandCount(whole.function);
  if (const char *wrong = hw::checkKinds(whole))
    return access.fail("computes with kinds of numbers that do not go together: " + std::string(wrong));
  if (!isMaskOf(slices, site.machine().slices, "slices", access))
    return false;
  if (whole.inner < 1 || whole.inner > 4 || split < 0 || split > 4 || whole.causal < 0 || whole.causal > 3)
    return access.fail("names dims that it does not have: inner " + std::to_string(whole.inner) + ", split " +
                       std::to_string(split) + ", causal " + std::to_string(whole.causal));
  if (llvm::any_of(whole.n, [](int64_t n) { return n < 0 || n > INT32_MAX; }) || Wide(whole.n[0]) * whole.n[1] > most ||
      Wide(whole.n[0]) * whole.n[1] * whole.n[2] > most ||
      Wide(whole.n[0]) * whole.n[1] * whole.n[2] * whole.n[3] > most)
    return access.fail("computes more elements than any memory has");
  if (rotates() && (whole.inner != 1 || whole.n[3] % 2))
    return access.fail("turns no rows of pairs");
  if (hw::isRowFunction(whole.function) && split > 4 - whole.inner)
    return access.fail("deals out its rows to slices");
  return true;
}

/// GM holds whole operands, the memory of a slice its part of them.
Wide Function::originOf(const hw::SimdJob &job, unsigned number) {
  Wide origin = place[number];
  for (int i = 0; i < 4 && memoryOf(op.getBuffers()[number]) == Memory::GM; ++i) {
    const bool ofWindow = sees() && (number == 1 ? i == 1 || i == 2 : number > 1 && i != 3);
    if (!ofWindow)
      origin += Wide(job.origin[i]) * operandOf(job, number).step[i];
  }
  return origin;
}

Area Function::areaOf(const hw::SimdJob &job, unsigned number, Wide base) const {
  const hw::SimdOperand &operand = operandOf(job, number);
  int64_t n[4];
  std::copy(std::begin(job.n), std::end(job.n), n);
  if (number == 0 && hw::isReduction(job.function))
    std::fill(std::end(n) - job.inner, std::end(n), 1);
  if (number >= 2 && rotates()) // angles of pairs
    n[3] /= 2;
  if (number >= 2 && sees()) {
    n[0] = 1;
    n[1] = number == 2 ? job.window.kh : 1, n[2] = number == 2 ? job.window.kw : 1;
  }
  Area area{base, hw::elementBytes(operand.kind), {}};
  for (int i = 0; i < 4; ++i)
    area.dims.push_back({n[i], operand.step[i]});
  return area;
}

/// Of each row what is not masked.
bool Function::readValid(const hw::SimdJob &job, const Cell &cell, Wide base) {
  const int64_t rows[4] = {job.n[0], job.n[1], job.n[2], 1};
  return eachItem(rows, [&](const int64_t (&i)[4]) {
    const Area row{
        base + dot(i, job.a.step), hw::elementBytes(job.a.kind), {{hw::validColumns(job, i), job.a.step[3]}}};
    return access.read(cell, row, job.a.kind);
  });
}

/// Which pixels of `size` some tap of `count` windows from `first` on falls on.
static std::vector<int64_t> seenPixels(int64_t first, int64_t count, int64_t size, int64_t kernel, int64_t stride,
                                       int64_t dilation, int64_t low) {
  std::set<int64_t> seen;
  for (int64_t o = first; o < first + count; ++o)
    for (int64_t k = 0; k < kernel; ++k)
      if (const int64_t at = o * stride - low + k * dilation; at >= 0 && at < size)
        seen.insert(at);
  return {seen.begin(), seen.end()};
}

bool Function::readImage(const hw::SimdJob &job, const Cell &cell, Wide base) {
  const hw::Window &win = job.window;
  const std::vector<int64_t> columns = seenPixels(job.origin[2], job.n[2], win.w, win.kw, win.sw, win.dw, win.pw);
  for (int64_t row : seenPixels(job.index + job.origin[1], job.n[1], win.h, win.kh, win.sh, win.dh, win.ph))
    for (int64_t column : columns) {
      Area area = areaOf(job, 1, base + Wide(row) * job.a.step[1] + Wide(column) * job.a.step[2]);
      area.dims[1].count = area.dims[2].count = 1;
      if (!access.read(cell, area, job.a.kind))
        return false;
    }
  return true;
}

bool Function::bind(hw::SimdJob &job, int64_t slice, unsigned number) {
  Cell &cell = site.card.cellOf(op.getBuffers()[number], site.quad, slice);
  hw::SimdOperand &operand = operandOf(job, number);
  const Wide base = originOf(job, number);
  if (!access.isAligned(cell, place[number], hw::elementBytes(operand.kind)))
    return false;
  const bool read = number != 1               ? true
                    : sees()                  ? readImage(job, cell, base)
                    : hw::readsValidOnly(job) ? readValid(job, cell, base)
                                              : access.read(cell, areaOf(job, 1, base), operand.kind);
  if (!read || (number > 1 && !access.read(cell, areaOf(job, number, base), operand.kind)) ||
      (number == 0 && !access.write(cell, areaOf(job, 0, base), operand.kind)))
    return false;
  operand.data = cell.data() + static_cast<int64_t>(base);
  return true;
}

bool Function::runSlice(int64_t slice, int64_t rank) {
  hw::SimdJob job = whole;
  if (split) { // slices share a dim, in parts
    const int64_t dim = split - 1, part = llvm::divideCeil(whole.n[dim], llvm::popcount(static_cast<uint64_t>(slices)));
    job.origin[dim] = std::min(rank * part, whole.n[dim]);
    job.n[dim] = std::min(part, whole.n[dim] - job.origin[dim]);
  }
  if (llvm::is_contained(job.n, 0))
    return true;
  for (unsigned number : {1U, 2U, 3U, 0U}) // the result last
    if (number <= operands && operandOf(job, number).kind != ElemKind::Raw && !bind(job, slice, number))
      return false;
  if (sees())
    hw::computeWindows(job);
  else if (hw::isRowFunction(job.function))
    hw::computeRows(job);
  else
    hw::computeElementwise(job);
  return true;
}

} // namespace

Status dmxc::corsair::stages::runTask(engine::SimdOp op, const TaskSite &site) { return Function(op, site).run(); }
