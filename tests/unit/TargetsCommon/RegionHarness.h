//===- RegionHarness.h - regions against the interpreter --------*- C++ -*-===//
//
// A test writes DMIR functions. Each becomes a region, gets its strategy from a target, is outlined to a
// kernel, compiled for every level the target has here, loaded, run over several splits of its work items
// on random data beside inaccessible pages, and compared with the reference interpreter. A program of
// tests has one target: the one whose `makeRegionTarget` is linked.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "KernelTask.h"

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Support/Dim.h"
#include "dmxc/Support/Tensor.h"
#include "dmxc/Target/TargetBackend.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace dmxc::kernels::test {

/// What regions are compiled for.
struct RegionTarget {
  using FindKernel = std::function<dmx_kernel_fn(const std::string &level, const std::string &name)>;

  std::unique_ptr<TargetBackend> backend;
  std::vector<std::string> levels;
  std::function<Result<FindKernel>(llvm::ArrayRef<dlir::KernelOp>)> compile;
  /// Whether a level has no kernel of a strategy.
  std::function<bool(const std::string &level, mlir::DictionaryAttr strategy)> lacks;
  /// Scratch of a thread, where it is not the strategy's.
  std::function<Dim(const std::string &level, dlir::KernelOp kernel)> scratch;
};
RegionTarget makeRegionTarget();

/// Attributes of the functions:
///   ulp = f: largest error of a float result, in units in the last place of its type; 0 (the default)
///            asks for equal bits, NaNs aside.
///   abs = f: an absolute error that is allowed too.
///   specials: float inputs hold NaN, infinities, zeros of both signs and subnormals.
///   fails = i: the kernel must return this code (and the interpreter an error).
///   sizes = [{m = 5, n = 0}, ..]: values of its open dims; one kernel is run with each.
/// and of their arguments: lo, hi = i: the range of its values; packed: it is a constant of the model; zeros: which of
/// a constant matrix's elements are zero ("lower": above the diagonal, "upper": below it, "diagonal": beside blocks,
/// "blocks", "rows", "columns", "last": all but the last one, "all").
class RegionModule {
public:
  /// Parses and compiles one of `share` functions (tests/Sample.h); failures are in `error`.
  explicit RegionModule(const std::string &text, uint64_t share = 1);

  std::vector<std::string> names() const;
  /// "" when the kernel agrees with the interpreter at a level, else what differs.
  std::string check(const std::string &name, const std::string &level, unsigned seed = 1);
  /// Strategy of a function's region, printed.
  std::string strategy(const std::string &name);
  dmx_kernel_fn kernel(const std::string &name, const std::string &level);
  llvm::ArrayRef<std::string> levels() const { return target.levels; }

  std::string error;

private:
  /// A function with numbers in the place of open dims, and those.
  struct Entry {
    mlir::func::FuncOp function;
    dlir::KernelOp kernel;
    std::map<std::string, int64_t> sizes;
    int64_t valueOf(Dim dim) const;
  };
  void build(mlir::func::FuncOp function);
  std::string checkOne(Entry &entry, const std::string &level, unsigned seed);
  std::string run(Entry &entry, const std::string &level, const std::vector<Tensor> &inputs,
                  std::vector<Tensor> &results, int64_t step, dmxrt::GuardSide side, int32_t &code);
  std::vector<Tensor> makeInputs(Entry &entry, unsigned seed);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::map<std::string, std::vector<Entry>> entries; ///< one for each of its sizes
  RegionTarget target;
  RegionTarget::FindKernel find;
};

/// Expects every function of `text`, or one of `share`, to agree at every level; `seeds` sets of inputs each.
void expectAgree(const std::string &text, unsigned seeds = 2, uint64_t share = 1);

/// Replaces each "$name" in `text` by its value.
std::string substitute(std::string text, const std::map<std::string, std::string> &values);

} // namespace dmxc::kernels::test
