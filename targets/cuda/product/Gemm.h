//===- Gemm.h - products of 16-bit floats by tensor cores -------*- C++ -*-===//
//
// Kernels of blocks that copy tiles of both operands by tensor maps, multiply them by wgmma, and evaluate what follows
// on the sums in registers: one warpgroup copies, the others multiply. README.md, "Products".
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Pipeline.h"

#include "targets/common/roots/KernelTable.h"
#include "targets/common/roots/Rows.h"
#include "targets/cuda/code/CudaBuilder.h"

namespace dmxc::cuda {

/// The algorithm of such products and convolutions; keys of a strategy: their tile (GemmTile.h), which operands threads
/// copy and why, and why a product of such numbers is a plain one.
inline constexpr llvm::StringLiteral kSpecialised = "matmul-specialised", kSpecialisedConv = "conv-specialised",
                                     kProduct = "product", kThreadCopies = "thread_copies", kWhyPlain = "why_plain";
/// The algorithm of products of few rows with a constant, and the key of a strategy that has its tile (FewRows.h).
inline constexpr llvm::StringLiteral kByWarps = "matmul-by-warps", kFew = "few_rows";
/// The algorithms of f32 products and convolutions by tiles in shared memory, and the key of a strategy that has theirs
/// (TileProduct.h).
inline constexpr llvm::StringLiteral kByTiles = "matmul-by-tiles", kConvByTiles = "conv-by-tiles", kTiles = "tiles";
/// The reason where a schedule or a text asks for it.
inline constexpr llvm::StringLiteral kDecidedPlain = "it is decided";
/// Up to so many rows a product waits for the matrix it meets. Up to so many that meet no constant shorter operands
/// gain nothing.
inline constexpr int64_t kFewRows = 16, kPlainRows = 4;

/// The algorithm of attention of few rows, and the key of a strategy that has its tile (attention/FewQueries.h).
inline constexpr llvm::StringLiteral kQueriesByWarps = "attention-by-warps", kQueries = "queries";
/// The algorithm of attention by tensor cores, whose operands are rounded to bf16.
inline constexpr llvm::StringLiteral kAttentionByCores = "attention-specialised";

/// The algorithm that a strategy has, or what is decided; "": none. It may be null.
llvm::StringRef algorithmIn(mlir::DictionaryAttr dictionary);

/// What plans of this target rest on besides the body.
struct CudaRequest : PlanRequest {
  /// Operand i of the region is a constant; asked without a strategy.
  llvm::function_ref<bool(unsigned)> constant = nullptr;
  mlir::DictionaryAttr decided; ///< of Gemm's decisions; may be null
  mlir::ValueRange inputs;      ///< of the region, as far as they are known

  const hw::Machine &machine;
  Hopper processor;

  explicit CudaRequest(const hw::Machine &machine, mlir::DictionaryAttr strategy = {},
                       mlir::DictionaryAttr decided = {})
      : PlanRequest{processor, strategy}, decided(decided), machine(machine),
        processor(machine, strategy ? strategy.getAs<mlir::DictionaryAttr>(kTeam) : decided, strategy != nullptr) {}
  CudaRequest(const CudaRequest &) = delete;
  static const CudaRequest &of(const PlanRequest &request) { return static_cast<const CudaRequest &>(request); }
};

/// The rows of dmir.matmul and dmir.conv: by tensor cores or warps where it can be and pays, else the plain ones.
/// Requests are CudaRequests.
void registerGemm(KernelTable &table);
/// What is free of a region whose root is a product; nothing where it can only be plain.
std::vector<Decision> gemmDecisions(const hw::Machine &machine, dmir::RegionOp region, mlir::DictionaryAttr decided);
/// What the default of these rests on: a clause; "" where nothing is estimated.
std::string explainGemm(const hw::Machine &machine, dmir::RegionOp region, mlir::DictionaryAttr decided);
/// Why what is known of a region's product is not used; "" where it is, or nothing is known.
std::string whyNotLeftOut(dmir::RegionOp region, const KernelPlan &plan);
/// Writes the pipeline of a kernel that is one of these, by the tile of its strategy, which it takes out of there.
Status makePipeline(dlir::KernelOp kernel, const hw::Machine &machine);
/// The tiles that a kernel with a pipeline computes; nothing where it has none.
Result<std::optional<Dim>> tilesOf(dlir::KernelOp kernel, const hw::Machine &machine);
/// Rows that meet a matrix, as expected: of the left operand all of them where the right one is a matrix; of a
/// convolution outputs that meet pixels, of so many groups together, or pixels where they are fewer.
int64_t rowsOf(mlir::Operation *product, int64_t together = 1);

/// Whether a product, before regions are formed, is one of few rows with a constant that is worth packing.
bool waitsForMatrix(mlir::Operation *product);

/// The ops that a product's kernel computes on the way, before regions are formed: a norm, or all of an attention.
/// `rounds`: operands are rounded to bf16.
llvm::SmallVector<mlir::Operation *> computedOnTheWay(const hw::Machine &machine, mlir::Operation *product,
                                                      bool rounds);
/// Whether an operand's producer is better computed where an attention's kernel reads it, as what is elementwise before
/// queries, or is not, as what rounds values; nothing where it is as in other kernels.
std::optional<bool> takesProducer(const hw::Machine &machine, mlir::Operation *root, mlir::OpOperand &use,
                                  mlir::Operation *producer, bool rounds);

/// Emits the kernel's body.
void emitGemm(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline);

} // namespace dmxc::cuda
