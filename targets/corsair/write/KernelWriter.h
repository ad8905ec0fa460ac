//===- KernelWriter.h - one kernel's program ---------------------*- C++ -*-===//
//
// Arguments come from DDR into the quad's GM, tasks read and write GM, results go back. Floats are f16 on the device;
// operands of matrix products become BFP16 where they enter the array.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "../decide/Constants.h"
#include "../decide/Ops.h"
#include "../decide/scores/Bands.h"
#include "Bands.h"
#include "Operands.h"
#include "SimdOp.h"

#include "dmxc/Dialect/DLIR/Device.h"
#include "dmxc/Support/Result.h"

#include <map>

namespace dmxc::corsair {

/// Registers that a launch sets: see launchRegisters.
enum LaunchRegister : int {
  kQuadInChiplet = 0, ///< 0..3
  kIsFirst = 1,       ///< 1 in the first quad
  kLeadsChiplet = 2,  ///< 1 in the first quad of a chiplet
  kChipletMask = 3,   ///< quads of the team in the own chiplet
  kTeamMask = 4,      ///< quads of the team
  kLaunchRegisters
};

/// What the tasks of a kernel are written with, whatever they are written for.
class KernelWriter {
public:
  /// The program is written before the kernel, whose symbol it will have. `fromDdr`: weights are fetched for every
  /// product (capacity mode) instead of staying in ST (performance mode).
  KernelWriter(mlir::Operation *kernel, int quads, const hw::Machine &machine, bool fromDdr);
  virtual ~KernelWriter() = default;

  /// Writes the kernel's tasks.
  virtual Status lower() = 0;
  /// After all kernels of the image are lowered and their permanent buffers placed: gives the temporaries their places
  /// behind those.
  void placePermanent(MemoryUse &used) { buffers.placePermanent(used); }
  Status finish(const MemoryUse &permanent);
  /// A buffer that stays, in bytes, and the nodes at it.
  struct Kept {
    int64_t size;
    std::vector<std::string> nodes;
  };
  void collectPermanent(hw::Memory memory, std::vector<Kept> &kept) const;
  /// The error of a memory that is too small, but for its nodes.
  Error doesNotFit(hw::Memory memory, int64_t needed) const;
  dlir::DeviceProgramOp program() { return writer.program(); }

protected:
  /// A constant packed as tiles and its places.
  struct Tiles {
    TileForm form;
    int ddr;
    Address home; ///< in ST, when it stays there
  };

  /// The kernel's nodes that use a buffer; all of them for one that none uses.
  std::vector<std::string> nodesAt(int buffer) const;
  /// Opens the graphs. Fails on a machine that programs of this shape do not run on.
  Status begin(bool multiplies);

