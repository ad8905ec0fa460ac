//===- Kernels.cpp - kernels that users wrote ------------------------------===//
#include "dmxc/Dialect/DMIR/Kernels.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"

#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace mlir;

#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/KernelOps.cpp.inc"

namespace dmxc::dmir {

//===--- The set ---------------------------------------------------------------===//

KernelSet &KernelSet::of(MLIRContext *context) {
  return *context->getOrLoadDialect<DMIRDialect>()->getRegisteredInterface<KernelSet>();
}

static bool isSameOp(const KernelDecl &a, const KernelDecl &b) {
  return a.op && b.op && a.op->name == b.op->name && a.op->attributes == b.op->attributes;
}

static Error twoKernels(const std::string &what, const std::string &name, const std::string &file,
                        const std::string &other, const std::string &otherFile) {
  return modelError(what + " has two kernels, '" + other + "' in " + otherFile + " and '" + name + "' in " + file +
                    "; leave one of them out");
}

Status KernelSet::add(MicroDecl decl) {
  auto isTaken = [&](const auto &other) { return other.name == decl.name; };
  auto kernel = llvm::find_if(decls, isTaken);
  auto micro = llvm::find_if(microDecls, isTaken);
  if (kernel != decls.end() || micro != microDecls.end())
    return twoKernels("the name '" + decl.name + "'", decl.name, decl.file, decl.name,
                      kernel != decls.end() ? kernel->file : micro->file);
  microDecls.push_back(std::move(decl));
  return Status::ok();
}

Status KernelSet::add(KernelDecl decl) {
  if (const MicroDecl *micro = findMicro(decl.name))
    return twoKernels("the name '" + decl.name + "'", decl.name, decl.file, decl.name, micro->file);
  for (const KernelDecl &other : decls) {
    std::string what;
    if (decl.name == other.name)
      what = "the name '" + decl.name + "'";
    else if (decl.onnx && other.onnx && decl.onnx->domain == other.onnx->domain && decl.onnx->op == other.onnx->op &&
             decl.onnx->since == other.onnx->since)
      what = "the ONNX operator " + decl.onnx->op + " of domain '" + decl.onnx->domain + "'";
    else if (!decl.torch.empty() && decl.torch == other.torch)
      what = "the torch operator " + decl.torch;
    else if (isSameOp(decl, other))
      what = "the op " + decl.op->name;
    if (!what.empty())
      return twoKernels(what, decl.name, decl.file, other.name, other.file);
  }
  if (decl.reference)
    getDialect()->getRegisteredInterface<DataFiles>()->admit(decl.reference->file);
  decls.push_back(std::move(decl));
  return Status::ok();
}

MicroDecl *KernelSet::findMicro(StringRef name) {
  auto found = llvm::find_if(microDecls, [&](const MicroDecl &decl) { return decl.name == name; });
  return found == microDecls.end() ? nullptr : &*found;
}

const KernelDecl *KernelSet::ofOnnx(StringRef domain, StringRef op, std::optional<int64_t> version) const {
  const KernelDecl *best = nullptr;
  for (const KernelDecl &decl : decls)
    if (decl.onnx && decl.onnx->domain == domain && decl.onnx->op == op &&
        decl.onnx->since <= version.value_or(INT64_MAX) && (!best || decl.onnx->since > best->onnx->since))
      best = &decl;
  return best;
}

const KernelDecl *KernelSet::ofTorch(StringRef name) const {
  for (const KernelDecl &decl : decls) {
    if (decl.torch.empty())
      continue;
    auto [library, op] = StringRef(decl.torch).split("::");
    StringRef rest = name;
    if (rest.consume_front(library) && rest.consume_front(".") && rest.consume_front(op) &&
        (rest.empty() || (rest.front() == '.' && !op.contains('.'))))
      return &decl;
  }
  return nullptr;
}

//===--- Binding ---------------------------------------------------------------===//

namespace {

std::string typeNames(ArrayRef<DType> types) {
  return llvm::join(llvm::map_range(types, [](DType type) { return std::string(dtypeName(type)); }), " or ");
}

class Binding {
public:
  Binding(const KernelDecl &decl, ArrayRef<RankedTensorType> operands) : decl(decl), operands(operands) {}

