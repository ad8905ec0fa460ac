//===- Teams.cpp - the threads of a block that share a row --------------------===//
//
// Values are combined within a warp by shuffles, then between warps by way of shared memory, always in the same pairs.
//
//===----------------------------------------------------------------------===//

#include "CudaBuilder.h"

#include "schemas/cuda/Limits.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr int64_t kWarp = 32, kMostTeam = 1024;

/// Four elements a thread, in whole warps. Long rows that lie across each other are left to a thread each where there
/// are enough of them: then neighbouring threads read neighbours.
int64_t Hopper::teamOf(Dim count, int64_t size, int64_t rows, bool areNeighbours) const {
  constexpr int64_t fewest = 64, each = 4, unknown = 256, many = 16384;
  if (size < fewest || (!areNeighbours && rows >= many))
    return 1;
  // Of a size that a run tells nothing depends on what is expected of it.
  int64_t wanted = count.isStatic() ? size / each : unknown;
  return std::clamp(static_cast<int64_t>(llvm::PowerOf2Ceil(static_cast<uint64_t>(wanted))), kWarp, kMostTeam);
}

int64_t Hopper::mostTeamScratch() const { return dmx::cuda::kMostShared - kTeamRoom; }

Launch Hopper::launchOfTeams(Dim items, int64_t team, int64_t scratch) const {
  return {items, team, kTeamRoom + scratch, {}, /*movesRegisters=*/false};
}

int64_t CudaBuilder::team() const { return static_cast<const Hopper &>(processor()).threads; }

void CudaBuilder::byOne(llvm::function_ref<void()> body) {
  ifThen(cmp(arith::CmpIPredicate::eq, ownThread, idx(0)), body);
}

namespace {

/// A value as words of 32 bits, and back.
SmallVector<Value> wordsOf(KernelBuilder &b, Value value) {
  Type i32 = b.getI32Type(), type = value.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    value = arith::BitcastOp::create(b, b.getIntegerType(bits), value);
  if (bits < 32)
    value = arith::ExtUIOp::create(b, i32, value);
  if (bits <= 32)
    return {value};
  Value high = arith::ShRUIOp::create(b, value, b.idx(32));
  return {arith::TruncIOp::create(b, i32, value), arith::TruncIOp::create(b, i32, high)};
}

Value ofWords(KernelBuilder &b, ArrayRef<Value> words, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth();
  Value value = words[0];
  if (bits > 32) {
    Value low = arith::ExtUIOp::create(b, b.getI64Type(), words[0]),
          high = arith::ExtUIOp::create(b, b.getI64Type(), words[1]);
    value = arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, b.idx(32)));
  } else if (bits < 32) {
    value = arith::TruncIOp::create(b, b.getIntegerType(bits), value);
  }
  return isa<FloatType>(type) ? Value(arith::BitcastOp::create(b, type, value)) : value;
}

Value shuffled(KernelBuilder &b, Value word, int64_t distance) {
  Type i32 = b.getI32Type();
  Value all = b.constantInt(i32, -1), to = b.constantInt(i32, distance), clamp = b.constantInt(i32, kWarp - 1);
  return LLVM::CallIntrinsicOp::create(b, i32, b.getStringAttr("llvm.nvvm.shfl.sync.bfly.i32"),
                                       ValueRange{all, word, to, clamp})
      .getResult(0);
}

} // namespace

SmallVector<Value> CudaBuilder::ofWarp(SmallVector<Value> values, int64_t lanes, Combine combine) {
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
    SmallVector<Value> other;
    for (Value value : values) {
      SmallVector<Value> words = wordsOf(*this, value);
      for (Value &word : words)
        word = shuffled(*this, word, distance);
      other.push_back(ofWords(*this, words, value.getType()));
    }
    values = combine(values, other);
  }
  return values;
}

SmallVector<Value> CudaBuilder::ofTeam(ValueRange own, Combine combine) {
  if (team() == 1)
    return llvm::to_vector(own);
  SmallVector<Value> values = ofWarp(llvm::to_vector(own), kWarp, combine);
  int64_t warps = team() / kWarp;
  if (warps == 1)
    return values;
  // Each warp's first lane stores its words; then every thread reads those of the warp whose number is its lane's.
  Value lane = rem(ownThread, idx(kWarp)), warp = floorDiv(ownThread, idx(kWarp));
  SmallVector<SmallVector<Value>> words;
  int64_t each = 0;
  for (Value value : values)
    each += static_cast<int64_t>(words.emplace_back(wordsOf(*this, value)).size());
  ifThen(cmp(arith::CmpIPredicate::eq, lane, idx(0)), [&] {
    int64_t at = 0;
    for (ArrayRef<Value> list : words)
      for (Value word : list)
        store(word, sharedMemory, addC(mulC(warp, each), at++));
  });
  NVVM::Barrier0Op::create(*this);
  Value from = rem(lane, idx(warps));
  int64_t at = 0;
  for (auto [value, list] : llvm::zip(values, words)) {
    for (Value &word : list)
      word = load(getI32Type(), sharedMemory, addC(mulC(from, each), at++));
    value = ofWords(*this, list, value.getType());
  }
  values = ofWarp(values, warps, combine);
  NVVM::Barrier0Op::create(*this); // before the room is used again
  return values;
}
