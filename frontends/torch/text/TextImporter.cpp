//===- TextImporter.cpp - torch-dialect text to DMIR ----------------------===//
#include "TextImporter.h"
#include "../AtenContext.h"
#include "../InputShapes.h"
#include "../KernelNodes.h"
#include "../ProgramFunction.h"
#include "../ProgramImporter.h"
#include "TextDialect.h"
#include "TextTypes.h"
#include "dmxc/Dialect/DMIR/Text.h"
#include "frontends/common/OperatorSet.h"

#include <algorithm>

using namespace mlir;

namespace dmxc::torchfe {
namespace {

/// The number, of a signed type too; 0 where 64 bits do not hold it.
int64_t integerOf(IntegerAttr attr) { return attr.getValue().trySExtValue().value_or(0); }

/// [1 : si64, 2 : si64] or strings.
frontend::OperatorAttribute listAttribute(ArrayAttr array) {
  std::vector<int64_t> numbers;
  std::vector<double> reals;
  std::vector<std::string> strings;
  for (Attribute item : array)
    if (auto number = dyn_cast<IntegerAttr>(item))
      numbers.push_back(integerOf(number));
    else if (auto real = dyn_cast<FloatAttr>(item))
      reals.push_back(real.getValueAsDouble());
    else if (auto string = dyn_cast<StringAttr>(item))
      strings.push_back(string.str());
  if (!strings.empty())
    return strings;
  return reals.empty() ? frontend::OperatorAttribute(numbers) : frontend::OperatorAttribute(reals);
}

/// `torch.aten.mul.int` and its kind as host scalar operators; "" for others.
std::string scalarOperator(StringRef name) {
  static const std::pair<const char *, const char *> table[] = {
      {"add.int", "_operator.add"},        {"sub.int", "_operator.sub"},
      {"mul.int", "_operator.mul"},        {"floordiv.int", "_operator.floordiv"},
      {"remainder.int", "_operator.mod"},  {"neg.int", "_operator.neg"},
      {"div.int", "_operator.truediv"},    {"eq.int", "_operator.eq"},
      {"ne.int", "_operator.ne"},          {"lt.int", "_operator.lt"},
      {"le.int", "_operator.le"},          {"gt.int", "_operator.gt"},
      {"ge.int", "_operator.ge"},          {"add.float_int", "_operator.add"},
      {"sub.float", "_operator.sub"},      {"mul.float", "_operator.mul"},
      {"mul.float_int", "_operator.mul"},  {"mul.int_float", "_operator.mul"},
      {"div.float", "_operator.truediv"},  {"neg.float", "_operator.neg"},
      {"sqrt.int", "torch.sym_sqrt"},      {"Int.Scalar", "torch.sym_int"},
      {"Int.float", "torch.sym_int"},      {"Int.bool", "torch.sym_int"},
      {"Float.Scalar", "torch.sym_float"}, {"__and__.bool", "_operator.and_"},
      {"__or__.bool", "_operator.or_"},    {"__not__", "torch.sym_not"}};
  for (const auto &[known, target] : table)
    if (name == known)
      return target;
  return "";
}

bool isShapeBinding(Operation *op) { return op->getName().getStringRef() == "torch.bind_symbolic_shape"; }

class TextImport {
public:
  TextImport(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
      : context(context), options(options), diagnostics(diagnostics) {}
  std::optional<ImportedModel> run();

private:
  void error(const std::string &id, const std::string &text, const std::string &node = "",
             ErrorKind kind = ErrorKind::Model) {
    diagnostics.report({Severity::Error, id, options.path, node, text, kind, {}});
  }
  bool parse();
  bool chooseFunction();
  bool describeInputs();
  bool addOutputs();

  void importOp(Operation &op);
  std::vector<Arg> evaluate(Operation &op);
  std::vector<Arg> call(StringRef target, const std::vector<Arg> &operands);
  std::vector<Arg> callOnnx(Operation &op, StringRef name, const std::vector<Arg> &operands);
  Arg constant(Operation &op);
  Arg list(Operation &op, const std::vector<Arg> &operands);
  void checkResult(Value result, const Arg &value, const std::string &name);
  std::string nameOf(Operation &op) const;

  MLIRContext &context;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  OwningOpRef<ModuleOp> text;
  func::FuncOp source;
  std::vector<ModelInput> inputs;
  SymbolBounds bounds;
  std::map<std::string, Dim> symbols; ///< what those of the text are
  std::unique_ptr<ProgramFunction> function;
  DenseMap<Value, Arg> values;
};

bool TextImport::parse() {
  context.loadDialect<TextDialect, func::FuncDialect>();
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &message) {
    std::string file = options.path;
    if (auto place = dyn_cast<FileLineColLoc>(message.getLocation()))
      file += ":" + std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn());
    bool isError = message.getSeverity() == DiagnosticSeverity::Error;
    diagnostics.report(
        {isError ? Severity::Error : Severity::Warning, "mlir-text", file, "", message.str(), ErrorKind::Model, {}});
    return success();
  });
  text = dmir::parseTextFile(options.path, context);
  return static_cast<bool>(text);
}

