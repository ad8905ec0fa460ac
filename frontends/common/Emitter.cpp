//===- Emitter.cpp - builds DMIR and folds it on the way ------------------===//
#include "Emitter.h"

#include "dmxc/Dialect/DMIR/DataFiles.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"

#include <cstring>

using namespace mlir;

namespace dmxc::frontend {

namespace {
/// Dims of longer text come from shapes that feed on each other; their expressions would grow without bound.
constexpr size_t kMaxDimText = 400;

void checkComplexity(RankedTensorType type) {
  for (Dim dim : dmir::dimsOf(type))
    if (!dim.isStatic() && dim.str().size() > kMaxDimText)
      failOpen("op-dynamic-dim",
               "a result's dims have become too complex an expression: " + dim.str().substr(0, 80) + "...", dim);
}

constexpr uint64_t kMaxFoldBytes = uint64_t(1) << 30;
constexpr int64_t kMaxElements = kMaxDim;

void checkSize(RankedTensorType type) {
  int64_t count = 1;
  for (int64_t dim : type.getShape()) {
    if (ShapedType::isDynamic(dim)) // sizes are checked again when a run makes them known
      continue;
    if (dim < 0 || dim > kMaxElements || (dim && count > kMaxElements / dim))
      fail("op-size", "a result would have the shape " + dimsString(dmir::dimsOf(type)) + ", more than 2^46 elements");
    count *= std::max<int64_t>(dim, 1);
  }
  checkComplexity(type);
}

/// Collects what an inference function or a verifier says, so that it reaches
/// the user as the failed clause.
class Capture {
public:
  explicit Capture(MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (!text.empty())
            text += "; ";
          text += diagnostic.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};
} // namespace

//===--- Values
//---------------------------------------------------------------===//

Emitter::Emitter(Block *block, const FoldFunction &fold)
    : block(block), builder(OpBuilder::atBlockEnd(block)), loc(builder.getUnknownLoc()), fold(fold) {}

void Emitter::setNode(const std::string &name) {
  node = name;
  loc = name.empty() ? Location(builder.getUnknownLoc()) : NameLoc::get(builder.getStringAttr(name));
}

Val Emitter::fromSSA(Value value) {
  Val result;
  result.state = std::make_shared<Val::State>();
  result.state->type = cast_or_null<RankedTensorType>(value.getType());
  result.state->ssa = value;
  return result;
}

Val Emitter::constant(Tensor tensor) { return stored(std::move(tensor), "", 0, ""); }

Val Emitter::stored(Tensor tensor, std::string path, uint64_t offset, std::string name) {
  Val result;
  result.state = std::make_shared<Val::State>();
  result.state->type = dmir::typeOf(tensor, context());
  result.state->isConstant = true;
  result.state->tensor = std::move(tensor);
  result.state->path = std::move(path);
  result.state->offset = offset;
  result.state->name = std::move(name);
  return result;
}

Val Emitter::scalar(DType type, double value) {
  Tensor tensor(type, {});
  tensor.setDouble(0, value);
  return constant(std::move(tensor));
}

Val Emitter::intScalar(DType type, int64_t value) {
  Tensor tensor(type, {});
  tensor.setInt(0, value);
  return constant(std::move(tensor));
}

Val Emitter::ints(ArrayRef<int64_t> values) {
  Tensor tensor(DType::I64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
  return constant(std::move(tensor));
}

Val Emitter::floats(DType type, Shape shape, ArrayRef<double> values) {
  Tensor tensor(type, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setDouble(i, values[i]);
  return constant(std::move(tensor));
}

Val Emitter::sizes(const Dims &values, RankedTensorType type) {
  if (llvm::all_of(values, [](Dim dim) { return dim.isStatic(); })) {
    Tensor tensor(*dmir::dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
    for (auto [i, value] : llvm::enumerate(values))
      tensor.setInt(i, *value.known());
    return constant(std::move(tensor));
  }
  Val result;
  result.state = std::make_shared<Val::State>();
  result.state->type = type;
  result.state->sizes = values;
  return result;
}

/// Named after the node; the number sign keeps it apart from the model's own dims.
std::string Emitter::freshSymbol() {
  for (size_t i = 0;; ++i)
    if (std::string name = node + "#" + std::to_string(i); taken.insert(name).second)
      return name;
}

std::vector<std::string> Emitter::helpsOf(const NodeFailure &failure) const {
  std::vector<std::string> given, made; // each once
  std::vector<std::string> work(failure.open.rbegin(), failure.open.rend());
  while (!work.empty()) {
    std::string name = std::move(work.back());
    work.pop_back();
    auto is = [&](const auto &entry) { return entry.first == name; };
    if (auto found = llvm::find_if(computed, is); found != computed.end()) // a name for an expression of others
      found->second.forEachSymbol([&](std::string_view other) { work.emplace_back(other); });
    else if (auto &list = taken.count(name) ? made : given; !llvm::is_contained(list, name))
      list.push_back(name);
  }
  std::vector<std::string> helps = failure.helps;
  std::string flags;
  for (const std::string &name : given)
    flags += (flags.empty() ? "--dim " : " --dim ") + name + "=1";
  if (!flags.empty())
    helps.push_back(flags + (given.size() == 1 ? " (or another size) fixes it" : " (or other sizes) fixes them"));
  for (const std::string &name : made)
    helps.push_back("'" + name + "' is a size that node '" + name.substr(0, name.rfind('#')) +
                    "' gives in a run, which no option fixes: give that node operands that are known at compile time");
  return helps;
}

RankedTensorType Emitter::withShortDims(RankedTensorType type) {
  constexpr size_t longText = 60;
  Dims dims(dmir::dimsOf(type));
  bool changed = false;
  for (Dim &dim : dims) {
    if (dim.isStatic() || dim.symbolName() || dim.str().size() <= longText)
      continue;
    auto [known, isNew] = computedOf.try_emplace(dim.key(), 0);
    if (isNew) {
      computed.push_back({freshSymbol(), dim});
      known->second = Dim::symbol(computed.back().first);
    }
    dim = known->second;
    changed = true;
  }
  return changed ? dmir::tensorOf(dims, type.getElementType()) : type;
}

ArrayAttr Emitter::computedDims() {
  SmallVector<Attribute> list;
  for (const auto &[name, dim] : computed)
    list.push_back(builder.getArrayAttr({builder.getStringAttr(name), dmir::DimsAttr::get(context(), dim)}));
  return builder.getArrayAttr(list);
}

Dims Emitter::dimsOf(const Val &vector, Dim max) {
  if (vector.hasSizes())
    return vector.sizes();
  SmallVector<Attribute> symbols;
  Dims dims, bounds;
  for (int64_t i = 0, count = vector.dim(0); i < count; ++i) {
    std::string name = freshSymbol();
    symbols.push_back(builder.getStringAttr(name));
    dims.push_back(Dim::symbol(name));
    bounds.push_back(max);
  }
  if (!dims.empty())
    dmir::DefineDimsOp::create(builder, loc, ssa(vector), builder.getArrayAttr(symbols),
                               dmir::DimsAttr::get(context(), bounds));
  return dims;
}

Value Emitter::ssa(const Val &value) {
  if (value.isPoison() || !value.isTensor())
    fail("op-dtype", "a " + value.describe() + " stands where a tensor is needed");
  Val::State &state = *value.state;
  if (state.ssa && state.ssa.getParentBlock() == block)
    return state.ssa;
  if (!frames.empty())
    return capture(value);
  return state.ssa = materialise(value);
}

Value Emitter::materialise(const Val &value) {
  const Val::State &state = *value.state;
  if (state.sizes) {
    Dims dynamic;
    SmallVector<NamedAttribute> attributes{attr("values", *state.sizes, dynamic)};
    addDims(attributes, dynamic);
    Val vector = emit<dmir::DimTensorOp>({}, attributes);
    return ssa(cast(reshape(vector, value.dims()), value.dtype()));
  }
  TypedAttr attribute;
  if (state.path.empty())
    attribute = dmir::constantAttr(state.tensor, state.type);
  else
    attribute = dmir::FileDataAttr::get(context(), dmir::DataFiles::of(context()).admit(state.path), state.offset,
                                        state.tensor.byteSize(), state.type);
  Location where = state.name.empty() ? loc : NameLoc::get(builder.getStringAttr(state.name));
  return dmir::ConstantOp::create(builder, where, state.type, attribute);
}

//===--- Ops
//--------------------------------------------------------------------===//

NamedAttribute Emitter::attr(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, bool value) {
  return builder.getNamedAttr(name, builder.getBoolAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, double value) {
  return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, ArrayRef<int64_t> value) {
  return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(value));
}
NamedAttribute Emitter::attr(StringRef name, Attribute value) { return builder.getNamedAttr(name, value); }

NamedAttribute Emitter::attr(StringRef name, const Dims &value, Dims &dynamic) {
  return attr(name, ArrayRef<int64_t>(dmir::splitDims(value, dynamic)));
}

void Emitter::addDims(SmallVectorImpl<NamedAttribute> &attributes, const Dims &dynamic) {
  if (!dynamic.empty())
    attributes.push_back(attr("dims", dmir::dimsAttr(context(), dynamic)));
}

Operation *Emitter::create(Kind kind, ValueRange operands, DictionaryAttr attributes, RankedTensorType given) {
  Capture capture(context());
  SmallVector<Type> types;
  if (given)
    types.push_back(given);
  else if (failed(kind.infer(context(), loc, operands, attributes, types)))
    fail("op-shape", capture.text.empty() ? "the operands do not fit " + kind.name.str() : capture.text);
  for (Type &type : types) {
    checkSize(mlir::cast<RankedTensorType>(type));
    type = withShortDims(mlir::cast<RankedTensorType>(type));
  }
  OperationState state(loc, kind.name);
  state.addOperands(operands);
  state.addTypes(types);
  if (attributes && !attributes.empty()) // an op without properties accepts none, not even an empty set
    state.propertiesAttr = attributes;
  Operation *op = Operation::create(state);
  if (failed(verify(op))) {
    op->destroy();
    fail("op-shape", capture.text.empty() ? "the operands do not fit " + kind.name.str() : capture.text);
  }
  return op;
}

/// Whether a constant would be much larger than what it is made of. Masks are: they are read as rules before anybody
/// computes them, and FoldConstants folds what was none. Nobody asks such a tensor for a shape.
static bool grows(Operation *op, ArrayRef<Val> operands) {
  if (!op->hasTrait<dmir::Elementwise>() && !mlir::isa<dmir::IotaOp, dmir::BroadcastOp>(op))
    return false;
  auto bytesOf = [](RankedTensorType type) {
    return dtypeBytes(*dmir::dtypeOf(type.getElementType()), type.getNumElements());
  };
  uint64_t before = 0, after = 0;
  for (const Val &operand : operands)
    before += bytesOf(operand.type());
  for (Type type : op->getResultTypes())
    after += bytesOf(mlir::cast<RankedTensorType>(type));
  // What a comparison says of ranges is a mask, however small; no shape is made of a matrix of bools.
  if (mlir::isa<dmir::CompareOp>(op)) {
    auto elements = [](RankedTensorType type) { return type.getNumElements(); };
    int64_t fewer = elements(operands[0].type()) + elements(operands[1].type()),
            all = elements(mlir::cast<RankedTensorType>(op->getResult(0).getType()));
    return all >= 128 && all > 4 * fewer;
  }
  return after > (64 << 10) && after > 4 * before;
}

std::vector<Val> Emitter::tryFold(Operation *op, ArrayRef<Val> operands, std::string &why) {
  if (mlir::isa<dmir::DequantizeOp>(op)) // a product may want its bits; what else reads it is folded later
    return {};
  for (Type type : op->getResultTypes()) {
    auto tensorType = mlir::cast<RankedTensorType>(type);
    if (!tensorType.hasStaticShape())
      return {};
    int64_t count = elementCount({tensorType.getShape().data(), tensorType.getShape().size()});
    if (dtypeBytes(*dmir::dtypeOf(tensorType.getElementType()), count) > kMaxFoldBytes) {
      why = "the constant would have more than 1 GiB";
      return {};
    }
  }
  if (grows(op, operands))
    return {};
  std::vector<Tensor> tensors;
  for (const Val &operand : operands) {
    const Tensor &tensor = operand.constant();
    uint64_t align = std::max<uint64_t>(dtypeBits(tensor.dtype()) / 8, 1);
    if (reinterpret_cast<uintptr_t>(tensor.data()) % align == 0) {
      tensors.push_back(tensor);
      continue;
    }
    Tensor aligned(tensor.dtype(),
                   tensor.shape()); // a view of the model file may start anywhere
    std::memcpy(aligned.mutableData(), tensor.data(), tensor.byteSize());
    tensors.push_back(std::move(aligned));
  }
  std::optional<std::vector<Tensor>> folded = fold(op, tensors, why);
  if (!folded || folded->size() != op->getNumResults())
    return {};
  std::vector<Val> results;
  for (Tensor &tensor : *folded)
    results.push_back(constant(std::move(tensor)));
  return results;
}

/// Of a table turned round FoldConstants knows better whether it may stand beside itself: it sees who reads it.
bool Emitter::turnsTable(StringRef op, ArrayRef<Val> operands) {
  return op == dmir::TransposeOp::getOperationName() && operands[0].state->ssa && dmir::isTable(operands[0].state->ssa);
}

std::vector<Val> Emitter::build(Kind kind, ArrayRef<Val> operands, ArrayRef<NamedAttribute> attributes,
                                RankedTensorType given) {
  DictionaryAttr dictionary = builder.getDictionaryAttr(attributes);
  bool constant = fold != nullptr && !turnsTable(kind.name, operands);
  for (const Val &operand : operands) {
    if (!operand.isTensor())
      fail("op-dtype", "a " + operand.describe() + " stands where a tensor is needed");
    constant &= operand.isConstant();
  }
  if (movesAsBytes(kind.name, operands))
    return moveBytes(kind, operands, attributes, given);
  std::string why;
  if (!constant)
    if (std::optional<Val> folded = foldSizes(kind, operands, attributes, given))
      return {*folded};
  if (constant) {
    SmallVector<Value> placeholders;
    for (const Val &operand : operands)
      placeholders.push_back(scratch.addArgument(operand.type(), loc));
    struct Cleanup {
      Block &scratch;
      Operation *op = nullptr;
      ~Cleanup() {
        if (op)
          op->destroy();
        scratch.eraseArguments(0, scratch.getNumArguments());
      }
    } cleanup{scratch};
    cleanup.op = create(kind, placeholders, dictionary, given);
    std::vector<Val> results = tryFold(cleanup.op, operands, why);
    if (!results.empty())
      return results;
  }
  SmallVector<Value> values;
  for (const Val &operand : operands)
    values.push_back(ssa(operand));
  Operation *op = create(kind, values, dictionary, given);
  builder.insert(op);
  std::vector<Val> results = resultsOf(op);
  for (Val &result : results)
    result.state->foldNote = why;
  return results;
}

std::vector<Val> Emitter::resultsOf(Operation *op) {
  std::vector<Val> results;
  for (Value result : op->getResults())
    results.push_back(fromSSA(result));
  return results;
}

RankedTensorType Emitter::typeOf(DType type, const Dims &dims) const {
  auto result = dmir::tensorOf(dims, dmir::elementTypeOf(type, context()));
  checkSize(result);
  return result;
}

} // namespace dmxc::frontend
