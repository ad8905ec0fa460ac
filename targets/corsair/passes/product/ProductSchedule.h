//===- ProductSchedule.h - a product for the queues of its quads *- C++ -*-===//
#pragma once

#include "../../encode/DlirWriter.h"
#include "ProductPlan.h"

namespace dmxc {

struct ScheduleOptions {
  /// Nothing computes before all operands are on the chip: the reports then show what the arrays do with resident ones.
  bool resident = false;
};

/// Buffers of the program that hold whole operands.
struct ProductBuffers {
  mlir::Value activations, weights, result; ///< in DDR
  mlir::Value bias;                         ///< in DDR, or null
};

/// Four queues: 0 moves between DDR and the chip, 1 fetches operands for the arrays, 2 computes, 3 takes sums away.
/// What passes from one to the next has two halves where there is room, with a token for "ready" and one for "free"
/// each.
class ProductSchedule {
public:
  ProductSchedule(const hw::Machine &machine, const ProductKernel &kernel, DlirWriter &writer,
                  const ProductBuffers &ddr, const ScheduleOptions &options);

  /// Declares the buffers on the chip; then both graphs.
  void run(bool constantWeights);
  const ProductPlan &getPlan() const { return plan; }

private:
  /// A dim that a quad's queues loop over, outside the plan's rounds.
  struct Outer {
    const ProductDim *dim;
    int64_t most;                       ///< trips of the quad with the most
    std::vector<int64_t> trips;         ///< of each quad where they differ
    int64_t a = 0, w = 0, o = 0, b = 0; ///< bytes from index to index on the chip
    mlir::Value count;                  ///< register with the trips, where they differ
    Sum counter;
  };
  /// Tokens of the halves of a buffer between two queues.
  struct Handover {
    llvm::SmallVector<mlir::Value> ready, free;
    int64_t next = 0;
    int64_t take() { return next++ % static_cast<int64_t>(ready.size()); }
  };
  using Member = int64_t ProductDim::*;
  using LocalMember = int64_t Outer::*;
  enum class Operand { A, W, O, B };

  void collectOuter();
  void layOut();
  void declareBuffers();
  Handover handover(int64_t halves);

  void forOuter(Operand operand, llvm::function_ref<void()> body);
  /// Place of the operand's part that the counters name: in DDR, on the chip.
  Sum inDdr(Operand operand);
  Sum onChip(Operand operand);
  /// DDR bytes from one of a quad's rows (columns) of tiles to its next.
  int64_t step(const ProductDim &dim, Operand operand) const;
  static Member member(Operand operand);
  static LocalMember localMember(Operand operand);

  void loadWeights();
  void loadBias();
  void loadActivations();
  void loadOwnActivations();
  void loadSharedActivations();
  void fetchQueue();
  void fetchTiles(Sum row, const ProductKernel::Chunk &chunk);
  void fetchWeights(Sum column, const ProductKernel::Chunk &chunk);
  void computeQueue();
  void multiply(const Sum &column, const ProductKernel::Chunk &chunk, int64_t ib, int64_t wb, int64_t ob);
  void drainQueue();
  void addBias(const Sum &column, int64_t ob);
  void storeResults();
  Sum unitPlace(const Sum &column, const Sum &row);

  const hw::Machine &machine;
  const ProductKernel &kernel;
  DlirWriter &writer;
  ProductBuffers ddr;
  ScheduleOptions options;
  ProductPlan plan;
  llvm::SmallVector<Outer> outer;
  bool rowIsOuter = false, columnIsOuter = false;
  std::string activationKind, weightKind, resultKind;

  // What a quad keeps.
  mlir::Value gmActivations, gmResult, gmBias, stash, ib, wb, ob;
  int64_t gmActivationBytes = 0, gmResultBytes = 0, gmBiasBytes = 0, stashBytes = 0, localPitch = 0;
  int64_t inputHalf = 0, weightHalf = 0, resultHalf = 0;

  // Of the main graph.
  bool sharedActivations = false, pipelined = false, once = false, weightsPerColumn = false;
  int64_t loadsPerRow = 1;
  mlir::Value activationsReady, weightsReady;
  Handover inputs, weights, sums, results;
};

} // namespace dmxc