  Result<KernelUse> run(const std::map<std::string, int64_t> &given) {
    if (operands.size() != decl.operands.size())
      return modelError("the kernel '" + decl.name + "' takes " + std::to_string(decl.operands.size()) +
                        " operands, not " + std::to_string(operands.size()));
    for (auto step : {&Binding::bindTypes, &Binding::bindDims})
      if (Status s = (this->*step)(); !s)
        return s.takeError();
    KernelUse use;
    for (const auto &[name, otherwise] : decl.attributes) {
      auto number = given.find(name);
      if (number == given.end() && !otherwise)
        return modelError("the kernel '" + decl.name + "' wants a number '" + name + "', which is not given");
      use.numbers[name] = number == given.end() ? *otherwise : number->second;
      values[name] = use.numbers[name];
    }
    if (Status s = expect(use); !s)
      return s.takeError();
    if (Status s = addResults(use); !s)
      return s.takeError();
    for (Dim scalar : decl.scalars)
      use.scalars.push_back(resolve(scalar));
    for (Dim count : {decl.work, decl.grain, decl.scratch})
      use.counts.push_back(resolve(count));
    if (use.counts[0].valueOr(0) < 0 || use.counts[1].valueOr(1) < 1 || use.counts[2].valueOr(0) < 0)
      return modelError("the kernel '" + decl.name + "' would have work " + use.counts[0].str() + ", grain " +
                        use.counts[1].str() + " and scratch " + use.counts[2].str() + " here");
    use.counts[1] = Dim::max(use.counts[1], 1);
    if (Status s = addBodies(use); !s)
      return s.takeError();
    return use;
  }

private:
  std::string operandName(size_t i) const {
    return "operand '" + decl.operands[i].name + "' of the kernel '" + decl.name + "' ";
  }

  Status bindTypes() {
    for (auto [i, type] : llvm::enumerate(operands)) {
      std::optional<DType> element = dtypeOf(type.getElementType());
      if (!element || !llvm::is_contained(decl.operands[i].types, *element))
        return modelError(operandName(i) + "is " + (element ? std::string(dtypeName(*element)) : "of another type") +
                          ", its signature has " + typeNames(decl.operands[i].types));
      types[decl.operands[i].name] = *element;
      if (static_cast<size_t>(type.getRank()) != decl.operands[i].shape.size())
        return modelError(operandName(i) + "has rank " + std::to_string(type.getRank()) + ", its signature has " +
                          std::to_string(decl.operands[i].shape.size()));
    }
    return Status::ok();
  }

  /// A name is what the first axis has that it stands for alone.
  Status bindDims() {
    for (auto [i, type] : llvm::enumerate(operands))
      for (auto [dim, actual] : llvm::zip(decl.operands[i].shape, dimsOf(type)))
        if (std::optional<std::string> name = dim.symbolName(); name && !isAttribute(*name))
          values.try_emplace(*name, actual);
    return Status::ok();
  }

  bool isAttribute(const std::string &name) const {
    return llvm::any_of(decl.attributes, [&](const auto &attribute) { return attribute.first == name; });
  }

  Dim resolve(Dim dim) const {
    return dim.substitute([&](std::string_view name) {
      auto found = values.find(std::string(name));
      return found == values.end() ? Dim::symbol(name) : found->second;
    });
  }

  Status expect(KernelUse &use) {
    for (auto [i, type] : llvm::enumerate(operands)) {
      SmallVector<Dim> wanted, actual = dimsOf(type);
      for (auto [axis, dim] : llvm::enumerate(decl.operands[i].shape)) {
        wanted.push_back(resolve(dim));
        if (wanted.back().isStatic() && actual[axis].isStatic() && wanted.back() != actual[axis])
          return modelError(operandName(i) + "has " + actual[axis].str() + " along axis " + std::to_string(axis) +
                            ", its signature has " + dim.str() + ", which is " + wanted.back().str() + " here");
      }
      if (wanted != actual)
        use.expected.push_back({i, std::move(wanted)});
    }
    return Status::ok();
  }

