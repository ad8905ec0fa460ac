//===- Asynchronous.cpp - copies and products that run beside threads ---------===//

#include "Asynchronous.h"

#include "schemas/cuda/Layouts.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// Nanoseconds after which a wait looks again.
static constexpr int64_t kWaitTicks = 10'000'000;

Value Asynchronous::shared(Value offset) { return b.elementPtr(b.getI8Type(), b.shared(), offset); }

void Asynchronous::initBarrier(Value barrier, int64_t arrivals) {
  NVVM::MBarrierInitOp::create(b, barrier, b.constantInt(b.getI32Type(), arrivals), Value());
}

void Asynchronous::publishBarriers() {
  NVVM::FenceMbarrierInitOp::create(b);
  NVVM::FenceProxyOp::create(b, NVVM::ProxyKind::async, NVVM::SharedSpaceAttr());
  NVVM::Barrier0Op::create(b);
}

void Asynchronous::wait(Value barrier, Value parity) {
  NVVM::MBarrierTryWaitParityOp::create(b, barrier, parity, b.constantInt(b.getI32Type(), kWaitTicks));
}

void Asynchronous::arrive(Value barrier) {
  NVVM::MBarrierArriveOp::create(b, Type(), barrier, Value(), NVVM::MemScopeKind::CTA, /*relaxed=*/false);
}

void Asynchronous::meetWarp() { NVVM::SyncWarpOp::create(b, b.constantInt(b.getI32Type(), -1)); }

void Asynchronous::meet(Value barrier, int64_t threads) {
  Value id = arith::TruncIOp::create(b, b.getI32Type(), barrier);
  NVVM::BarrierOp::create(b, TypeRange(), id, b.constantInt(b.getI32Type(), threads), NVVM::BarrierReductionAttr(),
                          Value());
}

void Asynchronous::inOneLane(llvm::function_ref<void()> body) {
  constexpr int64_t warp = 32;
  Value lane = b.rem(b.threadInBlock(), b.idx(warp));
  b.ifThen(b.cmp(arith::CmpIPredicate::eq, lane, b.idx(0)), body);
  meetWarp();
}

void Asynchronous::arriveAsWarp(Value barrier) {
  NVVM::FenceProxyOp::create(b, NVVM::ProxyKind::async, NVVM::SharedSpaceAttr());
  meetWarp();
  inOneLane([&] { arrive(barrier); });
}

void Asynchronous::arriveAndExpect(Value barrier, int64_t bytes) {
  NVVM::MBarrierArriveExpectTxOp::create(b, Type(), barrier, b.constantInt(b.getI32Type(), bytes),
                                         NVVM::MemScopeKind::CTA, /*relaxed=*/false, Value());
}

void Asynchronous::copy(Value to, Value map, Value barrier, ArrayRef<Value> coordinates) {
  SmallVector<Value> at;
  for (Value coordinate : coordinates)
    at.push_back(arith::TruncIOp::create(b, b.getI32Type(), coordinate));
  // A block is a cluster of its own: its shared memory is the cluster's.
  Value inCluster = LLVM::AddrSpaceCastOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 7), to);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(b, inCluster, map, at, barrier, ValueRange(), Value(), Value(),
                                                         NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
                                                         NVVM::CTAGroupKindAttr(), Value());
}

LLVM::LLVMStructType Asynchronous::sumsType(int64_t columns) {
  return LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(columns / 2, b.getF32Type()));
}

Value Asynchronous::zeroSums(int64_t columns) {
  Value sums = LLVM::UndefOp::create(b, sumsType(columns)), zero = b.constant(b.getF32Type(), 0);
  for (int64_t i = 0; i < columns / 2; ++i)
    sums = LLVM::InsertValueOp::create(b, sums, zero, ArrayRef<int64_t>{i});
  return sums;
}

Value Asynchronous::descriptor(Value address, uint64_t leadingBytes) {
  Type i32 = b.getI32Type();
  Value bits = LLVM::PtrToIntOp::create(b, i32, address);
  bits = arith::ShRUIOp::create(b, bits, b.constantInt(i32, 4));
  bits = arith::AndIOp::create(b, bits, b.constantInt(i32, 0x3fff));
  Value wide = arith::ExtUIOp::create(b, b.getI64Type(), bits);
  return arith::OrIOp::create(b, wide, b.idx(static_cast<int64_t>(dmx::cuda::descriptorOf(leadingBytes))));
}

Value Asynchronous::advance(Value descriptor, int64_t bytes) { return b.addC(descriptor, bytes >> 4); }

