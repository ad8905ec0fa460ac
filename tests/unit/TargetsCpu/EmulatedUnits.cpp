//===- EmulatedUnits.cpp - AMX and AVX512-BF16 in software ----------------===//
//
// From the operation sections of the Intel 64 and IA-32 Architectures Software Developer's Manual: LDTILECFG,
// TILERELEASE, TILEZERO, TILELOADD, TILESTORED, TDPBF16PS, TDPBUSD, VDPBF16PS, VCVTNEPS2BF16, VCVTNE2PS2BF16, VPDPBUSD,
// VPMADDWD.
// Products of bf16 take subnormal numbers as zeros (DAZ), make zeros of subnormal results (FTZ) and round to nearest,
// ties to even, whatever MXCSR says.
//
//===----------------------------------------------------------------------===//

#include "EmulatedUnits.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

float flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.0f, x) : x; }
float wide(uint16_t bits) { return flushed(std::bit_cast<float>(uint32_t(bits) << 16)); }
/// sum + x * y, rounded once: the product of two bf16 has 16 bits, so that only its exponent may not fit.
float addProduct(float sum, uint16_t x, uint16_t y) {
  float product = wide(x) * wide(y), size = std::fabs(product);
  bool exact = size >= FLT_MIN && size <= FLT_MAX;
  return flushed(exact ? flushed(sum) + product : std::fma(wide(x), wide(y), flushed(sum)));
}
float added(float x, float y) { return flushed(flushed(x) + flushed(y)); }

constexpr unsigned kTiles = 8, kRows = 16, kBytes = 64;

struct Tile {
  unsigned rows = 0, bytes = 0; // of a row
  unsigned char data[kRows][kBytes] = {};
};

struct Units {
  bool configured = false;
  Tile tiles[kTiles];
  std::string problem;

  void refuse(const char *what) {
    if (problem.empty())
      problem = what;
  }
  Tile &tile(uint8_t number) {
    static thread_local Tile none;
    if (configured && number < kTiles && tiles[number].rows && tiles[number].bytes)
      return tiles[number];
    refuse("a tile is used that is not configured");
    return none = Tile();
  }
};
thread_local Units units;

void loadConfig(const unsigned char *bytes) {
  units.configured = bytes[0] == 1;
  if (!units.configured)
    units.refuse("a palette that is not 1");
  for (unsigned i = 1; i < 16; ++i)
    if (bytes[i])
      units.refuse("reserved bytes of a configuration, or a start row");
  for (unsigned t = 0; t < 16; ++t) {
    unsigned columns = bytes[16 + 2 * t] | bytes[17 + 2 * t] << 8, rows = bytes[48 + t];
    if (t >= kTiles ? columns || rows : columns > kBytes || rows > kRows || !columns != !rows)
      units.refuse("a configuration of more than a tile has");
    else if (t < kTiles)
      units.tiles[t] = {rows, columns, {}};
  }
}

void release() {
  if (!units.configured)
    units.refuse("tiles are released that are not configured");
  units.configured = false;
  for (Tile &tile : units.tiles)
    tile = Tile();
}

void zero(uint8_t number) {
  Tile &tile = units.tile(number);
  std::memset(tile.data, 0, sizeof tile.data);
}

void load(uint8_t number, const unsigned char *base, int64_t stride) {
  Tile &tile = units.tile(number);
  std::memset(tile.data, 0, sizeof tile.data);
  for (unsigned r = 0; r < tile.rows; ++r)
    std::memcpy(tile.data[r], base + r * stride, tile.bytes);
}

void store(uint8_t number, unsigned char *base, int64_t stride) {
  Tile &tile = units.tile(number);
  for (unsigned r = 0; r < tile.rows; ++r)
    std::memcpy(base + r * stride, tile.data[r], tile.bytes);
}

uint16_t shortAt(const unsigned char *row, unsigned i) {
  uint16_t x;
  std::memcpy(&x, row + 2 * i, 2);
  return x;
}

/// The operands of a product; those that it would not take are none.
struct Operands {
  Tile &sum, &left, &right;
  bool fit;

  Operands(uint8_t sumNumber, uint8_t leftNumber, uint8_t rightNumber)
      : sum(units.tile(sumNumber)), left(units.tile(leftNumber)), right(units.tile(rightNumber)) {
    bool distinct = sumNumber != leftNumber && sumNumber != rightNumber && leftNumber != rightNumber;
    fit = distinct && left.bytes == 4 * right.rows && sum.rows == left.rows && sum.bytes == right.bytes &&
          left.bytes % 4 == 0 && right.bytes % 4 == 0;
    if (!fit)
      units.refuse("tiles that do not fit each other");
  }
};