bool TextImport::chooseFunction() {
  std::vector<std::string> names;
  for (auto candidate : text->getOps<func::FuncOp>()) {
    names.push_back(candidate.getSymName().str());
    if (options.entry.empty() ? !source : candidate.getSymName() == options.entry)
      source = candidate;
  }
  if (!source || source.isExternal() || !llvm::hasSingleElement(source.getBody()) ||
      (options.entry.empty() && names.size() != 1)) {
    std::string text =
        options.entry.empty() ? "expected one func.func with one block" : "there is no function @" + options.entry;
    error("entry-unknown", text, "", options.entry.empty() ? ErrorKind::Model : ErrorKind::Usage);
    return false;
  }
  return true;
}

std::string TextImport::nameOf(Operation &op) const {
  if (std::string name = dmir::nodeName(op.getLoc()); !name.empty())
    return name;
  if (auto place = op.getLoc()->findInstanceOf<FileLineColLoc>())
    return "line " + std::to_string(place.getLine());
  return op.getName().getStringRef().str();
}

/// Dims of the arguments: numbers, symbols that the text binds, or symbols of their own.
bool TextImport::describeInputs() {
  for (BlockArgument argument : source.getArguments()) {
    std::string name = "arg" + std::to_string(argument.getArgNumber());
    std::optional<TensorType> type = tensorType(argument.getType());
    if (!type) {
      error("mlir-type", "argument " + std::to_string(argument.getArgNumber()) + " is " + typeText(argument.getType()) +
                             "; expected a !torch.vtensor<[...],...> of a known rank");
      return false;
    }
    ModelInput input{name, type->type, {}};
    for (size_t i = 0; i < type->dims.size(); ++i) {
      input.dims.push_back(type->dims[i] < 0 ? Dim::symbol(name + "_d" + std::to_string(i)) : Dim(type->dims[i]));
    }
    for (Operation *user : argument.getUsers()) {
      auto map = isShapeBinding(user) ? user->getAttrOfType<AffineMapAttr>(kTextValue) : AffineMapAttr();
      if (!map || map.getAffineMap().getNumResults() != input.dims.size())
        continue;
      SmallVector<Dim> symbols;
      for (Value symbol : user->getOperands().drop_front()) {
        Operation *definition = symbol.getDefiningOp();
        auto text = definition ? definition->getAttrOfType<StringAttr>(kTextValue) : StringAttr();
        symbols.push_back(Dim::symbol(text ? text.getValue() : StringRef("s")));
      }
      for (size_t i = 0; i < input.dims.size(); ++i)
        if (std::optional<Dim> dim = dimOf(map.getAffineMap().getResult(i), symbols); dim && type->dims[i] < 0)
          input.dims[i] = *dim;
    }
    inputs.push_back(std::move(input));
  }
  source.walk([&](Operation *op) {
    auto name =
        op->getName().getStringRef() == "torch.symbolic_int" ? op->getAttrOfType<StringAttr>(kTextValue) : StringAttr();
    if (!name)
      return;
    auto number = [&](StringRef key, int64_t otherwise) {
      auto attr = op->getAttrOfType<IntegerAttr>(key);
      return attr ? integerOf(attr) : otherwise;
    };
    int64_t max = number("max_val", INT64_MAX);
    bounds[name.str()] = {std::max<int64_t>(number("min_val", 0), 0), max >= int64_t(1) << 62 ? INT64_MAX : max};
  });
  auto resolved = resolveInputs(std::move(inputs), bounds, options, diagnostics);
  if (!resolved)
    return false;
  inputs = std::move(resolved->inputs);
  symbols = std::move(resolved->symbols);
  return true;
}

