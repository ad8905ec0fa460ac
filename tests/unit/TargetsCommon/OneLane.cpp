//===- OneLane.cpp - a processor of a lane, and a target of it ----------------===//
//
// The least that a processor may have: one lane, no masks, no fused multiply-add, one thread a work item, and an entry
// of its own. Its target has the rows of targets/common alone; kernels are compiled in memory for this machine.
//
//===----------------------------------------------------------------------===//

#include "RegionHarness.h"

#include "targets/common/code/CompileQueue.h"
#include "targets/common/code/KernelBuilder.h"
#include "targets/common/roots/Answers.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>
#include <set>

using namespace dmxc;
using namespace dmxc::kernels;
using namespace dmxc::kernels::test;
using namespace mlir;

namespace {

//===----------------------------------------------------------------------===//
// The processor
//===----------------------------------------------------------------------===//

/// One function that unpacks dmx_kernel_args where it begins and keeps its code in a slot from there on.
class OneLaneBuilder final : public KernelBuilder {
public:
  OneLaneBuilder(ModuleOp module, Location loc, StringRef name, unsigned buffers, unsigned dims,
                 const Processor &processor)
      : KernelBuilder(loc, processor) {
    Type ptr = LLVM::LLVMPointerType::get(getContext()), i64 = getI64Type();
    setInsertionPointToEnd(module.getBody());
    auto kernel = func::FuncOp::create(*this, name, getFunctionType({ptr}, {getI32Type()}));
    Value given = kernel.addEntryBlock()->getArgument(0);
    setInsertionPointToStart(&kernel.getBody().front());
    auto field = [&](Type type, Value base, size_t bytes) -> Value {
      Value place = elementPtr(getI8Type(), base, idx(static_cast<int64_t>(bytes)));
      return LLVM::LoadOp::create(*this, type, place, /*alignment=*/8);
    };
    auto array = [&](Type type, size_t bytes, unsigned count) {
      Value base = field(ptr, given, bytes);
      SmallVector<Value> values;
      for (unsigned i = 0; i < count; ++i)
        values.push_back(field(type, base, 8 * i));
      return values;
    };
    Arguments values;
    values.buffers = array(ptr, offsetof(dmx_kernel_args, buffers), buffers);
    values.dims = array(i64, offsetof(dmx_kernel_args, dims), dims);
    values.begin = field(i64, given, offsetof(dmx_kernel_args, begin));
    values.end = field(i64, given, offsetof(dmx_kernel_args, end));
    values.scratch = field(ptr, given, offsetof(dmx_kernel_args, scratch));
    values.results = field(ptr, given, offsetof(dmx_kernel_args, results));
    code = LLVM::AllocaOp::create(*this, ptr, getI32Type(), constantInt(getI32Type(), 1));
    store(constantInt(getI32Type(), DMX_KERNEL_OK), code, idx(0));
    // The values above come before all that is put where the kernel begins.
    Block *body = kernel.addBlock();
    cf::BranchOp::create(*this, body);
    enter(body, std::move(values));
  }