void tileProduct(uint8_t sumNumber, uint8_t leftNumber, uint8_t rightNumber) {
  auto [sum, left, right, fit] = Operands(sumNumber, leftNumber, rightNumber);
  if (!fit)
    return;
  for (unsigned m = 0; m < sum.rows; ++m) {
    float parts[kBytes / 2] = {};
    for (unsigned k = 0; k < left.bytes / 4; ++k)
      for (unsigned i = 0; i < sum.bytes / 2; ++i)
        parts[i] = addProduct(parts[i], shortAt(left.data[m], 2 * k + i % 2), shortAt(right.data[k], i));
    for (unsigned n = 0; n < sum.bytes / 4; ++n) {
      float total;
      std::memcpy(&total, sum.data[m] + 4 * n, 4);
      total = added(total, added(parts[2 * n], parts[2 * n + 1]));
      std::memcpy(sum.data[m] + 4 * n, &total, 4);
    }
  }
  for (unsigned m = sum.rows; m < kRows; ++m)
    std::memset(sum.data[m], 0, kBytes);
}

/// sum + the products of four bytes, x without a sign, y with one; it wraps around.
uint32_t addFour(uint32_t sum, const unsigned char *x, const unsigned char *y) {
  for (unsigned i = 0; i < 4; ++i)
    sum += static_cast<uint32_t>(int32_t(x[i]) * static_cast<int8_t>(y[i]));
  return sum;
}

void byteTileProduct(uint8_t sumNumber, uint8_t leftNumber, uint8_t rightNumber) {
  auto [sum, left, right, fit] = Operands(sumNumber, leftNumber, rightNumber);
  if (!fit)
    return;
  for (unsigned m = 0; m < sum.rows; ++m)
    for (unsigned k = 0; k < left.bytes / 4; ++k)
      for (unsigned n = 0; n < sum.bytes / 4; ++n) {
        uint32_t total;
        std::memcpy(&total, sum.data[m] + 4 * n, 4);
        total = addFour(total, left.data[m] + 4 * k, right.data[k] + 4 * n);
        std::memcpy(sum.data[m] + 4 * n, &total, 4);
      }
  for (unsigned m = sum.rows; m < kRows; ++m)
    std::memset(sum.data[m], 0, kBytes);
}

void byteDotProduct(uint32_t *sum, const unsigned char *x, const unsigned char *y) {
  for (unsigned i = 0; i < 16; ++i)
    sum[i] = addFour(sum[i], x + 4 * i, y + 4 * i);
}

/// VPMADDWD of 512 bits; the result takes the first operand's place.
void wordDotProduct(int16_t *x, const int16_t *y) {
  uint32_t sums[16];
  for (unsigned i = 0; i < 16; ++i)
    sums[i] = static_cast<uint32_t>(x[2 * i] * y[2 * i]) + static_cast<uint32_t>(x[2 * i + 1] * y[2 * i + 1]);
  std::memcpy(x, sums, sizeof sums);
}

/// The odd elements come first.
template <unsigned lanes> void dotProduct(float *sum, const uint16_t *x, const uint16_t *y) {
  for (unsigned i = 0; i < lanes; ++i)
    sum[i] = addProduct(addProduct(sum[i], x[2 * i + 1], y[2 * i + 1]), x[2 * i], y[2 * i]);
}

