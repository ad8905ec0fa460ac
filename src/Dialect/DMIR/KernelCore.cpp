//===- KernelCore.cpp - cores that run what users wrote --------------------===//
#include "dmxc/Dialect/DMIR/Kernels.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace dmxc::dmir {

static constexpr StringRef kCuts[] = {"rows", "steps"};

static std::optional<KernelCut> &cutOf(KernelCore &core, StringRef key) {
  return key == kCuts[0] ? core.rows : core.steps;
}

DictionaryAttr coreAttr(const KernelCore &core, MLIRContext *context) {
  Builder b(context);
  KernelCore of = core;
  NamedAttrList entry;
  entry.set("cycles", dimAttr(context, core.cycles));
  entry.set("items", dimAttr(context, core.items));
  entry.set("library", b.getStringAttr(core.library));
  entry.set("names", b.getStrArrayAttr(SmallVector<StringRef>(core.names.begin(), core.names.end())));
  entry.set("scalars", DimsAttr::get(context, core.scalars));
  for (StringRef key : kCuts)
    if (const std::optional<KernelCut> &cut = cutOf(of, key))
      entry.set(key, b.getDictionaryAttr({b.getNamedAttr("axes", b.getDenseI64ArrayAttr(cut->axes)),
                                          b.getNamedAttr("extent", dimAttr(context, cut->extent))}));
  return entry.getDictionary(context);
}

KernelCore coreOf(DictionaryAttr attr) {
  KernelCore core;
  core.cycles = dimOfAttr(attr.get("cycles"), 0);
  core.items = dimOfAttr(attr.get("items"), 1);
  core.library = attr.getAs<StringAttr>("library").str();
  for (auto name : attr.getAs<ArrayAttr>("names").getAsRange<StringAttr>())
    core.names.push_back(name.str());
  llvm::append_range(core.scalars, attr.getAs<DimsAttr>("scalars").getDims());
  for (StringRef key : kCuts)
    if (auto cut = attr.getAs<DictionaryAttr>(key)) {
      KernelCut &own = cutOf(core, key).emplace();
      own.extent = dimOfAttr(cut.get("extent"), 1);
      llvm::append_range(own.axes, cut.getAs<DenseI64ArrayAttr>("axes").asArrayRef());
    }
  return core;
}

static bool isCut(Attribute attr) {
  auto cut = dyn_cast<DictionaryAttr>(attr);
  return cut && cut.size() == 2 && cut.getAs<DenseI64ArrayAttr>("axes") && isDimAttr(cut.get("extent"));
}

bool isCore(Attribute attr) {
  auto core = dyn_cast<DictionaryAttr>(attr);
  size_t cuts = core ? llvm::count_if(kCuts, [&](StringRef key) { return core.contains(key); }) : 0;
  auto names = core ? core.getAs<ArrayAttr>("names") : ArrayAttr();
  return names && core.size() == 5 + cuts && isDimAttr(core.get("cycles")) && isDimAttr(core.get("items")) &&
         core.getAs<StringAttr>("library") && core.getAs<DimsAttr>("scalars") &&
         llvm::all_of(names, [](Attribute name) { return isa<StringAttr>(name); }) &&
         llvm::all_of(kCuts, [&](StringRef key) { return !core.contains(key) || isCut(core.get(key)); });
}

static Dim valueOf(Dim dim, const std::map<std::string, Dim> &values) {
  return dim.substitute([&](std::string_view name) {
    auto found = values.find(std::string(name));
    return found == values.end() ? Dim::symbol(name) : found->second;
  });
}

KernelCore boundCore(const KernelDecl &decl, KernelCore core, std::map<std::string, Dim> values) {
  const std::map<std::string, Dim> whole = values;
  for (StringRef key : llvm::reverse(kCuts)) // steps, then rows
    if (std::optional<KernelCut> &cut = cutOf(core, key)) {
      cut->extent = valueOf(cut->extent, whole);
      if (auto all = whole.find(cut->dim); all != whole.end())
        cut->extent = Dim::min(cut->extent, all->second);
      values[cut->dim] = cut->extent;
    }
  core.cycles = valueOf(core.cycles, values);
  core.items = valueOf(decl.work, values);
  if (core.steps)
    values[core.steps->dim] = valueOf(Dim::symbol(core.steps->dim), whole);
  core.scalars.clear();
  for (Dim scalar : decl.scalars)
    core.scalars.push_back(valueOf(scalar, values));
  return core;
}

LogicalResult ExternOp::verifyCores() {
  SmallVector<int64_t> ranks;
  for (TypeRange types : {TypeRange(getInputs()), TypeRange(getResults())})
    for (Type type : types)
      ranks.push_back(cast<RankedTensorType>(type).getRank());
  for (auto body : getBodies().getAsRange<DictionaryAttr>()) {
    auto attr = body.getAs<DictionaryAttr>("core");
    KernelCore core = attr ? coreOf(attr) : KernelCore();
    for (const std::optional<KernelCut> &cut : {core.rows, core.steps}) {
      bool good = !cut || cut->axes.size() == ranks.size();
      for (size_t i = 0; cut && good && i < ranks.size(); ++i)
        good = cut->axes[i] >= -1 && cut->axes[i] < ranks[i];
      if (!good)
        return emitOpError("C6: a core's cut has an axis, or -1, of each operand and result");
    }
    if (attr && core.names.size() != ranks.size())
      return emitOpError("C6: a core has ")
             << core.names.size() << " names of " << ranks.size() << " operands and results";
  }
  return success();
}

} // namespace dmxc::dmir