  Status addResults(KernelUse &use) {
    MLIRContext *context = operands.front().getContext();
    for (const KernelTensor &result : decl.results) {
      SmallVector<Dim> dims;
      for (Dim dim : result.shape) {
        dims.push_back(resolve(dim));
        if (dims.back().valueOr(0) < 0)
          return modelError("result '" + result.name + "' of the kernel '" + decl.name + "' would have " +
                            dims.back().str() + " elements along an axis");
      }
      DType type = result.types.empty() ? types.at(result.like) : result.types.front();
      use.results.push_back(tensorOf(dims, elementTypeOf(type, context)));
    }
    return Status::ok();
  }

  Status addBodies(KernelUse &use) {
    std::vector<BoundTensor> tensors;
    auto add = [&](const KernelTensor &tensor, Type type) {
      tensors.push_back({tensor.name, *dtypeOf(cast<RankedTensorType>(type).getElementType()), {}});
      llvm::append_range(tensors.back().shape, dimsOf(type));
    };
    for (auto [operand, type] : llvm::zip_equal(decl.operands, operands))
      add(operand, type);
    for (auto [result, type] : llvm::zip_equal(decl.results, use.results))
      add(result, type);
    for (const KernelBody &body : decl.bodies) {
      if (!fits(body))
        continue;
      KernelBody &bound = use.bodies.emplace_back(body);
      if (body.core)
        bound.core = boundCore(decl, *body.core, values);
      if (!body.launch)
        continue;
      Result<KernelLaunch> launch = boundLaunch(*body.launch, tensors, [&](Dim dim) { return resolve(dim); });
      if (!launch)
        return modelError("the launch of the kernel '" + decl.name + "' for " + body.target + ": " +
                          launch.error().message);
      bound.launch = std::move(*launch);
    }
    return Status::ok();
  }

  bool fits(const KernelBody &body) const {
    return llvm::all_of(body.types, [&](const auto &entry) {
      auto type = types.find(entry.first);
      return type != types.end() && type->second == entry.second;
    });
  }

