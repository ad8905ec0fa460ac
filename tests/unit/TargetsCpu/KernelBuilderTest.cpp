//===- KernelBuilderTest.cpp - the vocabulary, lowering and link ---------===//

#include "KernelHarness.h"

#include "targets/common/code/KernelDialects.h"

#include "dmxc/Support/Half.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::Value;
using mlir::ValueRange;
namespace arith = mlir::arith;

namespace {

class EveryLevel : public testing::TestWithParam<IsaLevel> {
public:
  const IsaLevel &isa() const { return GetParam(); }
};

std::string levelName(const testing::TestParamInfo<IsaLevel> &info) {
  return info.param.name.substr(info.param.name.size() - 2);
}
INSTANTIATE_TEST_SUITE_P(Isa, EveryLevel, testing::ValuesIn(runnableLevels()), levelName);

/// y[i] = 2 * x[i] + dim over [begin, end), vectorised with a masked tail.
void emitAxpy(CpuBuilder &b) {
  int64_t lanes = b.isa().lanes(32);
  auto f32 = b.getF32Type();
  Value bias = arith::SIToFPOp::create(b, f32, b.dim(0));
  auto step = [&](Value i, Value mask) {
    Value x = mask ? b.maskedLoad(f32, b.buffer(0), i, mask) : b.load(f32, b.buffer(0), i, lanes);
    Value y = b.fma(b.constant(x.getType(), 2), x, b.splat(bias, lanes));
    mask ? b.maskedStore(y, b.buffer(1), i, mask) : b.store(y, b.buffer(1), i);
  };
  Value count = b.sub(b.end(), b.begin());
  Value full = b.add(b.begin(), b.mulC(b.floorDiv(count, b.idx(lanes)), lanes));
  b.forLoop(b.begin(), full, b.idx(lanes), [&](Value i) { step(i, {}); });
  b.ifThen(b.cmp(arith::CmpIPredicate::slt, full, b.end()),
           [&] { step(full, b.headMask(lanes, b.sub(b.end(), full))); });
}

TEST_P(EveryLevel, LoopMaskAndRange) {
  TestKernel kernel = makeKernel("axpy", isa(), 2, 1, emitAxpy);
  ASSERT_TRUE(kernel.fn) << kernel.error;
  std::vector<float> x(100), y(100, -1);
  for (int i = 0; i < 100; ++i)
    x[i] = 0.5f * i;
  for (auto [begin, end] : {std::pair{0, 100}, {3, 4}, {7, 64}, {5, 5}}) {
    std::fill(y.begin(), y.end(), -1);
    ASSERT_EQ(kernel({x, y}, begin, end, 0, {3}), DMX_KERNEL_OK);
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(y[i], i >= begin && i < end ? i + 3.0f : -1.0f) << i;
  }
}

/// The harness sees a kernel that goes one element too far: reads it at the guard, writes it on either side.
TEST_P(EveryLevel, OneElementMoreIsFound) {
  for (bool writes : {false, true}) {
    TestKernel kernel = makeKernel("more", isa(), 2, 0, [&](CpuBuilder &b) {
      b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value i) {
        Value next = b.add(i, b.idx(1));
        b.store(b.load(b.getF32Type(), b.buffer(0), writes ? i : next), b.buffer(1), writes ? next : i);
      });
    });
    ASSERT_TRUE(kernel.fn) << kernel.error;
    std::vector<float> x(7), y(7);
    KernelTask made(kernel.fn, {x, y}, 1, 0);
    for (dmxrt::GuardSide side : {dmxrt::GuardSide::Start, dmxrt::GuardSide::End}) {
      dmxrt::GuardedTask guarded(made.task, side, 1);
      dmxrt::GuardedTask::Thread thread = guarded.makeThread();
      int32_t code = guarded.call(thread, 0, 7);
      code = code ? code : guarded.check(thread);
      bool seen = writes || side == dmxrt::GuardSide::End;
      EXPECT_EQ(code, seen ? dmxrt::kDeviceFault : 0) << guarded.problem();
      if (seen) {
        EXPECT_NE(guarded.problem().find(writes ? "byte 28 of operand 1, a result" : "reads byte 28 of operand 0"),
                  std::string_view::npos)
            << guarded.problem();
      }
    }
  }
}

TEST_P(EveryLevel, TableAndQuery) {
  TestKernel kernel = makeKernel("axpy", isa(), 2, 1, emitAxpy);
  ASSERT_TRUE(kernel.fn) << kernel.error;
  const dmx_kernel_table *table = kernel.library->table();
  EXPECT_EQ(table->abi_version, DMX_KERNEL_ABI_VERSION);
  EXPECT_EQ(table->kernel_count, 1u);
  EXPECT_STREQ(table->isa, isa().name.c_str());
  EXPECT_EQ(kernel.library->table(DMX_KERNEL_ABI_VERSION + 1), nullptr);
}