  //--- between the host and GM (Transfers.cpp)
  /// A tensor of the host, its dims in this order on the device, and where its pieces lie in a buffer.
  dlir::ArgumentOp declare(dlir::ArgumentRole role, const std::string &name, mlir::Type type, hw::ElemKind form,
                           llvm::ArrayRef<unsigned> order, int buffer, llvm::ArrayRef<hw::Piece> pieces);
  int declareConstant(const std::string &name, hw::ElemKind kind, int64_t bytes, int64_t share,
                      mlir::DictionaryAttr form = {});
  /// An input's buffer in DDR.
  DeviceTensor declareInput(const std::string &name, mlir::RankedTensorType type, llvm::ArrayRef<unsigned> order,
                            Split split);
  /// `split`: what of it a quad fetches, which is all that it has. With `arrives` it does not: that is where a quad's
  /// rows are.
  DeviceTensor addInput(const std::string &name, mlir::RankedTensorType type, llvm::ArrayRef<unsigned> order,
                        Split split, Address *arrives = nullptr);
  /// All of it, fetched by fetchLate, while something else is computed.
  DeviceTensor addLateInput(const std::string &name, mlir::RankedTensorType type, llvm::ArrayRef<unsigned> order);
  /// Fetches an input that is in this buffer and is not there yet; the quads' load queues meet then.
  void fetchLate(int buffer);
  bool isLateInput(int buffer) const { return lateInputs.count(buffer); }
  /// A matrix as tiles for products, of which `part` rows at a time begin at a tile of their own.
  DeviceTensor addTiles(const std::string &name, mlir::RankedTensorType type, int64_t part, Split split,
                        Address *arrives = nullptr);
  void fetch(const DeviceTensor &ddr, const DeviceTensor &tensor, Split split);
  void fetchOnce(DeviceTensor ddr, DeviceTensor tensor);
  /// `inDdr`: it stays there.
  DeviceTensor addPlainConstant(const std::string &name, hw::ElemKind kind, llvm::ArrayRef<int64_t> shape, bool inDdr);
  Tiles addPackedConstant(const std::string &name, mlir::DictionaryAttr form);
  void loadTiles(Program &program, const Tiles &packed, const Address &home, int64_t first, int64_t bytes);
  /// The tiles in ST, fetched now if they do not stay there.
  Address residentTiles(const Tiles &packed);
  /// `tensor`: in GM without gaps, all of it or a quad's share by the split.
  void storeResult(DeviceTensor tensor, mlir::RankedTensorType type, unsigned index, Split split);
  /// A result's place in DDR, its dims in the order of the tensor's; results are declared in their order.
  DeviceTensor resultInDdr(const DeviceTensor &tensor, mlir::RankedTensorType type, unsigned index);
  void declareResult(const DeviceTensor &ddr, mlir::RankedTensorType type, unsigned index, Split split);
  /// A tensor that stays in GM from run to run: every quad of the team has a copy, and all keep theirs up to date.
  DeviceTensor addState(unsigned argument, mlir::RankedTensorType type);
  /// A state's next value: it is in place already, or is copied there.
  void keepState(const DeviceTensor &value, const DeviceTensor &state, mlir::Type type, unsigned result, Split split);
  void declareState(mlir::Type type, const DeviceTensor &state, const std::string &name);
  /// Other quads send parts of these inputs up to here: their places are taken until all have met.
  void meetAfterInputs(llvm::ArrayRef<int> inputs);

  //--- tasks
  ArrayUnits arrayUnits();
  void multiply(const Spread &plan, const TileOrder &order, const MatmulOperands &operands);
  /// All products of a batch by B's tiles, which are in ST.
  /// `stBytes`: of one product in a slice; 0 where all products share them.
  void multiplyAll(const PlacedProduct &all, const TileOrder &order, int64_t stBytes = 0);
  /// Whether a constant is fetched piece by piece, since ST does not hold it.
  bool comesInPieces(const Tiles &tiles) const;
  /// The same by a constant, which may come in pieces of its columns; the order is whole then.
  void multiplyByConstant(PlacedProduct all, const TileOrder &order, const Tiles &tiles);
  /// All products of a batch of matrices, each of B's packed before.
  void multiplyValues(PlacedProduct all, const TileOrder &order);
  /// B's tiles of all products of a batch, each matrix once, to ST: where they are.
  Address pack(const Spread &plan, MatmulOperands operands, llvm::ArrayRef<BatchDim> batch);
  /// The same of these matrices, and how far it is from trip to trip
  /// of each dim of the batch.
  std::pair<Address, llvm::SmallVector<int64_t>> packAll(const Spread &plan, const DeviceTensor &matrices);
  /// Of the same keys and values.
  void multiplyBands(llvm::ArrayRef<BandedScores> jobs);
  /// A convolution of images, of whose result the split is a quad's part: of images, channels or rows.
  struct Convolution {
    hw::Window window;
    int64_t pixels; ///< of the whole result
    int64_t groups;
    const Tiles *tiles;
    Address bias; ///< no buffer: none
    Spread plan;
    llvm::ArrayRef<Epilogue> epilogue;   ///< one, or none
    llvm::ArrayRef<DeviceTensor> beside; ///< that it reads, which lie as the result does
  };
  void convolve(const DeviceTensor &source, const DeviceTensor &out, Split split, const Convolution &conv);
  /// Where one of its products reads and writes, but for its image.
  static MatmulOperands operandsAt(const ImageStep &step, const Convolution &conv, const DeviceTensor &result);
  /// By a plan of whole windows (Windows.cpp).
  friend class WindowWriter;
  /// Of a kernel that a user wrote (../user/UserTasks.h).
  friend class UserWriter;
  void convolveWindows(const DeviceTensor &image, const DeviceTensor &result, Split split, const Convolution &conv);
  /// A convolution of each channel on its own; the image's channels lie side by side.
  void convolveEach(const DeviceTensor &source, const DeviceTensor &weights, const DeviceTensor &out,
                    const hw::Window &window);
  void pool(dmir::PoolOp pool, const DeviceTensor &source, const DeviceTensor &out);
  /// Rows along axes: softmax, norms, reductions. False where a row walks over more dims than a descriptor has.
  [[nodiscard]] bool rows(hw::SimdFunction function, const DeviceTensor &source, const DeviceTensor &result,
                          llvm::ArrayRef<int64_t> axes, float imm0);
  /// A function that counts columns from the row on: softmax of columns below index + row, causal_mask of those up to
  /// it. `turned`: rows and columns count from the last one on.
  [[nodiscard]] bool masked(hw::SimdFunction function, const DeviceTensor &source, const DeviceTensor &result,
                            const Address &index, bool turned, float imm0);
  void copyInto(const DeviceTensor &from, const DeviceTensor &to);
  void fill(const DeviceTensor &tensor, double value);
  /// Elements of the operands, broadcast, to those of the result; of a function of rows the innermost `inner` dims are
  /// one.
  void map(hw::SimdFunction function, const DeviceTensor &result, llvm::ArrayRef<DeviceTensor> operands, float imm0 = 0,
           float imm1 = 0, unsigned inner = 0);
  /// False where no instruction has as many dims.
  bool simd(SimdOp op);
  /// The elements of `data` along the axis that the indices name; both lie row by row. `to` may be the part of the
  /// result that the indices are a part for.
  void gatherRows(const DeviceTensor &data, const DeviceTensor &indices, const DeviceTensor &to, int64_t axis);
  /// A row of updates to each place along the axis that the indices name.
  Status scatterRows(const DeviceTensor &updates, const DeviceTensor &indices, const DeviceTensor &to, size_t axis);
  /// The quads' sums of a product along K, [quad, elements], added up in the order of the quads.
  void addUp(const DeviceTensor &sums, const DeviceTensor &to);
  /// Items at places that indices name, `pitch` bytes from one to the next, all below `range`.
  void reshapeByIndex(llvm::StringRef function, llvm::StringRef rule, const DeviceTensor &from, const DeviceTensor &to,
                      const DeviceTensor &indices, DmaSpec spec, int64_t pitch, int64_t range);

