//===- PlaceKernels.cpp - users' kernels in the place of ops --------------===//
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Phases/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dmxc {
#define GEN_PASS_DEF_PLACEKERNELS
#include "dmxc/Phases/Partition/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

/// The last word of an attribute's text: what an enum's value is called.
std::string wordOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  StringRef word = StringRef(text).rtrim('>');
  return word.substr(word.rfind(' ') + 1).str();
}

/// Whether an op has an attribute as a declaration has it; a negative integer counts axes from the end.
bool hasValue(Operation *op, const std::string &name, const dmir::KernelDecl::Value &value) {
  Attribute attr = op->getAttr(name);
  if (auto *flag = std::get_if<bool>(&value))
    return attr == BoolAttr::get(op->getContext(), *flag);
  if (auto *number = std::get_if<int64_t>(&value)) {
    auto integer = dyn_cast_or_null<IntegerAttr>(attr);
    auto type = op->getNumOperands() ? dyn_cast<RankedTensorType>(op->getOperand(0).getType()) : RankedTensorType();
    return integer &&
           (integer.getInt() == *number || (*number < 0 && type && integer.getInt() == *number + type.getRank()));
  }
  if (auto *real = std::get_if<double>(&value)) {
    auto number = dyn_cast_or_null<FloatAttr>(attr);
    return number && number.getValueAsDouble() == *real;
  }
  const std::string &text = std::get<std::string>(value);
  auto string = dyn_cast_or_null<StringAttr>(attr);
  return string ? string.getValue() == text : attr && wordOf(attr) == text;
}

struct PlaceKernels : dmxc::impl::PlaceKernelsBase<PlaceKernels> {
  explicit PlaceKernels(const PhaseContext &context) : context(context) {}

  void runOnOperation() override {
    for (Operation &op : llvm::make_early_inc_range(getOperation().getOps()))
      for (const dmir::KernelDecl &decl : dmir::KernelSet::of(&getContext()).all())
        if (matches(decl, &op) && replace(decl, &op))
          break;
  }

private:
  static bool matches(const dmir::KernelDecl &decl, Operation *op) {
    return decl.op && decl.op->name == op->getName().getStringRef() &&
           llvm::all_of(decl.op->attributes,
                        [&](const auto &entry) { return hasValue(op, entry.first, entry.second); });
  }

  /// Where the operands are as declared, the results are the op's, and some target has code.
  bool replace(const dmir::KernelDecl &decl, Operation *op) const {
    SmallVector<RankedTensorType> types;
    for (Type type : op->getOperandTypes())
      types.push_back(cast<RankedTensorType>(type));
    Result<dmir::KernelUse> use = dmir::bindKernel(decl, types, {});
    if (!use || !use->expected.empty() || use->results != SmallVector<Type>(op->getResultTypes()))
      return false;
    OpBuilder builder(op);
    dmir::ExternOp placed = dmir::makeExtern(builder, op->getLoc(), decl, *use, op->getOperands());
    if (!context.responsible(placed)) {
      placed->erase();
      return false;
    }
    op->replaceAllUsesWith(placed);
    op->erase();
    return true;
  }

  const PhaseContext &context;
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createPlaceKernelsPass(const PhaseContext &context) {
  return std::make_unique<PlaceKernels>(context);
}
} // namespace dmxc
