//===- TargetBackend.h - how a target takes part ----------------*- C++ -*-===//
//
// The phases know targets through this interface alone. A target registers itself by one function in
// the registry that tools/cmake/DmxcRegistry.cmake generates from DMXC_TARGETS.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DLIR/DLIR.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Support/BlockRounding.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"
#include "dmxc/Target/Decision.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace dmxc {

class TargetBackend;

/// Keys of a region's `strategy` dictionary that target-neutral phases read. A target adds its own.
namespace strategy {
/// dictionary: what was decided, of TargetBackend::decisions; the rest of the strategy follows from it
inline constexpr llvm::StringLiteral kDecided = "decided";
inline constexpr llvm::StringLiteral kAlgorithm = "algorithm"; ///< string: for reports
inline constexpr llvm::StringLiteral kWork = "work";           ///< i64: work items of the task, >= 1
inline constexpr llvm::StringLiteral kGrain = "grain";         ///< i64: fewest items worth a thread
inline constexpr llvm::StringLiteral kScratch = "scratch";     ///< i64: scratch bytes a thread
inline constexpr llvm::StringLiteral kFlops = "flops";         ///< i64: arithmetic operations
inline constexpr llvm::StringLiteral kBytes = "bytes";         ///< i64: bytes read and written, each once
/// dictionary: "<operand number>" -> {form = "...", size = bytes, ...}: the packed form the kernel wants of a constant
/// operand
inline constexpr llvm::StringLiteral kPacked = "packed";
/// dictionary: the micro-kernel that the kernel calls for its full tiles (dmir::microKernelAttr)
inline constexpr llvm::StringLiteral kMicroKernel = "ukernel";
/// array of i64: operands that the first result may share its buffer with (each element is read before the same one is
/// written)
inline constexpr llvm::StringLiteral kInPlace = "in_place";
/// array of i64: rows and columns of the tiles in which an attention leaves out what its mask does, and what the first
/// column that it visits is a multiple of
inline constexpr llvm::StringLiteral kTile = "tile";
/// array of texts, each once, for reports: what the kernel leaves out. "scores": those that a mask does; of a product
/// "left" and "right": zeros of that operand; "result": what nobody reads of it. What is known and not in it is
/// computed for the reason in dmir::kFactsKey.
inline constexpr llvm::StringLiteral kSkips = "skips";
/// unit: states among the operands stay on the device, and results that are their next values are written there
inline constexpr llvm::StringLiteral kKeepsStates = "keeps_states";
/// unit: the kernel keeps its constants on the device, so no other dispatch shares it
inline constexpr llvm::StringLiteral kOwnsConstants = "owns_constants";
} // namespace strategy

/// Choices the user made for a target.
struct TargetOptions {
  std::vector<std::string> levels; ///< after the colon of -t, split at '+'; empty = the default
  int optLevel = 2;                ///< -O0..-O3
  unsigned jobs = 1;               ///< -j
  std::string numerics;            ///< --numerics; "" = the target's own
  std::string saveTempsDir;        ///< --save-temps; "" = none
};

/// A code entry and its record in the manifest; without arch, code that others share; without bytes, a record alone.
struct CodeEntry {
  std::string entry;                 ///< "code/cpu/x86-64-v3/kernels.so"
  std::string arch;                  ///< "x86-64-v3"
  std::vector<std::string> features; ///< what the runtime must find in the processor
  std::vector<char> bytes;
};

/// Number formats in which a target computes an op: of its operands and of its result.
struct OpFormats {
  std::vector<std::string> operands;
  std::string result;
  std::optional<double> error; ///< of weights that were rounded: RMS of the differences over the RMS of the weights
};

/// A step of phase schedule on a target's way from kernels to programs, behind which a compile can stop and go on.
struct TargetStage {
  const char *name;     ///< "tiles", for a stop "schedule.tiles"; no other target has a stage of that name
  const char *in, *out; ///< what its text holds before and behind it
  const char *summary;  ///< one line: what is decided here
  /// Passes of the module, which leave other targets' kernels alone.
  void (*addPasses)(mlir::OpPassManager &pm, const TargetBackend &target);
  int fromLevel = 0; ///< of -O: below it the text stays as it is
};

/// A target's half of the compiler. Stateless after construction; `pack` may be called from several threads.
class TargetBackend {
public:
  virtual ~TargetBackend() = default;
  virtual llvm::StringRef name() const = 0;
  /// True if its kernels run on the processor of the host. One such target computes what the others refuse.
  virtual bool runsOnHost() const { return false; }
  /// Dialects of the target's ops in any phase, and what dialects shall know of its machine: passes load none later.
  virtual void registerDialects(mlir::DialectRegistry &registry) const {}

