//===- CompileKernels.cpp - kernels to objects for levels ---------------------===//

#include "CompileKernels.h"

#include "Kernels.h"
#include "targets/cpu/code/KeptCode.h"
#include "targets/cpu/product/PackedRows.h"
#include "targets/cpu/user/MicroKernel.h"
#include "targets/cpu/user/UserKernel.h"

#include "targets/common/code/CompileQueue.h"
#include "targets/common/code/KernelDialects.h"

#include "dmxc/Support/CodeCache.h"
#include "dmxc/Target/DecisionsMade.h"

#include "llvm/ADT/StringMap.h"

#include <map>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

StringRef dmxc::cpu::algorithmOf(Operation *kernel) {
  auto name = cast<dlir::KernelOp>(kernel).getStrategy().getAs<StringAttr>(strategy::kAlgorithm);
  return name ? name.getValue() : "";
}

bool dmxc::cpu::multipliesPairs(Operation *kernel) {
  DictionaryAttr strategy = cast<dlir::KernelOp>(kernel).getStrategy();
  return algorithmOf(kernel) == kMatmulPairs || (strategy.contains(kUnits) && unitsOf(strategy, {}).dots);
}

/// The one of `levels` whose code of a kernel level `number` has: its own, or for kernels that have no use for a unit
/// what it adds the unit to.
static size_t codeOf(Operation *kernel, size_t number, ArrayRef<IsaLevel> levels) {
  const IsaLevel &level = levels[number];
  StringRef algorithm = algorithmOf(kernel);
  Units units = unitsOf(cast<dlir::KernelOp>(kernel).getStrategy(), {});
  bool usesTiles = level.name == kTileLevel && units.tiles;
  bool usesBytes = algorithm.ends_with(kQuads), addsBytes = level.name == kVnniLevel;
  if ((!addsBytes && level.name != kDotsLevel && level.name != kTileLevel) || multipliesPairs(kernel) || usesTiles ||
      (addsBytes && usesBytes))
    return number;
  StringRef wanted = usesBytes ? StringRef(kVnniLevel) : "x86-64-v4";
  for (size_t other = 0; other < levels.size(); ++other)
    if (levels[other].name == wanted)
      return other;
  return number;
}

//===----------------------------------------------------------------------===//
// One kernel
//===----------------------------------------------------------------------===//

/// What a user wrote of a kernel that is emitted: all of it, or its full tiles.
static Result<std::optional<UserCode>> userCodeOf(dlir::KernelOp kernel, ModuleOp module, const IsaLevel &isa) {
  StringRef name;
  DictionaryAttr body;
  if (dmir::ExternOp called = userKernelOf(kernel)) {
    name = called.getKernel();
    body = bodyFor(called.getBodies(), isa);
  } else if (Attribute written = kernel.getStrategy().get(strategy::kMicroKernel)) {
    Result<MicroKernel> micro = MicroKernel::of(written);
    name = micro ? micro->name() : "";
    body = micro ? micro->bodyAt(isa) : DictionaryAttr();
  }
  if (!body || !module.lookupSymbol(linkedName(body)))
    return std::optional<UserCode>();
  Result<UserCode> code = readUserCode(name, body);
  if (!code)
    return code.takeError();
  return std::optional(std::move(*code));
}

namespace {

/// A kernel as loops and vectors of a level.
struct EmittedKernel {
  kernels::ParsedKernel source;
  OwningOpRef<ModuleOp> module;
  std::vector<int64_t> contract;
};

/// A kernel that others may be equal to but for names.
struct Source {
  std::string name, text;
  std::string nameless;      ///< "": it calls what a user wrote, and is shared with no other
  size_t first;              ///< the first kernel of this nameless text
  std::vector<size_t> codes; ///< codeOf each level
};

/// Kernels of a level that share code.
struct Family {
  size_t level;
  std::vector<size_t> members;
};

class Compiler {
public:
  Compiler(ArrayRef<Operation *> kernels, ArrayRef<IsaLevel> levels, const TargetOptions &options);
  Result<std::vector<std::vector<KernelObject>>> run();

private:
  using Shapes = std::vector<EmittedShape>; ///< of a level, by kernel; only those are there that are compiled for it

  Result<EmittedKernel> emit(size_t kernel, const IsaLevel &isa, MLIRContext &context) const;
  std::vector<size_t> sharedAt(size_t level) const;
  Status findShapes();
  std::vector<Family> familiesOf(size_t level) const;
  FamilyNumbers numbersOf(const Family &family) const;
  std::string keptNameOf(const Family &family) const;
  Result<KernelObject> compile(const Family &family, MLIRContext &context) const;
  Result<KernelObject> compileOrFind(const Family &family, MLIRContext &context) const;

