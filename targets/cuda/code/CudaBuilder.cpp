//===- CudaBuilder.cpp - kernels that a grid of threads runs ------------------===//

#include "CudaBuilder.h"

#include "targets/common/roots/Plans.h"

#include "dmx/dmx_kernel.h"
#include "schemas/cuda/Layouts.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

std::unique_ptr<KernelBuilder> Hopper::makeBuilder(ModuleOp module, Location loc, StringRef name, unsigned buffers,
                                                   unsigned dims, ArrayRef<bool> noalias) const {
  return std::make_unique<CudaBuilder>(module, loc, name, buffers, dims, *this, noalias);
}

WorkPlan Hopper::planWork(Block *, ArrayRef<Dim> dims, double cost) const {
  WorkPlan plan;
  plan.dims.assign(dims.begin(), dims.end());
  if (cost == 0) // one thread for all: elements share bytes
    return plan;
  plan.split = dims.size() - 1;
  plan.chunk = 1;
  for (Dim dim : dims)
    plan.items *= dim;
  return plan;
}

namespace {

/// Positions of the arguments behind buffers and dims.
enum Tail : unsigned { Scratch, ScratchBytes, Results, StatusWord, TailArguments };

/// Makes an argument a tensor map, which is passed by value (Ptx.cpp: in constant memory).
void markMap(func::FuncOp kernel, unsigned argument) {
  constexpr int64_t bytes = 128, alignment = 64;
  OpBuilder b(kernel);
  kernel.setArgAttr(argument, LLVM::LLVMDialect::getByValAttrName(),
                    TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), bytes)));
  kernel.setArgAttr(argument, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment));
}

} // namespace

CudaBuilder::CudaBuilder(ModuleOp module, Location loc, StringRef name, unsigned numBuffers, unsigned numDims,
                         const Hopper &processor, ArrayRef<bool> noalias)
    : KernelBuilder(loc, processor) {
  Type ptr = LLVM::LLVMPointerType::get(getContext()), i64 = getI64Type(), i32 = getI32Type();
  SmallVector<Type> types(numBuffers, ptr);
  types.append(numDims, i64);
  types.append({ptr, i64, ptr, ptr});
  types.append(processor.blockMaps.value_or(0), ptr);
  setInsertionPointToEnd(module.getBody());
  auto kernel = func::FuncOp::create(*this, name, getFunctionType(types, {}));
  for (unsigned i = 0; i < numBuffers; ++i)
    if (i >= noalias.size() || noalias[i])
      kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr());
  Block *start = kernel.addEntryBlock();
  ValueRange given = start->getArguments(), tail = given.drop_front(numBuffers + numDims);
  for (Tail argument : {Scratch, Results, StatusWord})
    kernel.setArgAttr(numBuffers + numDims + argument, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr());
  for (unsigned i = 0; i < processor.blockMaps.value_or(0); ++i)
    markMap(kernel, numBuffers + numDims + TailArguments + i);
  setInsertionPointToStart(start);
  auto special = [&](StringRef what) {
    auto name = getStringAttr("llvm.nvvm.read.ptx.sreg." + what);
    Value number = LLVM::CallIntrinsicOp::create(*this, i32, name, ValueRange()).getResult(0);
    return Value(arith::ExtUIOp::create(*this, i64, number));
  };
  Value threads = special("ntid.x"), block = special("ctaid.x");
  Value before = mul(block, threads);
  ownThread = special("tid.x");
  Value thread = add(before, ownThread), blocks = special("nctaid.x");
  Value all = mul(blocks, threads);
  Value scratch = elementPtr(getI8Type(), tail[Scratch], mul(thread, tail[ScratchBytes]));
  status = tail[StatusWord];
  if (processor.blockMaps) {
    takeMaps(llvm::to_vector(tail.drop_front(TailArguments)), module);
    // Behind the room in which warps tell each other values.
    scratch = elementPtr(getI8Type(), sharedMemory, constantInt(getI64Type(), roomOf(team())));
    if (int64_t cluster = team().blocks; cluster > 1) {
      rank = special("cluster.ctarank");
      block = arith::DivUIOp::create(*this, block, constantInt(i64, cluster));
      blocks = arith::DivUIOp::create(*this, blocks, constantInt(i64, cluster));
    }
  }
  // Sizes are computed where the body begins; what stands above comes before them.
  Block *body = kernel.addBlock();
  cf::BranchOp::create(*this, body);
  bool isBlocks = processor.blockMaps.has_value();
  enter(body, {llvm::to_vector(given.take_front(numBuffers)), llvm::to_vector(given.slice(numBuffers, numDims)),
               isBlocks ? block : thread, isBlocks ? blocks : all, scratch, tail[Results]});
}

void CudaBuilder::takeMaps(ArrayRef<Value> arguments, ModuleOp module) {
  maps.assign(arguments.begin(), arguments.end());
  constexpr unsigned sharedSpace = 3;
  LLVM::GlobalOp memory;
  {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(module.getBody());
    memory =
        LLVM::GlobalOp::create(*this, LLVM::LLVMArrayType::get(getI8Type(), 0), /*isConstant=*/false,
                               LLVM::Linkage::External, "shared", Attribute(), dmx::cuda::kPatternBytes, sharedSpace);
  }
  sharedMemory = LLVM::AddressOfOp::create(*this, memory);
}

void CudaBuilder::finish() { func::ReturnOp::create(*this); }

void CudaBuilder::failIf(Value condition, int32_t code) {
  ifThen(condition, [&] {
    Type i32 = getI32Type();
    LLVM::AtomicCmpXchgOp::create(*this, status, constantInt(i32, DMX_KERNEL_OK), constantInt(i32, code),
                                  LLVM::AtomicOrdering::monotonic, LLVM::AtomicOrdering::monotonic, "device");
  });
}

void CudaBuilder::forItems(Dim count, LoopBody each) {
  // All blocks of a cluster have begun, and have read what they were told of the item before.
  auto item = [&](Value at) {
    if (team().blocks > 1)
      meetCluster();
    combinations = 0;
    each(at);
  };
  if (count.is(1))
    return ifThen(cmp(arith::CmpIPredicate::eq, begin(), idx(0)), [&] { item(idx(0)); });
  forLoop(begin(), idx(count), end(), item); // end() is how many threads there are
}
