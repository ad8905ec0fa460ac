//===- KernelFamiliesTest.cpp - kernels that are equal but for numbers --------===//

#include "KernelHarness.h"

#include "targets/cpu/code/KernelFamilies.h"

#include "targets/common/code/KernelDialects.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <gtest/gtest.h>

#include <limits>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::test;
using mlir::Value;

namespace {

/// y[i] = x[i * stride + offset] * (i / divisor + 1) * scale for i below count.
struct Gather {
  int64_t count, stride, offset = 0, divisor = 4, step = 1;
  float scale = 1;

  void emit(CpuBuilder &b) const {
    b.forLoop(b.idx(0), b.idx(count), b.idx(step), [&](Value i) {
      Value at = b.add(b.mul(i, b.idx(stride)), b.idx(offset));
      Value times = b.add(mlir::arith::DivUIOp::create(b, i, b.idx(divisor)).getResult(), b.idx(1));
      Value x = b.load(b.getF32Type(), b.buffer(0), at);
      Value factor = mlir::arith::SIToFPOp::create(b, b.getF32Type(), times);
      Value product = mlir::arith::MulFOp::create(b, x, factor);
      b.store(mlir::arith::MulFOp::create(b, product, b.constant(b.getF32Type(), scale)), b.buffer(1), i);
    });
  }
  std::vector<float> wanted(const std::vector<float> &x) const {
    std::vector<float> y(static_cast<size_t>(count), -1);
    for (int64_t i = 0; i < count; i += step) {
      int64_t times = i / divisor + 1;
      y[i] = x[i * stride + offset] * static_cast<float>(times) * scale;
    }
    return y;
  }
};

struct Emitted {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  KernelShape shape;

  Emitted(const std::string &name, const Gather &gather, const char *level = "x86-64-v3") {
    kernels::loadKernelDialects(context);
    auto loc = mlir::UnknownLoc::get(&context);
    module = mlir::ModuleOp::create(loc);
    CpuBuilder b(*module, loc, name, 2, 0, *IsaLevel::byName(level));
    gather.emit(b);
    b.finish();
    shape = shapeOf(*module);
  }
};

TEST(KernelFamilies, ShapeIsWhatCodeIsLike) {
  const Emitted one("k1", {16, 4, 8});
  EXPECT_EQ(one.shape.code, Emitted("another", {16, 4, 8}).shape.code) << "names count for nothing";
  EXPECT_EQ(one.shape.numbers, Emitted("another", {16, 4, 8}).shape.numbers);
  const Emitted other("k2", {24, 5, 9});
  EXPECT_EQ(one.shape.code, other.shape.code);
  EXPECT_NE(one.shape.numbers, other.shape.numbers);
  EXPECT_EQ(one.shape.numbers.size(), other.shape.numbers.size());
  EXPECT_NE(one.shape.code, Emitted("k3", {16, 4, 8, 3}).shape.code) << "a division by a constant is no division";
  EXPECT_NE(one.shape.code, Emitted("k4", {16, 4, 8, 4, 2}).shape.code) << "steps belong to the code";
}

TEST(KernelFamilies, OneBodyComputesAllOfThem) {
  const std::vector<Gather> gathers{
      {16, 4, 8}, {24, 6, 1}, {16, 4, 8, 4, 1, 0.5f}, {1000, 3, 700, 4, 1, -1.25f}, {16, 4, 8}};
  const std::vector<std::string> names{"k0", "k1", "k10", "k3", "k4"};
  std::vector<KernelShape> shapes;
  std::vector<const KernelShape *> all;
  for (const Gather &gather : gathers)
    shapes.push_back(Emitted("k", gather).shape);
  for (const KernelShape &shape : shapes)
    all.push_back(&shape);
  FamilyNumbers family(all);
  ASSERT_TRUE(family.areFew());
  Emitted first(names.front(), gathers.front());
  family.widen(*first.module, names);
  const IsaLevel isa = *IsaLevel::byName("x86-64-v3");
  auto object = compileKernel(*first.module, isa);
  ASSERT_TRUE(bool(object)) << object.error().message;
  EXPECT_EQ(object->kernels, names);
  auto linked = linkKernels({&*object, 1}, isa);
  ASSERT_TRUE(bool(linked)) << linked.error().message;
  auto library = std::make_shared<LoadedKernels>(*linked);
  for (auto [name, gather] : llvm::zip_equal(names, gathers)) {
    TestKernel kernel{library, library->find(name), library->error()};
    ASSERT_TRUE(kernel.fn) << name << library->error();
    std::vector<float> x(static_cast<size_t>((gather.count - 1) * gather.stride + gather.offset + 1)),
        y(static_cast<size_t>(gather.count), -1);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i);
    EXPECT_EQ(kernel({x, y}, 0, 1), DMX_KERNEL_OK);
    EXPECT_EQ(y, gather.wanted(x)) << name;
  }
}

/// Without that, products of scales are asked whether they are NaN; of one that is infinite they must be.
TEST(KernelFamilies, FloatsThatAreFiniteInAllKernelsAreSaidToBe) {
  auto assumptions = [](float scale) {
    const Gather gathers[] = {{16, 4, 8}, {16, 4, 8, 4, 1, scale}};
    const KernelShape one = Emitted("k", gathers[0]).shape, other = Emitted("k", gathers[1]).shape;
    Emitted first("k0", gathers[0]);
    FamilyNumbers({&one, &other}).widen(*first.module, {"k0", "k1"});
    int64_t count = 0;
    first.module->walk([&](mlir::LLVM::AssumeOp) { ++count; });
    return count;
  };
  EXPECT_EQ(assumptions(0.5f), 1);
  EXPECT_EQ(assumptions(std::numeric_limits<float>::infinity()), 0);
  EXPECT_EQ(assumptions(std::numeric_limits<float>::quiet_NaN()), 0);
}

TEST(KernelFamilies, NumbersThatFollowFromOthersAreNoArguments) {
  std::vector<std::vector<int64_t>> kernels;
  for (int64_t n : {4, 6, 10, 11})
    kernels.push_back({3 * n, n, n * n, 7, 5 - n, n});
  EXPECT_EQ(Varying(kernels, /*linear=*/true).bases, (std::vector<size_t>{1, 2})) << "n and its square";
  EXPECT_EQ(Varying(kernels, /*linear=*/false).bases.size(), 4u) << "3 n, n, n * n and 5 - n";
}

TEST(KernelFamilies, KernelsOfTooManyNumbersAreNoFamily) {
  KernelShape one{"", {1, 2, 3, 4, 5}, {}}, other{"", {5, 9, 32, 71, 0}, {}}, third{"", {0, 50, 3, 4, 90}, {}};
  EXPECT_FALSE(FamilyNumbers({&one, &other, &third}).areFew());
  one.numbers.pop_back(), other.numbers.pop_back(), third.numbers.pop_back();
  EXPECT_TRUE(FamilyNumbers({&one, &other, &third}).areFew());
}

} // namespace
