//===- ModelTest.cpp - whole models on a processor of a lane --------------===//
//
// Models as texts of the frontend phase, whose files DMXC_MODEL_TEXTS names (models_test.py makes them). The target of
// RegionHarness.h computes each alone: its regions are formed by the partition phase and run in order; there is no
// other target, and no interpreter but for what is expected.
//
//===----------------------------------------------------------------------===//

#include "RegionHarness.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Reference/Interpreter.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace dmxc;
using namespace dmxc::kernels::test;
using namespace mlir;

namespace {

Tensor tensorOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return Tensor(*dmir::dtypeOf(tensor.getElementType()), Shape(tensor.getShape()));
}

/// Floats around 0; of integers 0 and 1, which are words of any vocabulary, places, and masks.
std::vector<Tensor> makeInputs(func::FuncOp function) {
  std::mt19937_64 rng(1);
  std::normal_distribution<double> normal;
  std::vector<Tensor> inputs;
  for (Type type : function.getArgumentTypes()) {
    Tensor &tensor = inputs.emplace_back(tensorOf(type));
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      if (isFloat(tensor.dtype()))
        tensor.setDouble(i, normal(rng));
      else
        tensor.setInt(i, static_cast<int64_t>(rng() % 2));
  }
  return inputs;
}

/// A model whose regions are kernels.
class Model {
public:
  explicit Model(func::FuncOp function, RegionTarget &target) : function(function), target(target) {}

  /// Expects regions of the target alone, and products that have others with them.
  void check() {
    int products = 0, fused = 0;
    for (Operation &op : function.getBody().front()) {
      if (isa<dmir::ConstantOp, dmir::ReshapeOp, func::ReturnOp>(op))
        continue; // a reshape is its operand's bytes
      auto region = dyn_cast<dmir::RegionOp>(op);
      ASSERT_TRUE(region) << op.getName().getStringRef().str() << " is in no region";
      EXPECT_EQ(region.getDevice(), target.backend->name());
      auto product = llvm::find_if(*region.getBlock(), llvm::IsaPred<dmir::MatMulOp, dmir::ConvOp>);
      if (product == region.getBlock()->end())
        continue;
      ++products;
      fused += region.getBlock()->getOperations().size() > 2;
      // What is alone has a reader that cannot be computed with it.
      if (region.getBlock()->getOperations().size() == 2 && region->hasOneUse())
        if (auto reader = dyn_cast<dmir::RegionOp>(*region->user_begin()))
          EXPECT_FALSE(target.backend->fusesConsumer(&*product, product->getResult(0), &reader.getBlock()->front()) &&
                       reader.getBlock()->getOperations().size() == 2)
              << dmir::nodeName(&*product) << " stands alone";
    }
    EXPECT_GT(products, 0);
    EXPECT_GT(fused * 2, products) << fused << " of " << products << " products have others with them";
    printf("%d products and convolutions in regions of %s, %d with other ops\n", products,
           target.backend->name().str().c_str(), fused);
  }

  Status compile() {
    OpBuilder builder(function);
    SmallVector<dlir::KernelOp> all;
    function.walk([&](dmir::RegionOp region) {
      std::string name = "kernel_" + std::to_string(all.size());
      auto kernel =
          dlir::KernelOp::create(builder, region.getLoc(), name, region.getDevice(), region.getStrategyAttr());
      IRMapping mapping;
      region.getBody().cloneInto(&kernel.getBody(), mapping);
      kernels[region] = name;
      all.push_back(kernel);
    });
    auto compiled = target.compile(all);
    if (!compiled)
      return compiled.takeError();
    find = std::move(*compiled);
    return Status::ok();
  }

