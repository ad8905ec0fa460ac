//===- Herd.cpp - a product as the program of a herd ----------------------===//
#include "Place.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;
using herd::By;
using herd::Level;

namespace {

/// Parameters of the cores.
enum Parameter : uint8_t { PairsAlongK, AddsBias, IsRelu };

class HerdWriter {
public:
  HerdWriter(OpBuilder &builder, Location where, const Product &product)
      : b(builder), where(where), product(product), numbers(*product.numbers) {}

  herd::ProgramOp run(const hw::Machine &machine, StringRef name);

private:
  MemRefType matrix(int64_t rows, int64_t columns, bool operand) {
    Type element = numbers.bytes == 2 ? (operand ? Type(b.getBF16Type()) : Type(b.getF32Type())) : b.getI32Type();
    return MemRefType::get({rows, columns}, element);
  }
  MemRefType typeA() { return matrix(numbers.m, numbers.k, true); }
  MemRefType typeB() { return matrix(numbers.k, numbers.n, true); }
  MemRefType typeC() { return matrix(numbers.m, numbers.n, false); }

  void writeChannels();
  BDDimLayoutArrayAttr steps(int64_t rows, int64_t columns, int64_t stepRows, int64_t stepColumns);
  void writeCores();
  void loop(Value times, const std::function<void()> &body);
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, where, value); }
  Value parameter(Parameter which) { return herd::ParameterOp::create(b, where, b.getIndexType(), which); }
  Value acquire(StringRef channel, MemRefType type) { return herd::AcquireOp::create(b, where, type, channel); }
  void release(StringRef channel) { herd::ReleaseOp::create(b, where, channel); }
  void call(StringRef kernel, ValueRange buffers) { func::CallOp::create(b, where, kernel, TypeRange(), buffers); }
  void writeSequence();
  void writeBlock(int64_t block);
  void move(Part part, StringRef channel, int64_t column, int64_t offset, ArrayRef<int64_t> sizes,
            ArrayRef<int64_t> strides) {
    herd::MoveOp::create(b, where, matrices.at(part), static_cast<uint64_t>(offset), sizes, strides, channel,
                         static_cast<uint64_t>(column));
  }

  OpBuilder &b;
  Location where;
  const Product &product;
  const Numbers &numbers;
  std::map<Part, Value> matrices; ///< of the sequence
};

/// A matrix, matrix step after matrix step.
BDDimLayoutArrayAttr HerdWriter::steps(int64_t rows, int64_t columns, int64_t stepRows, int64_t stepColumns) {
  MLIRContext *context = b.getContext();
  return BDDimLayoutArrayAttr::get(context, {BDDimLayoutAttr::get(context, rows / stepRows, stepRows * columns),
                                             BDDimLayoutAttr::get(context, columns / stepColumns, stepColumns),
                                             BDDimLayoutAttr::get(context, stepRows, columns),
                                             BDDimLayoutAttr::get(context, stepColumns, 1)});
}

void HerdWriter::writeChannels() {
  auto channel = [&](StringRef name, Level from, Level to, By by, MemRefType type) {
    herd::ChannelOp::create(b, where, name, from, to, by, type);
  };
  channel("a_in", Level::ddr, Level::memory, By::columns, typeA());
  channel("b_in", Level::ddr, Level::memory, By::columns, typeB());
  channel("a", Level::memory, Level::core, By::rows, typeA());
  channel("b", Level::memory, Level::core, By::columns, typeB());
  channel("c", Level::core, Level::memory, By::cores, typeC());
  channel("c_out", Level::memory, Level::ddr, By::columns, typeC());
  herd::RelayOp::create(b, where, "a_in", "a", nullptr, steps(numbers.m, numbers.k, hw::kStepM, numbers.stepK));
  herd::RelayOp::create(b, where, "b_in", "b", nullptr, steps(numbers.k, numbers.n, numbers.stepK, hw::kStepN));
  herd::RelayOp::create(b, where, "c", "c_out", steps(numbers.m, numbers.n, hw::kStepM, hw::kStepN), nullptr);
  const std::pair<StringRef, SmallVector<Type>> kernels[] = {{numbers.zero, {typeC()}},
                                                             {numbers.matmul, {typeA(), typeB(), typeC()}},
                                                             {numbers.bias, {typeB(), typeC()}},
                                                             {numbers.relu, {typeC()}}};
  for (const auto &[name, types] : kernels)
    func::FuncOp::create(b, where, name, b.getFunctionType(types, {})).setPrivate();
}

