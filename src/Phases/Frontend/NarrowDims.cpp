//===- NarrowDims.cpp - dims are what they are in runs that go on ---------===//
//
// Importers compute dims as the model's file does: as many rows of a table as there are, min(256, past). Where the
// same graph asks for past <= 256, each run checks that before anything else, so that the rows are `past`, and shapes
// that looked different are seen to be one. What is relied on stays written down, as the file has it.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/Constraints.h"
#include "dmxc/Dialect/DMIR/OpDims.h"
#include "dmxc/Phases/Phases.h"
#include "dmxc/Support/DimFacts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

namespace dmxc {
#define GEN_PASS_DEF_NARROWDIMS
#include "dmxc/Phases/Frontend/Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using dmir::DimConstraint;

namespace {

class Narrower {
public:
  Narrower(func::FuncOp function, ArrayAttr computed)
      : function(function), facts([this](std::string_view symbol) { return boundsOf(symbol); }) {
    for (Type type : function.getArgumentTypes())
      for (Dim dim : dmir::dimsOf(type))
        if (std::optional<std::string> name = dim.symbolName())
          given.insert(*name);
    for (Attribute attr : computed)
      define(cast<StringAttr>(cast<ArrayAttr>(attr)[0]).getValue(), dmir::dimOfAttr(cast<ArrayAttr>(attr)[1]));
  }

  /// Whether dims changed.
  bool run() {
    // Only what is asked for whenever the function runs, and known before it does anything.
    for (Operation &op : function.getOps())
      dmir::collectConstraints(&op, [&](const DimConstraint &constraint) {
        if (isGiven(constraint.lhs) && isGiven(constraint.rhs))
          add(constraint);
      });
    if (facts.contradictory())
      return false;
    function.walk([&](Operation *op) { narrow(op); });
    if (undo.empty())
      return false;
    if (!verifies())
      return restore(), false;
    Operation *end = function.getBody().front().getTerminator();
    function.setType(FunctionType::get(function.getContext(), function.getArgumentTypes(), end->getOperandTypes()));
    SmallVector<Attribute> assumed;
    for (size_t source : sources)
      assumed.push_back(dmir::toAttr(function.getContext(), constraints[source]));
    if (!assumed.empty())
      function->setAttr(dmir::kAssumedAttr, ArrayAttr::get(function.getContext(), assumed));
    return true;
  }

private:
  //--- facts
  Dim::Bounds boundsOf(std::string_view symbol) const {
    DimBounds bounds = dmir::symbolBounds(function, StringRef(symbol.data(), symbol.size()));
    return {std::max<int64_t>(bounds.min, 0), bounds.max};
  }

  bool isGiven(Dim dim) const {
    bool all = true;
    dim.forEachSymbol([&](std::string_view symbol) { all &= given.contains(StringRef(symbol.data(), symbol.size())); });
    return all;
  }

  void define(StringRef symbol, Dim value) {
    if (!isGiven(value))
      return;
    given.insert(symbol);
    facts.define(std::string_view(symbol.data(), symbol.size()), value);
  }

  void add(const DimConstraint &constraint) {
    size_t number = constraints.size();
    constraints.push_back(constraint);
    switch (constraint.kind) {
    case DimConstraint::Kind::Equal:
      return facts.addEqual(constraint.lhs, constraint.rhs, number);
    case DimConstraint::Kind::LessOrEqual:
      return facts.addLessOrEqual(constraint.lhs, constraint.rhs, number);
    case DimConstraint::Kind::Broadcast:
    case DimConstraint::Kind::BroadcastTo:
      return facts.addBroadcast(constraint.lhs, constraint.rhs, number);
    }
  }

  //--- dims
  Dim narrowed(Dim dim) { return facts.narrow(dim, sources); }

  void narrow(Operation *op) {
    for (Value result : op->getResults())
      narrow(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (op != function)
            narrow(argument);
    narrowAttr(op);
  }

  void narrow(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.hasStaticShape())
      return;
    SmallVector<Dim> dims = dmir::dimsOf(type), next;
    for (Dim dim : dims)
      next.push_back(narrowed(dim));
    if (dims == next)
      return;
    undo.push_back([=]() mutable { value.setType(type); });
    value.setType(dmir::tensorOf(next, type.getElementType(), dmir::layoutOf(type)));
  }

  void narrowAttr(Operation *op) {
    DictionaryAttr old = op->getAttrDictionary();
    if (dmir::replaceDims(op, [&](Dim dim) { return narrowed(dim); }))
      undo.push_back([op, old] { op->setAttrs(old); });
  }

  //--- conditions that no run can meet may make types that no op has; then all stays as it was
  bool verifies() {
    ScopedDiagnosticHandler quiet(function.getContext(), [](mlir::Diagnostic &) { return success(); });
    bool good = true;
    for (Operation &op : function.getOps())
      good &= isa<func::ReturnOp>(op) || succeeded(mlir::verify(&op));
    return good;
  }
  void restore() {
    for (auto &step : llvm::reverse(undo))
      step();
  }

  func::FuncOp function;
  llvm::StringSet<> given; ///< symbols that are known when the function is called
  DimFacts facts;
  std::vector<DimConstraint> constraints;
  DimFacts::Sources sources; ///< of constraints that the new dims rest on
  std::vector<std::function<void()>> undo;
};

/// Computed dims that nothing mentions any more go.
void dropUnread(ModuleOp module, ArrayAttr computed) {
  llvm::StringSet<> read;
  auto readAll = [&](Dim dim) {
    dim.forEachSymbol([&](std::string_view symbol) { read.insert(StringRef(symbol.data(), symbol.size())); });
  };
  auto readAttr = [&](Attribute attr) {
    attr.walk([&](dmir::DimsAttr dims) { llvm::for_each(dims.getDims(), readAll); });
  };
  module.walk([&](Operation *op) {
    if (op == module)
      return;
    readAttr(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      type.walk([&](Attribute attr) { readAttr(attr); });
    for (Region &region : op->getRegions())
      for (Type type : region.empty() ? TypeRange() : TypeRange(region.getArgumentTypes()))
        type.walk([&](Attribute attr) { readAttr(attr); });
  });
  SmallVector<Attribute> kept;
  for (Attribute attr : llvm::reverse(computed)) // each is made of those before it
    if (read.contains(cast<StringAttr>(cast<ArrayAttr>(attr)[0]).getValue())) {
      readAttr(attr);
      kept.push_back(attr);
    }
  std::reverse(kept.begin(), kept.end());
  if (kept.empty())
    module->removeAttr(dmir::kComputedDimsAttr);
  else
    module->setAttr(dmir::kComputedDimsAttr, ArrayAttr::get(module.getContext(), kept));
}

struct NarrowDims : dmxc::impl::NarrowDimsBase<NarrowDims> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto computed = module->getAttrOfType<ArrayAttr>(dmir::kComputedDimsAttr);
    if (!computed)
      computed = ArrayAttr::get(&getContext(), {});
    bool changed = false;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        changed |= Narrower(function, computed).run();
    if (changed && !computed.empty())
      dropUnread(module, computed);
  }
};

} // namespace

namespace dmxc {
std::unique_ptr<Pass> createNarrowDimsPass(const PhaseContext &) { return std::make_unique<NarrowDims>(); }
} // namespace dmxc