  std::vector<Tensor> run(const std::vector<Tensor> &inputs) {
    llvm::DenseMap<Value, Tensor> values;
    for (auto [argument, input] : llvm::zip_equal(function.getArguments(), inputs))
      values[argument] = input;
    std::vector<Tensor> results;
    for (Operation &op : function.getBody().front()) {
      if (auto constant = dyn_cast<dmir::ConstantOp>(op))
        values[constant] = *dmir::constantTensor(constant.getResult());
      else if (auto reshape = dyn_cast<dmir::ReshapeOp>(op))
        values[reshape] = values.lookup(reshape.getInput()).reshaped(tensorOf(reshape.getType()).shape());
      else if (auto region = dyn_cast<dmir::RegionOp>(op))
        run(region, values);
      else
        for (Value value : op.getOperands())
          results.push_back(values.lookup(value));
    }
    return results;
  }

private:
  void run(dmir::RegionOp region, llvm::DenseMap<Value, Tensor> &values) {
    std::vector<void *> buffers;
    for (Value operand : region->getOperands())
      buffers.push_back(values[operand].mutableData());
    for (Value result : region->getResults())
      buffers.push_back((values[result] = tensorOf(result.getType())).mutableData());
    auto number = [&](StringRef key) { return region.getStrategyAttr().getAs<IntegerAttr>(key).getInt(); };
    Tensor scratch(DType::U8, {number(strategy::kScratch)});
    int64_t kept = -1;
    dmx_kernel_args args = {};
    args.buffers = buffers.data();
    args.end = number(strategy::kWork);
    args.scratch = scratch.mutableData();
    args.kept = &kept;
    dmx_kernel_fn kernel = find(target.levels.front(), kernels.at(region));
    ASSERT_TRUE(kernel);
    EXPECT_EQ(kernel(&args), DMX_KERNEL_OK) << kernels.at(region);
  }

  func::FuncOp function;
  RegionTarget &target;
  RegionTarget::FindKernel find;
  llvm::MapVector<Operation *, std::string> kernels;
};

/// Within what the region tests of products allow, at the scale of the model's numbers.
void expectClose(const Tensor &want, const Tensor &got, const std::string &what) {
  double scale = 1;
  for (int64_t i = 0; i < want.numElements(); ++i)
    scale = std::max(scale, std::fabs(want.asDouble(i)));
  for (int64_t i = 0; i < want.numElements(); ++i)
    ASSERT_NEAR(got.asDouble(i), want.asDouble(i), 2e-4 * scale) << what << ", element " << i;
}

void checkModel(const std::string &path) {
  SCOPED_TRACE(path);
  RegionTarget target = makeRegionTarget();
  DialectRegistry registry;
  target.backend->registerDialects(registry);
  MLIRContext context(registry);
  context.loadDialect<dmir::DMIRDialect, dlir::DLIRDialect, func::FuncDialect>();
  context.loadAllAvailableDialects();
  dmir::DataFiles::of(&context).admitBelow({"/"}); // texts that this test had written
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("main");
  ASSERT_TRUE(function);
  std::vector<Tensor> inputs = makeInputs(function);
  Result<std::vector<Tensor>> want = reference::evaluateFunction(function, inputs);
  ASSERT_TRUE(want) << want.error().message;

  PhaseContext phase;
  phase.targets = {target.backend.get()};
  PassManager passes(&context);
  phases()[phaseIndex("partition")].build(passes, phase);
  ASSERT_TRUE(succeeded(passes.run(*module)));
  Model model(function, target);
  model.check();
  ASSERT_FALSE(testing::Test::HasFatalFailure());
  Status compiled = model.compile();
  ASSERT_TRUE(compiled) << compiled.error().message;
  std::vector<Tensor> got = model.run(inputs);
  ASSERT_EQ(got.size(), want->size());
  for (size_t i = 0; i < got.size(); ++i)
    expectClose((*want)[i], got[i], "output " + std::to_string(i));
}

TEST(Models, ComputedAlone) {
  const char *texts = getenv("DMXC_MODEL_TEXTS");
  if (!texts)
    GTEST_SKIP() << "DMXC_MODEL_TEXTS names no texts; models_test.py does";
  SmallVector<StringRef> paths;
  StringRef(texts).split(paths, ':', -1, /*KeepEmpty=*/false);
  ASSERT_FALSE(paths.empty());
  for (StringRef path : paths)
    checkModel(path.str());
}

} // namespace