TEST_P(EveryLevel, FailIfIsSticky) {
  TestKernel kernel = makeKernel("check", isa(), 1, 0, [](CpuBuilder &b) {
    b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value i) {
      Value v = b.load(b.getI64Type(), b.buffer(0), i);
      b.failIf(b.cmp(arith::CmpIPredicate::eq, v, b.idx(7)), DMX_KERNEL_INDEX_OUT_OF_RANGE);
      b.failIf(b.cmp(arith::CmpIPredicate::eq, v, b.idx(0)), DMX_KERNEL_DIVISION_BY_ZERO);
    });
  });
  ASSERT_TRUE(kernel.fn) << kernel.error;
  std::vector<int64_t> good{1, 2, 3}, seven{1, 7, 0}, zero{0, 7, 1};
  EXPECT_EQ(kernel({good}, 0, 3), DMX_KERNEL_OK);
  EXPECT_EQ(kernel({seven}, 0, 3), DMX_KERNEL_INDEX_OUT_OF_RANGE);
  EXPECT_EQ(kernel({zero}, 0, 3), DMX_KERNEL_DIVISION_BY_ZERO);
}

TEST_P(EveryLevel, CarriedValuesAndBooleans) {
  // Counts the true elements of a boolean tensor and inverts them in place.
  TestKernel kernel = makeKernel("flip", isa(), 2, 0, [](CpuBuilder &b) {
    auto i1 = b.getI1Type();
    auto count = b.forLoop(b.begin(), b.end(), b.idx(1), {b.idx(0)}, [&](Value i, ValueRange c) {
      Value flag = b.load(i1, b.buffer(0), i);
      Value one = arith::ExtUIOp::create(b, b.getI64Type(), flag);
      b.store(arith::XOrIOp::create(b, flag, b.constantInt(i1, 1)), b.buffer(0), i);
      return llvm::SmallVector<Value>{b.add(c[0], one)};
    });
    b.store(count[0], b.buffer(1), b.idx(0));
  });
  ASSERT_TRUE(kernel.fn) << kernel.error;
  std::vector<uint8_t> flags{1, 0, 0, 1, 1};
  int64_t count = -1;
  kernel({flags, {&count, sizeof count}}, 0, 5, 0, {}, 2);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(flags, (std::vector<uint8_t>{0, 1, 1, 0, 0}));
}

//===----------------------------------------------------------------------===//
// Narrow floats
//===----------------------------------------------------------------------===//

void emitCast(CpuBuilder &b, mlir::Type from, mlir::Type to, int64_t lanes) {
  b.forLoop(b.begin(), b.end(), b.idx(lanes), [&](Value i) {
    Value x = b.load(from, b.buffer(0), i, lanes);
    mlir::Type type = b.laneType(to, lanes);
    Value y = from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth() ? Value(arith::ExtFOp::create(b, type, x))
                                                                        : Value(arith::TruncFOp::create(b, type, x));
    b.store(y, b.buffer(1), i);
  });
}

TEST_P(EveryLevel, ExtendsEveryNarrowFloat) {
  for (bool half : {true, false})
    for (int64_t lanes : {1, 8}) {
      TestKernel kernel = makeKernel("extend", isa(), 2, 0, [&](CpuBuilder &b) {
        emitCast(b, half ? mlir::Type(b.getF16Type()) : mlir::Type(b.getBF16Type()), b.getF32Type(), lanes);
      });
      ASSERT_TRUE(kernel.fn) << kernel.error;
      std::vector<uint16_t> in(65536);
      std::vector<float> out(65536);
      for (int i = 0; i < 65536; ++i)
        in[i] = i;
      kernel({in, out}, 0, 65536);
      for (int i = 0; i < 65536; ++i) {
        float want = half ? halfToFloat(i) : bfloatToFloat(i);
        ASSERT_TRUE(std::isnan(want) ? std::isnan(out[i]) : want == out[i]) << i;
      }
    }
}

/// Values on, beside and half way between representable ones, of every
/// magnitude.
std::vector<double> hardDoubles(bool half) {
  std::vector<double> values{0.0, -0.0, INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-300};
  std::mt19937_64 rng(7);
  while (values.size() < 200000) {
    uint16_t bits = rng();
    double v = half ? halfToFloat(bits) : bfloatToFloat(bits);
    double next = half ? halfToFloat(bits + 1) : bfloatToFloat(bits + 1);
    if (!std::isfinite(v) || !std::isfinite(next))
      continue;
    double middle = (v + next) / 2;
    values.insert(values.end(), {v, middle, std::nextafter(middle, v), std::nextafter(middle, next),
                                 v + (next - v) * (rng() % 1000) / 1000.0});
  }
  values.resize(values.size() / 8 * 8);
  return values;
}

template <typename From> void checkTruncate(const IsaLevel &isa, bool half) {
  TestKernel kernel = makeKernel("truncate", isa, 2, 0, [&](CpuBuilder &b) {
    emitCast(b, sizeof(From) == 8 ? mlir::Type(b.getF64Type()) : mlir::Type(b.getF32Type()),
             half ? mlir::Type(b.getF16Type()) : mlir::Type(b.getBF16Type()), 8);
  });
  ASSERT_TRUE(kernel.fn) << kernel.error;
  std::vector<From> in;
  for (double v : hardDoubles(half))
    in.push_back(static_cast<From>(v));
  std::vector<uint16_t> out(in.size());
  kernel({in, out}, 0, in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (std::isnan(in[i])) {
      float got = half ? halfToFloat(out[i]) : bfloatToFloat(out[i]);
      ASSERT_TRUE(std::isnan(got));
      continue;
    }
    ASSERT_EQ(out[i], half ? doubleToHalf(in[i]) : doubleToBfloat(in[i])) << i << ": " << in[i];
  }
}