  ArrayRef<IsaLevel> levels;
  const TargetOptions &options;
  std::vector<Source> sources;
  std::vector<Shapes> shapes;
};

} // namespace

Compiler::Compiler(ArrayRef<Operation *> kernels, ArrayRef<IsaLevel> levels, const TargetOptions &options)
    : levels(levels), options(options), shapes(levels.size(), Shapes(kernels.size())) {
  llvm::StringMap<size_t> seen;
  for (auto [k, op] : llvm::enumerate(kernels)) {
    auto kernel = cast<dlir::KernelOp>(op);
    Source source{kernel.getSymName().str(), kernels::kernelText(op), "", k, {}};
    if (!userKernelOf(kernel) && !kernel.getStrategy().contains(strategy::kMicroKernel)) {
      source.nameless = namelessText(kernel);
      source.first = seen.try_emplace(source.nameless, k).first->second;
    }
    for (size_t level = 0; level < levels.size(); ++level)
      source.codes.push_back(codeOf(op, level, levels));
    sources.push_back(std::move(source));
  }
}

Result<EmittedKernel> Compiler::emit(size_t k, const IsaLevel &isa, MLIRContext &context) const {
  Result<kernels::ParsedKernel> source = kernels::parseKernel(sources[k].text, context);
  if (!source)
    return source.takeError();
  dlir::KernelOp kernel = source->kernel;
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  Choice choice(kernel.getStrategy());
  choice.panels = panelsOf(kernel.getStrategy());
  DecisionsMade made;
  dmir::ExternOp called = userKernelOf(kernel);
  Result<std::vector<int64_t>> contract =
      called ? emitUserKernel(*module, kernel, isa) : cpuKernels().emit(*module, kernel, choice, isa);
  if (!contract)
    return contract.takeError();
  return EmittedKernel{std::move(*source), std::move(module), std::move(*contract)};
}

//===----------------------------------------------------------------------===//
// Families
//===----------------------------------------------------------------------===//

/// The kernels that are compiled for a level and may share code, of equal ones the first.
std::vector<size_t> Compiler::sharedAt(size_t level) const {
  std::vector<size_t> all;
  for (auto [k, source] : llvm::enumerate(sources))
    if (source.first == k && !source.nameless.empty() && source.codes[level] == level)
      all.push_back(k);
  return all;
}

/// Emits the kernels of each level to see which are of one family. A cache has that of all of them at once.
Status Compiler::findShapes() {
  CodeCache *cache = CodeCache::current();
  std::vector<std::pair<size_t, size_t>> jobs; // level and kernel
  std::vector<std::string> names, keys(levels.size());
  for (auto [level, isa] : llvm::enumerate(levels)) {
    std::vector<size_t> shared = sharedAt(level);
    std::string all = "shapes";
    for (size_t k : shared)
      all += "\n" + sources[k].nameless;
    std::optional<Shapes> known;
    if (cache && !shared.empty()) {
      keys[level] = keptName(all, isa, options.optLevel);
      if (std::optional<std::string> kept = cache->find(keys[level], CodeCache::Counted::No))
        known = shapesOf(*kept, shared.size());
    }
    for (auto [i, k] : llvm::enumerate(shared))
      if (known) {
        shapes[level][k] = std::move((*known)[i]);
      } else {
        jobs.emplace_back(level, k);
        names.push_back(sources[k].name + " for " + isa.name);
      }
    if (known)
      keys[level].clear();
  }
  auto results = kernels::compileAll<EmittedShape>(
      names, options.jobs, [&](size_t i, MLIRContext &context) -> Result<EmittedShape> {
        auto [level, k] = jobs[i];
        Result<EmittedKernel> emitted = emit(k, levels[level], context);
        if (!emitted)
          return emitted.takeError();
        return EmittedShape{shapeOf(*emitted->module), std::move(emitted->contract)};
      });
  if (!results)
    return results.takeError();
  for (auto [job, shape] : llvm::zip_equal(jobs, *results))
    shapes[job.first][job.second] = std::move(shape);
  for (size_t level = 0; cache && level < levels.size(); ++level)
    if (!keys[level].empty()) {
      Shapes own;
      for (size_t k : sharedAt(level))
        own.push_back(shapes[level][k]);
      cache->put(keys[level], keptBytes(own), CodeCache::Counted::No);
    }
  return Status::ok();
}

FamilyNumbers Compiler::numbersOf(const Family &family) const {
  std::vector<const KernelShape *> all;
  for (size_t k : family.members)
    all.push_back(&shapes[family.level][sources[k].first].shape);
  return FamilyNumbers(all);
}