/// To nearest, ties to even; subnormal numbers to zeros, NaN to quiet ones.
uint16_t rounded(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(flushed(x));
  if (std::isnan(x))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// 16 numbers; the result takes the place of the first ones.
void convert(float *numbers) {
  uint16_t result[16];
  for (unsigned i = 0; i < 16; ++i)
    result[i] = rounded(numbers[i]);
  std::memcpy(numbers, result, sizeof result);
}

/// The second operand's come first.
void convertTwo(float *high, const float *low) {
  uint16_t result[32];
  for (unsigned i = 0; i < 16; ++i)
    result[i] = rounded(low[i]), result[16 + i] = rounded(high[i]);
  std::memcpy(high, result, sizeof result);
}

/// VSCALEFPS without a mask: what exponentials end in, which lower levels have no vector for.
void scale(float *x, const float *n) {
  for (unsigned i = 0; i < 16; ++i)
    if (!std::isnan(n[i]))
      x[i] = std::ldexp(x[i], static_cast<int>(std::clamp(std::floor(n[i]), -1000.0f, 1000.0f)));
    else
      x[i] = n[i];
}

/// VPERMPS: of a table of 16 what the low four bits of each lane tell; the result takes the table's place.
void lookUp(float *table, const uint32_t *lanes) {
  float result[16];
  for (unsigned i = 0; i < 16; ++i)
    result[i] = table[lanes[i] & 15];
  std::memcpy(table, result, sizeof result);
}

/// VRANGEPS for the lesser magnitude with the first one's sign, without a mask; of a NaN the limit.
void within(float *x, const float *limit) {
  for (unsigned i = 0; i < 16; ++i)
    x[i] = std::copysign(std::fmin(std::fabs(x[i]), std::fabs(limit[i])), x[i]);
}

/// What only keeps a vector in a register.
void hold(const unsigned char *) {}

uint64_t functionOf(llvm::StringRef intrinsic) {
  auto address = [](auto *function) { return reinterpret_cast<uint64_t>(function); };
  return llvm::StringSwitch<uint64_t>(intrinsic)
      .Case("emulated.ldtilecfg", address(loadConfig))
      .Case("emulated.tilerelease", address(release))
      .Case("emulated.tilezero", address(zero))
      .Case("emulated.tileloadd64", address(load))
      .Case("emulated.tilestored64", address(store))
      .Case("emulated.tdpbf16ps", address(tileProduct))
      .Case("emulated.tdpbusd", address(byteTileProduct))
      .Case("emulated.avx512bf16.dpbf16ps.512", address(dotProduct<16>))
      .Case("emulated.avx512bf16.dpbf16ps.256", address(dotProduct<8>))
      .Case("emulated.avx512bf16.cvtneps2bf16.512", address(convert))
      .Case("emulated.avx512bf16.cvtne2ps2bf16.512", address(convertTwo))
      .Case("emulated.avx512.vpdpbusd.512", address(byteDotProduct))
      .Case("emulated.avx512.pmaddw.d.512", address(wordDotProduct))
      .Case("emulated.avx512.mask.scalef.ps.512", address(scale))
      .Case("emulated.avx512.mask.range.ps.512", address(within))
      .Case("emulated.avx512.permvar.sf.512", address(lookUp))
      .Case("emulated.held", address(hold))
      .Default(0);
}

/// Vectors of 64 bytes go through memory: at lower levels no register holds one.
void replace(llvm::CallInst &call, uint64_t function) {
  llvm::IRBuilder<> b(&call);
  llvm::Value *callee = b.CreateIntToPtr(b.getInt64(function), b.getPtrTy());
  llvm::SmallVector<llvm::Value *> operands;
  llvm::BasicBlock &entry = call.getFunction()->getEntryBlock();
  for (llvm::Value *operand : call.args()) {
    if (!operand->getType()->isVectorTy()) {
      operands.push_back(operand);
      continue;
    }
    llvm::IRBuilder<> first(&entry, entry.begin());
    llvm::Value *room = first.CreateAlloca(operand->getType());
    b.CreateStore(operand, room);
    operands.push_back(room);
  }
  llvm::SmallVector<llvm::Type *> types;
  for (llvm::Value *operand : operands)
    types.push_back(operand->getType());
  auto *type = llvm::FunctionType::get(b.getVoidTy(), types, /*isVarArg=*/false);
  llvm::CallInst *made = b.CreateCall(type, callee, operands);
  for (unsigned i = 0; i < types.size(); ++i)
    if (types[i]->isIntegerTy(8))
      made->addParamAttr(i, llvm::Attribute::ZExt);
  if (!call.getType()->isVoidTy())
    call.replaceAllUsesWith(b.CreateLoad(call.getType(), operands.front()));
  call.eraseFromParent();
}

} // namespace

static void replaceAll(std::string &text, llvm::StringRef what, llvm::StringRef by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::unique_ptr<llvm::Module> dmxc::cpu::test::emulateUnits(std::string text, llvm::LLVMContext &context,
                                                            std::string &problem) {
  // They are intrinsics no more, and where no instruction takes bf16, LLVM would make calls of a library to move it.
  for (const char *name : {"ldtilecfg", "tile", "tdpb", "avx512bf16", "avx512.vpdpbusd", "avx512.pmaddw",
                           "avx512.mask.scalef", "avx512.mask.range", "avx512.permvar"})
    replaceAll(text, std::string("@llvm.x86.") + name, std::string("@emulated.") + name);
  replaceAll(text, "bfloat", "i16");
  // No register of a lower level may be as wide.
  replaceAll(text, R"(asm sideeffect "", "=v,0"()", "@emulated.held(");
  text += "\ndeclare <16 x float> @emulated.held(<16 x float>)\n";
  replaceAll(text, " immarg", "");
  llvm::SMDiagnostic message;
  auto module = llvm::parseIR(llvm::MemoryBufferRef(text, "emulated"), message, context);
  if (!module) {
    problem = message.getMessage().str();
    return nullptr;
  }
  llvm::SmallVector<std::pair<llvm::CallInst *, uint64_t>> calls;
  for (llvm::Function &fn : *module)
    if (uint64_t function = functionOf(fn.getName()))
      for (llvm::User *user : fn.users())
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(user))
          calls.emplace_back(call, function);
  for (auto [call, function] : calls)
    replace(*call, function);
  return module;
}

std::string dmxc::cpu::test::unitProblem() {
  if (units.configured)
    units.refuse("a configuration was not released");
  std::string problem = std::move(units.problem);
  units = Units();
  return problem;
}
