//===- NodeContext.cpp - one ONNX node being imported ---------------------===//
#include "NodeContext.h"
#include "GraphImporter.h"
#include "frontends/common/ops/Require.h"

#include <algorithm>

namespace dmxc::onnxfe {

NodeContext::NodeContext(const OpRow &row, int64_t opset, std::string name, std::vector<Val> operands,
                         NodeAttributes attributes, std::vector<std::string> outputs, Emitter &e,
                         std::optional<NodePlace> place)
    : e(e), name(std::move(name)), opset(opset), row(row), operands(std::move(operands)),
      attributes(std::move(attributes)), outputs(std::move(outputs)), place(place) {}

//===--- Operands
//---------------------------------------------------------------===//

Val NodeContext::anyOperand(int i) const {
  if (!has(i))
    fail("op-operand", "operand " + std::to_string(i) + " is missing");
  return operands[i];
}

Val NodeContext::operand(int i) const {
  Val value = anyOperand(i);
  if (!value.isTensor())
    fail("op-dtype", "operand " + std::to_string(i) + " is a " + value.describe() + "; expected a tensor");
  return value;
}

Tensor NodeContext::constantOperand(int i, const char *what) const {
  Val value = operand(i);
  if (value.elements().is(0)) // nothing can be unknown about it
    return Tensor(value.dtype(), Shape(value.shape().begin(), value.shape().end()));
  if (!value.isConstant()) {
    if (value.hasSizes()) {
      std::string text;
      for (Dim size : value.sizes())
        text += (text.empty() ? "" : ", ") + size.str();
      failOpen("op-dynamic-dim",
               std::string("the ") + what + " (operand " + std::to_string(i) + ") depends on dims that " +
                   "are known at run time only: " + text,
               value.sizes());
    }
    std::vector<std::string> helps;
    if (!value.foldNote().empty())
      helps.push_back("it could not be computed at compile time: " + value.foldNote());
    fail("op-operand-not-constant",
         std::string("the ") + what + " (operand " + std::to_string(i) + ") must be known at compile time", helps);
  }
  return value.constant();
}

std::vector<int64_t> NodeContext::constantInts(int i, const char *what) const {
  Tensor tensor = constantOperand(i, what);
  if (!isInt(tensor.dtype()))
    fail("op-dtype", std::string("the ") + what + " (operand " + std::to_string(i) + ") must be integers, not " +
                         std::string(dtypeName(tensor.dtype())));
  std::vector<int64_t> values(tensor.numElements());
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = tensor.asInt(k);
  return values;
}

Dims NodeContext::knownSizes(int i, const char *what) const {
  Val value = operand(i);
  return value.hasSizes() ? value.sizes() : Dims(constantInts(i, what));
}

Dims NodeContext::sizes(int i, const char *what, const std::optional<std::vector<int64_t>> &implied,
                        std::optional<int64_t> length) {
  if (isConstant(i))
    return knownSizes(i, what);
  return implied ? Dims(impliedInts(i, what, implied)) : e.dimsOf(vector(i, what, length));
}

Dim NodeContext::size(int i, const char *what, std::optional<int64_t> implied) {
  Dims values = sizes(i, what, implied ? std::optional(std::vector{*implied}) : std::nullopt, 1);
  requireShape(values.size() == 1, std::string("the ") + what + " (operand " + std::to_string(i) +
                                       ") must be one number, not " + std::to_string(values.size()));
  return values.front();
}

bool NodeContext::isFromPytorch() const { return place && place->importer.isFromPytorch(); }

bool NodeContext::isState(int operand, int result) const {
  return place && place->scope.declared && has(operand) && wants(result) &&
         place->importer.isState(place->node.input(operand), outputs[result]);
}

void NodeContext::noteDifference(const char *row) const {
  if (place)
    place->importer.noteDifference(row, name);
}

std::optional<int64_t> NodeContext::declaredRank(int i) const {
  if (!place || !place->scope.ranks || i >= numResults())
    return std::nullopt;
  auto found = place->scope.ranks->find(outputs[i]);
  return found == place->scope.ranks->end() ? std::nullopt : std::optional<int64_t>(found->second);
}

/// Longer operands are data: no tensor has so many axes, no node so many results.
constexpr int64_t kMaxNumbers = 1024;

Val NodeContext::vector(int i, const char *what, std::optional<int64_t> length) {
  Val value = cast64(i);
  Dim count = value.elements();
  if (!count.isStatic() && length)
    count = *length;
  requireShape(count.isStatic() && value.rank() <= 1 && mayEqual(value.elements(), count),
               std::string("how many numbers the ") + what + " (operand " + std::to_string(i) +
                   ") has must be known at compile time");
  requireShape(*count.known() <= kMaxNumbers, std::string("the ") + what + " (operand " + std::to_string(i) +
                                                  ") has more than " + std::to_string(kMaxNumbers) + " numbers");
  return e.reshape(value, {count});
}

int64_t NodeContext::constantInt(int i, const char *what) const {
  std::vector<int64_t> values = constantInts(i, what);
  if (values.size() != 1)
    fail("op-shape", std::string("the ") + what + " (operand " + std::to_string(i) + ") must be one number, not " +
                         std::to_string(values.size()));
  return values.front();
}

double NodeContext::constantDouble(int i, const char *what) const {
  Tensor tensor = constantOperand(i, what);
  if (tensor.numElements() != 1)
    fail("op-shape", std::string("the ") + what + " (operand " + std::to_string(i) + ") must be one number, not " +
                         std::to_string(tensor.numElements()));
  return tensor.asDouble(0);
}

//===--- Attributes
//---------------------------------------------------------------===//

template <typename T> const T &NodeContext::typed(const char *name) const {
  auto found = attributes.find(name);
  if (found == attributes.end())
    fail("op-attribute", std::string("the attribute '") + name + "' is missing");
  static const T nothing{};
  if (std::holds_alternative<std::monostate>(found->second))
    return nothing;
  if (const T *value = std::get_if<T>(&found->second))
    return *value;
  fail("op-attribute", std::string("the attribute '") + name + "' must be " + describe(*kindOf(T())));
}

int64_t NodeContext::attrInt(const char *name) const { return typed<int64_t>(name); }
int64_t NodeContext::attrInt(const char *name, int64_t otherwise) const {
  return hasAttr(name) ? attrInt(name) : otherwise;
}

bool NodeContext::attrFlag(const char *name, bool otherwise) const {
  int64_t value = attrInt(name, otherwise);
  requireAttr(value == 0 || value == 1, std::string(name) + " must be 0 or 1, not " + std::to_string(value));
  return value == 1;
}

double NodeContext::attrFloat(const char *name, double otherwise) const {
  return hasAttr(name) ? typed<double>(name) : otherwise;
}

std::string NodeContext::attrString(const char *name) const { return typed<std::string>(name); }
std::string NodeContext::attrString(const char *name, const std::string &otherwise) const {
  return hasAttr(name) ? attrString(name) : otherwise;
}

std::optional<std::vector<int64_t>> NodeContext::attrInts(const char *name) const {
  if (!hasAttr(name))
    return std::nullopt;
  return typed<std::vector<int64_t>>(name);
}

std::vector<int64_t> NodeContext::attrInts(const char *name, std::vector<int64_t> otherwise) const {
  return attrInts(name).value_or(std::move(otherwise));
}

std::optional<std::vector<double>> NodeContext::attrFloats(const char *name) const {
  if (!hasAttr(name))
    return std::nullopt;
  return typed<std::vector<double>>(name);
}

std::optional<std::vector<std::string>> NodeContext::attrStrings(const char *name) const {
  if (!hasAttr(name))
    return std::nullopt;
  return typed<std::vector<std::string>>(name);
}

Val NodeContext::attrTensor(const char *name) const {
  if (auto found = attributes.find(name); found != attributes.end())
    if (const Tensor *tensor = std::get_if<Tensor>(&found->second))
      return e.stored(*tensor, "", 0, this->name);
  const onnx::TensorProto *proto = typed<const onnx::TensorProto *>(name);
  return storedTensor(name, proto ? *proto : onnx::TensorProto::default_instance());
}

Val NodeContext::attrSparseTensor(const char *name) const {
  const onnx::SparseTensorProto *proto = typed<const onnx::SparseTensorProto *>(name);
  return storedTensor(name, proto ? *proto : onnx::SparseTensorProto::default_instance());
}

template <typename Proto> Val NodeContext::storedTensor(const char *name, const Proto &proto) const {
  Result<StoredTensor> tensor = place->tensors.read(proto);
  if (!tensor)
    fail("onnx-tensor", std::string("the attribute '") + name + "' " + tensor.error().message);
  return e.stored(tensor->tensor, tensor->path, tensor->offset, this->name);
}

const onnx::GraphProto &NodeContext::attrGraph(const char *name) const {
  const onnx::GraphProto *graph = typed<const onnx::GraphProto *>(name);
  return graph ? *graph : onnx::GraphProto::default_instance();
}

DType NodeContext::attrType(const char *name) const {
  int64_t number = attrInt(name);
  std::optional<DType> type =
      number > INT32_MAX || number < 0 ? std::nullopt : dtypeOfOnnx(static_cast<int32_t>(number));
  if (!type)
    fail("op-dtype", std::string("the attribute '") + name + "' asks for " +
                         onnxTypeName(number > INT32_MAX || number < 0 ? -1 : static_cast<int32_t>(number)) +
                         ", which has no tensor meaning here");
  return *type;
}
DType NodeContext::attrType(const char *name, DType otherwise) const {
  return hasAttr(name) ? attrType(name) : otherwise;
}

//===--- Checks
//-------------------------------------------------------------------===//

void NodeContext::requireAttr(bool condition, const std::string &clause) const {
  frontend::requireAttr(condition, clause);
}

void NodeContext::requireShape(bool condition, const std::string &clause) const {
  frontend::requireShape(condition, clause);
}

int64_t NodeContext::normalizeAxis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    fail("op-rank", "the axis " + std::to_string(axis) + " is outside [-" + std::to_string(rank) + ", " +
                        std::to_string(rank) + ") of a tensor of rank " + std::to_string(rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> NodeContext::normalizeAxes(std::vector<int64_t> axes, int64_t rank) const {
  for (int64_t &axis : axes)
    axis = normalizeAxis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

//===--- Results
//------------------------------------------------------------------===//

void NodeContext::result(int i, Val value) {
  if (wants(i))
    produced[i] = std::move(value);
}

std::vector<Val> NodeContext::inlineGraph(const onnx::GraphProto &graph, const std::vector<Val> &inputs,
                                          const std::string &suffix) const {
  return place->importer.inlineGraph(graph, place->scope, inputs, name + suffix);
}

std::vector<Val> NodeContext::tryGraph(const onnx::GraphProto &graph, const std::string &suffix,
                                       std::vector<Diagnostic> &problems) const {
  return place->importer.tryGraph(graph, place->scope, name + suffix, problems);
}

void NodeContext::report(Diagnostic diagnostic) const { place->importer.report(std::move(diagnostic)); }

} // namespace dmxc::onnxfe
