//===- OpTable.h - one row per (op, since-version) --------------*- C++ -*-===//
#pragma once

#include "reader/AttributeKinds.h"

#include "dmxc/Support/DType.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::onnxfe {

class NodeContext;
using ImportFn = void (*)(NodeContext &);

/// Sets of element types, as bits of 1 << DType.
using TypeSet = uint32_t;
constexpr TypeSet bitOf(DType type) { return TypeSet(1) << static_cast<unsigned>(type); }
namespace types {
inline constexpr TypeSet Bool = bitOf(DType::Bool);
inline constexpr TypeSet Signed =
    bitOf(DType::I2) | bitOf(DType::I4) | bitOf(DType::I8) | bitOf(DType::I16) | bitOf(DType::I32) | bitOf(DType::I64);
inline constexpr TypeSet Unsigned =
    bitOf(DType::U2) | bitOf(DType::U4) | bitOf(DType::U8) | bitOf(DType::U16) | bitOf(DType::U32) | bitOf(DType::U64);
inline constexpr TypeSet Int = Signed | Unsigned;
inline constexpr TypeSet Float = bitOf(DType::F16) | bitOf(DType::BF16) | bitOf(DType::F32) | bitOf(DType::F64);
inline constexpr TypeSet Narrow = bitOf(DType::F8E4M3FN) | bitOf(DType::F8E4M3FNUZ) | bitOf(DType::F8E5M2) |
                                  bitOf(DType::F8E5M2FNUZ) | bitOf(DType::F4E2M1);
inline constexpr TypeSet Number = Int | Float;
inline constexpr TypeSet Index = bitOf(DType::I32) | bitOf(DType::I64);
inline constexpr TypeSet Byte = bitOf(DType::U8) | bitOf(DType::I8);
inline constexpr TypeSet Any = ~TypeSet(0);
} // namespace types
/// "f16 bf16 f32", or "any".
std::string typeSetName(TypeSet set);

/// How one operator is imported from a version on.
struct OpRow {
  const char *name;
  int since;
  const char *signature;             ///< of its definition, see OpRows
  ImportFn import;                   ///< null: refused, `note` says why
  const char *attributes;            ///< see OpRows
  std::vector<TypeSet> operandTypes; ///< per operand; the last one counts for all that follow; empty = any
  const char *note;                  ///< a limit of the import, or the reason of the refusal
  const char *domain = "";
};

/// A family of rows: the same import from several versions on.
///
/// The signature is the definition's: a sign for each operand that it has, optional ones too, and behind '>' the most
/// results. Operands of the same letter have one type, a dot has a type of its own; '*' behind a sign: any number of
/// such operands; instead of results: any number. "TT.>1", "T*>1", ".>*".
///
/// `attributes` are those that the definition has, "axis,keepdims", with their kind where it is not the usual one of
/// the name: "p=float".
struct OpRows {
  const char *name;
  std::vector<int> since;
  const char *signature;
  ImportFn import;
  const char *attributes = "";
  std::vector<TypeSet> operandTypes = {};
  const char *note = "";
  const char *domain = "";
};

/// All operators; built once, immutable.
class OpTable {
public:
  static const OpTable &get();
  /// The row with the highest since-version <= opset; null when there is none.
  const OpRow *find(std::string_view domain, std::string_view name, int64_t opset) const;
  /// True if some version of the operator is known.
  bool knows(std::string_view domain, std::string_view name) const;
  /// The first version of a known operator.
  int firstVersion(std::string_view domain, std::string_view name) const;
  /// Nearest known name, for "did you mean".
  std::string nearest(const std::string &name) const;
  const std::vector<OpRow> &rows() const { return all; }

private:
  OpTable();
  void add(const std::vector<OpRows> &family);
  std::vector<OpRow> all; ///< sorted by domain, name, since
};

/// The kind of an attribute; nothing when the operator has none of this name.
std::optional<AttributeKind> attributeKind(const OpRow &row, std::string_view name);
/// The names of its attributes, "axis, keepdims".
std::string attributeNames(const OpRow &row);
/// The most operands and results that the definition has; SIZE_MAX when there is no most.
size_t mostOperands(const OpRow &row);
size_t mostResults(const OpRow &row);
/// The type variable of an operand; '.' when it shares its type with no other.
char typeVariable(const OpRow &row, size_t operand);

// The families; each is defined in ops/<Family>.cpp.
std::vector<OpRows> elementwiseOps();
std::vector<OpRows> activationOps();
std::vector<OpRows> logicOps();
std::vector<OpRows> shapeOps();
std::vector<OpRows> sliceOps();
std::vector<OpRows> gatherOps();
std::vector<OpRows> dataDependentOps();
std::vector<OpRows> generatorOps();
std::vector<OpRows> reduceOps();
std::vector<OpRows> linearAlgebraOps();
std::vector<OpRows> einsumOps();
std::vector<OpRows> convolutionOps();
std::vector<OpRows> poolOps();
std::vector<OpRows> normOps();
std::vector<OpRows> lossOps();
std::vector<OpRows> quantOps();
std::vector<OpRows> resizeOps();
std::vector<OpRows> recurrentOps();
std::vector<OpRows> signalOps();
std::vector<OpRows> imageOps();
std::vector<OpRows> roiOps();
std::vector<OpRows> maxRoiPoolOps();
std::vector<OpRows> attentionOps();
std::vector<OpRows> linearAttentionOps();
std::vector<OpRows> mlOps();
std::vector<OpRows> mlFeatureOps();
std::vector<OpRows> mlLinearOps();
std::vector<OpRows> treeOps();
std::vector<OpRows> sequenceOps();
std::vector<OpRows> optionalOps();
std::vector<OpRows> controlOps();
std::vector<OpRows> refusedOps();

} // namespace dmxc::onnxfe
