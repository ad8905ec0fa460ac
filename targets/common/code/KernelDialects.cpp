//===- KernelDialects.cpp - what kernels are made of -------------------------===//

#include "KernelDialects.h"

#include "FloatLowering.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void dmxc::kernels::registerKernelDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
}

void dmxc::kernels::loadKernelDialects(MLIRContext &context) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  context.appendDialectRegistry(registry);
  // Everything a pass below might ask for, so that no thread loads a dialect later.
  context.loadAllAvailableDialects();
}

LogicalResult dmxc::kernels::lowerToLLVMDialect(ModuleOp module, NarrowFloats has) {
  PassManager passes(module.getContext());
  passes.enableVerifier(false); // once at the end: after each pass it takes longer than some of them
  // Of loops as regions there are no blocks to simplify.
  GreedyRewriteConfig rewriting;
  rewriting.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  passes.addPass(createCanonicalizerPass(rewriting));
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
  // Few processors have arithmetic on 16-bit floats, and none of it is used: compute in f32.
  arith::ArithEmulateUnsupportedFloatsOptions narrow;
  narrow.sourceTypeStrs = {"f16", "bf16"};
  narrow.targetTypeStr = "f32";
  passes.addPass(arith::createArithEmulateUnsupportedFloats(narrow));
  passes.addPass(createFloatLoweringPass(has));
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertToLLVMPass()); // of all other dialects at once
  passes.addPass(createReconcileUnrealizedCastsPass());
  return success(succeeded(passes.run(module)) && succeeded(mlir::verify(module)));
}
