//===- MlirFrontend.cpp - DMIR text to DMIR -------------------------------===//
#include "MlirFrontend.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/Text.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace dmxc {

namespace {

class TextImport {
public:
  TextImport(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics)
      : context(context), options(options), diagnostics(diagnostics) {}

  std::optional<ImportedModel> run() {
    if (!options.dims.empty())
      return error("mlir-dim",
                   "--dim has no meaning for DMIR text: its shapes are written "
                   "out",
                   ErrorKind::Usage),
             std::nullopt;
    if (!options.shapes.empty() || !options.absent.empty())
      return error("mlir-dim",
                   "--shape has no meaning for DMIR text: its shapes are "
                   "written out",
                   ErrorKind::Usage),
             std::nullopt;
    if (!parse() || !resolveFiles() || !selectEntry() || !checkOps())
      return std::nullopt;
    for (auto function : model.module->getOps<func::FuncOp>())
      if (!checkAndNameTensors(function))
        return std::nullopt;
    model.nodes = dmir::nodeNames(*model.module);
    dmir::setNodeCount(*model.module, model.nodes);
    return std::move(model);
  }

private:
  void error(std::string id, std::string text, ErrorKind kind = ErrorKind::Model, std::string node = "") {
    diagnostics.report({Severity::Error, std::move(id), options.path, std::move(node), std::move(text), kind, {}});
  }

  /// Parses and verifies; MLIR's messages carry the position in the text.
  bool parse() {
    size_t errorsBefore = diagnostics.errorCount();
    ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &message) {
      Diagnostic ours;
      ours.severity = message.getSeverity() == DiagnosticSeverity::Error ? Severity::Error : Severity::Warning;
      ours.id = "mlir-text";
      ours.file = options.path;
      if (auto place = dyn_cast<FileLineColLoc>(message.getLocation()))
        ours.file += ":" + std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn());
      ours.node = dmir::nodeName(message.getLocation());
      ours.text = message.str();
      // ODS adds this to every message of an op's inference, which said what is
      // wrong.
      if (StringRef(ours.text).ends_with("failed to infer returned types") && diagnostics.errorCount() > errorsBefore)
        return;
      diagnostics.report(std::move(ours));
    });
    context.loadDialect<dmir::DMIRDialect, func::FuncDialect>();
    dmir::DataFiles::of(&context).admitBeside(options.path, options.externalDataDirs);
    model.module = dmir::parseTextFile(options.path, context);
    return static_cast<bool>(model.module);
  }

  /// The text itself and the files its constants lie in.
  bool resolveFiles() {
    model.files.push_back(options.path);
    bool good = true;
    for (const std::string &file : dmir::resolveDataFiles(*model.module, [&](Operation *op, const Error &wrong) {
           error(wrong.kind == ErrorKind::IO ? "io" : "text-file", wrong.message, wrong.kind,
                 dmir::nodeName(op->getLoc()));
           good = false;
         }))
      model.files.push_back(file);
    return good;
  }

  /// Keeps the function of --entry alone.
  bool selectEntry() {
    SmallVector<func::FuncOp> functions(model.module->getOps<func::FuncOp>());
    if (functions.empty())
      return error("mlir-text", "the module has no func.func; a model is one, normally @main"), false;
    if (options.entry.empty())
      return true;
    std::vector<std::string> names;
    for (func::FuncOp function : functions)
      names.push_back(function.getSymName().str());
    if (!llvm::is_contained(names, options.entry)) {
      std::string near = nearestName(options.entry, names);
      error("entry-unknown",
            "there is no function @" + options.entry + (near.empty() ? "" : "; did you mean '" + near + "'?"),
            ErrorKind::Usage);
      return false;
    }
    for (func::FuncOp function : functions)
      if (function.getSymName() != options.entry)
        function.erase();
    return true;
  }

  /// Only what later phases know: DMIR before partition.
  bool checkOps() {
    bool good = true;
    model.module->walk([&](Operation *op) {
      if (isa<ModuleOp, func::FuncOp, func::ReturnOp>(op))
        return;
      bool later =
          isa<dmir::RegionOp, dmir::YieldOp, dmir::RelayoutOp>(op) || op->getName().getDialectNamespace() == "dlir";
      if (!later && isa_and_nonnull<dmir::DMIRDialect>(op->getDialect()))
        return;
      error("op-unsupported",
            "'" + op->getName().getStringRef().str() + "' cannot stand in a model" +
                (later ? "; this is the text of a later phase: resume from it "
                         "with --from"
                       : "; it takes func.func and DMIR ops only"),
            ErrorKind::Model, dmir::nodeName(op->getLoc()));
      good = false;
    });
    return good;
  }

  bool checkType(Type type, const std::string &what) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    bool named = tensor && (tensor.hasStaticShape() ? !tensor.getEncoding()
                                                    : isa_and_nonnull<dmir::DimsAttr>(tensor.getEncoding()));
    if (named && dmir::dtypeOf(tensor.getElementType()))
      return true;
    std::string text;
    llvm::raw_string_ostream(text)
        << what << " has type " << type
        << "; expected a tensor of a DMIR element type, its dynamic dims named by #dmir.dims<...>";
    error("mlir-type", text);
    return false;
  }

  bool checkAndNameTensors(func::FuncOp function) {
    std::string where = "@" + function.getSymName().str();
    if (function.isExternal())
      return error("mlir-text", where + " has no body"), false;
    if (!llvm::hasSingleElement(function.getBody()))
      return error("mlir-text", where + " has more than one block; control "
                                        "flow between blocks is not supported"),
             false;
    auto nameOf = [&](const char *prefix, unsigned i) { return StringAttr::get(&context, prefix + std::to_string(i)); };
    bool good = true;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      good &= checkType(function.getArgument(i).getType(), where + ": argument " + std::to_string(i));
      if (!function.getArgAttr(i, dmir::kNameAttr))
        function.setArgAttr(i, dmir::kNameAttr, nameOf("input", i));
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      good &= checkType(function.getFunctionType().getResult(i), where + ": result " + std::to_string(i));
      if (!function.getResultAttr(i, dmir::kNameAttr))
        function.setResultAttr(i, dmir::kNameAttr, nameOf("output", i));
    }
    return good;
  }

  MLIRContext &context;
  const ImportOptions &options;
  Diagnostics &diagnostics;
  ImportedModel model;
};

bool recognisesMlir(const std::string &path, llvm::ArrayRef<char> head) { return StringRef(path).ends_with(".mlir"); }

std::optional<ImportedModel> importMlir(MLIRContext &context, const ImportOptions &options, Diagnostics &diagnostics) {
  return TextImport(context, options, diagnostics).run();
}

} // namespace

const Frontend &mlirFrontend() {
  static const Frontend frontend{"mlir", "DMIR text (.mlir)", recognisesMlir, importMlir};
  return frontend;
}

} // namespace dmxc
