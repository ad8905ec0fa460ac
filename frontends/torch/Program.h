//===- Program.h - an exported program as its JSON has it -------*- C++ -*-===//
//
// The structures of torch's export schema, major version 8, as far as a compiler needs them. Unknown fields are
// ignored, unknown tags of a union are errors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/DType.h"
#include "dmxc/Support/Result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::torchfe {

/// A size: a number, or an expression over symbols as sympy writes it.
struct SymInt {
  int64_t number = 0;
  std::string expression; ///< "" for a number
};

/// What the file says of a tensor.
struct TensorMeta {
  int64_t dtype = 0; ///< torch's ScalarType in this schema
  std::vector<SymInt> sizes, strides;
  SymInt offset;
  int64_t layout = 7;
};

struct Graph;

/// One element of an argument: nothing, the name of a value, or a literal.
struct Element {
  enum class Kind { None, Name, Int, Float, Bool, Text };
  Kind kind = Kind::None;
  std::string text; ///< of a name or a string
  int64_t integer = 0;
  double number = 0;
};

/// An argument of a node or a signature.
struct Argument {
  /// Ignored: layouts, memory formats and devices mean nothing here. Refused: tags that have no tensor meaning; of an
  /// operator the name is kept.
  enum class Kind { None, Tensor, Int, Float, Bool, String, Type, Ignored, Graph, Refused };
  Kind kind = Kind::None;
  bool list = false;
  std::vector<Element> elements; ///< one unless it is a list
  std::shared_ptr<const torchfe::Graph> graph;
  std::string tag; ///< as written
};

struct NamedArgument {
  std::string name;
  Argument value;
};

struct Node {
  std::string target, name;
  std::vector<NamedArgument> inputs;
  std::vector<Argument> outputs;
  std::string stackTrace, module; ///< where the exporter met it: Python's stack, the innermost module's path
};

struct Graph {
  std::vector<Argument> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, TensorMeta> tensors;
};

struct InputSpec {
  /// Token: what orders effects; it has no value, and nothing that is imported reads it.
  enum class Kind { User, Parameter, Buffer, Constant, Literal, Token };
  Kind kind;
  Argument argument;      ///< what the graph calls it
  std::string name;       ///< of the parameter, buffer or constant
  bool persistent = true; ///< of a buffer
};

struct OutputSpec {
  /// Token: of an input that is one.
  enum class Kind {
    User,
    Loss,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    ParameterGradient,
    InputGradient,
    Token
  };
  Kind kind;
  Argument argument;
  std::string name; ///< of the buffer, parameter or input
};

/// Bounds of a symbol; nothing where the file leaves them open.
struct Range {
  std::optional<int64_t> min, max;
};

struct Program {
  Graph graph;
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<std::string> outputLabels; ///< of the user's outputs, where the file has a tree for them
  std::map<std::string, Range> ranges;
  std::string torchVersion;
};

/// Reads the JSON of an exported program. `where` names the record in messages.
Result<Program> readProgram(std::string_view text, const std::string &where);

/// The payload table of an archive: name -> where its bytes are and how they are seen.
struct PayloadConfig {
  std::string file;
  bool pickled = false;
  TensorMeta meta;
};
Result<std::map<std::string, PayloadConfig>> readPayloadConfig(std::string_view text, const std::string &where);

/// ScalarType of the schema as a DType; nothing for complex and unknown types.
std::optional<DType> dtypeOfSchema(int64_t type);
/// The same of the parts of a complex type.
std::optional<DType> dtypeOfComplexParts(int64_t type);
/// The same of c10's numbers, which torch-mlir and the operators' integer arguments use.
std::optional<DType> dtypeOfC10(int64_t type);
/// "complex64", "type 99": for messages.
std::string schemaTypeName(int64_t type);

} // namespace dmxc::torchfe
