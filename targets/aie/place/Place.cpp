//===- Place.cpp - a product on the tiles of an array ---------------------===//
#include "Place.h"
#include "Tiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr int64_t kDepth = 2; ///< buffers of a ring
/// Tasks of one channel that are begun before a block has to be done: what its queue holds.
constexpr int64_t kFlights = 4;
/// Words of a core's memory that the controller writes.
enum Parameter : uint8_t { PairsAlongK, AddsBias, IsRelu, Parameters };

class Placement {
public:
  Placement(OpBuilder &builder, Location where, const hw::Machine &machine, const Product &product)
      : b(builder), where(where), product(product), numbers(*product.numbers), tiles(builder, where, machine) {}

  DeviceOp run(const hw::Machine &machine, StringRef name);

private:
  struct Core {
    hw::Tile at;
    Ring a, b, c;
    Value parameters, start;
  };
  /// A shim and the memory tile above it; which rows' parts of a they have.
  struct Column {
    hw::Tile shim, memory;
    SmallVector<int64_t> rows;
  };

  MemRefType matrix(int64_t rows, int64_t columns, bool operand) {
    Type element = numbers.bytes == 2 ? (operand ? Type(b.getBF16Type()) : Type(b.getF32Type())) : b.getI32Type();
    return MemRefType::get({rows, columns}, element);
  }
  void placeCores();
  void placeColumn(Column &column);
  void placeA(Column &column);
  void declareKernels();
  void writeCore(Core &core);
  void writeResult(Core &core, int64_t result);
  void loop(Value times, const std::function<void()> &body);
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, where, value); }
  Value parameter(Core &core, Parameter which);
  void use(Value lock, LockAction action, int64_t value = 1) {
    UseLockOp::create(b, where, lock, action, static_cast<uint32_t>(value));
  }
  void call(StringRef kernel, ValueRange buffers) { func::CallOp::create(b, where, kernel, TypeRange(), buffers); }
  void writeSequence();
  void writeTasks(int64_t block);
  void task(const std::string &channel, Part part, int64_t id, int64_t offset, ArrayRef<int64_t> sizes,
            ArrayRef<int64_t> strides, bool token = false);

  OpBuilder &b;
  Location where;
  const Product &product;
  const Numbers &numbers;
  Tiles tiles;
  std::vector<Core> cores; ///< row after row
  std::vector<Column> columns;
  std::map<Part, Value> matrices; ///< of the runtime sequence
};

//===--- tiles -----------------------------------------------------------------------===//

void Placement::placeCores() {
  for (int64_t row = 0; row < product.herd.rows; ++row)
    for (int64_t column = 0; column < product.herd.columns; ++column) {
      hw::Tile at{static_cast<uint32_t>(column), static_cast<uint32_t>(2 + row)};
      Core &core = cores.emplace_back(Core{at, {}, {}, {}, {}, {}});
      core.a = tiles.ring(at, "a", matrix(numbers.m, numbers.k, true), kDepth);
      core.parameters = tiles.buffer(at, "parameters", MemRefType::get({Parameters}, b.getI32Type()));
      core.b = tiles.ring(at, "b", matrix(numbers.k, numbers.n, true), kDepth, /*bank=*/true);
      core.c = tiles.ring(at, "c", matrix(numbers.m, numbers.n, false), kDepth, /*bank=*/true);
      core.start = tiles.lock(at, "start", 0);
      tiles.channel(at, DMAChannelDir::S2MM, core.a);
      tiles.channel(at, DMAChannelDir::S2MM, core.b);
      tiles.channel(at, DMAChannelDir::MM2S, core.c);
    }
}

/// The shim's stream brings the parts of its rows in turn; each goes along its row, matrix step after matrix step.
void Placement::placeA(Column &column) {
  std::vector<Ring> parts;
  for (int64_t row : column.rows)
    parts.push_back(
        tiles.ring(column.memory, "a_row" + std::to_string(row), matrix(numbers.m, numbers.k, true), kDepth));
  if (parts.empty())
    return;
  tiles.flow(column.shim, 0, column.memory, tiles.channel(column.memory, DMAChannelDir::S2MM, parts));
  int64_t k = numbers.k, stepK = numbers.stepK;
  const WalkDim walk[] = {{numbers.m / hw::kStepM, hw::kStepM * k}, {k / stepK, stepK}, {hw::kStepM, k}, {stepK, 1}};
  for (auto [row, part] : llvm::zip_equal(column.rows, parts)) {
    uint32_t channel = tiles.channel(column.memory, DMAChannelDir::MM2S, part, walk);
    for (int64_t x = 0; x < product.herd.columns; ++x)
      tiles.flow(column.memory, channel, {static_cast<uint32_t>(x), static_cast<uint32_t>(2 + row)}, 0);
  }
}

