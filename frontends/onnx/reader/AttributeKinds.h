//===- AttributeKinds.h - what kind of value an attribute has ---*- C++ -*-===//
#pragma once

#include <cstdint>
#include <string_view>

namespace dmxc::onnxfe {

enum class AttributeKind : uint8_t { Int, Float, String, Ints, Floats, Strings, Tensor, SparseTensor, Graph, Type };

/// "an integer", for messages.
const char *describe(AttributeKind kind);
/// "int", as rows of operators and the printed table have it.
const char *nameOf(AttributeKind kind);
/// The kind of which name it is.
AttributeKind kindNamed(std::string_view name);
/// What attributes of this name are in the definitions of nearly all operators that have one.
AttributeKind usualKind(std::string_view attribute);

} // namespace dmxc::onnxfe
