//===- Dims.cpp - dims of tensors that may be symbolic ----------------------===//
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

Dim dmir::unnamedDim() { return Dim::symbol("?"); }

static RankedTensorType tensorType(Type type) { return cast<RankedTensorType>(type); }

/// The part of an encoding that is an AttrT: open dims in a layout have an array of both.
template <typename AttrT> static AttrT partOf(Attribute encoding) {
  if (auto parts = dyn_cast_or_null<mlir::ArrayAttr>(encoding)) {
    for (Attribute part : parts)
      if (auto found = dyn_cast<AttrT>(part))
        return found;
    return {};
  }
  return dyn_cast_or_null<AttrT>(encoding);
}

SmallVector<Dim> dmir::dimsOf(Type type) {
  auto tensor = tensorType(type);
  auto named = partOf<DimsAttr>(tensor.getEncoding());
  return mixDims(tensor.getShape(), named ? std::optional<DimsAttr>(named) : std::nullopt);
}

Dim dmir::dimOf(Type type, int64_t axis) {
  int64_t dim = tensorType(type).getDimSize(axis);
  return ShapedType::isDynamic(dim) ? dimsOf(type)[axis] : Dim(dim);
}

Dim dmir::product(ArrayRef<Dim> dims) {
  Dim total = 1;
  for (Dim dim : dims)
    total *= dim;
  return total;
}

Dim dmir::elementsOf(Type type) { return product(dimsOf(type)); }

RankedTensorType dmir::tensorOf(ArrayRef<Dim> dims, Type element, Attribute layout) {
  SmallVector<Dim> dynamic;
  SmallVector<int64_t> shape = splitDims(dims, dynamic);
  MLIRContext *context = element.getContext();
  Attribute named = dimsAttr(context, dynamic), encoding = layout;
  if (named)
    encoding = layout ? mlir::ArrayAttr::get(context, {named, layout}) : named;
  return RankedTensorType::get(shape, element, encoding);
}

Attribute dmir::layoutOf(Type type) {
  Attribute encoding = tensorType(type).getEncoding();
  if (isa_and_nonnull<mlir::ArrayAttr>(encoding))
    return partOf<BlockedAttr>(encoding);
  return isa_and_nonnull<DimsAttr>(encoding) ? Attribute() : encoding;
}

SmallVector<Dim> dmir::mixDims(ArrayRef<int64_t> numbers, std::optional<DimsAttr> dims, size_t from) {
  SmallVector<Dim> result;
  for (int64_t number : numbers)
    if (!ShapedType::isDynamic(number))
      result.push_back(number);
    else if (dims && from < dims->getDims().size())
      result.push_back(dims->getDims()[from++]);
    else
      result.push_back(unnamedDim());
  return result;
}

size_t dmir::countDynamic(ArrayRef<int64_t> numbers) {
  return llvm::count_if(numbers, [](int64_t number) { return ShapedType::isDynamic(number); });
}

SmallVector<int64_t> dmir::splitDims(ArrayRef<Dim> dims, SmallVectorImpl<Dim> &dynamic) {
  SmallVector<int64_t> numbers;
  for (Dim dim : dims) {
    numbers.push_back(dim.valueOr(ShapedType::kDynamic));
    if (!dim.isStatic())
      dynamic.push_back(dim);
  }
  return numbers;
}

DimsAttr dmir::dimsAttr(MLIRContext *context, ArrayRef<Dim> dims) {
  return dims.empty() ? DimsAttr() : DimsAttr::get(context, dims);
}

Attribute dmir::dimAttr(MLIRContext *context, Dim dim) {
  if (std::optional<int64_t> number = dim.known())
    return IntegerAttr::get(IntegerType::get(context, 64), *number);
  return DimsAttr::get(context, dim);
}

Dim dmir::dimOfAttr(Attribute attr, Dim otherwise) {
  if (auto number = dyn_cast_or_null<IntegerAttr>(attr))
    return number.getInt();
  auto dims = dyn_cast_or_null<DimsAttr>(attr);
  return dims && dims.getDims().size() == 1 ? dims.getDims().front() : otherwise;
}

std::optional<SmallVector<Dim>> dmir::broadcastDims(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  SmallVector<Dim> result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1), y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    if (x.isStatic() && y.isStatic() && !(x == y) && !x.is(1) && !y.is(1))
      return std::nullopt;
    result[result.size() - 1 - i] = Dim::broadcast(x, y);
  }
  return result;
}

Dim dmir::windowExtent(Dim in, Dim window, Dim stride, Dim dilation, Dim low, Dim high) {
  // No room gives 0, not a negative number: the rest of the division may be anything down to -stride.
  Dim count = Dim::floorDiv(in + low + high - dilation * (window - 1) - 1, stride) + 1;
  return count.neverNegative() ? count : Dim::max(count, 0);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

void dmir::setSymbolBounds(ModuleOp module, const std::map<std::string, DimBounds> &bounds) {
  Builder builder(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, range] : bounds)
    entries.push_back(builder.getNamedAttr(name, builder.getDenseI64ArrayAttr({range.min, range.max})));
  if (!entries.empty())
    module->setAttr(kDimsAttr, builder.getDictionaryAttr(entries));
}

DimBounds dmir::symbolBounds(Operation *op, StringRef symbol) {
  auto module = isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto table = module ? module->getAttrOfType<DictionaryAttr>(kDimsAttr) : DictionaryAttr();
  auto range = table ? table.getAs<DenseI64ArrayAttr>(symbol) : DenseI64ArrayAttr();
  if (!range || range.size() != 2)
    return {0, INT64_MAX};
  return {range[0], range[1]};
}

static void collect(Attribute attr, SymbolSet &symbols) {
  attr.walk([&](DimsAttr dims) {
    for (Dim dim : dims.getDims())
      dim.forEachSymbol([&](std::string_view name) { symbols.insert(StringAttr::get(dims.getContext(), name)); });
  });
}

void dmir::collectSymbols(Operation *op, SymbolSet &symbols) {
  auto types = [&](TypeRange range) {
    for (Type type : range)
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getEncoding())
        collect(tensor.getEncoding(), symbols);
  };
  types(op->getOperandTypes());
  types(op->getResultTypes());
  if (auto dims = op->getAttrOfType<DimsAttr>("dims"))
    collect(dims, symbols);
}

SymbolSet dmir::symbolsOf(Block *block) {
  SymbolSet symbols;
  for (BlockArgument argument : block->getArguments())
    if (Attribute encoding = tensorType(argument.getType()).getEncoding())
      collect(encoding, symbols);
  for (Operation &op : *block)
    collectSymbols(&op, symbols);
  return symbols;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<Dim> dims;
  auto one = [&]() -> ParseResult {
    std::string text;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseString(&text))
      return failure();
    Result<Dim> dim = Dim::parse(text);
    if (!dim)
      return parser.emitError(at, dim.error().message);
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, one))
    return {};
  return get(parser.getContext(), dims);
}

void DimsAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getDims(), printer, [&](Dim dim) { printer.printString(dim.str()); });
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Dims of ops
//===----------------------------------------------------------------------===//

SmallVector<Dim> SliceOp::getStartDims() { return mixDims(getStarts(), getDims()); }
SmallVector<Dim> SliceOp::getSizeDims() { return mixDims(getSizes(), getDims(), countDynamic(getStarts())); }
SmallVector<Dim> PadOp::getLowDims() { return mixDims(getLow(), getDims()); }
SmallVector<Dim> PadOp::getHighDims() { return mixDims(getHigh(), getDims(), countDynamic(getLow())); }
