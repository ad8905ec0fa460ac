//===- CpuBuilder.cpp - kernels that the runtime's threads call ---------------===//

#include "CpuBuilder.h"

#include "dmx/dmx_kernel.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cstddef>

using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The wrapper and the body
//===----------------------------------------------------------------------===//

namespace {

/// Position of the body's arguments after its buffers and dims.
enum TailArg : unsigned { BeginArg, EndArg, ScratchArg, ResultsArg, KeptArg, TailArgs };

Value loadField(ImplicitLocOpBuilder &b, Type type, Value base, int64_t byteOffset) {
  Value ptr = LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                                  ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(byteOffset)});
  return LLVM::LoadOp::create(b, type, ptr, /*alignment=*/8);
}

/// Emits `name(args)`: unpacks dmx_kernel_args and calls the body.
void emitWrapper(ImplicitLocOpBuilder &b, func::FuncOp wrapper, func::FuncOp body, unsigned numBuffers,
                 unsigned numDims) {
  b.setInsertionPointToStart(wrapper.addEntryBlock());
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  Value args = wrapper.getArgument(0);
  SmallVector<Value> operands;
  Value buffers = loadField(b, ptr, args, offsetof(dmx_kernel_args, buffers));
  for (unsigned i = 0; i < numBuffers; ++i)
    operands.push_back(loadField(b, ptr, buffers, 8 * i));
  if (numDims) {
    Value dims = loadField(b, ptr, args, offsetof(dmx_kernel_args, dims));
    for (unsigned i = 0; i < numDims; ++i)
      operands.push_back(loadField(b, i64, dims, 8 * i));
  }
  operands.push_back(loadField(b, i64, args, offsetof(dmx_kernel_args, begin)));
  operands.push_back(loadField(b, i64, args, offsetof(dmx_kernel_args, end)));
  operands.push_back(loadField(b, ptr, args, offsetof(dmx_kernel_args, scratch)));
  operands.push_back(loadField(b, ptr, args, offsetof(dmx_kernel_args, results)));
  operands.push_back(loadField(b, ptr, args, offsetof(dmx_kernel_args, kept)));
  auto call = func::CallOp::create(b, body, operands);
  func::ReturnOp::create(b, call.getResults());
}

} // namespace

CpuBuilder::CpuBuilder(ModuleOp module, Location loc, StringRef name, unsigned numBuffers, unsigned numDims,
                       const IsaLevel &isa, ArrayRef<bool> noalias)
    : KernelBuilder(loc, isa) {
  Type ptr = LLVM::LLVMPointerType::get(getContext());
  SmallVector<Type> types(numBuffers, ptr);
  types.append(numDims, getI64Type());
  types.append({getI64Type(), getI64Type(), ptr, ptr, ptr});

  setInsertionPointToEnd(module.getBody());
  auto wrapper = func::FuncOp::create(*this, name, getFunctionType({ptr}, {getI32Type()}));
  auto body = func::FuncOp::create(*this, (name + ".body").str(), getFunctionType(types, {getI32Type()}));
  // Private functions become internal; see Lowering.cpp, which also keeps the
  // body out of line so that its noalias arguments survive as such.
  body.setPrivate();
  auto setNoalias = [&](unsigned arg) { body.setArgAttr(arg, LLVM::LLVMDialect::getNoAliasAttrName(), getUnitAttr()); };
  for (unsigned i = 0; i < numBuffers; ++i)
    if (i >= noalias.size() || noalias[i])
      setNoalias(i);
  setNoalias(numBuffers + numDims + ScratchArg);
  emitWrapper(*this, wrapper, body, numBuffers, numDims);
  Block *entry = body.addEntryBlock();
  ValueRange given = entry->getArguments(), tail = given.drop_front(numBuffers + numDims);
  keptNumber = tail[KeptArg];
  enter(entry, {llvm::to_vector(given.take_front(numBuffers)), llvm::to_vector(given.slice(numBuffers, numDims)),
                tail[BeginArg], tail[EndArg], tail[ScratchArg], tail[ResultsArg]});
}

void CpuBuilder::finish() {
  Value code =
      status ? LLVM::LoadOp::create(*this, getI32Type(), status).getResult() : constantInt(getI32Type(), DMX_KERNEL_OK);
  func::ReturnOp::create(*this, code);
}

void CpuBuilder::failIf(Value condition, int32_t code) {
  Type i32 = getI32Type();
  if (!status) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(entryBlock());
    Value one = constantInt(i32, 1);
    status = LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), i32, one);
    LLVM::StoreOp::create(*this, constantInt(i32, DMX_KERNEL_OK), status);
  }
  Value current = LLVM::LoadOp::create(*this, i32, status);
  Value first = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, current, constantInt(i32, DMX_KERNEL_OK));
  Value take = arith::AndIOp::create(*this, first, condition);
  Value next = arith::SelectOp::create(*this, take, constantInt(i32, code), current);
  LLVM::StoreOp::create(*this, next, status);
}

//===----------------------------------------------------------------------===//
// Register tiles
//===----------------------------------------------------------------------===//

Value CpuBuilder::tileBuffer() {
  if (!tile) {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointToStart(entryBlock());
    auto pointer = LLVM::LLVMPointerType::get(getContext());
    Value room =
        LLVM::AllocaOp::create(*this, pointer, getI8Type(), constantInt(getI32Type(), kTileBytes), /*alignment=*/64);
    tile = opaque(room); // LLVM would make registers of it
  }
  return tile;
}

/// An empty instruction sequence that may touch memory, as far as LLVM knows.
static LLVM::InlineAsmOp emptyAsm(ImplicitLocOpBuilder &b, TypeRange results, ValueRange operands,
                                  StringRef constraints) {
  auto dialect = LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT);
  return LLVM::InlineAsmOp::create(b, results, operands, /*asm_string=*/"", constraints,
                                   /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   dialect, /*operand_attrs=*/ArrayAttr());
}

void CpuBuilder::fence() { emptyAsm(*this, {}, {}, "~{memory}"); }

Value CpuBuilder::opaque(Value pointer) { return opaque(*this, pointer); }

Value CpuBuilder::opaque(ImplicitLocOpBuilder &b, Value pointer) {
  return emptyAsm(b, pointer.getType(), pointer, "=r,0,~{memory}").getRes();
}

Value CpuBuilder::held(Value vector) { return emptyAsm(*this, vector.getType(), vector, "=v,0").getRes(); }

void CpuBuilder::prefetch(Type element, Value base, Value offset, int locality, bool write) {
  // Without "inbounds": emitters prefetch what comes next, which may lie behind
  // the buffer.
  Value line = LLVM::GEPOp::create(*this, base.getType(), storageType(element), base, ArrayRef<LLVM::GEPArg>{offset});
  LLVM::Prefetch::create(*this, line, write ? 1 : 0, locality, /*cache=*/1);
}
