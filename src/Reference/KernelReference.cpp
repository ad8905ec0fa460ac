//===- KernelReference.cpp - what kernels of users compute ----------------===//
#include "dmxc/Reference/KernelReference.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/OpDims.h"
#include "dmxc/Dialect/DMIR/Text.h"
#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Support/Diagnostic.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Path.h"

#include <map>
#include <set>

using namespace mlir;

namespace dmxc::reference {

namespace {

/// The first message of MLIR, with its line and column; what comes after it follows from it.
class FirstMessage {
public:
  explicit FirstMessage(MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &message) {
          if (!text.empty())
            return;
          auto place = dyn_cast<FileLineColLoc>(message.getLocation());
          text = (place ? std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn()) + ": " : "") +
                 message.str();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

/// Graphs of branches and loops may have such themselves, but not without end: the interpreter calls them.
constexpr size_t kMostGraphs = 64;

/// Whether a function holds what the interpreter computes, and nothing that it would ask a reference for.
class Body {
public:
  Body(ModuleOp module, StringRef kernel) : module(module), kernel(kernel) {}

  /// A clause that says why not.
  std::optional<std::string> fault(StringRef name) {
    auto function = module.lookupSymbol<func::FuncOp>(name);
    std::string what = "the function '" + name.str() + "' ";
    if (!function || !llvm::hasSingleElement(function.getBody()))
      return what + (function ? "must have a body of one block" : "is not there");
    if (llvm::is_contained(open, name))
      return what + "calls itself";
    if (open.size() == kMostGraphs)
      return "its graphs hold one another more than " + std::to_string(kMostGraphs) + " levels deep";
    if (!seen.insert(name).second)
      return std::nullopt;
    open.push_back(name);
    for (Operation &op : function.getBody().front())
      if (std::optional<std::string> wrong = faultOf(&op))
        return what + *wrong;
    open.pop_back();
    return std::nullopt;
  }

private:
  std::optional<std::string> faultOf(Operation *op) {
    if (auto called = dyn_cast<dmir::ExternOp>(op))
      return called.getKernel() == kernel
                 ? "holds the kernel itself, which says nothing of what it computes"
                 : "holds the kernel '" + called.getKernel().str() + "'; ops of DMIR say what a kernel computes";
    SmallVector<StringRef> graphs;
    if (auto branch = dyn_cast<dmir::IfOp>(op))
      graphs = {branch.getThenGraph(), branch.getElseGraph()};
    else if (auto loop = dyn_cast<dmir::LoopOp>(op))
      graphs = {loop.getBody()};
    else if (isa<dmir::RegionOp>(op) || !(isa<func::ReturnOp>(op) || canEvaluate(op->getName())))
      return "holds '" + op->getName().getStringRef().str() + "', which the interpreter does not compute";
    for (StringRef graph : graphs)
      if (std::optional<std::string> wrong = fault(graph))
        return "holds a graph: " + *wrong;
    return std::nullopt;
  }

