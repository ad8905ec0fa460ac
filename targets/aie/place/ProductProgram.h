//===- ProductProgram.h - a product as a program of grids of units -*- C++ -*-===//
//
// What writes it: operands, sizes, rings, cores and memory tiles in Program.cpp, shims in Shims.cpp.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Place.h"
#include "Runs.h"
#include "Stay.h"
#include "Units.h"

#include <map>

namespace dmxc::aie {

class ProductProgram {
public:
  ProductProgram(ProgramWriter &writer, const hw::Machine &machine, const Mapping &mapping)
      : w(writer), p(mapping), n(mapping.numbers), parts(mapping.herd.parts()), outs(mapping.herd.outs),
        a{n.m, n.k, n.bytes, n.name}, b{n.k, n.n, n.bytes, n.name}, panelB(b), c{n.m, n.n, 4, p.sums()},
        y{n.m, n.n, p.resultBytes(), p.results()}, stretches(stretchesOf(p)) {
    if (p.herd.stays)
      stay.emplace(machine, mapping);
    if (p.herd.panels > 1)
      panelB.rows = stay->chunkRows(p);
  }

  void write();

private:
  static constexpr hw::TileKind kShim = hw::TileKind::Shim, kMemory = hw::TileKind::Memory, kCore = hw::TileKind::Core;
  static constexpr hw::Direction kS2mm = hw::Direction::S2MM, kMm2s = hw::Direction::MM2S;
  static constexpr const char *kOut[] = {"c_out", "c_out_b"}; ///< channels of results
  /// Of each ring: one slot is filled while the other is drained. Cores take tiles along k in pairs.
  static constexpr int64_t kSlots = 2;

  /// Rows of numbers; in memory one after the other.
  struct Matrix {
    int64_t rows, columns, bytes;
    llvm::StringRef kind;
    int64_t size() const { return rows * columns * bytes; }
  };

  void declareOperand(const Operand &operand);
  void declarePlaces(const Operand &operand, mlir::Value memory, int64_t bytes, int64_t pitch);
  /// A size that is a number, or the register of one that a run brings, which is at most so much.
  Sum sizeOf(Dim size, int64_t most);
  int64_t numberOf(Dim size);
  void writeSizes();
  mlir::Value ring(hw::TileKind unit, const std::string &name, const Matrix &matrix, QueueName from, QueueName to,
                   int64_t slots = kSlots, int64_t uses = 1);
  void declareRings();
  /// Of a matrix as it lies; or one matrix step after another.
  mlir::Value whole(const Matrix &matrix);
  mlir::Value steps(const Matrix &matrix, int64_t stepRows, int64_t stepColumns);
  void writeCores();
  void shareElements();
  mlir::Value packedA();
  void fillStaying(int64_t channel, int64_t turn);
  void fillMemoryTiles(int64_t channel);
  void writeStayingRows();
  void writeTilesOfA();
  void blocksOfStay(int64_t channel, bool bringsB);
  void putStaying(int64_t channel, const Sum &matrix, const Sum &row);
  Sum panelOf(const Sum &column, int64_t channel);
  void putPanel(llvm::StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel);
  void writeResults();
  void writeResult(mlir::Value pairs);
  void writeSums(mlir::Value pairs);
  void where(size_t parameter, bool has, llvm::function_ref<void()> body);
  void writeResidual(llvm::StringRef kernel, llvm::ArrayRef<mlir::Value> matrices);
  void call(llvm::StringRef kernel, llvm::ArrayRef<mlir::Value> matrices);
  void round();
  void writeMemoryTiles();
  void writeShims();
  void writeShimsOfResults();
  void writeRowsOfA();
  void putRow(Part part, llvm::StringRef channel, const Sum &panel);
  void putResidual(llvm::StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel, const Matrix &of);
  void putTiles(TaskWriter &put);
  void putRuns(const Sum &first, int64_t block);
  void putPanelOfRuns(int64_t block);
  void putBehindPanel(llvm::StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel);
  void writeParameters();
  void writePairs();
  void writeResidualParameters();
  void blocks(hw::Direction direction, int64_t number, int64_t units,
              llvm::function_ref<void(Sum matrix, Sum row, Sum column)> body);

  ProgramWriter &w;
  const Mapping &p;
  const Numbers &n;
  int64_t parts; ///< of a, in a memory tile
  int64_t outs;  ///< channels of a column's results
  int64_t firstRow(int64_t out) const { return p.herd.rows * out / outs; }
  std::optional<Stay> stay;
  Matrix a, b, panelB, c, y; ///< tiles of operands, what of b comes at once, tiles of sums and of results
  llvm::SmallVector<Stretch> stretches;
  llvm::SmallVector<mlir::Value> pairs; ///< of each stretch: the register that says how many
  std::map<Part, mlir::Value> ddr;
  llvm::SmallVector<Dim> sizes;                       ///< that a run brings
  llvm::SmallVector<mlir::Value> registers;           ///< of each of them, may be null
  mlir::Value coreA, coreB, coreC, coreY;             ///< rings; of sums, and of results, which may be these
  llvm::SmallVector<mlir::Value> tileA, tileB, tileC; ///< by turn and part, by panel, by row of cores
  std::array<mlir::Value, hw::kFirstStepWord>
      parameters; ///< pairs of tiles along k; whether there is a bias, a relu, a step
  /// Of a residual: pairs before the core's own, whether its tile is the first one of that, the second one, pairs
  /// behind.
  std::array<mlir::Value, hw::kResidualWords> ofResidual;
};

} // namespace dmxc::aie