//===--- Operators -----------------------------------------------------------------===//

Arg TextImport::constant(Operation &op) {
  Attribute value = op.getAttr(kTextValue);
  if (auto flag = dyn_cast_or_null<BoolAttr>(value))
    return Arg::flag(flag.getValue());
  if (auto number = dyn_cast_or_null<IntegerAttr>(value))
    return Arg::integer(integerOf(number));
  if (auto number = dyn_cast_or_null<FloatAttr>(value))
    return Arg::number(number.getValueAsDouble());
  if (auto string = dyn_cast_or_null<StringAttr>(value))
    return Arg::string(string.str());
  return Arg::none();
}

Arg TextImport::list(Operation &op, const std::vector<Arg> &operands) {
  Arg result;
  result.list = true;
  auto opaque = op.getNumResults() == 1 ? dyn_cast<OpaqueType>(op.getResult(0).getType()) : OpaqueType();
  if (!opaque)
    fail("op-argument", "the result is no list");
  StringRef type = opaque.getTypeData();
  result.kind = type.contains("tensor")  ? Arg::Kind::Tensor
                : type.contains("float") ? Arg::Kind::Float
                : type.contains("bool")  ? Arg::Kind::Bool
                                         : Arg::Kind::Int;
  for (const Arg &item : operands) {
    if (item.list || (item.kind != result.kind && !item.isNone()))
      fail("op-argument", "a list of " + typeText(op.getResult(0).getType()) + " has " + item.describe());
    if (item.isNone())
      result.tensors.push_back(Val());
    result.tensors.insert(result.tensors.end(), item.tensors.begin(), item.tensors.end());
    result.ints.append(item.ints.begin(), item.ints.end());
    result.numbers.insert(result.numbers.end(), item.numbers.begin(), item.numbers.end());
  }
  return result;
}

/// The items of a list, each alone.
std::vector<Arg> unpacked(const Arg &list, size_t count) {
  size_t length = std::max({list.tensors.size(), list.ints.size(), list.numbers.size()});
  if (!list.list || length != count)
    fail("op-argument", "the list has another length");
  std::vector<Arg> items;
  for (size_t i = 0; i < count; ++i)
    if (i < list.tensors.size())
      items.push_back(list.tensors[i] ? Arg::tensor(list.tensors[i]) : Arg::none());
    else if (i < list.ints.size())
      items.push_back(Arg::integer(list.ints[i]));
    else
      items.push_back(list.kind == Arg::Kind::Bool ? Arg::flag(list.numbers[i] != 0) : Arg::number(list.numbers[i]));
  return items;
}

/// An operator of the ATen table; operands stand in the order of its signature.
std::vector<Arg> TextImport::call(StringRef target, const std::vector<Arg> &operands) {
  std::string name = target.str();
  if (name.find('.') == std::string::npos)
    name += ".default";
  if (std::string scalar = scalarOperator(target); !scalar.empty())
    return {*importSymbolic(function->emitter(), scalar, operands)};
  const AtenOp *op = AtenTable::get().find(name);
  if (!op) {
    std::string near = AtenTable::get().nearest(name);
    fail("op-unknown", "the operator is unknown",
         near.empty() ? std::vector<std::string>() : std::vector{"did you mean '" + near + "'?"});
  }
  if (!op->row.import)
    fail("op-unsupported", op->row.note);
  const std::vector<Parameter> &parameters = op->schema.parameters;
  if (operands.size() > parameters.size())
    fail("op-argument", "there are " + std::to_string(operands.size()) + " operands for " + op->row.signature);
  std::vector<Arg> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    bool given = i < operands.size();
    if (!given && !parameters[i].otherwise && !parameters[i].optional)
      fail("op-argument", "the operand '" + parameters[i].name + "' is missing");
    arguments.push_back(given ? coerce(parameters[i], operands[i]) : parameters[i].otherwise.value_or(Arg::none()));
  }
  AtenContext c(*op, std::move(arguments), name, function->emitter());
  op->row.import(c);
  return c.results();
}

