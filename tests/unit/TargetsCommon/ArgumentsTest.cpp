//===- ArgumentsTest.cpp - no more arguments than a kernel is given -----------===//
//
// A target whose kernels are given few: what partition makes of sums and concatenations of more than that, at every
// level of optimisation, and that it computes the same.
//
//===----------------------------------------------------------------------===//

#include "RegionHarness.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace dmxc;
using namespace dmxc::kernels::test;
using namespace mlir;

namespace {

/// The harness's target, with a limit.
class Narrow final : public TargetBackend {
public:
  Narrow(const TargetBackend &other, uint64_t most) : other(other), most(most) {}
  StringRef name() const override { return other.name(); }
  std::optional<std::string> refuses(Operation *op) const override { return other.refuses(op); }
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    return other.fusesProducer(root, use, producer);
  }
  bool yieldsProducer(Operation *root, Operation *producer) const override {
    return root->hasTrait<dmir::Elementwise>() && producer->hasTrait<dmir::Elementwise>();
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    return other.fusesConsumer(root, result, consumer);
  }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override { return other.chooseStrategy(region); }
  uint64_t mostArguments() const override { return most; }
  Status pack(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const override {
    return other.pack(form, constant, out);
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override { return other.emit(kernels); }
  std::string describe() const override { return other.describe(); }

private:
  const TargetBackend &other;
  const uint64_t most;
};

/// A function of `count` inputs: their concatenation, their sum, and that of a product with all of them added.
std::string functionOf(int count) {
  std::string inputs, values, types, chain, both;
  for (int i = 0; i < count; ++i) {
    std::string number = std::to_string(i);
    inputs += "%x" + number + ": tensor<1x4xf32>, ";
    values += (i ? ", %x" : "%x") + number;
    types += i ? ", tensor<1x4xf32>" : "tensor<1x4xf32>";
    for (std::string chain : {"s", "p"}) {
      std::string before = i ? "%" + chain + std::to_string(i - 1) : chain == "s" ? "%x0" : "%product";
      both += "  %" + chain + number + " = dmir.add " + before + ", %x" + number +
              " : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>\n";
    }
  }
  std::string joined = "tensor<" + std::to_string(count) + "x4xf32>", half = std::to_string(count / 2);
  return "func.func @main(" + inputs + "%w: tensor<4x4xf32>) -> (" + joined +
         ", tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {\n  %joined = dmir.concat " + values +
         " {axis = 0 : i64} : (" + types + ") -> " + joined +
         "\n  %product = dmir.matmul %x0, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>\n" + both +
         "  return %joined, %s" + std::to_string(count - 1) + ", %p" + std::to_string(count - 1) + ", %s" + half +
         " : " + joined + ", tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>\n}\n";
}

TEST(Arguments, NoRegionNeedsMore) {
  for (int optLevel : {0, 1, 2, 3})
    for (uint64_t most : {4, 5, 9, 64})
      for (int count : {2, 3, 8, 9, 40}) {
        SCOPED_TRACE("-O" + std::to_string(optLevel) + ", " + std::to_string(count) + " parts, at most " +
                     std::to_string(most));
        RegionTarget target = makeRegionTarget();
        Narrow narrow(*target.backend, most);
        DialectRegistry registry;
        target.backend->registerDialects(registry);
        MLIRContext context(registry);
        context.loadDialect<dmir::DMIRDialect, dlir::DLIRDialect, func::FuncDialect>();
        context.loadAllAvailableDialects();
        OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(functionOf(count), &context);
        ASSERT_TRUE(module);
        auto function = module->lookupSymbol<func::FuncOp>("main");
        std::vector<Tensor> inputs;
        for (Type type : function.getArgumentTypes()) {
          Tensor &input = inputs.emplace_back(DType::F32, Shape(cast<RankedTensorType>(type).getShape()));
          for (int64_t i = 0; i < input.numElements(); ++i)
            input.setDouble(i, static_cast<double>((inputs.size() * 7 + static_cast<size_t>(i)) % 13));
        }
        Result<std::vector<Tensor>> want = reference::evaluateFunction(function, inputs);
        ASSERT_TRUE(want) << want.error().message;
        PhaseContext phase;
        phase.targets = {&narrow};
        phase.optLevel = optLevel;
        PassManager passes(&context);
        phases()[static_cast<size_t>(phaseIndex("partition"))].build(passes, phase);
        ASSERT_TRUE(succeeded(passes.run(*module)));
        uint64_t largest = 0;
        function.walk([&](dmir::RegionOp region) {
          uint64_t arguments =
              region->getNumOperands() + region->getNumResults() + dmir::symbolsOf(region.getBlock()).size();
          EXPECT_LE(arguments, most);
          largest = std::max(largest, arguments);
        });
        if (optLevel && static_cast<uint64_t>(count) > most) // what may be given is
          EXPECT_EQ(largest, most);
        Result<std::vector<Tensor>> got = reference::evaluateFunction(function, inputs);
        ASSERT_TRUE(got) << got.error().message;
        for (size_t i = 0; i < want->size(); ++i)
          for (int64_t k = 0; k < (*want)[i].numElements(); ++k)
            ASSERT_EQ((*got)[i].asDouble(k), (*want)[i].asDouble(k)) << "output " << i;
      }
}

} // namespace
