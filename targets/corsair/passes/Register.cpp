//===- Register.cpp - the passes and dialects of the stages ---------------===//
#include "Passes.h"

#include "targets/corsair/dialect/Corsair/Corsair.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace dmxc {
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace dmxc

void dmxc::registerCorsairPasses(mlir::DialectRegistry &registry) {
  registry.insert<dmir::DMIRDialect, dlir::DLIRDialect, affine_ext::AffineExtDialect, corsair::engine::CorsairDialect,
                  lldmir::LLDMIRDialect, mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::gpu::GPUDialect,
                  mlir::memref::MemRefDialect, mlir::tensor::TensorDialect>();
  registerCorsairPasses();
}