void HerdWriter::loop(Value times, const std::function<void()> &body) {
  auto op = scf::ForOp::create(b, where, constant(0), times, constant(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body();
}

/// Result after result for ever: tiles along k in pairs; a bias comes as one pair more of b.
void HerdWriter::writeCores() {
  auto op = herd::CoresOp::create(b, where);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  loop(constant(kForever), [&] {
    Value c = acquire("c", typeC());
    call(numbers.zero, c);
    loop(parameter(PairsAlongK), [&] {
      Value a = acquire("a", typeA()), right = acquire("b", typeB());
      call(numbers.matmul, {a, right, c});
      release("a");
      release("b");
    });
    loop(parameter(AddsBias), [&] {
      Value bias = acquire("b", typeB());
      call(numbers.bias, {bias, c});
      release("b");
      acquire("b", typeB());
      release("b");
    });
    loop(parameter(IsRelu), [&] { call(numbers.relu, c); });
    release("c");
  });
}

/// What a block of results takes and gives, by all columns.
void HerdWriter::writeBlock(int64_t block) {
  int64_t m = numbers.m, k = numbers.k, n = numbers.n, width = product.paddedN(), depth = product.paddedK();
  int64_t across = width / product.blockN(), row = block / across * product.blockM();
  auto op = herd::BlockOp::create(b, where);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getBody().emplaceBlock());
  for (int64_t column = 0; column < product.herd.columns; ++column) {
    int64_t first = block % across * product.blockN() + column * n;
    SmallVector<int64_t> rows = rowsOf(product.herd, column);
    if (!rows.empty())
      move(Part::A, "a_in", column, (row + rows[0] * m) * depth,
           {1, depth / k, static_cast<int64_t>(rows.size()) * m, k}, {0, k, depth, 1});
    move(Part::B, "b_in", column, first, {1, depth / k, k, n}, {0, k * width, width, 1});
    // The numbers of four columns at the first words of each matrix step, in all rows of a pair of tiles of b.
    int64_t perRow = numbers.bytes, parts = hw::kStepN / perRow;
    if (product.hasBias())
      move(Part::Bias, "b_in", column, first, {2 * k / parts, parts, n / hw::kStepN, perRow},
           {0, perRow, hw::kStepN, 1});
    move(Part::C, "c_out", column, row * width + first, {1, 1, product.herd.rows * m, n}, {0, 0, width, 1});
  }
}

void HerdWriter::writeSequence() {
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
  const int64_t parameters[] = {product.paddedK() / (2 * numbers.k), product.hasBias(), product.relu};
  auto sequence = herd::SequenceOp::create(b, where, b.getArrayAttr(operands), parameters);
  Block &block = sequence.getBody().emplaceBlock();
  for (auto [operand, type] : llvm::zip_equal(product.operands, types))
    matrices[operand.part] = block.addArgument(type, where);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&block);
  for (int64_t i = 0; i < product.blocks(); ++i)
    writeBlock(i);
}

herd::ProgramOp HerdWriter::run(const hw::Machine &machine, StringRef name) {
  auto program = herd::ProgramOp::create(
      b, where, *symbolizeAIEDevice(machine.name == "npu4" ? "npu2" : StringRef(machine.name)), name,
      static_cast<uint64_t>(product.herd.rows), static_cast<uint64_t>(product.herd.columns));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&program.getBody().emplaceBlock());
  writeChannels();
  writeCores();
  writeSequence();
  return program;
}

} // namespace

SmallVector<int64_t> aie::rowsOf(const Herd &herd, int64_t column) {
  SmallVector<int64_t> rows;
  for (int64_t row = 0; row < herd.rows; ++row)
    if (row * herd.columns / std::max(herd.rows, herd.columns) == column)
      rows.push_back(row);
  return rows;
}

herd::ProgramOp aie::writeHerd(OpBuilder &builder, Location where, const hw::Machine &machine, StringRef name,
                               const Product &product) {
  return HerdWriter(builder, where, product).run(machine, name);
}
