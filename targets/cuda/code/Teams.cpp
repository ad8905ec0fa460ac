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

static constexpr int64_t kWarp = 32;

//===----------------------------------------------------------------------===//
// Room
//===----------------------------------------------------------------------===//

/// Bytes of the values that a thread tells others at most: one of 64 bits and its place. Blocks of a cluster have
/// places for two combinations, which they use in turn.
static constexpr int64_t kToldBytes = 16, kPlaces = 2;

static int64_t blockRoom(const Team &team) {
  return kToldBytes * (team.columns > 1 ? team.threads : llvm::divideCeil(team.threads, kWarp));
}
static int64_t clusterRoom(const Team &team) { return kToldBytes * team.blocks * team.columns; }

int64_t dmxc::cuda::roomOf(const Team &team) {
  return llvm::alignTo(blockRoom(team) + (team.blocks > 1 ? kPlaces * clusterRoom(team) : 0), 128);
}

int64_t Hopper::mostTeamScratch(const Team &team) const { return dmx::cuda::kMostShared - roomOf(team); }

Launch Hopper::launchOfTeams(Dim items, const Team &team, int64_t scratch) const {
  Launch launch{items * team.blocks, team.threads, roomOf(team) + scratch};
  launch.cluster = team.blocks;
  launch.columns = team.columns;
  return launch;
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

Value CudaBuilder::member() {
  Value here = memberHere();
  return team().blocks > 1 ? add(mulC(rank, team().here()), here) : here;
}

void CudaBuilder::byOne(llvm::function_ref<void()> body) {
  ifThen(cmp(arith::CmpIPredicate::eq, member(), idx(0)), body);
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

} // namespace

Value CudaBuilder::shuffled(Value word, StringRef how, Value lane) {
  Type i32 = getI32Type(), type = word.getType();
  Value bits = type == i32 ? word : Value(arith::BitcastOp::create(*this, i32, word));
  Value moved = LLVM::CallIntrinsicOp::create(*this, i32, getStringAttr(("llvm.nvvm.shfl.sync." + how + ".i32").str()),
                                              ValueRange{constantInt(i32, -1), bits, lane, constantInt(i32, kWarp - 1)})
                    .getResult(0);
  return type == i32 ? moved : Value(arith::BitcastOp::create(*this, type, moved));
}

SmallVector<Value> CudaBuilder::ofWarp(SmallVector<Value> values, int64_t lanes, Combine combine) {
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2) {
    SmallVector<Value> other;
    for (Value value : values) {
      SmallVector<Value> words = wordsOf(*this, value);
      for (Value &word : words)
        word = shuffled(word, "bfly", constantInt(getI32Type(), distance));
      other.push_back(ofWords(*this, words, value.getType()));
    }
    values = combine(values, other);
  }
  return values;
}

/// The words of values, one after the other.
static SmallVector<Value> allWords(KernelBuilder &b, ValueRange values) {
  SmallVector<Value> all;
  for (Value value : values)
    llvm::append_range(all, wordsOf(b, value));
  return all;
}

/// Values of the types of `like` from words that `wordAt` gives, counted over all of them.
static SmallVector<Value> valuesOf(KernelBuilder &b, ValueRange like, llvm::function_ref<Value(int64_t)> wordAt) {
  SmallVector<Value> values;
  int64_t at = 0;
  for (Value value : like) {
    SmallVector<Value> words;
    for (unsigned i = 0; i < llvm::divideCeil(value.getType().getIntOrFloatBitWidth(), kWarp); ++i)
      words.push_back(wordAt(at++));
    values.push_back(ofWords(b, words, value.getType()));
  }
  return values;
}

/// What a warp's lanes stored before, others of them may read.
void CudaBuilder::syncWarp() {
  LLVM::CallIntrinsicOp::create(*this, getStringAttr("llvm.nvvm.bar.warp.sync"), constantInt(getI32Type(), -1));
}

/// Each warp's first lane stores its words; then every thread reads those of the warp whose number is its lane's.
SmallVector<Value> CudaBuilder::tellBlock(ValueRange values) {
  int64_t warps = team().threads / kWarp;
  Value lane = rem(ownThread, idx(kWarp)), warp = floorDiv(ownThread, idx(kWarp));
  SmallVector<Value> words = allWords(*this, values);
  auto each = static_cast<int64_t>(words.size());
  ifThen(cmp(arith::CmpIPredicate::eq, lane, idx(0)), [&] {
    for (auto [i, word] : llvm::enumerate(words))
      store(word, sharedMemory, addC(mulC(warp, each), static_cast<int64_t>(i)));
  });
  NVVM::Barrier0Op::create(*this);
  Value from = rem(lane, idx(warps));
  return valuesOf(*this, values,
                  [&](int64_t i) { return load(getI32Type(), sharedMemory, addC(mulC(from, each), i)); });
}

SmallVector<Value> CudaBuilder::ofBlock(SmallVector<Value> values, Combine combine) {
  values = ofWarp(values, kWarp, combine);
  int64_t warps = team().threads / kWarp;
  if (warps == 1) {
    syncWarp();
    return values;
  }
  values = ofWarp(tellBlock(values), warps, combine);
  NVVM::Barrier0Op::create(*this); // before the room is used again
  return values;
}

