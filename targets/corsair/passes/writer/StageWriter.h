//===- StageWriter.h - a kernel over quads to tasks --------------*- C++ -*-===//
#pragma once

#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/write/KernelWriter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

namespace dmxc {

class TileLoops;
struct TileUnit;

/// Writes the program of a function that launches one kernel over quads, as corsair-outline-spmd leaves it.
class StageWriter : public corsair::KernelWriter {
public:
  /// Fails where the op is no such function.
  static Result<std::unique_ptr<corsair::KernelWriter>> create(mlir::Operation *op,
                                                               const dmx::corsair::Machine &machine, bool fromDdr);
  Status lower() override;

private:
  StageWriter(mlir::func::FuncOp function, int quads, const dmx::corsair::Machine &machine, bool fromDdr);
  Status fail(mlir::Operation *op, const llvm::Twine &why);
  Status addArguments();
  Status addArgument(mlir::BlockArgument argument);
  /// What the host takes of a result, and what of it a quad has.
  struct HostResult {
    mlir::RankedTensorType type;
    corsair::Split split;
  };
  Result<HostResult> hostResult(unsigned index);
  Status addResult(mlir::Value value, unsigned index);
  /// Arguments and results with lldmir.bands (StageCrossings.cpp): rows that cross while others are computed. Where
  /// they are in DDR, by their buffers in GM.
  struct Crossing {
    unsigned number;
    corsair::Address ddr;
    int64_t bytes; ///< of all rows that a quad has
  };
  Status addLeaving();
  /// Lets the rows of a product cross that are to; fails where they cannot. `inPieces`: its weights come so.
  Status cross(mlir::affine::AffineForOp loop, const corsair::TileOrder &order, bool inPieces,
               corsair::PlacedProduct &placed);
  /// Fails where rows that have not come are read.
  Status checkArrived(mlir::Operation *user, mlir::Value buffer);
  Status checkCrossed();
  /// One that the host brings in every run.
  Status addFetched(mlir::BlockArgument argument, mlir::RankedTensorType type);
  Status addConstant(mlir::BlockArgument argument, mlir::RankedTensorType type, mlir::DictionaryAttr form);
  Status lower(mlir::Operation *op);
  Status product(mlir::affine::AffineForOp loop);
  /// What stands in a condition that is decided before the run.
  Status taken(mlir::affine::AffineIfOp condition);
  /// A loop over the matrices of a batch.
  Status matrices(mlir::affine::AffineForOp loop);
  Status byWeights(mlir::affine::AffineForOp loop, const TileLoops &loops, const Tiles &tiles);
  Status byValues(mlir::affine::AffineForOp loop, const TileLoops &loops);
  /// How the ops of a product are spread over slices and groups of cores; `packed`: as its weights lie in ST, or null.
  Result<lldmir::PlanAttr> spreadOf(const TileLoops &loops, const corsair::TileForm *packed);
  /// A product that is spread so, by as many blocks along K at once as IB holds.
  Result<corsair::Spread> fitted(const TileLoops &loops, const corsair::Spread &product, lldmir::PlanAttr plan);
  /// What becomes of the sums of a product (StageEpilogues.cpp), and what that reads beside them.
  struct Epilogues {
    std::vector<corsair::Epilogue> all;
    llvm::SmallVector<corsair::DeviceTensor> beside;
  };
  Result<Epilogues> epiloguesOf(mlir::affine::AffineForOp loop, const TileLoops &loops,
                                const corsair::DeviceTensor &out);
  Result<Epilogues> epiloguesOf(lldmir::ConvOp conv, const corsair::DeviceTensor &out);
  Result<corsair::Epilogue> epilogue(llvm::ArrayRef<TileUnit> units);
  corsair::TileOrder orderOf(const TileLoops &loops, const corsair::Spread &product) const;
  Status checkTiles(const TileLoops &loops, const corsair::TileOrder &order, const corsair::Spread &product);
  /// A matrix that loops over tiles fill, and which of its tiles they did so far.
  struct Filled {
    mlir::affine::AffineStoreOp store;
    int64_t tiles = 0, columns = 0;
    llvm::DenseSet<int64_t> written;
  };
  /// Fails where loops store a tile that others have stored.
  Status note(const TileLoops &loops);
  /// Fails where loops so far have left out a tile of a buffer.
  Status checkFilled(mlir::Operation *user, mlir::Value memref);
  Status checkFilled(mlir::Operation *user, const Filled &matrix);
  /// Notes what an op writes, and fails where it reads what nothing has written.
  Status checkWritten(mlir::Operation *op);
  /// The buffer that one is a view of, outside of the kernel if it comes from there.
  mlir::Value rootOf(mlir::Value buffer);
  /// What a grid is of, with the dims of the open loops over a batch in front.
  Result<corsair::DeviceTensor> matricesOf(mlir::Operation *user, mlir::Value grid);
  /// A number, and what a quad and a trip of each open loop over a batch add to it.
  struct Index {
    int64_t first = 0, quad = 0;
    llvm::SmallVector<int64_t> trips;
  };
  /// Nothing where it is none.
  std::optional<Index> indexOf(mlir::OpFoldResult given) const;
  Status vectorOp(mlir::Operation *op);
  /// A loop over bands of rows (StageBands.cpp).
  struct BandBody;
  Status bands(mlir::affine::AffineForOp loop);
  /// Whether a loop is one, or has one that is.
  static bool hasBands(mlir::Operation *loop);
  /// Writes the tasks of the loops over bands so far: those of the same keys and values are one task.
  void finishBands();
  /// Whether an argument is read as what bands weigh, and by nothing else.
  bool isValuesOfBands(mlir::BlockArgument argument);
  Status addTo(BandBody &body, mlir::Operation *op);
  Status write(const BandBody &body);
  Status bandProduct(const BandBody &body, unsigned number, int64_t columns, corsair::BandedScores &job);
  Result<corsair::Spread> bandSpread(mlir::affine::AffineForOp loop, const TileLoops &loops,
                                     const corsair::Spread &product);
  Status bandUnit(const BandBody &body, lldmir::SimdOp op, corsair::BandedScores &job);
  /// A strip, or a matrix in GM. `ofRows`: it is a band of one, its rows 64 further from band to band; else the same
  /// for all bands.
  Result<corsair::BandTensor> bandTensor(const BandBody &body, mlir::Operation *user, mlir::Value memref, bool ofRows);
  /// "softmax" or "causal_mask" with a bound: how its columns count, in a buffer of so many rows and columns.
  struct MaskedRows {
    corsair::hw::SimdFunction function;
    Index index;
    bool turned; ///< rows and columns count from the last one on
    float fill;
  };
  /// `lower`: of rows that are folded the lower half.
  Result<MaskedRows> maskedRows(lldmir::SimdOp op, int64_t rows, int64_t columns, bool lower = false);
  Status deviceFunction(lldmir::SimdOp op, llvm::ArrayRef<corsair::DeviceTensor> inputs,
                        const corsair::DeviceTensor &out);
  Status masked(lldmir::SimdOp op, const corsair::DeviceTensor &input, const corsair::DeviceTensor &out);
  Status move(lldmir::ReshapeOp op);
  Status scatter(mlir::Operation *op, llvm::ArrayRef<corsair::DeviceTensor> all, int64_t axis);
  Status addUp(lldmir::SumOp op);
  Status convolve(lldmir::ConvOp op);
  Status userKernel(lldmir::ExternOp op);
  /// A pooling, or a convolution of each channel on its own, with the attributes of `named`.
  Status windowed(mlir::Operation *named, mlir::Operation *op, llvm::ArrayRef<corsair::DeviceTensor> inputs,
                  const corsair::DeviceTensor &out);
  Status view(mlir::Operation *op);
  /// What a view makes of a buffer.
  Result<corsair::DeviceTensor> viewOf(mlir::Operation *op, corsair::DeviceTensor tensor);
  Result<corsair::DeviceTensor> recast(mlir::memref::ReinterpretCastOp op);
  /// A buffer that the function returns, or a view of one.
  Result<corsair::DeviceTensor> returned(mlir::Value value);
  /// The tensors in an op's inputs and in its only result.
  Result<llvm::SmallVector<corsair::DeviceTensor>> operandsOf(mlir::Operation *op, mlir::ValueRange inputs,
                                                              mlir::ValueRange outs);
  /// The tensor in a buffer, which gets its place when it is used first.
  Result<corsair::DeviceTensor> tensorOf(mlir::Operation *user, mlir::Value memref);
  /// Where a value of the kernel lies outside, if it is an argument.
  mlir::Value outside(mlir::Value value);

  mlir::func::FuncOp function;
  mlir::gpu::GPUFuncOp kernel;
  mlir::gpu::LaunchFuncOp launch;
  llvm::DenseMap<mlir::Value, corsair::DeviceTensor> tensors; ///< of memrefs, by what allocates or views them
  llvm::DenseMap<mlir::Value, Tiles> weights;
  std::map<int, Crossing> arriving, leaving;
  std::map<unsigned, corsair::DeviceTensor> left;                ///< results that leave so, in DDR
  std::vector<corsair::BandedScores> banded;                     ///< whose tasks are not written yet
  llvm::DenseMap<unsigned, corsair::DeviceTensor> states;        ///< by the result that is the next value
  llvm::DenseSet<mlir::Value> written;                           ///< buffers
  llvm::MapVector<mlir::Value, Filled> filled;                   ///< by the matrix
  llvm::SmallVector<mlir::affine::AffineForOp> batch;            ///< the open loops over a batch
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int64_t>> trips; ///< of a view: bytes from trip to trip of each
};

} // namespace dmxc