  void finish() override { func::ReturnOp::create(*this, load(getI32Type(), code, idx(0))); }
  void failIf(Value condition, int32_t number) override {
    Value old = load(getI32Type(), code, idx(0));
    Value first = cmp(arith::CmpIPredicate::eq, old, constantInt(getI32Type(), DMX_KERNEL_OK));
    ifThen(arith::AndIOp::create(*this, first, condition),
           [&] { store(constantInt(getI32Type(), number), code, idx(0)); });
  }

private:
  Value code;
};

struct OneLane final : Processor {
  OneLane() { name = "one-lane"; }
  std::unique_ptr<KernelBuilder> makeBuilder(ModuleOp module, Location loc, StringRef name, unsigned buffers,
                                             unsigned dims, ArrayRef<bool>) const override {
    return std::make_unique<OneLaneBuilder>(module, loc, name, buffers, dims, *this);
  }
};

const OneLane kProcessor;

const KernelTable &table() {
  static const KernelTable table = [] {
    KernelTable roots;
    registerRoots(roots);
    return roots;
  }();
  return table;
}

//===----------------------------------------------------------------------===//
// The target
//===----------------------------------------------------------------------===//

std::set<std::string> &computed() {
  static std::set<std::string> ops;
  return ops;
}

class OneLaneTarget final : public TargetBackend {
public:
  StringRef name() const override { return "one-lane"; }
  void registerDialects(DialectRegistry &registry) const override { registerKernelDialects(registry); }
  std::optional<std::string> refuses(Operation *op) const override { return answers.refuses(op); }
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    return answers.fusesProducer(root, use, producer);
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    return answers.fusesConsumer(root, result, consumer);
  }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override {
    Result<KernelPlan> plan = table().plan(region.getBlock(), {kProcessor, {}});
    if (!plan)
      return plan.takeError();
    DictionaryAttr given = region.getStrategyAttr();
    decideGrain(*plan, given ? given.getAs<DictionaryAttr>(strategy::kDecided) : given);
    for (Operation &op : *region.getBlock())
      computed().insert(op.getName().getStringRef().str());
    return answers.strategyOf(region, *plan);
  }
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr) const override {
    Result<KernelPlan> plan = table().plan(region.getBlock(), {kProcessor, {}});
    return plan ? freeOf(*plan, {&kProcessor}, region.getContext()) : std::vector<Decision>();
  }
  Status pack(DictionaryAttr, const Tensor &, std::span<std::byte>) const override {
    return Error{ErrorKind::Internal, "nothing is packed"};
  }
  /// A module of LLVM's IR a kernel, of the kernel's name.
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override {
    std::vector<std::string> names, texts;
    for (Operation *kernel : kernels)
      names.push_back(SymbolTable::getSymbolName(kernel).str()), texts.push_back(kernelText(kernel));
    return compileAll<CodeEntry>(names, 2, [&](size_t i, MLIRContext &context) -> Result<CodeEntry> {
      Result<std::string> code = compile(texts[i], context);
      if (!code)
        return code.takeError();
      return CodeEntry{names[i], kProcessor.name, {}, std::vector<char>(code->begin(), code->end())};
    });
  }
  std::string describe() const override { return ""; }

private:
  static Result<std::string> compile(const std::string &text, MLIRContext &context) {
    Result<ParsedKernel> parsed = parseKernel(text, context);
    if (!parsed)
      return parsed.takeError();
    dlir::KernelOp kernel = parsed->kernel;
    OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
    auto contract = table().emit(*module, kernel, {kProcessor, kernel.getStrategy()}, kProcessor);
    if (!contract)
      return contract.takeError();
    llvm::LLVMContext llvmContext;
    bool lowered = succeeded(lowerToLLVMDialect(*module, {}));
    auto code = lowered ? translateModuleToLLVMIR(*module, llvmContext, kernel.getSymName()) : nullptr;
    if (!code)
      return Error{ErrorKind::Internal, kernel.getSymName().str() + " is not translated"};
    std::string bytes;
    llvm::raw_string_ostream out(bytes);
    llvm::WriteBitcodeToFile(*code, out);
    return bytes;
  }

  Answers answers{"one-lane", table()};
};

Result<RegionTarget::FindKernel> compile(const TargetBackend &target, ArrayRef<dlir::KernelOp> kernels) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto code = target.emit(SmallVector<Operation *>(kernels.begin(), kernels.end()));
  if (!code)
    return code.takeError();
  std::shared_ptr<llvm::orc::LLJIT> jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  for (const CodeEntry &entry : *code) {
    auto context = std::make_unique<llvm::LLVMContext>();
    llvm::MemoryBufferRef bytes({entry.bytes.data(), entry.bytes.size()}, entry.entry);
    auto module = llvm::cantFail(llvm::parseBitcodeFile(bytes, *context));
    llvm::cantFail(jit->addIRModule(llvm::orc::ThreadSafeModule(std::move(module), std::move(context))));
  }
  return RegionTarget::FindKernel([jit](const std::string &, const std::string &name) -> dmx_kernel_fn {
    auto address = jit->lookup(name);
    if (address)
      return address->toPtr<dmx_kernel_fn>();
    ADD_FAILURE() << llvm::toString(address.takeError());
    return nullptr;
  });
}

//===----------------------------------------------------------------------===//
// What all tests together must have run
//===----------------------------------------------------------------------===//

class EveryRoot final : public testing::Environment {
  void TearDown() override {
    const testing::UnitTest &tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() + tests.disabled_test_count() != tests.total_test_count())
      return; // some were asked for
    for (auto &[op, row] : table().all())
      EXPECT_TRUE(computed().count(op.str())) << op.str() << " is in the table, and no test computes it";
  }
};
const testing::Environment *const kEveryRoot = testing::AddGlobalTestEnvironment(new EveryRoot);

} // namespace

RegionTarget dmxc::kernels::test::makeRegionTarget() {
  RegionTarget target;
  target.backend = std::make_unique<OneLaneTarget>();
  target.levels = {kProcessor.name};
  target.compile = [&backend = *target.backend](ArrayRef<dlir::KernelOp> kernels) { return compile(backend, kernels); };
  return target;
}
