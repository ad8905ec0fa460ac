//===- Kernels.h - kernels that users wrote ---------------------*- C++ -*-===//
//
// A kernel file declares kernels: what they take and give, with dims as expressions, and per target the code that
// computes them. Front ends make a dmir.extern of a node that a declaration is for, partition of an op that one takes
// the place of. The op has all that later phases need: nothing asks a declaration then.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Support/DType.h"
#include "dmxc/Support/Result.h"

#include "mlir/IR/DialectInterface.h"

#include <map>
#include <variant>
#include <vector>

#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/KernelOps.h.inc"

namespace dmxc::dmir {

/// Program of a kernel, once the op is gone: array of the bodies (isKernelBody) whose code codegen needs.
inline constexpr llvm::StringLiteral kUserBodiesAttr = "dmir.user_bodies";
/// Kernel, since codegen: array of {kernel, arch, file, symbol, sha256}, texts: what users wrote of its code.
inline constexpr llvm::StringLiteral kUserCodeAttr = "dmir.user_code";

/// An operand or result of a kernel.
struct KernelTensor {
  std::string name;
  std::vector<DType> types; ///< those that an operand may have; a result's one
  std::string like;         ///< of a result without types: the operand whose type it has
  std::vector<Dim> shape;   ///< over the kernel's names
};

/// How a machine that copies boxes of tensors sees an operand or a result; the innermost axis comes first.
struct KernelMap {
  std::string tensor;              ///< whose it is
  size_t buffer = 0;               ///< since it is bound: which of operands, then results
  std::string type;                ///< of its elements, as the machine names them; "": the tensor's
  std::vector<Dim> sizes, strides; ///< elements; bytes, of the axes but the innermost. None: all of it, row by row
  std::vector<int64_t> box, steps; ///< elements that a copy reaches over, each how manieth of them it takes; none: 1
  int64_t swizzle = 0;             ///< bytes within which it mixes 16 of them
  Dim offset = 0;                  ///< bytes into the tensor
};

/// Blocks of threads that a body is for, and what each of them has.
struct KernelLaunch {
  Dim grid = 1;
  int64_t block = 1, shared = 0, cluster = 1; ///< threads; bytes; blocks that work together
  std::vector<KernelMap> maps;
};

/// A dim of which a core has a part at once.
struct KernelCut {
  std::string dim;           ///< its name, until it is bound
  Dim extent = 1;            ///< of the part
  std::vector<int64_t> axes; ///< of operands, then results: which axis it is; -1: it is none
};

/// How a body is run by cores that have memories of their own.
struct KernelCore {
  std::optional<KernelCut> rows;  ///< along what all results have, cores share the work
  std::optional<KernelCut> steps; ///< along what no result has, a core is called again and again for the same results
  std::string library;            ///< what cores of a real machine are linked with; "": nothing is said
  std::vector<std::string> names; ///< of operands, then results
  Dim cycles = 0;                 ///< of a call
  Dim items = 1;                  ///< since it is bound: the work of a call
  std::vector<Dim> scalars;       ///< likewise: what it is told
};

/// Code of a kernel for a target.
struct KernelBody {
  std::string target;
  std::vector<std::string> features; ///< that the machine must have, or levels of the target
  std::string file;                  ///< its real path
  std::string sha256, symbol, abi;
  std::map<std::string, DType> types; ///< by operand: the body is for these types alone
  std::optional<KernelLaunch> launch;
  std::optional<KernelCore> core;
};

/// What a kernel computes: DMIR functions in a file, of which each is for other types of operands.
struct KernelReference {
  std::string file, sha256; ///< its real path
  std::vector<std::string> functions;
};

struct KernelDecl {
  struct Onnx {
    std::string domain, op;
    int64_t since = 1;
  };
  using Value = std::variant<bool, int64_t, double, std::string>;
  struct Op {
    std::string name; ///< "dmir.arg_reduce"
    std::map<std::string, Value> attributes;
  };

  std::string name; ///< "acme.argmax"
  std::string file; ///< that declares it
  std::optional<Onnx> onnx;
  std::string torch; ///< "acme::argmax"; "" = none
  std::optional<Op> op;
  std::vector<KernelTensor> operands, results;
  /// Integers that a node brings, by name, with what they are where it does not.
  std::vector<std::pair<std::string, std::optional<int64_t>>> attributes;
  std::vector<Dim> scalars;
  Dim work = 1, grain = 1, scratch = 0;
  std::optional<KernelReference> reference;
  std::vector<KernelBody> bodies;
};

/// Code for the innermost part of an op's kernels: the full tiles of a product.
struct MicroDecl {
  enum class Use { Auto, On, Off }; ///< Auto: where it fits and the file prefers it
  std::string name, file;
  int64_t rows = 0, columns = 0; ///< of a tile
  bool prefer = false;
  Use use = Use::Auto;
  std::vector<KernelBody> bodies;

