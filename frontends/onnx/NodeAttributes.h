//===- NodeAttributes.h - attributes of a node ------------------*- C++ -*-===//
#pragma once

#include "frontends/common/OperatorSet.h"

#include "reader/AttributeKinds.h"
#include "reader/TensorReader.h"

namespace dmxc::onnxfe {

/// A type, which nothing here reads.
struct TypeAttribute {};
/// One of a kind that no operator here has: lists of tensors, graphs or types.
struct OtherAttribute {};

/// An attribute as importing functions ask for it. Tensors and graphs of a file stay where they are until they are
/// asked for. Nothing: one without a type or a value, which files of IR version 1 have; it is whatever is asked for,
/// empty.
using NodeAttribute =
    std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, Tensor, const onnx::TensorProto *, const onnx::SparseTensorProto *,
                 const onnx::GraphProto *, TypeAttribute, OtherAttribute>;
using NodeAttributes = std::map<std::string, NodeAttribute>;

/// Nothing for one without a value, which is of any kind, or of a kind that no operator here has.
std::optional<AttributeKind> kindOf(const NodeAttribute &attribute);

NodeAttribute attributeOf(const onnx::AttributeProto &proto);
/// Of a node that another format has. Numbers are rounded as a file would hold them.
NodeAttribute attributeOf(const frontend::OperatorAttribute &attribute);

} // namespace dmxc::onnxfe
