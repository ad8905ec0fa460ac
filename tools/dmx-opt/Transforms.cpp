//===- Transforms.cpp - the ops of schedules, as data ---------------------===//
#include "Transforms.h"

#include "dmxc/Dialect/Transform/Forms.h"

#include "mlir/Dialect/Transform/IR/TransformTypes.h"
#include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace mlir;

namespace dmxc {
namespace {

/// What TableGen knows of each op (transforms.py).
constexpr const char *kDeclared[] = {
#include "Transforms.inc"
};

/// One op with one value an operand that it may have, to ask it what it does with them.
class Probe {
public:
  Probe(OperationName name, const llvm::json::Object &row) : builder(name.getContext()) {
    OperationState state(builder.getUnknownLoc(), name);
    SmallVector<int32_t> segments;
    for (const llvm::json::Value &operand : *row.getArray("operands")) {
      BlockArgument value = block.addArgument(typeOf(*operand.getAsObject()), state.location);
      state.operands.push_back(value);
      segments.push_back(1);
    }
    SmallVector<int32_t> results;
    for (const llvm::json::Value &result : *row.getArray("results")) {
      state.types.push_back(typeOf(*result.getAsObject()));
      results.push_back(1);
    }
    for (const llvm::json::Value &part : *row.getArray("segments"))
      state.addAttribute(part.getAsString()->str() + "SegmentSizes",
                         builder.getDenseI32ArrayAttr(part == "operand" ? segments : results));
    op = Operation::create(state);
  }
  ~Probe() { op->destroy(); }
  Probe(const Probe &) = delete;
  Probe &operator=(const Probe &) = delete;

  bool consumes(unsigned operand) const {
    auto transform = dyn_cast<mlir::transform::TransformOpInterface>(op);
    return transform && mlir::transform::isHandleConsumed(op->getOperand(operand), transform);
  }

private:
  Type typeOf(const llvm::json::Object &value) {
    StringRef kind = *value.getString("of");
    if (kind.starts_with("op"))
      return mlir::transform::AnyOpType::get(builder.getContext());
    if (kind == "value")
      return mlir::transform::AnyValueType::get(builder.getContext());
    return mlir::transform::AnyParamType::get(builder.getContext());
  }

  Builder builder;
  Block block;
  Operation *op = nullptr;
};

} // namespace

/// Of an op with regions it depends on what they hold.
static llvm::json::Array consumedBy(OperationName name, const llvm::json::Object &row) {
  llvm::json::Array consumed;
  if (*row.getInteger("regions"))
    return consumed;
  Probe probe(name, row);
  for (auto [i, operand] : llvm::enumerate(*row.getArray("operands")))
    if (probe.consumes(static_cast<unsigned>(i)))
      consumed.push_back(*operand.getAsObject()->getString("name"));
  return consumed;
}

bool printTransforms(MLIRContext &context) {
  std::set<StringRef> unsaid;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getStringRef().starts_with("transform."))
      unsaid.insert(name.getStringRef());
  for (StringRef text : kDeclared) {
    llvm::Expected<llvm::json::Value> row = llvm::json::parse(text);
    if (!row) {
      llvm::errs() << "dmx-opt: error: " << llvm::toString(row.takeError()) << "\n";
      return false;
    }
    llvm::json::Object &object = *row->getAsObject();
    std::string name = object.getString("name")->str();
    if (!unsaid.erase(name))
      continue; // declared by an extension that no script may use
    object["consumes"] = consumedBy(OperationName(name, &context), object);
    llvm::outs() << *row << "\n";
  }
  for (auto [name, meaning] : transform::forms())
    llvm::outs() << llvm::json::Value(llvm::json::Object{{"form", name}, {"summary", meaning}}) << "\n";
  for (StringRef name : unsaid)
    llvm::errs() << "dmx-opt: error: '" << name
                 << "' is in none of the .td files that tools/dmx-opt/CMakeLists.txt names\n";
  return unsaid.empty();
}

} // namespace dmxc