  bool isPreferred() const { return use == Use::On || (use == Use::Auto && prefer); }
};

/// The declarations of a compile, which its context keeps.
class KernelSet : public mlir::DialectInterface::Base<KernelSet> {
public:
  explicit KernelSet(mlir::Dialect *dialect) : Base(dialect) {}
  static KernelSet &of(mlir::MLIRContext *context);

  /// Fails where a name, or what it is for, has one already. A reference's file is one that the interpreter may read.
  Status add(KernelDecl decl);
  Status add(MicroDecl decl);
  /// Of ONNX' operators of a domain; `version` is the opset that the model imports of it.
  const KernelDecl *ofOnnx(llvm::StringRef domain, llvm::StringRef op, std::optional<int64_t> version) const;
  /// By "acme.argmax" or "acme.argmax.default".
  const KernelDecl *ofTorch(llvm::StringRef name) const;
  const std::vector<KernelDecl> &all() const { return decls; }
  const std::vector<MicroDecl> &micros() const { return microDecls; }
  /// Null where there is none of that name.
  MicroDecl *findMicro(llvm::StringRef name);

private:
  std::vector<KernelDecl> decls;
  std::vector<MicroDecl> microDecls;
};

/// A declaration bound to operands.
struct KernelUse {
  /// Dims that an operand must have beside those that it has; a run checks them.
  struct Expected {
    size_t operand;
    llvm::SmallVector<Dim> dims;
  };
  std::vector<Expected> expected;
  llvm::SmallVector<mlir::Type> results;
  llvm::SmallVector<Dim> scalars, counts;
  std::map<std::string, int64_t> numbers; ///< what the declaration's attributes are
  std::vector<KernelBody> bodies;         ///< for the operands' types, with launches over the operands' dims
};

/// Fails, in a clause, where the operands or numbers are none that the declaration takes. `given` are numbers of the
/// declaration's attributes.
Result<KernelUse> bindKernel(const KernelDecl &decl, llvm::ArrayRef<mlir::RankedTensorType> operands,
                             const std::map<std::string, int64_t> &given);

/// A body, in dmir.extern and elsewhere: {target, file, sha256, symbol, abi, features} of texts; and `launch` or
/// `core`, where it has one.
bool isKernelBody(mlir::Attribute attr);

/// How cores run it, in a body: {cycles, items, library, names, scalars, rows, steps}, the latter where they are cut,
/// each {extent, axes}.
mlir::DictionaryAttr coreAttr(const KernelCore &core, mlir::MLIRContext *context);
KernelCore coreOf(mlir::DictionaryAttr attr);
bool isCore(mlir::Attribute attr);
/// Whether it is a number or an expression, as dimOfAttr takes them.
bool isDimAttr(mlir::Attribute attr);
/// The same of a kernel whose names stand for `values`. What is cut stands for the part that a call has, but in the
/// scalars what goes in steps for all of it.
KernelCore boundCore(const KernelDecl &decl, KernelCore core, std::map<std::string, Dim> values);

/// A launch, in a body: {grid, block, shared, cluster, maps}, each of the maps {buffer, type, sizes, strides, box,
/// steps, swizzle, offset}.
mlir::DictionaryAttr launchAttr(const KernelLaunch &launch, mlir::MLIRContext *context);
/// The same back, without names of tensors.
KernelLaunch launchOf(mlir::DictionaryAttr attr);
/// A launch where names of its dims stand for values, and what its maps leave open is what their tensors have. Fails,
/// in a clause, where a map and its tensor do not fit.
struct BoundTensor {
  std::string name;
  DType type;
  std::vector<Dim> shape;
};
Result<KernelLaunch> boundLaunch(const KernelLaunch &launch, llvm::ArrayRef<BoundTensor> tensors,
                                 llvm::function_ref<Dim(Dim)> resolve);

/// Notes on a kernel which code of users it has for machines of an `arch` (kUserCodeAttr).
struct UserCodeNote {
  std::string kernel, arch, file, symbol, sha256;
};
void noteUserCode(llvm::ArrayRef<UserCodeNote> used, mlir::Operation *kernel);

/// A reference, in dmir.extern: {file, sha256, functions, numbers}, texts but for the `numbers` by their names.
bool isKernelReference(mlir::Attribute attr);
KernelReference kernelReferenceOf(mlir::DictionaryAttr attr);

/// A micro-kernel as a strategy names it: {kernel = "acme.sgemm", tile = [rows, columns], bodies = [...]}. It has all
/// that later phases need, as dmir.extern has.
mlir::DictionaryAttr microKernelAttr(const MicroDecl &decl, mlir::MLIRContext *context);
bool isMicroKernel(mlir::Attribute attr);
llvm::SmallVector<mlir::DictionaryAttr> bodiesFor(mlir::ArrayAttr bodies, llvm::StringRef target);

ExternOp makeExtern(mlir::OpBuilder &builder, mlir::Location loc, const KernelDecl &decl, const KernelUse &use,
                    mlir::ValueRange operands);

} // namespace dmxc::dmir