void Placement::placeColumn(Column &column) {
  int64_t n = numbers.n;
  placeA(column);
  Ring right = tiles.ring(column.memory, "b", matrix(numbers.k, n, true), kDepth);
  tiles.flow(column.shim, 1, column.memory, tiles.channel(column.memory, DMAChannelDir::S2MM, right));
  const WalkDim walkB[] = {{numbers.k / numbers.stepK, numbers.stepK * n},
                           {n / hw::kStepN, hw::kStepN},
                           {numbers.stepK, n},
                           {hw::kStepN, 1}};
  uint32_t down = tiles.channel(column.memory, DMAChannelDir::MM2S, right, walkB);
  const WalkDim walkC[] = {
      {numbers.m / hw::kStepM, hw::kStepM * n}, {n / hw::kStepN, hw::kStepN}, {hw::kStepM, n}, {hw::kStepN, 1}};
  std::vector<Ring> results;
  for (int64_t row = 0; row < product.herd.rows; ++row) {
    hw::Tile core{column.memory.column, static_cast<uint32_t>(2 + row)};
    tiles.flow(column.memory, down, core, 1);
    results.push_back(tiles.ring(column.memory, "c_row" + std::to_string(row), matrix(numbers.m, n, false), kDepth));
    tiles.flow(core, 0, column.memory, tiles.channel(column.memory, DMAChannelDir::S2MM, results.back(), walkC));
  }
  // A BD gives one lock, so what joins drains part after part.
  tiles.flow(column.memory, tiles.channel(column.memory, DMAChannelDir::MM2S, results), column.shim, 0);
  // The tokens of tasks that are done.
  FlowOp::create(b, where, tiles.tile(column.shim), WireBundle::TileControl, 0, tiles.tile(column.shim),
                 WireBundle::South, 0);
  auto name = [&](const char *what) { return what + std::to_string(column.shim.column); };
  if (!column.rows.empty())
    ShimDMAAllocationOp::create(b, where, name("a"), tiles.tile(column.shim), DMAChannelDir::MM2S, 0);
  ShimDMAAllocationOp::create(b, where, name("b"), tiles.tile(column.shim), DMAChannelDir::MM2S, 1);
  ShimDMAAllocationOp::create(b, where, name("c"), tiles.tile(column.shim), DMAChannelDir::S2MM, 0);
}

//===--- cores -------------------------------------------------------------------------===//

void Placement::declareKernels() {
  Type a = matrix(numbers.m, numbers.k, true), right = matrix(numbers.k, numbers.n, true),
       c = matrix(numbers.m, numbers.n, false);
  const std::pair<StringRef, SmallVector<Type>> all[] = {
      {numbers.zero, {c}}, {numbers.matmul, {a, right, c}}, {numbers.bias, {right, c}}, {numbers.relu, {c}}};
  for (const auto &[name, types] : all)
    func::FuncOp::create(b, where, name, b.getFunctionType(types, {})).setPrivate();
}

Value Placement::parameter(Core &core, Parameter which) {
  Value word = memref::LoadOp::create(b, where, core.parameters, ValueRange{constant(which)});
  return arith::IndexCastOp::create(b, where, b.getIndexType(), word);
}

