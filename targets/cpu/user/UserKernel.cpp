//===- UserKernel.cpp - a region that a user's kernel computes ------------===//

#include "UserKernel.h"
#include "UserCode.h"

#include "targets/common/roots/Contract.h"
#include "targets/cpu/code/CpuBuilder.h"

#include "dmx/dmx_kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/Path.h"

#include <cstddef>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

/// Calls the body that is for the builder's level.
class UserCall {
public:
  UserCall(CpuBuilder &b, const RegionBody &body)
      : b(b), body(body), op(mlir::cast<dmir::ExternOp>(body.root)), code(bodyFor(op.getBodies(), b.isa())) {}

  /// The code that it returns.
  Value emit() {
    SmallVector<Value> pointers, sizes;
    for (Value operand : op.getInputs())
      pointers.push_back(b.buffer(mlir::cast<BlockArgument>(operand).getArgNumber()));
    for (unsigned i = 0; i < op.getNumResults(); ++i)
      pointers.push_back(b.buffer(body.block->getNumArguments() + i));
    if (auto scalars = op.getScalars())
      for (Dim scalar : scalars->getDims())
        sizes.push_back(b.idx(scalar));
    Value buffers = table(pointers), dims = table(sizes);
    bool plain = code.getAs<StringAttr>("abi").getValue() == "plain";
    return plain ? call({buffers, dims, b.begin(), b.end(), b.scratch()}) : call({arguments(buffers, dims)});
  }

private:
  Type pointerType() { return LLVM::LLVMPointerType::get(b.getContext()); }

  /// Room on the stack.
  Value room(size_t bytes) {
    return LLVM::AllocaOp::create(b, pointerType(), b.getI8Type(),
                                  b.constantInt(b.getI32Type(), static_cast<int64_t>(bytes)), /*alignment=*/8);
  }

  void put(Value value, Value base, size_t offset) {
    Value place = LLVM::GEPOp::create(b, pointerType(), b.getI8Type(), base,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
    LLVM::StoreOp::create(b, value, place, /*alignment=*/8);
  }

  /// An array of words; null where there are none.
  Value table(ArrayRef<Value> words) {
    if (words.empty())
      return LLVM::ZeroOp::create(b, pointerType());
    Value base = room(words.size() * 8);
    for (auto [i, word] : llvm::enumerate(words))
      put(word, base, i * 8);
    return base;
  }

  Value arguments(Value buffers, Value dims) {
    Value args = room(sizeof(dmx_kernel_args));
    put(buffers, args, offsetof(dmx_kernel_args, buffers));
    put(dims, args, offsetof(dmx_kernel_args, dims));
    put(b.begin(), args, offsetof(dmx_kernel_args, begin));
    put(b.end(), args, offsetof(dmx_kernel_args, end));
    put(b.scratch(), args, offsetof(dmx_kernel_args, scratch));
    put(b.results(), args, offsetof(dmx_kernel_args, results));
    Value kept = room(sizeof(int64_t)); // nothing of the call before
    put(b.idx(-1), kept, 0);
    put(kept, args, offsetof(dmx_kernel_args, kept));
    return args;
  }

  Value call(ArrayRef<Value> operands) { return callBody(b, code, b.getI32Type(), operands).getResult(); }

  CpuBuilder &b;
  const RegionBody &body;
  dmir::ExternOp op;
  DictionaryAttr code;
};

} // namespace

LLVM::CallOp dmxc::cpu::callBody(CpuBuilder &b, DictionaryAttr body, Type result, ArrayRef<Value> operands) {
  auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(ValueRange(operands).getTypes()));
  std::string name = linkedName(body);
  auto module = b.entryBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto declared = LLVM::LLVMFuncOp::create(b, name, type);
    declared.setVisibility_(LLVM::Visibility::Hidden);
    declared.setDsoLocal(true);
  }
  return LLVM::CallOp::create(b, type, name, operands);
}

Result<std::vector<int64_t>> dmxc::cpu::emitUserKernel(ModuleOp module, dlir::KernelOp kernel, const IsaLevel &isa) {
  Block *block = kernel.getBlock();
  RegionBody body{block, userKernelOf(kernel), llvm::to_vector(block->getTerminator()->getOperands())};
  Result<KernelPlan> plan = planUserKernel(body);
  if (!plan)
    return plan.takeError();
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  unsigned buffers = block->getNumArguments() + static_cast<unsigned>(body.results.size());
  CpuBuilder b(module, kernel.getLoc(), kernel.getSymName(), buffers, symbols.size(), isa);
  b.setSymbols(std::move(symbols));
  Value code = UserCall(b, body).emit();
  func::ReturnOp::create(b, code);
  return contractWords(kernel, *plan);
}

void dmxc::cpu::noteUserCode(ArrayRef<UserCode> used, const IsaLevel &isa, Operation *kernel) {
  std::vector<dmir::UserCodeNote> notes;
  for (const UserCode &code : used)
    notes.push_back({code.kernel, isa.name, llvm::sys::path::filename(code.file).str(), code.symbol, code.sha256});
  dmir::noteUserCode(notes, kernel);
}

static Result<KernelPlan> planOf(const RegionBody &body, const PlanRequest &) { return planUserKernel(body); }

void dmxc::cpu::registerUserKernels(KernelTable &table) { table.add<dmir::ExternOp>({.plan = planOf}); }

std::optional<std::string> dmxc::cpu::whyNoBody(dmir::ExternOp op, ArrayRef<IsaLevel> levels) {
  for (const IsaLevel &level : levels)
    if (!bodyFor(op.getBodies(), level))
      return "no body of the kernel '" + op.getKernel().str() + "' runs at level " + level.name +
             "; give one without features, or compile for the levels that have one";
  return std::nullopt;
}
