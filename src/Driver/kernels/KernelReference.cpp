//===- KernelReference.cpp - references beside their declarations ---------===//
#include "dmxc/Driver/KernelFile.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Reference/KernelReference.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dmxc::driver {

namespace {

/// "f16|f32 [b, n]"
std::string textOf(ArrayRef<DType> types, ArrayRef<Dim> shape) {
  return llvm::join(llvm::map_range(types, [](DType type) { return std::string(dtypeName(type)); }), "|") + " [" +
         llvm::join(llvm::map_range(shape, [](Dim dim) { return dim.str(); }), ", ") + "]";
}

/// One function of a reference beside the declaration of its kernel.
class Signature {
public:
  Signature(const dmir::KernelDecl &decl, func::FuncOp function) : decl(decl), function(function) {}

  /// A clause that says what differs.
  std::optional<std::string> fault() {
    size_t operands = decl.operands.size(), results = decl.results.size();
    if (function.getNumArguments() < operands || function.getNumResults() != results)
      return "it has " + std::to_string(function.getNumArguments()) + " arguments and " +
             std::to_string(function.getNumResults()) + " results, the kernel " + std::to_string(operands) +
             " operands and " + std::to_string(results) + " results";
    for (size_t i = 0; i < operands; ++i) {
      const dmir::KernelTensor &operand = decl.operands[i];
      if (auto wrong =
              faultOf("operand", operand.name, operand.types, operand.shape, function.getArgument(i).getType()))
        return wrong;
      types[operand.name] = *elementOf(function.getArgument(i).getType());
    }
    for (size_t i = 0; i < results; ++i) {
      const dmir::KernelTensor &result = decl.results[i];
      std::vector<DType> wanted = result.types.empty() ? std::vector{types.at(result.like)} : result.types;
      if (auto wrong = faultOf("result", result.name, wanted, result.shape, function.getResultTypes()[i]))
        return wrong;
    }
    auto wrong = faultOfNumbers();
    return wrong ? wrong : faultOfDims();
  }

  /// What it is for.
  std::vector<DType> operandTypes() const {
    std::vector<DType> all;
    for (const dmir::KernelTensor &operand : decl.operands)
      all.push_back(types.at(operand.name));
    return all;
  }

private:
  static std::optional<DType> elementOf(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? dmir::dtypeOf(tensor.getElementType()) : std::nullopt;
  }

  static std::optional<std::string> faultOf(const char *what, const std::string &name, ArrayRef<DType> wanted,
                                            ArrayRef<Dim> shape, Type type) {
    std::optional<DType> element = elementOf(type);
    if (element && llvm::is_contained(wanted, *element) && ArrayRef<Dim>(dmir::dimsOf(type)) == shape)
      return std::nullopt;
    return std::string(what) + " '" + name + "' is " +
           (element ? textOf(*element, dmir::dimsOf(type)) : "no tensor of a DMIR type") +
           ", the kernel's signature has " + textOf(wanted, shape);
  }

  bool isAttribute(StringRef name) const {
    return llvm::any_of(decl.attributes, [&](const auto &attribute) { return attribute.first == name; });
  }

  std::optional<std::string> faultOfNumbers() {
    for (unsigned i = decl.operands.size(); i < function.getNumArguments(); ++i) {
      auto name = function.getArgAttrOfType<StringAttr>(i, dmir::kNameAttr);
      Type type = function.getArgument(i).getType();
      if (!name || !isAttribute(name) || elementOf(type) != DType::I64 || cast<RankedTensorType>(type).getRank() != 0)
        return "argument " + std::to_string(i) +
               " is none: behind the operands stand attributes of the kernel, each a tensor<i64> whose name is its "
               "dmir.name";
    }
    return std::nullopt;
  }

  /// Inside of it too all dims are what the operands say.
  std::optional<std::string> faultOfDims() {
    std::set<std::string> known;
    for (const dmir::KernelTensor &operand : decl.operands)
      for (Dim dim : operand.shape)
        if (std::optional<std::string> name = dim.symbolName())
          known.insert(*name);
    for (StringAttr symbol : dmir::symbolsOf(&function.getBody().front()))
      if (!known.count(symbol.str()) && !isAttribute(symbol))
        return "it mentions the dim '" + symbol.str() + "', which no operand has alone as an axis";
    return std::nullopt;
  }

  const dmir::KernelDecl &decl;
  func::FuncOp function;
  std::map<std::string, DType> types;
};

} // namespace

Status checkReference(const dmir::KernelDecl &decl, MLIRContext *context) {
  Result<OwningOpRef<ModuleOp>> module = reference::readReference(context, decl.name, *decl.reference);
  if (!module)
    return module.takeError();
  std::map<std::vector<DType>, std::string> taken;
  for (const std::string &name : decl.reference->functions) {
    Signature signature(decl, (*module)->lookupSymbol<func::FuncOp>(name));
    std::optional<std::string> wrong = signature.fault();
    if (!wrong)
      if (auto [other, isNew] = taken.try_emplace(signature.operandTypes(), name); !isNew)
        wrong = "it takes the same types as '" + other->second + "'";
    if (wrong)
      return reference::referenceError(decl.name, *decl.reference, "the function '" + name + "': " + *wrong);
  }
  return Status::ok();
}

} // namespace dmxc::driver