void Placement::loop(Value times, const std::function<void()> &body) {
  auto op = scf::ForOp::create(b, where, constant(0), times, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body();
}

/// A result: tiles along k in pairs, one of each buffer; a bias comes as one pair more of b.
void Placement::writeResult(Core &core, int64_t result) {
  Value c = core.c.buffers[static_cast<size_t>(result)];
  use(core.c.empty, LockAction::AcquireGreaterEqual);
  call(numbers.zero, c);
  loop(parameter(core, PairsAlongK), [&] {
    for (size_t half = 0; half < kDepth; ++half) {
      use(core.a.full, LockAction::AcquireGreaterEqual);
      use(core.b.full, LockAction::AcquireGreaterEqual);
      call(numbers.matmul, {core.a.buffers[half], core.b.buffers[half], c});
      use(core.a.empty, LockAction::Release);
      use(core.b.empty, LockAction::Release);
    }
  });
  loop(parameter(core, AddsBias), [&] {
    use(core.b.full, LockAction::AcquireGreaterEqual, kDepth);
    call(numbers.bias, {core.b.buffers[0], c});
    use(core.b.empty, LockAction::Release, kDepth);
  });
  loop(parameter(core, IsRelu), [&] { call(numbers.relu, c); });
  use(core.c.full, LockAction::Release);
}

/// Waits for the parameters, then computes result after result for ever.
void Placement::writeCore(Core &core) {
  auto op = CoreOp::create(b, where, b.getIndexType(), tiles.tile(core.at), b.getStringAttr("kernels.o"));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  use(core.start, LockAction::AcquireGreaterEqual);
  loop(constant(kForever), [&] {
    for (int64_t result = 0; result < kDepth; ++result)
      writeResult(core, result);
  });
  EndOp::create(b, where);
}

//===--- the runtime sequence ------------------------------------------------------------===//

void Placement::task(const std::string &channel, Part part, int64_t id, int64_t offset, ArrayRef<int64_t> sizes,
                     ArrayRef<int64_t> strides, bool token) {
  const int64_t offsets[] = {0, 0, 0, offset};
  aiex::NpuDmaMemcpyNdOp::create(b, where, matrices.at(part), offsets, sizes, strides, channel,
                                 static_cast<uint64_t>(id), token);
}

/// What a block of results takes and gives, by all columns.
void Placement::writeTasks(int64_t block) {
  int64_t m = numbers.m, k = numbers.k, n = numbers.n, width = product.paddedN(), depth = product.paddedK();
  int64_t across = width / product.blockN(), row = block / across * product.blockM();
  int64_t perBlock = product.hasBias() ? 4 : 3, flights = kFlights / (product.hasBias() ? 2 : 1);
  for (const Column &column : columns) {
    std::string number = std::to_string(column.shim.column);
    int64_t id = block % flights * perBlock, first = block % across * product.blockN() + column.shim.column * n;
    if (!column.rows.empty()) {
      int64_t rows = static_cast<int64_t>(column.rows.size()) * m;
      task("a" + number, Part::A, id, (row + column.rows[0] * m) * depth, {1, depth / k, rows, k}, {0, k, depth, 1});
    }
    task("b" + number, Part::B, id + 1, first, {1, depth / k, k, n}, {0, k * width, width, 1});
    // The numbers of four columns at the first words of each matrix step, in all rows of two tiles of b.
    int64_t perRow = numbers.bytes, steps = n / hw::kStepN, parts = hw::kStepN / perRow;
    if (product.hasBias())
      task("b" + number, Part::Bias, id + 3, first, {kDepth * k / parts, parts, steps, perRow},
           {0, perRow, hw::kStepN, 1});
    task("c" + number, Part::C, id + 2, row * width + first, {1, 1, product.herd.rows * m, n}, {0, 0, width, 1},
         /*token=*/true);
  }
}

void Placement::writeSequence() {
  SmallVector<Attribute> operands;
  SmallVector<Type> types;
  for (const Operand &operand : product.operands) {
    constexpr const char *names[] = {"a", "b", "bias", "c"};
    const char *role = operand.part == Part::C ? "output" : operand.packed ? "constant" : "input";
    operands.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(names[static_cast<size_t>(operand.part)])),
         b.getNamedAttr("role", b.getStringAttr(role)), b.getNamedAttr("tensor", TypeAttr::get(operand.tensor))}));
    auto [rows, pitch] = product.formOf(operand.part);
    types.push_back(matrix(rows, pitch, operand.part == Part::A || operand.part == Part::B));
  }
  auto sequence = RuntimeSequenceOp::create(b, where, b.getArrayAttr(operands));
  Block &block = sequence.getBody().emplaceBlock();
  for (auto [operand, type] : llvm::zip_equal(product.operands, types))
    matrices[operand.part] = block.addArgument(type, where);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&block);
  const int64_t parameters[] = {product.paddedK() / (kDepth * numbers.k), product.hasBias(), product.relu};
  for (Core &core : cores) {
    for (auto [i, value] : llvm::enumerate(parameters))
      aiex::NpuWriteRTPOp::create(b, where, bufferOf(core.parameters).getSymName(), static_cast<uint32_t>(i),
                                  static_cast<uint32_t>(value));
    aiex::SetLockOp::create(b, where, core.start, 1);
  }
  int64_t flights = kFlights / (product.hasBias() ? 2 : 1);
  auto wait = [&] {
    for (const Column &column : columns)
      aiex::NpuDmaWaitOp::create(b, where, "c" + std::to_string(column.shim.column));
  };
  for (int64_t i = 0; i < product.blocks(); ++i) {
    if (i >= flights)
      wait();
    writeTasks(i);
  }
  for (int64_t i = 0; i < std::min(flights, product.blocks()); ++i)
    wait();
}

DeviceOp Placement::run(const hw::Machine &machine, StringRef name) {
  auto device =
      DeviceOp::create(b, where, *symbolizeAIEDevice(machine.name == "npu4" ? "npu2" : StringRef(machine.name)), name);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&device.getBody().emplaceBlock());
  for (uint32_t column = 0; column < product.herd.columns; ++column) {
    Column &one = columns.emplace_back(Column{{column, 0}, {column, 1}, {}});
    for (int64_t row = 0; row < product.herd.rows; ++row)
      if (row * product.herd.columns / std::max(product.herd.rows, product.herd.columns) == column)
        one.rows.push_back(row);
  }
  placeCores();
  for (Column &column : columns)
    placeColumn(column);
  tiles.writeChannels();
  declareKernels();
  for (Core &core : cores)
    writeCore(core);
  writeSequence();
  return device;
}

} // namespace

DeviceOp aie::place(OpBuilder &builder, Location where, const hw::Machine &machine, StringRef name,
                    const Product &product) {
  return Placement(builder, where, machine, product).run(machine, name);
}