std::vector<Arg> TextImport::callOnnx(Operation &op, StringRef name, const std::vector<Arg> &operands) {
  if (op.getNumRegions())
    fail("op-unsupported", "control flow of ONNX is not known in this text");
  auto known = options.operators.find("onnx");
  if (known == options.operators.end())
    fail("op-unsupported", "this build has no ONNX front end, whose operator it is",
         {"configure with onnx among DMXC_FRONTENDS, or lower the text to torch.aten operators"});
  frontend::OperatorAttributes attributes;
  for (NamedAttribute attribute : op.getAttrs()) {
    StringRef key = attribute.getName();
    if (!key.consume_front("torch.onnx."))
      continue;
    if (auto elements = dyn_cast<ElementsAttr>(attribute.getValue()))
      attributes[key.str()] = literalOf(elements);
    else if (auto number = dyn_cast<IntegerAttr>(attribute.getValue()))
      attributes[key.str()] = integerOf(number);
    else if (auto real = dyn_cast<FloatAttr>(attribute.getValue()))
      attributes[key.str()] = real.getValueAsDouble();
    else if (auto string = dyn_cast<StringAttr>(attribute.getValue()))
      attributes[key.str()] = string.str();
    else if (auto array = dyn_cast<ArrayAttr>(attribute.getValue()))
      attributes[key.str()] = listAttribute(array);
    else
      fail("op-attribute", "the attribute '" + key.str() + "' has an unknown form");
  }
  std::vector<Val> tensors;
  for (const Arg &operand : operands) {
    if (!operand.isNone() && (operand.kind != Arg::Kind::Tensor || operand.list))
      fail("op-argument", "an operand is " + operand.describe() + ", not a tensor");
    tensors.push_back(operand.isNone() ? Val() : operand.tensors[0]);
  }
  auto opset = source->getAttrOfType<IntegerAttr>("torch.onnx_meta.opset_version");
  std::vector<Arg> results;
  for (const Val &value :
       known->second->import(function->emitter(), name.str(), std::move(tensors), attributes, op.getNumResults(),
                             opset ? std::optional(integerOf(opset)) : std::nullopt))
    results.push_back(value ? Arg::tensor(value) : Arg::none());
  return results;
}

std::vector<Arg> TextImport::evaluate(Operation &op) {
  StringRef name = op.getName().getStringRef();
  std::vector<Arg> operands;
  for (Value operand : op.getOperands())
    operands.push_back(values.lookup(operand));
  if (name.starts_with("torch.constant."))
    return {constant(op)};
  if (name.ends_with("tensor.literal")) {
    auto literal = dyn_cast_or_null<ElementsAttr>(op.getAttr(kTextValue));
    if (!literal)
      fail("torch-tensor", "the literal is no tensor");
    return {Arg::tensor(function->emitter().constant(literalOf(literal)))};
  }
  if (name == "torch.symbolic_int") {
    auto symbol = op.getAttrOfType<StringAttr>(kTextValue);
    auto known = symbol ? symbols.find(symbol.str()) : symbols.end();
    if (known != symbols.end())
      return {Arg::integer(known->second)};
    if (!op.use_empty() && !llvm::all_of(op.getUsers(), isShapeBinding))
      fail("op-dynamic-dim", "no size of an argument tells this symbol");
    return {Arg::integer(0)}; // only types mention it
  }
  if (name == "torch.bind_symbolic_shape" || name == "torch.runtime.assert")
    return {};
  if (name == "torch.prim.ListConstruct" || name == "torch.prim.TupleConstruct")
    return {list(op, operands)};
  if (name == "torch.prim.ListUnpack" || name == "torch.prim.TupleUnpack") {
    return unpacked(operands.empty() ? Arg() : operands[0], op.getNumResults());
  }
  if (name == "torch.tensor_static_info_cast" || name == "torch.derefine" || name == "torch.copy.to_vtensor")
    return operands.empty() ? std::vector<Arg>() : std::vector<Arg>{operands[0]};
  StringRef target = name;
  if (auto callee = op.getAttrOfType<StringAttr>(kTextCallee); callee && name == "torch.operator")
    target = callee.getValue();
  if (const dmir::KernelDecl *kernel = kernelOf(function->emitter(), target)) {
    std::vector<std::pair<std::string, Arg>> arguments;
    for (const Arg &operand : operands)
      arguments.emplace_back("", operand);
    return torchfe::callKernel(function->emitter(), nameOf(op), *kernel, arguments);
  }
  if (StringRef onnx = target; onnx.consume_front("onnx."))
    return callOnnx(op, onnx, operands);
  if (target == "torch.prims.convert_element_type")
    return call("to.dtype", operands);
  if (!target.consume_front("torch.aten."))
    fail("op-unknown", "the operator is none of torch's ATen", {"--kernels FILE gives it a kernel of your own"});
  return call(target, operands);
}