TEST_P(EveryLevel, TruncatesToNarrowFloats) {
  for (bool half : {true, false}) {
    checkTruncate<float>(isa(), half);
    checkTruncate<double>(isa(), half);
  }
}

//===----------------------------------------------------------------------===//
// Lowering and linking
//===----------------------------------------------------------------------===//

TEST(Lowering, RefusesLibraryCallsByName) {
  auto isa = *IsaLevel::byName("x86-64-v3");
  TestKernel kernel = makeKernel("modulo", isa, 1, 0, [](CpuBuilder &b) {
    Value x = b.load(b.getF32Type(), b.buffer(0), b.idx(0));
    Value y = b.load(b.getF32Type(), b.buffer(0), b.idx(1));
    b.store(arith::RemFOp::create(b, x, y), b.buffer(0), b.idx(0));
  });
  EXPECT_FALSE(kernel.fn);
  EXPECT_NE(kernel.error.find("fmodf"), std::string::npos) << kernel.error;
  EXPECT_NE(kernel.error.find("'modulo'"), std::string::npos) << kernel.error;
}

TEST(Lowering, ClearLoopBecomesNoCall) {
  // A loop LLVM likes to turn into memset.
  auto isa = *IsaLevel::byName("x86-64-v2");
  TestKernel kernel = makeKernel("clear", isa, 1, 0, [](CpuBuilder &b) {
    b.forLoop(b.begin(), b.end(), b.idx(1), [&](Value i) { b.store(b.constant(b.getF32Type(), 0), b.buffer(0), i); });
  });
  EXPECT_TRUE(kernel.fn) << kernel.error;
}

struct Compiled {
  std::vector<KernelObject> objects;
  std::string error;
};

/// Compiles `count` kernels, each in a context of its own, one thread each when `threads`.
Compiled compileMany(int count, bool threads) {
  static const IsaLevel isa = *IsaLevel::byName("x86-64-v3");
  Compiled result;
  result.objects.resize(count);
  std::vector<std::string> errors(count);
  auto compileOne = [&](int i) {
    mlir::MLIRContext context;
    loadKernelDialects(context);
    auto loc = mlir::UnknownLoc::get(&context);
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc);
    CpuBuilder b(*module, loc, "k" + std::to_string(i), 2, 1, isa);
    emitAxpy(b);
    b.finish();
    auto object = compileKernel(*module, isa);
    if (object)
      result.objects[i] = std::move(*object);
    else
      errors[i] = object.error().message;
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < count; ++i)
    if (threads)
      workers.emplace_back(compileOne, i);
    else
      compileOne(i);
  for (std::thread &worker : workers)
    worker.join();
  for (const std::string &error : errors)
    result.error += error;
  return result;
}

TEST(Lowering, ThreadsGiveTheSameBytes) {
  Compiled serial = compileMany(6, false), parallel = compileMany(6, true);
  ASSERT_EQ(serial.error, "");
  ASSERT_EQ(parallel.error, "");
  auto isa = *IsaLevel::byName("x86-64-v3");
  auto a = linkKernels(serial.objects, isa), b = linkKernels(parallel.objects, isa);
  ASSERT_TRUE(bool(a)) << a.error().message;
  ASSERT_TRUE(bool(b)) << b.error().message;
  EXPECT_EQ(*a, *b);
  LoadedKernels library(*a);
  ASSERT_NE(library.table(), nullptr) << library.error();
  EXPECT_EQ(library.table()->kernel_count, 6u);
  EXPECT_STREQ(library.table()->kernels[4].name, "k4");
}

TEST(Link, RefusesDuplicateKernels) {
  Compiled one = compileMany(1, false);
  ASSERT_EQ(one.error, "");
  std::vector<KernelObject> twice{one.objects[0], one.objects[0]};
  auto linked = linkKernels(twice, *IsaLevel::byName("x86-64-v3"));
  ASSERT_FALSE(bool(linked));
  EXPECT_NE(linked.error().message.find("k0"), std::string::npos) << linked.error().message;
}

TEST(IsaLevel, NamesAndFeatures) {
  EXPECT_FALSE(IsaLevel::byName("x86-64-v5"));
  for (llvm::StringRef name : IsaLevel::names()) {
    auto isa = IsaLevel::byName(name);
    ASSERT_TRUE(isa) << name.str();
    EXPECT_EQ(isa->name, name.str());
  }
  EXPECT_EQ(IsaLevel::byName("x86-64-v4")->lanes(32), 16);
  EXPECT_EQ(IsaLevel::byName("x86-64-v2")->lanes(64), 2);
  EXPECT_TRUE(IsaLevel::byName("host")->runsHere());
}

} // namespace