/// Threads of a column lie a row of columns apart: halves of them are added to the others, step by step.
SmallVector<Value> CudaBuilder::ofColumns(SmallVector<Value> values, Combine combine) {
  auto put = [&](ValueRange of) {
    for (auto [i, word] : llvm::enumerate(allWords(*this, of)))
      store(word, sharedMemory, addC(ownThread, static_cast<int64_t>(i) * team().threads));
  };
  auto of = [&](Value thread) {
    return valuesOf(*this, values,
                    [&](int64_t i) { return load(getI32Type(), sharedMemory, addC(thread, i * team().threads)); });
  };
  put(values);
  for (int64_t half = team().here() / 2; half > 0; half /= 2) {
    NVVM::Barrier0Op::create(*this);
    int64_t threads = half * team().columns;
    ifThen(cmp(arith::CmpIPredicate::slt, ownThread, idx(threads)),
           [&] { put(combine(of(ownThread), of(addC(ownThread, threads)))); });
  }
  NVVM::Barrier0Op::create(*this);
  values = of(column());
  NVVM::Barrier0Op::create(*this); // before the room is used again
  return values;
}

void CudaBuilder::meetCluster() {
  for (StringRef what : {"arrive", "wait"})
    LLVM::CallIntrinsicOp::create(*this, getStringAttr("llvm.nvvm.barrier.cluster." + what + ".aligned"), ValueRange());
}

Value CudaBuilder::sharedOf(Value place, Value block) {
  constexpr unsigned clusterSpace = 7;
  Value to = arith::TruncIOp::create(*this, getI32Type(), block);
  return LLVM::CallIntrinsicOp::create(*this, LLVM::LLVMPointerType::get(getContext(), clusterSpace),
                                       getStringAttr("llvm.nvvm.mapa.shared.cluster"), ValueRange{place, to})
      .getResult(0);
}

/// Each block tells all of them its values; then each thread combines those of all blocks, in pairs.
SmallVector<Value> CudaBuilder::ofCluster(SmallVector<Value> values, Combine combine) {
  int64_t blocks = team().blocks, columns = team().columns;
  if (combinations++ >= kPlaces)
    meetCluster();
  Value place =
      elementPtr(getI8Type(), sharedMemory, idx(blockRoom(team()) + (combinations % kPlaces) * clusterRoom(team())));
  auto wordOf = [&](int64_t i, Value block) { return add(mulC(add(idx(i * blocks), block), columns), column()); };
  ifThen(cmp(arith::CmpIPredicate::slt, ownThread, idx(blocks * columns)), [&] {
    Value there = sharedOf(place, floorDiv(ownThread, idx(columns)));
    for (auto [i, word] : llvm::enumerate(allWords(*this, values)))
      store(word, there, wordOf(static_cast<int64_t>(i), rank));
  });
  meetCluster();
  SmallVector<SmallVector<Value>> all;
  for (int64_t block = 0; block < blocks; ++block)
    all.push_back(valuesOf(*this, values, [&](int64_t i) { return load(getI32Type(), place, wordOf(i, idx(block))); }));
  for (; all.size() > 1; all.resize(all.size() / 2))
    for (size_t i = 0; i < all.size() / 2; ++i)
      all[i] = combine(all[2 * i], all[2 * i + 1]);
  return all[0];
}

/// By one instruction for the upper halves, and one for the lower halves of those that have the largest.
Value CudaBuilder::mostOfWarp(Value own) {
  Type i32 = getI32Type();
  SmallVector<Value> words = wordsOf(*this, own);
  auto most = [&](Value word) {
    return LLVM::CallIntrinsicOp::create(*this, i32, getStringAttr("llvm.nvvm.redux.sync.umax"),
                                         ValueRange{word, constantInt(i32, -1)})
        .getResult(0);
  };
  Value high = most(words[1]);
  Value isHigh = cmp(arith::CmpIPredicate::eq, words[1], high);
  Value low = most(arith::SelectOp::create(*this, isHigh, words[0], constantInt(i32, 0)));
  return ofWords(*this, {low, high}, own.getType());
}

Value CudaBuilder::mostOfTeam(Value own) {
  int64_t warps = team().threads / kWarp;
  if (!team().shares() || team().columns > 1)
    return KernelBuilder::mostOfTeam(own);
  auto larger = [&](ValueRange x, ValueRange y) -> SmallVector<Value> {
    return {arith::MaxUIOp::create(*this, x[0], y[0])};
  };
  Value most = mostOfWarp(own);
  if (warps == 1) {
    syncWarp();
  } else {
    SmallVector<Value> ofWarps = tellBlock({most});
    most = mostOfWarp(ofWarps[0]);
    NVVM::Barrier0Op::create(*this); // before the room is used again
  }
  return team().blocks > 1 ? ofCluster({most}, larger)[0] : most;
}

SmallVector<Value> CudaBuilder::ofTeam(ValueRange own, Combine combine) {
  if (!team().shares())
    return llvm::to_vector(own);
  SmallVector<Value> values =
      team().columns > 1 ? ofColumns(llvm::to_vector(own), combine) : ofBlock(llvm::to_vector(own), combine);
  return team().blocks > 1 ? ofCluster(values, combine) : values;
}
