//===- MatrixOps.cpp - instructions of matrices -------------------------------===//

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

#include <charconv>

namespace dmxrt::cuda {
namespace {

// --- wgmma ---------------------------------------------------------------------------------

bool fenceProducts(Warp &w, const Op &) {
  ++w.fences;
  return true;
}

bool commitProducts(Warp &w, const Op &) {
  w.block->products.commit(w.number);
  return true;
}

bool waitForProducts(Warp &w, const Op &op) { return w.block->products.wait(w, op.immediate); }

bool multiply(Warp &w, const Op &op) {
  const ProductForm &form = w.block->launch.program->products[op.immediate];
  for (uint32_t i = 0; i < op.sources; ++i)
    for (uint32_t lane = 1; lane < kLanes; ++lane)
      if (w.slots[op.source[i]][lane] != w.slots[op.source[i]][0])
        return w.fail(lane, "diverged: threads of a warp have different descriptors");
  uint32_t adds = w.predicates[op.predicateSource[0]];
  if (adds != 0 && adds != kAllLanes)
    return w.fail(0, "diverged: threads of a warp do not agree on whether it adds");
  uint64_t a = w.slots[op.source[0]][0], b = form.aInRegisters ? a : w.slots[op.source[1]][0];
  return w.block->products.issue(w, form, a, b, adds != 0);
}

/// m64n128k16
bool takeShape(std::string_view word, ProductForm &form, uint32_t &depth) {
  size_t k = word.find('k');
  if (!word.starts_with("m64n") || k == word.npos)
    return false;
  auto number = [](std::string_view text, uint32_t &out) {
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc() && end == text.data() + text.size();
  };
  return number(word.substr(4, k - 4), form.columns) && number(word.substr(k + 1), depth) && form.columns >= 8 &&
         form.columns <= 256 && form.columns % 8 == 0;
}

bool takeRegisters(Decoder &d, const PtxOperand &from, size_t count, std::vector<uint32_t> &out) {
  if (from.kind != PtxOperand::Vector || from.parts.size() != count)
    return d.refuse("a matrix in registers has ", from.parts.size(), " of them, not ", count);
  for (const PtxOperand &part : from.parts) {
    if (part.kind != PtxOperand::Register || d.registerBits(part) != 32)
      return d.refuse("a matrix lies in registers of 32 bits");
    out.push_back(part.number);
  }
  return true;
}

/// The numbers behind the predicate: 1 or -1 for each operand's sign, then 0 or 1 for each that lies along M or N.
bool takeSigns(Decoder &d, size_t first, ProductForm &form) {
  for (bool *negates : {&form.negatesA, &form.negatesB}) {
    const PtxOperand &sign = d.operand(first++);
    *negates = sign.bits != 1;
    if (sign.kind != PtxOperand::Integer || (sign.bits != 1 && sign.bits != ~uint64_t(0)))
      return d.refuse("an operand of wgmma is taken by 1 or by -1");
  }
  if (form.type == ProductForm::Tf32)
    return true;
  uint64_t number = 0;
  if (!form.aInRegisters) {
    if (!d.number(first++, 1, number))
      return false;
    form.aIsMnMajor = number != 0;
  }
  if (!d.number(first, 1, number))
    return false;
  form.bIsMnMajor = number != 0;
  return true;
}

bool decodeProduct(Decoder &d, Op &op) {
  static constexpr std::string_view types[] = {"bf16", "f16", "tf32"};
  ProductForm form;
  uint32_t depth = 0, type = 0;
  if (!d.take("sync") || !d.take("aligned") || !takeShape(d.takeWord(), form, depth) || !d.take("f32"))
    return false;
  std::string_view left = d.takeWord(), right = d.takeWord();
  while (type < std::size(types) && types[type] != left)
    ++type;
  form.type = static_cast<ProductForm::Type>(type);
  if (type == std::size(types) || left != right || depth != form.depth() || d.operands() < 6)
    return false;
  form.aInRegisters = d.operand(1).kind == PtxOperand::Vector;
  size_t majors = form.type == ProductForm::Tf32 ? 0 : form.aInRegisters ? 1 : 2;
  op.step = multiply;
  op.meeting = Op::Whole;
  op.immediate = static_cast<uint32_t>(d.made().products.size());
  d.talk();
  if (!d.hasOperands(6 + majors) || !takeRegisters(d, d.operand(0), form.columns / 2, form.d) ||
      (form.aInRegisters ? !takeRegisters(d, d.operand(1), 4, form.a) : !d.source(op, 1, {'b', 64})) ||
      !d.source(op, 2, {'b', 64}) || !d.predicate(d.operand(3), op.predicateSource[0]) || !takeSigns(d, 4, form))
    return false;
  d.made().products.push_back(std::move(form));
  return true;
}

bool decodeWgmma(Decoder &d, Op &op) {
  if (d.take("mma_async"))
    return decodeProduct(d, op);
  op.meeting = Op::Whole;
  d.talk();
  uint64_t left = 0;
  if (d.take("wait_group")) {
    op.step = waitForProducts;
    if (!d.take("sync") || !d.take("aligned") || !d.hasOperands(1) || !d.number(0, 7, left))
      return false;
    op.immediate = static_cast<uint32_t>(left);
    return true;
  }
  if (d.take("fence"))
    op.step = fenceProducts;
  else if (d.take("commit_group"))
    op.step = commitProducts;
  else
    return false;
  return d.take("sync") && d.take("aligned") && d.hasOperands(0);
}

// --- ldmatrix, stmatrix --------------------------------------------------------------------

constexpr uint32_t kSide = 8, kRowBytes = 16; ///< of a matrix of 16-bit elements

/// Where row `row` of matrix `number` begins: lane 8 * number + row has its address. Null: w.fault says why not.
std::byte *rowAt(Warp &w, const Op &op, uint32_t number, uint32_t row, bool isWrite) {
  uint32_t lane = number * kSide + row;
  uint64_t at = Block::ofShared(w.slots[op.source[0]][lane] + static_cast<uint64_t>(op.offset));
  SharedMemory &shared = w.block->shared;
  uint32_t actor = w.block->actors.ofWarp(w.number);
  std::string problem;
  if (at % kRowBytes)
    problem = cat("align: a row of a matrix begins at byte ", at, " of shared memory, no multiple of 16");
  else if (!shared.holds(at, kRowBytes))
    problem = cat("bounds: a row of a matrix is at byte ", at, " of shared memory, and not all of it is there");
  else
    problem = isWrite ? shared.write(at, kRowBytes, actor, w.block->knows[w.number])
                      : shared.read(at, kRowBytes, actor, w.block->knows[w.number]);
  if (problem.empty())
    return shared.at(at);
  w.fail(lane, std::move(problem));
  return nullptr;
}

/// Calls each(lane, half, row, column): lane's register has in its half the element of a matrix there.
template <typename Each> void forElements(bool isTransposed, Each each) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    for (uint32_t half = 0; half < 2; ++half) {
      uint32_t line = lane / 4, place = 2 * (lane % 4) + half;
      each(lane, half, isTransposed ? place : line, isTransposed ? line : place);
    }
}

bool rowsOf(Warp &w, const Op &op, uint32_t number, bool isWrite, std::byte *(&rows)[kSide]) {
  for (uint32_t row = 0; row < kSide; ++row) {
    rows[row] = rowAt(w, op, number, row, isWrite);
    if (!rows[row])
      return false;
  }
  return true;
}

bool storeMatrices(Warp &w, const Op &op) {
  for (uint32_t number = 0; number + 1 < op.sources; ++number) {
    std::byte *rows[kSide];
    if (!rowsOf(w, op, number, true, rows))
      return false;
    forElements(op.immediate != 0, [&](uint32_t lane, uint32_t half, uint32_t row, uint32_t column) {
      auto value = static_cast<uint16_t>(w.slots[op.source[number + 1]][lane] >> (16 * half));
      std::memcpy(rows[row] + 2 * size_t(column), &value, sizeof value);
    });
  }
  return true;
}

bool loadMatrices(Warp &w, const Op &op) {
  uint64_t out[4][kLanes] = {};
  for (uint32_t number = 0; number < op.results; ++number) {
    std::byte *rows[kSide];
    if (!rowsOf(w, op, number, false, rows))
      return false;
    forElements(op.immediate != 0, [&](uint32_t lane, uint32_t half, uint32_t row, uint32_t column) {
      uint16_t value = 0;
      std::memcpy(&value, rows[row] + 2 * size_t(column), sizeof value);
      out[number][lane] |= uint64_t(value) << (16 * half);
    });
  }
  for (uint32_t number = 0; number < op.results; ++number) {
    std::copy(std::begin(out[number]), std::end(out[number]), w.slots[op.result[number]]);
    wrote(w, op.result[number]);
  }
  return true;
}

bool decodeMatrixMove(Decoder &d, bool stores, Op &op) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    return false;
  size_t count = d.take("x4") ? 4 : d.take("x2") ? 2 : d.take("x1") ? 1 : 0;
  op.immediate = d.take("trans");
  op.step = stores ? storeMatrices : loadMatrices;
  op.meeting = Op::Whole;
  if (!count || !d.takeAny({"shared", "shared::cta"}) || !d.take("b16") || !d.hasOperands(2) ||
      !d.sharedAddress(op, d.operand(stores ? 0 : 1), op.offset))
    return false;
  const PtxOperand &data = d.operand(stores ? 1 : 0);
  if (count == 1 && data.kind != PtxOperand::Vector)
    return stores ? d.source(op, data, {'b', 32}) : d.result(op, data, {'b', 32});
  if (data.kind != PtxOperand::Vector || data.parts.size() != count)
    return d.refuseForm();
  for (const PtxOperand &part : data.parts)
    if (!(stores ? d.source(op, part, {'b', 32}) : d.result(op, part, {'b', 32})))
      return false;
  return true;
}

} // namespace

bool decodeMatrix(Decoder &d, std::string_view root, Op &op) {
  if (root == "wgmma")
    return decodeWgmma(d, op);
  if (root == "stmatrix" || root == "ldmatrix")
    return decodeMatrixMove(d, root == "stmatrix", op);
  return false;
}

} // namespace dmxrt::cuda