/// A warning where the text says another type.
void TextImport::checkResult(Value result, const Arg &value, const std::string &name) {
  std::optional<TensorType> type = tensorType(result.getType());
  if (!type || value.kind != Arg::Kind::Tensor || value.tensors.size() != 1 || !value.tensors[0] ||
      value.tensors[0].isPoison())
    return;
  const Val &tensor = value.tensors[0];
  bool good = tensor.dtype() == type->type && tensor.rank() == static_cast<int64_t>(type->dims.size());
  for (size_t i = 0; good && i < type->dims.size(); ++i)
    good = type->dims[i] < 0 || tensor.extent(i).valueOr(type->dims[i]) == type->dims[i];
  if (good)
    return;
  Diagnostic differs{Severity::Warning,
                     "torch-meta",
                     options.path,
                     name,
                     "its result is not what the text says",
                     ErrorKind::Model,
                     {}};
  diagnostics.report(std::move(
      differs.note("the text says " + typeText(result.getType()) + ", the operator gives " + tensor.describe())));
}

void TextImport::importOp(Operation &op) {
  std::string name = nameOf(op);
  function->emitter().setNode(name);
  function->nodes.insert(name);
  auto poison = [&] {
    for (Value result : op.getResults())
      values[result] = Arg::tensor(Val::poison());
  };
  for (Value operand : op.getOperands())
    for (const Val &tensor : values.lookup(operand).tensors)
      if (tensor && tensor.isPoison())
        return poison();
  try {
    std::vector<Arg> results = evaluate(op);
    results.resize(std::max<size_t>(results.size(), op.getNumResults()));
    for (auto [i, result] : llvm::enumerate(op.getResults())) {
      bool nothing = results[i].isNone() || (results[i].tensors.size() == 1 && !results[i].tensors[0]);
      if (nothing && !result.use_empty() && op.getName().getStringRef() != "torch.constant.none" &&
          op.getName().getStringRef() != "torch.derefine")
        fail("op-unsupported", "result " + std::to_string(i) + " is not available from this operator");
      checkResult(result, results[i], name);
      values[result] = std::move(results[i]);
    }
  } catch (const NodeFailure &failure) {
    std::string what = op.getName().getStringRef().str();
    if (auto callee = op.getAttrOfType<StringAttr>(kTextCallee))
      what += " \"" + callee.str() + "\"";
    Diagnostic diagnostic{Severity::Error,  failure.id, options.path, name, what + ": " + failure.text,
                          ErrorKind::Model, {}};
    for (const std::string &help : function->emitter().helpsOf(failure))
      diagnostic.help(help);
    diagnostics.report(std::move(diagnostic));
    poison();
  }
}

bool TextImport::addOutputs() {
  Operation *end = source.getBody().front().getTerminator();
  for (auto [i, operand] : llvm::enumerate(end->getOperands()))
    if (!function->addResult(values.lookup(operand), "out" + std::to_string(i)))
      return false;
  return true;
}

std::optional<ImportedModel> TextImport::run() {
  size_t before = diagnostics.errorCount();
  if (!parse() || !chooseFunction() || !describeInputs())
    return std::nullopt;
  function = std::make_unique<ProgramFunction>(context, options, diagnostics);
  function->bounds = bounds;
  for (auto [argument, input] : llvm::zip(source.getArguments(), inputs))
    values[argument] = Arg::tensor(function->addInput(input));
  for (Operation &op : source.getBody().front().without_terminator())
    importOp(op);
  if (diagnostics.errorCount() > before || !addOutputs())
    return std::nullopt;
  return function->finish();
}

} // namespace

bool recognisesText(const std::string &path, llvm::ArrayRef<char> head) {
  StringRef text(head.data(), head.size());
  return StringRef(path).ends_with(".mlir") && (text.contains("!torch.") || text.contains(" torch."));
}

std::optional<ImportedModel> importText(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics) {
  return TextImport(context, options, diagnostics).run();
}

} // namespace dmxc::torchfe