/// All levels that have a level's code of one kernel of a family have that of all of it.
std::vector<Family> Compiler::familiesOf(size_t level) const {
  using Key = std::tuple<std::string, std::vector<size_t>, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Key, size_t> places;
  std::vector<Family> families;
  auto add = [&](const Key &key, size_t k) {
    auto [at, isNew] = places.try_emplace(key, families.size());
    if (isNew)
      families.push_back({level, {}});
    families[at->second].members.push_back(k);
  };
  for (auto [k, source] : llvm::enumerate(sources))
    if (source.codes[level] == level) {
      bool alone = source.nameless.empty();
      add({alone ? source.name : shapes[level][source.first].shape.code, source.codes, {}, {}}, k);
    }
  std::vector<Family> loose;
  llvm::erase_if(families, [&](const Family &family) {
    bool isLoose = family.members.size() > 1 && !numbersOf(family).areFew();
    if (isLoose)
      loose.push_back(family);
    return isLoose;
  });
  places.clear();
  for (const Family &family : loose) // of equal kernels
    for (size_t k : family.members) {
      const KernelShape &shape = shapes[level][sources[k].first].shape;
      add({shape.code, sources[k].codes, shape.numbers, shape.floats}, k);
    }
  return families;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Result<KernelObject> Compiler::compile(const Family &family, MLIRContext &context) const {
  const IsaLevel &isa = levels[family.level];
  Result<EmittedKernel> emitted = emit(family.members.front(), isa, context);
  if (!emitted)
    return emitted.takeError();
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> contracts;
  for (size_t k : family.members) {
    names.push_back(sources[k].name);
    contracts.push_back(k == family.members.front() ? emitted->contract
                                                    : shapes[family.level][sources[k].first].contract);
  }
  if (names.size() > 1)
    numbersOf(family).widen(*emitted->module, names);
  Result<std::optional<UserCode>> user = userCodeOf(emitted->source.kernel, *emitted->module, isa);
  if (!user)
    return user.takeError();
  LoweringOptions lowering;
  lowering.optLevel = options.optLevel;
  lowering.user = *user ? &**user : nullptr;
  if (!options.saveTempsDir.empty())
    lowering.saveTempsDir = options.saveTempsDir + "/" + isa.name;
  Result<KernelObject> object = compileKernel(*emitted->module, isa, lowering);
  if (object)
    object->contracts = std::move(contracts);
  return object;
}

/// "" where its code is not to be had from a cache: it calls what a user wrote, or its texts are kept.
std::string Compiler::keptNameOf(const Family &family) const {
  std::string all = "code";
  for (size_t k : family.members) {
    if (sources[k].nameless.empty() || !options.saveTempsDir.empty())
      return "";
    all += "\n" + sources[k].nameless;
  }
  return keptName(all, levels[family.level], options.optLevel);
}

Result<KernelObject> Compiler::compileOrFind(const Family &family, MLIRContext &context) const {
  CodeCache *cache = CodeCache::current();
  const std::string name = cache ? keptNameOf(family) : "";
  if (name.empty())
    return compile(family, context);
  std::vector<std::string> names;
  for (size_t k : family.members)
    names.push_back(sources[k].name);
  if (std::optional<std::string> kept = cache->find(name))
    if (std::optional<KernelObject> object = objectOf(*kept); object && object->kernels.size() == names.size())
      return renamed(std::move(*object), names);
  Result<KernelObject> object = compile(family, context);
  if (object)
    cache->put(name, keptBytes(*object));
  return object;
}

/// All levels are one queue of work: a thread is idle only when nothing is left of any.
Result<std::vector<std::vector<KernelObject>>> Compiler::run() {
  if (Status s = findShapes(); !s)
    return s.takeError();
  std::vector<Family> families;
  std::vector<std::string> names;
  for (size_t level = 0; level < levels.size(); ++level)
    for (Family &family : familiesOf(level)) {
      names.push_back(sources[family.members.front()].name + " for " + levels[level].name);
      families.push_back(std::move(family));
    }
  auto results = kernels::compileAll<KernelObject>(
      names, options.jobs, [&](size_t i, MLIRContext &context) { return compileOrFind(families[i], context); });
  if (!results)
    return results.takeError();
  std::vector<std::vector<KernelObject>> objects(levels.size());
  for (size_t level = 0; level < levels.size(); ++level) {
    std::vector<std::pair<size_t, const KernelObject *>> own;
    for (auto [family, object] : llvm::zip_equal(families, *results))
      if (sources[family.members.front()].codes[level] == family.level)
        own.emplace_back(family.members.front(), &object);
    llvm::sort(own);
    for (auto [first, object] : own)
      objects[level].push_back(*object);
  }
  return objects;
}

Result<std::vector<std::vector<KernelObject>>>
dmxc::cpu::compileKernels(ArrayRef<Operation *> kernels, ArrayRef<IsaLevel> levels, const TargetOptions &options) {
  return Compiler(kernels, levels, options).run();
}