  //--- partition -----------------------------------------------------------------
  /// nullopt if the target computes the op (with its types and shapes), else the reason why not: a full clause.
  virtual std::optional<std::string> refuses(mlir::Operation *op) const = 0;
  /// False for an op that it computes in the region of another alone, as what is added to a product.
  virtual bool startsRegion(mlir::Operation *op) const { return true; }
  /// True if the target has one instruction for a function that others compute from several ops (dmir.silu, ...): where
  /// a model writes it out, it is recognised. Asked of the function in the place of the formula.
  virtual bool hasFunction(mlir::Operation *function) const { return false; }
  /// True if values between ops have a format whose squares overflow early, as those of f16 do beyond 255: roots of
  /// sums of squares are then computed from scaled values.
  virtual bool hasNarrowRange() const { return false; }
  /// The element type to which the operands of an f32 product (dmir.matmul, dmir.conv) are rounded before they are
  /// multiplied, and summed in f32, as the mode of --numerics asks; null = they are kept. It computes what comes of it.
  virtual mlir::Type roundsOperands(mlir::Operation *product) const { return {}; }
  /// True if that is so of an operand, too, that the product's kernel computes itself on the way (computedWith), as an
  /// attention computes its weights; else that operand and, beside it, the other one are multiplied in f32.
  virtual bool roundsComputed(mlir::Operation *product) const { return false; }
  /// How the constant weights of a product (dmir.matmul, dmir.grouped_matmul), or the rows of a constant table
  /// (dmir.gather along axis 0), are rounded, as the mode of --numerics asks; nullopt = they are kept. It computes what
  /// comes of it: a dmir.dequantize of constants.
  virtual std::optional<BlockRounding> roundsWeights(mlir::Operation *op) const { return std::nullopt; }
  /// How many of a row's numbers that follow one another are rounded to 8 bits with one scale before such a product
  /// multiplies them, as the mode asks; nullopt = they are kept. It computes what comes of it: a dmir.round_blocks.
  virtual std::optional<int64_t> roundsRows(mlir::Operation *product) const { return std::nullopt; }
  /// Whether the mode of --numerics leaves nodes that a user names as they are (--keep-precision), and weights whose
  /// error is too large (--max-error).
  virtual bool mayKeepNodes() const { return false; }
  virtual bool mayLimitError() const { return false; }
  /// True if products whose batch has an axis along which the right operand is one matrix read that once for all of the
  /// axis, as attention of grouped heads wants it.
  virtual bool groupsHeads() const { return false; }
  /// True if a product takes the time in which its constant matrix comes from memory: those of one operand are better
  /// one, and its kernel may compute a norm on the way (computedWith).
  virtual bool waitsForMatrix(mlir::Operation *product) const { return false; }
  /// True if a product of two matrices of bytes that a run brings is worth the sums of their rows and columns that zero
  /// points then cost: products of integers minus zero points become such ones.
  virtual bool multipliesBytesOfRuns() const { return false; }
  /// Whether a dmir.conv with constant weights is one that the target would rather compute of bytes, if it is one of
  /// dequantised bytes or of integers; static ones whose groups are whole blocks are for any target.
  virtual bool convolvesBytes(mlir::Operation *conv) const { return false; }
  /// The layout the target wants a value to have when `op` (a convolution, pooling, ...) produces it; null = row-major.
  virtual mlir::Attribute preferredResultLayout(mlir::Operation *op) const { return {}; }
  /// The layouts `op` can read operand `operand` in, given its result layout; false = it needs row-major there.
  virtual bool acceptsLayout(mlir::Operation *op, unsigned operand, mlir::Attribute layout) const { return !layout; }
  /// True if products take a constant right operand as it is stored: turned round, or of dmir.dequantize as it is
  /// packed. Else such constants are computed before.
  virtual bool readsStoredOperands() const { return false; }
  /// The most that a kernel is given: tensors that it reads and writes, and sizes that a run brings, together. Regions
  /// are made so that they need no more, and a concatenation of more parts is cut into several.
  virtual uint64_t mostArguments() const { return UINT64_MAX; }
  /// Whether kernels of the target may call a micro-kernel (dmir::microKernelAttr). Fails, in a clause, as
  /// ErrorKind::Model for what is none, as ErrorKind::Constraint where none of the kernels' levels has a body.
  virtual Status checkMicroKernel(mlir::DictionaryAttr micro) const {
    return Error{ErrorKind::Model, "kernels of the target " + name().str() + " call no micro-kernels"};
  }
  /// True if one region is to hold all that the target computes between two turns of another target, else regions are
  /// made by the two questions that follow.
  virtual bool computesWholeGraphs() const { return false; }
  /// Ops, some of them with kernels of their own, that `root`'s kernel computes on the way to its result; what they
  /// compute is read by each other and `root` alone.
  virtual llvm::SmallVector<mlir::Operation *> computedWith(mlir::Operation *root) const { return {}; }
  /// True if `producer` (one use) may be computed inside the region of `root`, element by element, where `root` reads
  /// it.
  virtual bool fusesProducer(mlir::Operation *root, mlir::OpOperand &use, mlir::Operation *producer) const = 0;
  /// True if the value of such a producer may be a further result of the region, for others that read it later.
  virtual bool yieldsProducer(mlir::Operation *root, mlir::Operation *producer) const { return false; }
  /// True if `consumer` may be computed inside the region whose result so far is `result` (defined by `root` or an
  /// epilogue of it).
  virtual bool fusesConsumer(mlir::Operation *root, mlir::Value result, mlir::Operation *consumer) const = 0;
  /// How a formed region is computed; a dictionary with the keys above but `decided`, which the region's strategy may
  /// hold, checked, and which is obeyed. Other choices that the region's strategy holds
  /// already, from text, are obeyed as far as the target has them; everything that follows from them, or is not there,
  /// is derived. What it holds need not be of any type.
  virtual Result<mlir::DictionaryAttr> chooseStrategy(dmir::RegionOp region) const = 0;
  /// What is free of a region's strategy, given what `decided` (a dictionary, may be null) has of it: what it decides
  /// is listed too. Of values in it that no domain has nothing follows.
  virtual std::vector<Decision> decisions(dmir::RegionOp region, mlir::DictionaryAttr decided) const { return {}; }
  /// What it estimates of a region with these decisions, where it chooses by estimates: a clause for people.
  virtual std::string explain(dmir::RegionOp region, mlir::DictionaryAttr decided) const { return {}; }
  /// The formats of an op in a region that has its strategy; nullopt where they are those of the tensors.
  virtual std::optional<OpFormats> formatsOf(mlir::Operation *op) const { return std::nullopt; }