/// LLVM does not know that products write registers later than they stand. What passes the sums through keeps others
/// from being moved over it.
Value Asynchronous::between(Value sums, StringRef instruction, SmallVectorImpl<Value> *words) {
  auto type = cast<LLVM::LLVMStructType>(sums.getType());
  SmallVector<Value> each;
  SmallVector<Type> types(type.getBody());
  std::string outputs, inputs;
  auto pass = [&](Value value, StringRef output) {
    inputs += std::to_string(each.size()) + ",";
    outputs += output;
    each.push_back(value);
  };
  for (size_t i = 0; i < type.getBody().size(); ++i)
    pass(LLVM::ExtractValueOp::create(b, sums, ArrayRef<int64_t>(i)), "=f,");
  for (Value word : words ? ArrayRef<Value>(*words) : ArrayRef<Value>()) {
    types.push_back(word.getType());
    pass(word, "=r,");
  }
  Type passed = words ? LLVM::LLVMStructType::getLiteral(b.getContext(), types) : type;
  Value all = LLVM::InlineAsmOp::create(b, passed, each, instruction, outputs + inputs + "~{memory}",
                                        /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                        LLVM::AsmDialectAttr(), ArrayAttr())
                  .getRes();
  if (!words)
    return all;
  auto part = [&](size_t i) -> Value { return LLVM::ExtractValueOp::create(b, all, ArrayRef<int64_t>(i)); };
  const size_t count = type.getBody().size();
  for (size_t i = 0; i < words->size(); ++i)
    (*words)[i] = part(count + i);
  Value out = LLVM::UndefOp::create(b, type);
  for (size_t i = 0; i < count; ++i)
    out = LLVM::InsertValueOp::create(b, out, part(i), ArrayRef<int64_t>(i));
  return out;
}

static constexpr StringLiteral kFence = "wgmma.fence.sync.aligned;";
Value Asynchronous::beginProducts(Value sums) { return between(sums, kFence); }
Value Asynchronous::beginProducts(Value sums, SmallVectorImpl<Value> &words) { return between(sums, kFence, &words); }

Value Asynchronous::multiply(Value sums, Value left, Value right, const Kind &kind) {
  auto shape = NVVM::MMAShapeAttr::get(b.getContext(), dmx::cuda::kMmaRows, kind.columns, dmx::cuda::kMmaDepth);
  NVVM::WGMMATypes type = kind.isBf16 ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f16;
  // Of the left operand rows are along k in the layout "row", of the right one in "col".
  NVVM::MMALayout a = kind.leftIsKMajor ? NVVM::MMALayout::row : NVVM::MMALayout::col;
  NVVM::MMALayout bLayout = kind.rightIsKMajor ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  return NVVM::WgmmaMmaAsyncOp::create(b, sums.getType(), sums, left, right, shape, type, type, NVVM::WGMMATypes::f32,
                                       NVVM::WGMMAScaleOut::one, NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, a,
                                       bLayout, NVVM::MMAIntOverflowAttr());
}

/// NVVM's op has both operands in shared memory.
Value Asynchronous::multiply(Value sums, ArrayRef<Value> left, Value right, const Kind &kind) {
  auto type = cast<LLVM::LLVMStructType>(sums.getType());
  const size_t count = type.getBody().size();
  SmallVector<Value> each;
  std::string outputs, inputs, all, words;
  auto list = [](std::string &to, size_t number) { to += (to.empty() ? "$" : ", $") + std::to_string(number); };
  for (size_t i = 0; i < count; ++i) {
    each.push_back(LLVM::ExtractValueOp::create(b, sums, ArrayRef<int64_t>(i)));
    outputs += "=f,";
    list(all, i);
  }
  // Operands behind the sums; the sums that they are tied to follow.
  for (auto [i, word] : llvm::enumerate(left))
    list(words, count + i);
  const std::string descriptor = "$" + std::to_string(count + left.size());
  for (size_t i = 0; i < left.size(); ++i)
    inputs += "r,";
  inputs += "l,";
  for (size_t i = 0; i < count; ++i)
    inputs += std::to_string(i) + ",";
  SmallVector<Value> operands(left);
  operands.push_back(right);
  llvm::append_range(operands, each);
  StringRef element = kind.isBf16 ? "bf16" : "f16";
  std::string text = ("{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.mma_async.sync.aligned.m64n" +
                      llvm::Twine(kind.columns) + "k16.f32." + element + "." + element + " {" + all + "}, {" + words +
                      "}, " + descriptor + ", p, 1, 1, " + (kind.rightIsKMajor ? "0" : "1") + "; }")
                         .str();
  return LLVM::InlineAsmOp::create(b, type, operands, text, outputs + inputs + "~{memory}",
                                   /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

void Asynchronous::commitProducts() { NVVM::WgmmaGroupSyncAlignedOp::create(b); }
Value Asynchronous::waitForProducts(Value sums, unsigned pending) {
  return between(sums, "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";");
}

Value Asynchronous::threadNow() {
  Value number = LLVM::InlineAsmOp::create(b, b.getI32Type(), ValueRange(), "mov.u32 $0, %tid.x;", "=r",
                                           /*has_side_effects=*/true, /*is_align_stack=*/false,
                                           LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
                     .getRes();
  return arith::ExtUIOp::create(b, b.getI64Type(), number);
}

void Asynchronous::setRegisters(unsigned count, bool takes) {
  NVVM::SetMaxRegisterOp::create(b, count,
                                 takes ? NVVM::SetMaxRegisterAction::increase : NVVM::SetMaxRegisterAction::decrease);
}
