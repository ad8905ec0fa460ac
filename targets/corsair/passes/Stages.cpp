//===- Stages.cpp - the stages of phase schedule --------------------------===//
#include "Passes.h"

#include "dmxc/Dialect/Transform/Passes.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace dmxc;

static constexpr TargetStage stages[] = {
    {"formats", "kernels", "functions of tensors", "number formats: block_fp into products, f16 elsewhere",
     [](OpPassManager &pm, const TargetBackend &) {
       pm.addPass(createKernelFunctions());
       pm.addPass(createAssignFormats());
     }},
    {"tiles", "tensors", "loops over tiles", "which loop of a product is outside, what quads gather",
     [](OpPassManager &pm, const TargetBackend &) { pm.addNestedPass<func::FuncOp>(createTileProducts()); }},
    {"buffers", "tensors", "memrefs", "which buffer each value has, and as what it is looked at",
     [](OpPassManager &pm, const TargetBackend &) { pm.addNestedPass<func::FuncOp>(createBufferize()); }},
    {"fused", "memrefs", "memrefs", "what is computed of a product's tiles before they are stored",
     [](OpPassManager &pm, const TargetBackend &) {
       pm.addNestedPass<func::FuncOp>(createFuseEpilogues());
       pm.addNestedPass<func::FuncOp>(transform::createAffineTileScalrep());
       pm.addNestedPass<func::FuncOp>(createDropUnread());
     },
     1},
    {"array", "products of tiles", "lldmir.matmul", "the cores of a slice that add up a sum",
     [](OpPassManager &pm, const TargetBackend &) { pm.addNestedPass<func::FuncOp>(createLowerTiles()); }},
    {"spmd", "functions", "kernels over quads", "each quad's part of an op",
     [](OpPassManager &pm, const TargetBackend &) { pm.addPass(createOutlineSpmd()); }},
    {"bands", "whole scores", "loops over 64 of their rows",
     "how many rows of scores are there at once, which rows cross while others are computed",
     [](OpPassManager &pm, const TargetBackend &) {
       pm.addPass(createBandRows());
       pm.addPass(createBandTransfers());
     }},
};

ArrayRef<TargetStage> dmxc::stagesCorsairTarget() { return stages; }