  const KernelDecl &decl;
  ArrayRef<RankedTensorType> operands;
  std::map<std::string, DType> types;
  std::map<std::string, Dim> values;
};

} // namespace

Result<KernelUse> bindKernel(const KernelDecl &decl, ArrayRef<RankedTensorType> operands,
                             const std::map<std::string, int64_t> &given) {
  return Binding(decl, operands).run(given);
}

//===--- The op ----------------------------------------------------------------===//

/// A body as the op has it.
static DictionaryAttr bodyAttr(Builder &builder, const KernelBody &body) {
  NamedAttrList entry;
  for (auto [key, text] : {std::pair("target", &body.target),
                           {"file", &body.file},
                           {"sha256", &body.sha256},
                           {"symbol", &body.symbol},
                           {"abi", &body.abi}})
    entry.set(key, builder.getStringAttr(*text));
  SmallVector<StringRef> features(body.features.begin(), body.features.end());
  entry.set("features", builder.getStrArrayAttr(features));
  if (body.launch)
    entry.set("launch", launchAttr(*body.launch, builder.getContext()));
  if (body.core)
    entry.set("core", coreAttr(*body.core, builder.getContext()));
  return entry.getDictionary(builder.getContext());
}

static DictionaryAttr referenceAttr(Builder &builder, const KernelReference &reference,
                                    const std::map<std::string, int64_t> &numbers) {
  NamedAttrList entry, given;
  for (const auto &[name, number] : numbers)
    given.set(name, builder.getI64IntegerAttr(number));
  SmallVector<StringRef> functions(reference.functions.begin(), reference.functions.end());
  entry.set("file", builder.getStringAttr(reference.file));
  entry.set("sha256", builder.getStringAttr(reference.sha256));
  entry.set("functions", builder.getStrArrayAttr(functions));
  entry.set("numbers", given.getDictionary(builder.getContext()));
  return entry.getDictionary(builder.getContext());
}

ExternOp makeExtern(OpBuilder &builder, Location loc, const KernelDecl &decl, const KernelUse &use,
                    ValueRange operands) {
  SmallVector<Attribute> bodies;
  for (const KernelBody &body : use.bodies)
    bodies.push_back(bodyAttr(builder, body));
  MLIRContext *context = builder.getContext();
  return ExternOp::create(builder, loc, use.results, builder.getStringAttr(decl.name), operands,
                          builder.getArrayAttr(bodies), DimsAttr::get(context, use.counts),
                          dimsAttr(context, use.scalars),
                          decl.reference ? referenceAttr(builder, *decl.reference, use.numbers) : DictionaryAttr());
}

static bool areTexts(ArrayAttr items) {
  return items && llvm::all_of(items, [](Attribute item) { return isa<StringAttr>(item); });
}

static bool isI64(Attribute attr) {
  auto number = dyn_cast<IntegerAttr>(attr);
  return number && number.getType().isInteger(64);
}

bool isKernelReference(Attribute attr) {
  auto entry = dyn_cast_or_null<DictionaryAttr>(attr);
  auto numbers = entry ? entry.getAs<DictionaryAttr>("numbers") : DictionaryAttr();
  return numbers && entry.size() == 4 && entry.getAs<StringAttr>("file") && entry.getAs<StringAttr>("sha256") &&
         areTexts(entry.getAs<ArrayAttr>("functions")) &&
         llvm::all_of(numbers, [](NamedAttribute number) { return isI64(number.getValue()); });
}

KernelReference kernelReferenceOf(DictionaryAttr attr) {
  KernelReference reference{attr.getAs<StringAttr>("file").str(), attr.getAs<StringAttr>("sha256").str(), {}};
  for (auto name : attr.getAs<ArrayAttr>("functions").getAsRange<StringAttr>())
    reference.functions.push_back(name.str());
  return reference;
}

bool isDimAttr(Attribute attr) {
  auto dims = dyn_cast_or_null<DimsAttr>(attr);
  return (attr && isI64(attr)) || (dims && dims.getDims().size() == 1);
}

static bool isMap(Attribute attr) {
  auto map = dyn_cast<DictionaryAttr>(attr);
  auto sizes = map ? map.getAs<DimsAttr>("sizes") : DimsAttr(), strides = map ? map.getAs<DimsAttr>("strides") : sizes;
  if (!sizes || !strides || map.size() != 8 || strides.getDims().size() + 1 != sizes.getDims().size())
    return false;
  auto numbers = [&](StringRef key) { return map.getAs<DenseI64ArrayAttr>(key); };
  return numbers("box") && numbers("steps") && numbers("box").size() == std::ssize(sizes.getDims()) &&
         numbers("steps").size() == std::ssize(sizes.getDims()) && map.getAs<StringAttr>("type") &&
         isDimAttr(map.get("offset")) && llvm::all_of(ArrayRef<StringRef>{"buffer", "swizzle"}, [&](StringRef key) {
           return map.get(key) && isI64(map.get(key)) && map.getAs<IntegerAttr>(key).getInt() >= 0;
         });
}

static bool isLaunch(Attribute attr) {
  auto launch = dyn_cast<DictionaryAttr>(attr);
  auto maps = launch ? launch.getAs<ArrayAttr>("maps") : ArrayAttr();
  return maps && launch.size() == 5 && isDimAttr(launch.get("grid")) && llvm::all_of(maps, isMap) &&
         llvm::all_of(ArrayRef<StringRef>{"block", "shared", "cluster"},
                      [&](StringRef key) { return launch.get(key) && isI64(launch.get(key)); });
}

bool isKernelBody(Attribute attr) {
  auto body = dyn_cast<DictionaryAttr>(attr);
  return body && (!body.contains("launch") || isLaunch(body.get("launch"))) &&
         (!body.contains("core") || isCore(body.get("core"))) && areTexts(body.getAs<ArrayAttr>("features")) &&
         llvm::all_of(ArrayRef<StringRef>{"target", "file", "sha256", "symbol", "abi"},
                      [&](StringRef key) { return bool(body.getAs<StringAttr>(key)); });
}

LogicalResult ExternOp::verify() {
  if (!llvm::all_of(getBodies(), isKernelBody))
    return emitOpError(
        "C1: each body must be {target, file, sha256, symbol, abi, features} of texts, and may have a "
        "launch {grid, block, shared, cluster, maps} or a core {cycles, items, library, names, scalars, rows, steps}");
  if (getReferenceAttr() && !isKernelReference(getReferenceAttr()))
    return emitOpError("C4: the reference must be {file, sha256, functions, numbers}: texts, and integers by names");
  if (getCounts().getDims().size() != 3)
    return emitOpError("C2: counts must be the work items, the grain and the bytes of scratch");
  std::set<std::string, std::less<>> known;
  for (TypeRange types : {TypeRange(getInputs()), TypeRange(getResults())})
    for (Type type : types)
      for (Dim dim : dimsOf(type))
        dim.forEachSymbol([&](std::string_view name) { known.emplace(name); });
  std::string unknown;
  auto look = [&](DimsAttr dims) {
    for (Dim dim : dims.getDims())
      dim.forEachSymbol([&](std::string_view name) { unknown = known.contains(name) ? unknown : std::string(name); });
  };
  look(getCounts());
  if (getScalars())
    look(*getScalars());
  getBodies().walk(look);
  if (!unknown.empty())
    return emitOpError("C3: no operand or result has the dim '") << unknown << "'";
  for (auto body : getBodies().getAsRange<DictionaryAttr>())
    if (auto launch = body.getAs<DictionaryAttr>("launch"))
      for (auto map : launch.getAs<ArrayAttr>("maps").getAsRange<DictionaryAttr>())
        if (map.getAs<IntegerAttr>("buffer").getInt() >= int64_t(getNumOperands()) + int64_t(getNumResults()))
          return emitOpError("C5: a map is of a tensor that is none of the operands and results");
  return verifyCores();
}

SmallVector<DictionaryAttr> bodiesFor(ArrayAttr bodies, StringRef target) {
  SmallVector<DictionaryAttr> found;
  for (auto body : bodies.getAsRange<DictionaryAttr>())
    if (body.getAs<StringAttr>("target").getValue() == target)
      found.push_back(body);
  return found;
}

SmallVector<DictionaryAttr> ExternOp::bodiesFor(StringRef target) { return dmir::bodiesFor(getBodies(), target); }

//===--- Micro-kernels ---------------------------------------------------------===//

DictionaryAttr microKernelAttr(const MicroDecl &decl, MLIRContext *context) {
  Builder builder(context);
  SmallVector<Attribute> bodies;
  for (const KernelBody &body : decl.bodies)
    bodies.push_back(bodyAttr(builder, body));
  NamedAttrList entry;
  entry.set("kernel", builder.getStringAttr(decl.name));
  entry.set("tile", builder.getI64ArrayAttr({decl.rows, decl.columns}));
  entry.set("bodies", builder.getArrayAttr(bodies));
  return entry.getDictionary(context);
}

bool isMicroKernel(Attribute attr) {
  auto entry = dyn_cast_or_null<DictionaryAttr>(attr);
  auto tile = entry ? entry.getAs<ArrayAttr>("tile") : ArrayAttr();
  auto bodies = entry ? entry.getAs<ArrayAttr>("bodies") : ArrayAttr();
  return tile && bodies && entry.size() == 3 && entry.getAs<StringAttr>("kernel") && tile.size() == 2 &&
         llvm::all_of(tile, [](Attribute size) { return isI64(size); }) && llvm::all_of(bodies, isKernelBody);
}

} // namespace dmxc::dmir
