//===- ConstantData.h - bytes of DMIR constants -----------------*- C++ -*-===//
//
// The one place that knows the three forms of a constant's value (dense,
// dense_resource, #dmir.file) and how element types map to dmxc::DType.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace dmxc::dmir {

/// Element type of a DMIR tensor as a DType; nullopt for types DMIR does not have.
std::optional<DType> dtypeOf(mlir::Type elementType);
mlir::Type elementTypeOf(DType type, mlir::MLIRContext *context);
/// The static tensor type of a host tensor.
mlir::RankedTensorType typeOf(const Tensor &tensor, mlir::MLIRContext *context);

/// How a static tensor type is held by the host: as itself; BFP32_1 as f32; blocks as a row of u8 that is their wire
/// format. nullopt for other types.
struct HostForm {
  DType dtype;
  Shape shape;
};
std::optional<HostForm> hostFormOf(mlir::Type type);

/// The bytes of a constant's value. dense_resource and #dmir.file are views (the file is mapped once a
/// context and stays mapped while a Tensor refers to it); dense is copied. Fails on a missing or short file.
Result<Tensor> constantTensor(mlir::Attribute value);
/// The tensor of a value defined by dmir.constant; nullopt for other values, or when its bytes cannot be had.
std::optional<Tensor> constantTensor(mlir::Value value);
/// True when the value is defined by dmir.constant.
bool isConstant(mlir::Value value);
/// True for a constant matrix of floats whose rows some op gathers.
bool isTable(mlir::Value value);

/// A constant attribute of `type` (a static type of the tensor's shape, or one the tensor is the host form of; may
/// carry an encoding): dense up to kInlineElements elements, else a dense_resource that shares the tensor's bytes.
mlir::TypedAttr constantAttr(const Tensor &tensor, mlir::RankedTensorType type);
mlir::TypedAttr constantAttr(const Tensor &tensor, mlir::MLIRContext *context);
inline constexpr int64_t kInlineElements = 64;

} // namespace dmxc::dmir