  //--- values
  DeviceTensor allocate(llvm::ArrayRef<int64_t> shape, hw::ElemKind kind, llvm::ArrayRef<unsigned> order);
  /// Starts a task of the main program that is called as the op's node.
  void task(mlir::Operation *op);

  //--- several quads (Team.cpp)
  /// Sends the quads' shares of tensors to their places in everybody's whole.
  struct Shares {
    DeviceTensor share, whole;
    Split split; ///< of the whole
  };
  void exchange(llvm::ArrayRef<Shares> all);
  void meet();
  /// Where a tensor, or the parts of it, lie in the DDR of the chiplets.
  std::vector<hw::Piece> piecesOf(const DeviceTensor &tensor, llvm::ArrayRef<unsigned> order, Split split) const;
  int chiplets() const { return (quads + machine.quadsPerChiplet() - 1) / machine.quadsPerChiplet(); }
  QuadRegisters launchRegisters() const;
  /// Copies a tensor in a task of the main program; `receivers` is the term of a mask of quads, scale 0 for the own.
  void moveTensor(Queue queue, const DeviceTensor &from, const DeviceTensor &to, hw::Term receivers);

  const std::string name;        ///< the kernel's
  const mlir::Location location; ///< its nodes
  const int quads;               ///< of the team
  const hw::Machine &machine;
  const bool fromDdr;
  QuadRegisters registers;
  mlir::OpBuilder builder;
  DlirWriter writer;
  Buffers buffers;
  std::unique_ptr<Program> init, main;
  std::string node; ///< of the op that is being lowered

private:
  struct LateInput {
    std::string name;
    DeviceTensor ddr, tensor;
  };
  std::map<int, LateInput> lateInputs;   ///< by buffer
  std::map<std::string, int> userTokens; ///< of users' kernels, by file, symbol and number
  bool streamed = false;                 ///< the last product left WB to the array controller
};

} // namespace dmxc::corsair