  //--- memory ----------------------------------------------------------------------
  /// Writes the packed form of a constant into `out` (`form`'s size bytes).
  virtual Status pack(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) const = 0;
  /// RMS of what the form's values differ from the constant's by, over the RMS of the constant's; nullopt for forms
  /// that keep values, and where a target does not tell.
  virtual std::optional<double> roundingError(mlir::DictionaryAttr form, const Tensor &constant) const {
    return std::nullopt;
  }

  //--- schedule --------------------------------------------------------------------
  /// What every compile goes through between the target's kernels and `schedule`, in this order: TargetInfo's stages.
  virtual llvm::ArrayRef<TargetStage> stages() const { return {}; }
  /// Puts a program for the device's queues (of the same name and device) in the place of each of the target's
  /// kernels: a dlir.kernel, or what the stages made of one: a dlir.device_program, or a symbol of its name with the
  /// attribute dlir.device. A target whose kernels are functions leaves them. Where the device does not hold them:
  /// ErrorKind::Constraint, and with the error's nodes and reason those that go to the host, after which the compile
  /// plans again.
  virtual Status schedule(llvm::ArrayRef<mlir::Operation *> kernels) const { return Status::ok(); }

  //--- evaluation ------------------------------------------------------------------
  /// True if `evaluate` knows kernels of the target at its stops (dmx-compare --stages).
  virtual bool evaluatesStages() const { return false; }
  /// What a kernel gives for the host's tensors, from nothing but its text and in the target's own numbers, to the bit:
  /// a dmir.region, a dlir.kernel or what the stages made of one. Fails, by op, as ErrorKind::Constraint where it is
  /// not evaluated in this form, as ErrorKind::Model where it has no meaning.
  virtual Result<std::vector<Tensor>> evaluate(mlir::Operation *kernel, llvm::ArrayRef<Tensor> operands) const {
    return Error{ErrorKind::Constraint, "target '" + name().str() + "' evaluates no stages"};
  }

  //--- codegen ---------------------------------------------------------------------
  /// Compiles the kernels, each a dlir.kernel or the program made of it, for every level asked for. Their locations
  /// name the nodes for messages.
  virtual Result<std::vector<CodeEntry>> emit(llvm::ArrayRef<mlir::Operation *> kernels) const = 0;

  /// What `dmxc --print-target-info` shows.
  virtual std::string describe() const = 0;

  //--- tuning ----------------------------------------------------------------------
  /// What a region takes with these decisions by its cost model, in a unit of its own: it orders a search. nullopt
  /// where it has no model, or computes no region so.
  virtual std::optional<double> estimate(dmir::RegionOp region, mlir::DictionaryAttr decided) const {
    return std::nullopt;
  }
};

/// A registered target.
struct TargetInfo {
  std::string name, summary;
  /// Fails on unknown levels with the known ones named.
  Result<std::unique_ptr<TargetBackend>> (*create)(const TargetOptions &options);
  /// Registers passes of the target's own, and the dialects they read, for dmx-opt; null = it has none.
  void (*registerPasses)(mlir::DialectRegistry &registry) = nullptr;
  /// What its TargetBackend::stages gives, whatever its options are; null = it has none.
  llvm::ArrayRef<TargetStage> (*stages)() = nullptr;
};

/// All targets this build has, in DMXC_TARGETS' order.
llvm::ArrayRef<TargetInfo> registeredTargets();

} // namespace dmxc