  ModuleOp module;
  StringRef kernel;
  std::vector<StringRef> open;
  std::set<StringRef> seen;
};

} // namespace

Error referenceError(StringRef kernel, const dmir::KernelReference &reference, const std::string &clause) {
  return modelError("the kernel '" + kernel.str() + "': its reference (" +
                    llvm::sys::path::filename(reference.file).str() + "): " + clause);
}

Result<OwningOpRef<ModuleOp>> readReference(MLIRContext *context, StringRef kernel,
                                            const dmir::KernelReference &reference) {
  auto fail = [&](const std::string &clause) { return referenceError(kernel, reference, clause); };
  Result<std::string> path = dmir::DataFiles::of(context).find(reference.file);
  if (!path)
    return Error{path.error().kind, fail(path.error().message).message};
  Result<std::shared_ptr<const MappedFile>> file = MappedFile::open(*path);
  if (!file)
    return Error{file.error().kind, fail(file.error().message).message};
  std::span<const std::byte> bytes = (*file)->bytes();
  if (Sha256::hexOf(bytes) != reference.sha256)
    return fail("the file is not the one that was declared; compile again from the kernel file");
  context->loadDialect<dmir::DMIRDialect, func::FuncDialect>();
  FirstMessage message(context);
  std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  OwningOpRef<ModuleOp> module = dmir::parseText(text, *path, *context);
  if (!module)
    return fail(message.text.empty() ? "this is no text of DMIR" : message.text);
  std::vector<std::string> names;
  for (auto function : module->getOps<func::FuncOp>())
    names.push_back(function.getSymName().str());
  Body body(*module, kernel);
  for (const std::string &name : reference.functions) {
    if (!llvm::is_contained(names, name)) {
      std::string near = nearestName(name, names);
      return fail("it has no function '" + name + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
    if (std::optional<std::string> wrong = body.fault(name))
      return fail(*wrong);
  }
  return module;
}

//===--- Evaluation ------------------------------------------------------------===//

namespace {

/// A reference's functions with the sizes of one call in the place of their dims.
class Instance {
public:
  Instance(func::FuncOp function, DictionaryAttr numbers, ArrayRef<Tensor> operands)
      : function(function), operands(operands) {
    for (NamedAttribute number : numbers)
      sizes[number.getName().str()] = cast<IntegerAttr>(number.getValue()).getInt();
  }

  /// The operands, and those of the node's numbers that the function takes by their names.
  Result<std::vector<Tensor>> inputs() {
    std::vector<Tensor> all = operands.vec();
    for (unsigned i = all.size(); i < function.getNumArguments(); ++i) {
      auto name = function.getArgAttrOfType<StringAttr>(i, dmir::kNameAttr);
      auto number = sizes.find(name ? name.str() : "");
      if (number == sizes.end())
        return modelError("argument " + std::to_string(i) + " is no attribute of the node");
      all.emplace_back(DType::I64, Shape());
      all.back().setInt(0, number->second);
    }
    return all;
  }

  /// Fails where what the functions say does not hold for the sizes.
  Status fix() {
    for (auto [tensor, type] : llvm::zip(operands, function.getArgumentTypes()))
      for (auto [extent, dim] : llvm::zip(tensor.shape(), dmir::dimsOf(type)))
        if (std::optional<std::string> name = dim.symbolName())
          sizes.try_emplace(*name, extent);
    auto module = function->getParentOfType<ModuleOp>();
    module.walk([&](Operation *op) {
      dmir::replaceDims(op, [&](Dim dim) { return fixed(dim); });
      auto dims = op->getAttrOfType<dmir::DimsAttr>("dims");
      if (auto top = dyn_cast<dmir::TopKOp>(op); top && dims && dims.getDims().size() == 1)
        if (std::optional<int64_t> k = fixed(dims.getDims()[0]).known()) {
          top.setK(*k);
          top.removeDimsAttr();
        }
    });
    AttrTypeReplacer replacer;
    replacer.addReplacement([&](dmir::DimsAttr dims) -> std::optional<Attribute> {
      return dmir::DimsAttr::get(dims.getContext(), fixed(dims.getDims()));
    });
    replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
      SmallVector<Dim> dims = fixed(dmir::dimsOf(type));
      bool isShape = llvm::all_of(dims, [](Dim dim) { return dim.valueOr(0) >= 0; });
      return isShape ? dmir::tensorOf(dims, type.getElementType(), dmir::layoutOf(type)) : type;
    });
    replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/true);
    function.setPrivate(); // no work of its own that progress counts
    FirstMessage message(module.getContext());
    return succeeded(verify(module)) ? Status::ok() : Status(modelError(message.text));
  }

private:
  Dim fixed(Dim dim) const {
    return dim.substitute([&](std::string_view name) {
      auto size = sizes.find(std::string(name));
      return size == sizes.end() ? Dim::symbol(name) : Dim(size->second);
    });
  }
  SmallVector<Dim> fixed(ArrayRef<Dim> dims) const {
    return llvm::map_to_vector(dims, [&](Dim dim) { return fixed(dim); });
  }

  func::FuncOp function;
  ArrayRef<Tensor> operands;
  std::map<std::string, int64_t> sizes; ///< of dims, and the node's numbers
};

} // namespace

/// Whether a function takes operands of such element types and ranks.
static bool takes(func::FuncOp function, OperandRange operands) {
  return function.getNumArguments() >= operands.size() &&
         llvm::all_of(llvm::zip(operands, function.getArgumentTypes()), [](auto pair) {
           auto given = cast<RankedTensorType>(std::get<0>(pair).getType());
           auto wanted = dyn_cast<RankedTensorType>(std::get<1>(pair));
           return wanted && wanted.getElementType() == given.getElementType() && wanted.getRank() == given.getRank();
         });
}

Result<std::vector<Tensor>> evaluateKernel(dmir::ExternOp op, ArrayRef<Tensor> operands) {
  const std::string node = "node '" + dmir::nodeName(op) + "': ", kernel = op.getKernel().str();
  DictionaryAttr attr = op.getReferenceAttr();
  if (!attr)
    return modelError(node + "nothing says what the kernel '" + kernel +
                      "' computes; give it a \"reference\" in its kernel file, or compare with other answers");
  dmir::KernelReference reference = dmir::kernelReferenceOf(attr);
  Result<OwningOpRef<ModuleOp>> module = readReference(op.getContext(), kernel, reference);
  if (!module)
    return Error{module.error().kind, node + module.error().message};
  for (const std::string &name : reference.functions) {
    auto function = (*module)->lookupSymbol<func::FuncOp>(name);
    if (!takes(function, op.getInputs()))
      continue;
    Instance instance(function, attr.getAs<DictionaryAttr>("numbers"), operands);
    auto wrong = [&](const Error &error) {
      return Error{error.kind, node + referenceError(kernel, reference, "'" + name + "': " + error.message).message};
    };
    Result<std::vector<Tensor>> inputs = instance.inputs();
    if (Status fixed = instance.fix(); !fixed || !inputs)
      return wrong(inputs ? fixed.error() : inputs.error());
    Result<std::vector<Tensor>> results = evaluateFunction(function, *inputs);
    return results ? std::move(results) : wrong(results.error());
  }
  return modelError(node + referenceError(kernel, reference, "no function of it takes such operands").message);
}

} // namespace dmxc::reference
