//===- UserSignature.cpp - whether a function fits its kernel --------------===//

#include "UserSignature.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"

#include "llvm/ADT/StringExtras.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string lineOf(Location place) {
  auto known = place->findInstanceOf<FileLineColLoc>();
  return known ? "line " + std::to_string(known.getLine()) + ": " : "";
}

/// Floats are themselves, integers as wide; truth values are bytes.
bool isSame(Type element, Type stored) {
  if (!stored.isInteger() || !element.isInteger())
    return element == stored;
  unsigned bits = stored.getIntOrFloatBitWidth();
  return element.getIntOrFloatBitWidth() == (bits == 1 ? 8 : bits);
}

/// What is wrong with an argument for a tensor; "" where nothing is.
std::string problemOfBuffer(Type type, RankedTensorType tensor) {
  if (isa<LLVM::LLVMPointerType>(type))
    return "";
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref)
    return "it may be a memref or a !llvm.ptr";
  if (!isSame(memref.getElementType(), tensor.getElementType()))
    return "that has elements of " + textOf(tensor.getElementType());
  if (!memref.hasStaticShape() || !memref.getLayout().isIdentity() || memref.getMemorySpace())
    return "a memref is of known sizes, row by row and in no memory space; with open ones it may be a !llvm.ptr";
  if (memref.getRank() != tensor.getRank())
    return "that has rank " + std::to_string(tensor.getRank());
  for (auto [own, dim] : llvm::zip_equal(memref.getShape(), dmir::dimsOf(tensor)))
    if (!(Dim(own) == dim))
      return "that has [" +
             llvm::join(llvm::map_range(dmir::dimsOf(tensor), [](Dim each) { return each.str(); }), ", ") + "]";
  return "";
}

} // namespace

Status dmxc::cuda::checkSignature(const UserText &from, FunctionOpInterface function, dmir::ExternOp op, int64_t maps) {
  SmallVector<std::pair<std::string, RankedTensorType>> buffers;
  for (auto [i, type] : llvm::enumerate(op.getOperandTypes()))
    buffers.emplace_back("operand " + std::to_string(i), cast<RankedTensorType>(type));
  for (auto [i, type] : llvm::enumerate(op.getResultTypes()))
    buffers.emplace_back("result " + std::to_string(i), cast<RankedTensorType>(type));
  size_t scalars = op.getScalars() ? op.getScalars()->getDims().size() : 0;
  size_t wanted = buffers.size() + scalars + static_cast<size_t>(maps);
  auto refusal = [&](const std::string &clause) { return from.refusal(lineOf(function.getLoc()) + clause); };
  if (from.takesAll)
    return refusal("a function in MLIR has the interface \"plain\"");
  if (function.getNumArguments() != wanted || function.getNumResults() != 0)
    return refusal("'" + from.symbol + "' has " + std::to_string(function.getNumArguments()) + " arguments and " +
                   std::to_string(function.getNumResults()) + " results; a kernel has none of these, and here " +
                   std::to_string(buffers.size()) + " arguments for operands and results, " + std::to_string(scalars) +
                   " for scalars and " + std::to_string(maps) + " for maps");
  for (size_t i = 0; i < wanted; ++i) {
    Type type = function.getArgumentTypes()[i];
    bool isSize = i >= buffers.size() && i < buffers.size() + scalars;
    std::string what = i < buffers.size() ? buffers[i].first : isSize ? "a scalar" : "a map", problem;
    if (i < buffers.size())
      problem = problemOfBuffer(type, buffers[i].second);
    else if (isSize)
      problem = type.isIndex() || type.isInteger(64) ? "" : "it may be an index or an i64";
    else if (!isa<nvgpu::TensorMapDescriptorType>(type) && type != LLVM::LLVMPointerType::get(op.getContext()))
      problem = "it may be a !nvgpu.tensormap.descriptor or a !llvm.ptr";
    if (!problem.empty())
      return refusal("argument " + std::to_string(i) + " of '" + from.symbol + "' is " + textOf(type) + " for " + what +
                     ", and " + problem);
  }
  return Status::ok();
}

Status dmxc::cuda::checkTraps(const UserText &from, FunctionOpInterface function, int64_t block) {
  constexpr int64_t warpgroup = 128;
  std::string clause;
  function->walk([&](Operation *op) {
    std::string own;
    if (auto product = dyn_cast<nvgpu::WarpgroupMmaOp>(op); product && !product.getTransposeB())
      own = "nvgpu.warpgroup.mma goes along B as if its columns were neighbours, without transposeB too; write "
            "nvvm.wgmma.mma_async";
    else if (isa<nvgpu::WarpgroupMmaStoreOp>(op) && block > warpgroup)
      own = "nvgpu.warpgroup.mma.store counts the warps of a block, not of a warpgroup, and blocks have " +
            std::to_string(block) + " threads; store the numbers yourself";
    else if (auto load = dyn_cast<nvgpu::TmaAsyncLoadOp>(op); load && load.getPredicate())
      own = "nvgpu.tma.async.load with a predicate is inline assembly; put an scf.if around one without";
    if (!own.empty())
      clause = lineOf(op->getLoc()) + own;
    return own.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return clause.empty() ? Status::ok() : Status(from.refusal(clause));
}
