//===- KernelLaunch.cpp - blocks that run what users wrote -----------------===//
#include "dmxc/Dialect/DMIR/Kernels.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace dmxc::dmir {

//===--- As attributes ---------------------------------------------------------===//

static DictionaryAttr mapAttr(Builder &b, const KernelMap &map) {
  NamedAttrList entry;
  entry.set("buffer", b.getI64IntegerAttr(static_cast<int64_t>(map.buffer)));
  entry.set("type", b.getStringAttr(map.type));
  entry.set("sizes", DimsAttr::get(b.getContext(), map.sizes));
  entry.set("strides", DimsAttr::get(b.getContext(), map.strides));
  entry.set("box", b.getDenseI64ArrayAttr(map.box));
  entry.set("steps", b.getDenseI64ArrayAttr(map.steps));
  entry.set("swizzle", b.getI64IntegerAttr(map.swizzle));
  entry.set("offset", dimAttr(b.getContext(), map.offset));
  return entry.getDictionary(b.getContext());
}

DictionaryAttr launchAttr(const KernelLaunch &launch, MLIRContext *context) {
  Builder b(context);
  SmallVector<Attribute> maps;
  for (const KernelMap &map : launch.maps)
    maps.push_back(mapAttr(b, map));
  NamedAttrList entry;
  entry.set("grid", dimAttr(context, launch.grid));
  entry.set("block", b.getI64IntegerAttr(launch.block));
  entry.set("shared", b.getI64IntegerAttr(launch.shared));
  entry.set("cluster", b.getI64IntegerAttr(launch.cluster));
  entry.set("maps", b.getArrayAttr(maps));
  return entry.getDictionary(context);
}

KernelLaunch launchOf(DictionaryAttr attr) {
  auto number = [](DictionaryAttr from, StringRef key) { return from.getAs<IntegerAttr>(key).getInt(); };
  KernelLaunch launch{
      dimOfAttr(attr.get("grid"), 1), number(attr, "block"), number(attr, "shared"), number(attr, "cluster"), {}};
  for (auto entry : attr.getAs<ArrayAttr>("maps").getAsRange<DictionaryAttr>()) {
    KernelMap &map = launch.maps.emplace_back();
    map.buffer = static_cast<size_t>(number(entry, "buffer"));
    map.type = entry.getAs<StringAttr>("type").str();
    llvm::append_range(map.sizes, entry.getAs<DimsAttr>("sizes").getDims());
    llvm::append_range(map.strides, entry.getAs<DimsAttr>("strides").getDims());
    llvm::append_range(map.box, entry.getAs<DenseI64ArrayAttr>("box").asArrayRef());
    llvm::append_range(map.steps, entry.getAs<DenseI64ArrayAttr>("steps").asArrayRef());
    map.swizzle = number(entry, "swizzle");
    map.offset = dimOfAttr(entry.get("offset"), 0);
  }
  return launch;
}

//===--- For operands ----------------------------------------------------------===//

/// What a machine that copies calls elements that it does not compute with.
static std::string copiedType(DType type) {
  switch (type) {
  case DType::Bool:
  case DType::I8:
    return "u8";
  case DType::I16:
    return "u16";
  case DType::I32:
    return "s32";
  case DType::I64:
    return "s64";
  default:
    return std::string(dtypeName(type));
  }
}

/// What of a map is left open is what its tensor has: all of it, row by row.
static Result<KernelMap> boundMap(KernelMap map, const BoundTensor &tensor, llvm::function_ref<Dim(Dim)> resolve) {
  std::string own = copiedType(tensor.type);
  if (map.type.empty())
    map.type = own;
  if (map.type != own && !(map.type == "tf32" && own == "f32"))
    return modelError("it reads '" + map.tensor + "' as " + map.type + ", and that is " +
                      std::string(dtypeName(tensor.type)) +
                      (own == "f32" ? "; it may be f32 or tf32" : "; it is " + own));
  if (map.sizes.empty()) {
    Dim bytes = static_cast<int64_t>(dtypeBits(tensor.type) / 8);
    for (Dim size : llvm::reverse(tensor.shape)) {
      if (!map.sizes.empty())
        map.strides.push_back(bytes);
      map.sizes.push_back(size);
      bytes *= size;
    }
  } else {
    for (auto *dims : {&map.sizes, &map.strides})
      for (Dim &dim : *dims)
        dim = resolve(dim);
  }
  map.offset = resolve(map.offset);
  if (map.strides.size() + 1 != map.sizes.size())
    return modelError("it has " + std::to_string(map.sizes.size()) + " sizes and " +
                      std::to_string(map.strides.size()) + " strides; all axes but the innermost have one");
  if (map.box.size() != map.sizes.size())
    return modelError("its box has " + std::to_string(map.box.size()) + " axes, '" + map.tensor + "' has " +
                      std::to_string(map.sizes.size()) + ", the innermost first");
  if (map.steps.empty())
    map.steps.assign(map.box.size(), 1);
  if (map.steps.size() != map.box.size())
    return modelError("its steps are " + std::to_string(map.steps.size()) + ", its box has " +
                      std::to_string(map.box.size()) + " axes");
  return map;
}

Result<KernelLaunch> boundLaunch(const KernelLaunch &launch, ArrayRef<BoundTensor> tensors,
                                 llvm::function_ref<Dim(Dim)> resolve) {
  KernelLaunch bound = launch;
  bound.grid = resolve(launch.grid);
  for (auto [i, map] : llvm::enumerate(bound.maps)) {
    auto tensor = llvm::find_if(tensors, [&](const BoundTensor &each) { return each.name == map.tensor; });
    Result<KernelMap> whole = boundMap(map, *tensor, resolve);
    if (!whole)
      return modelError("map " + std::to_string(i) + ": " + whole.error().message);
    map = std::move(*whole);
    map.buffer = static_cast<size_t>(tensor - tensors.begin());
  }
  return bound;
}

//===--- What a bundle says of it ----------------------------------------------===//

void noteUserCode(ArrayRef<UserCodeNote> used, Operation *kernel) {
  Builder builder(kernel->getContext());
  SmallVector<Attribute> notes;
  if (auto before = kernel->getAttrOfType<ArrayAttr>(kUserCodeAttr))
    notes.append(before.begin(), before.end());
  for (const UserCodeNote &code : used) {
    NamedAttrList note;
    for (const auto &[key, text] : {std::pair("kernel", &code.kernel),
                                    {"arch", &code.arch},
                                    {"file", &code.file},
                                    {"symbol", &code.symbol},
                                    {"sha256", &code.sha256}})
      note.set(key, builder.getStringAttr(*text));
    notes.push_back(note.getDictionary(kernel->getContext()));
  }
  if (!notes.empty())
    kernel->setAttr(kUserCodeAttr, builder.getArrayAttr(notes));
}

} // namespace dmxc::dmir
