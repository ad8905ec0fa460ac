//===- ConstantForms.cpp - one form of a constant in all of a text --------===//
#include "ConstantForms.h"
#include "../KernelFunctions.h"

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// The form that a kernel knows of each of its arguments, null of others.
static SmallVector<DictionaryAttr> formsOf(Operation *kernel) {
  SmallVector<DictionaryAttr> forms;
  if (auto function = dyn_cast<func::FuncOp>(kernel))
    for (unsigned number = 0; number < function.getNumArguments(); ++number)
      forms.push_back(function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr));
  if (auto program = dyn_cast<dlir::DeviceProgramOp>(kernel))
    for (auto argument : program.getBody().getOps<dlir::ArgumentOp>())
      forms.push_back(argument->getAttrOfType<DictionaryAttr>(kFormAttr));
  return forms;
}

static std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  attribute ? stream << attribute : stream << "nothing";
  return text;
}

static Status check(dlir::BufferOp constant, DictionaryAttr known, StringRef node, const hw::Machine &machine) {
  DictionaryAttr form = constant.getFormAttr();
  auto refuse = [&](StringRef key, Attribute given, const Twine &why) -> Status {
    return modelError("node '" + node.str() + "': '" + key.str() + "' of the form of its constant '" +
                      constant.getName().str() + "' is " + textOf(given) + ", " + why.str() +
                      "; a form is decided in partition, and is the same in all of a text");
  };
  if (!known && !form.get(kKeptKey)) // programs by hand
    return Status::ok();
  if (form != known)
    for (DictionaryAttr all : {form, known ? known : form})
      for (NamedAttribute entry : all) {
        const StringRef key = entry.getName();
        if (Attribute own = known ? known.get(key) : Attribute(); own != form.get(key))
          return refuse(key, form.get(key), "and its kernel is made for " + textOf(own));
      }
  if (!TileForm::parse(form, machine))
    return refuse("form", form, "which is no form of tiles");
  return Status::ok();
}

Status dmxc::corsair::checkConstantForms(Operation *kernel, const hw::Machine &machine) {
  const SmallVector<DictionaryAttr> forms = formsOf(kernel);
  Status status = Status::ok();
  kernel->getParentOfType<ModuleOp>().walk([&](dlir::DispatchOp dispatch) {
    if (dispatch.getKernel() != SymbolTable::getSymbolName(kernel))
      return;
    auto nodes = dispatch.getNodes().getAsValueRange<StringAttr>();
    const std::string node = nodes.empty() ? dispatch.getKernel().str() : (*nodes.begin()).str();
    for (auto [number, input] : llvm::enumerate(dispatch.getInputs())) {
      auto constant = input.getDefiningOp<dlir::BufferOp>();
      if (status && constant && isTiles(constant.getFormAttr()))
        status = check(constant, number < forms.size() ? forms[number] : DictionaryAttr(), node, machine);
    }
  });
  return status;
}
