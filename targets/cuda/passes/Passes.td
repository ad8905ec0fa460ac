//===- Passes.td - from kernels to how they are made ------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def CudaPipelines : Pass<"cuda-pipelines", "::mlir::ModuleOp"> {
  let summary = "How the kernels of products are made: slots, roles of warpgroups, walks, as a cuda.pipeline";
  let description = [{
    Of each kernel of tensor cores, by the tile that its strategy has, which is the pipeline's from here on. A kernel that has one already is left as it is.
  }];
  let dependentDialects = ["::dmxc::cuda::CudaDialect"];
}
