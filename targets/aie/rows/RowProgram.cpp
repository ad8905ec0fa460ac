//===- RowProgram.cpp - rows as a program of grids of units ---------------===//
//
// shim c      MM2S 0: rows of each whole operand after each other      MM2S 1: rows that all share      S2MM 0: results
// memory c    a ring for each core, through which all whole operands go; one for shared rows; one for each core's
// results core (c,r)  a ring an operand, by two channels; joins, steps and normalisations in the slot of the result
//
//===----------------------------------------------------------------------===//
#include "RowMapping.h"

#include "schemas/aie/RowKernels.h"
#include "targets/aie/place/Units.h"

#include <bit>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr int64_t kSlots = 2, kBytes = 4;

class RowsProgram {
public:
  RowsProgram(ProgramWriter &writer, const RowMapping &mapping)
      : w(writer), p(mapping), rows(mapping.tiling.herdRows), columns(mapping.tiling.herdColumns) {}
  void write();

private:
  void declareArgument(unsigned argument);
  void declareResult();
  void declareRings();
  void writeParameters();
  void writeCores();
  void compute();
  void call(hw::KernelId kernel, ValueRange matrices);
  void writeMemoryTiles();
  void writeShims();
  void blocks(hw::Direction direction, int64_t number, function_ref<void(ArrayRef<Sum> outer, Sum block)> body);
  void loops(ArrayRef<int64_t> left, SmallVector<Sum> &outer, function_ref<void()> body);
  /// So many rows as they lie in a tile; as a shim reads them.
  Value whole(int64_t count);
  Value reads(const RowWalk &walk, int64_t count);
  bool hasShared() const {
    return llvm::any_of(p.walks, [](const RowWalk &walk) { return walk.isRow; });
  }

  ProgramWriter &w;
  const RowMapping &p;
  int64_t rows, columns;
  SmallVector<Value> ddr, ofCores, ofMemory, ofResults; ///< by operand; rings by operand and by row of cores
  Value result, ofResult, shared;
};

std::string nameOf(size_t operand) { return operand ? "y" + std::to_string(operand) : "x"; }

/// As the host has it, with zeros behind; once where several walks read it.
void RowsProgram::declareArgument(unsigned argument) {
  const RowWalk *first = nullptr;
  int64_t elements = 0;
  for (const RowWalk &walk : p.walks)
    if (walk.argument == argument) {
      first = first ? first : &walk;
      elements = std::max(elements, p.elements(walk));
    }
  if (!first)
    return;
  std::string name = nameOf(static_cast<size_t>(first - p.walks.data()));
  w.argument(dlir::ArgumentRole::input, name, first->tensor, "f32");
  Value memory = w.memory("DDR", name, elements * kBytes);
  ArrayRef<int64_t> shape = first->tensor.getShape();
  SmallVector<int64_t> begin(shape.size(), 0), strides(shape.size(), kBytes);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  setBorder(w.piece(memory, name, 0, 0, begin, shape, strides), shape.size(), 8 * kBytes);
  for (auto [i, walk] : llvm::enumerate(p.walks))
    if (walk.argument == argument)
      ddr[i] = memory;
}

void RowsProgram::declareResult() {
  w.argument(dlir::ArgumentRole::output, "c", p.result, "f32");
  result = w.memory("DDR", "c", p.outerCount() * p.paddedRows() * p.pitch() * kBytes);
  ArrayRef<int64_t> shape = p.result.getShape();
  SmallVector<int64_t> begin(shape.size(), 0), strides(p.resultStrides);
  for (int64_t &stride : strides)
    stride *= kBytes;
  setBorder(w.piece(result, "c", 0, 0, begin, shape, strides), shape.size(), 8 * kBytes);
}

Value RowsProgram::whole(int64_t count) {
  DescriptorSpec spec{"f32", {}, p.pitch(), {{count, p.pitch() * kBytes, p.pitch() * kBytes}}};
  spec.keepsDims = true;
  return w.descriptor(spec);
}

Value RowsProgram::reads(const RowWalk &walk, int64_t count) {
  DescriptorSpec spec{"f32", {}, 1, {}};
  if (count > 1)
    spec.dims.push_back({count, walk.row * kBytes, 0});
  if (walk.column != 1) {
    spec.dims.push_back({p.pitch(), walk.column * kBytes, 0});
    return w.descriptor(spec);
  }
  constexpr int64_t most = 512; // within the wraps of a dim
  spec.unit = p.pitch();
  for (int64_t parts = 1; spec.unit > most; ++parts)
    if (p.pitch() % parts == 0)
      spec.unit = p.pitch() / parts;
  if (spec.unit < p.pitch())
    spec.dims.push_back({p.pitch() / spec.unit, spec.unit * kBytes, 0});
  return w.descriptor(spec);
}

void RowsProgram::declareRings() {
  StringRef in = hw::nameOf(hw::Direction::S2MM), out = hw::nameOf(hw::Direction::MM2S);
  StringRef core = hw::nameOf(hw::TileKind::Core), memory = hw::nameOf(hw::TileKind::Memory);
  int64_t row = p.pitch() * kBytes, slot = p.tiling.rows * row;
  for (auto [i, walk] : llvm::enumerate(p.walks))
    ofCores.push_back(
        w.ring("L1", nameOf(i), kSlots, walk.isRow ? row : slot, core, {in, walk.isRow}, {kComputeEngine, 0}));
  ofResult = w.ring("L1", "c", kSlots, slot, core, {kComputeEngine, 0}, {out, 0});
  for (int64_t r = 0; r < rows; ++r)
    ofMemory.push_back(w.ring("L2", "x_row" + std::to_string(r), kSlots, slot, memory, {in, 0}, {out, r}));
  if (hasShared())
    shared = w.ring("L2", "shared", kSlots, row, memory, {in, 1}, {out, rows});
  for (int64_t r = 0; r < rows; ++r)
    ofResults.push_back(w.ring("L2", "c_row" + std::to_string(r), kSlots, slot, memory, {in, 2 + r}, {out, rows + 1}));
}

//===--- cores ------------------------------------------------------------------------===//

void RowsProgram::call(hw::KernelId kernel, ValueRange matrices) {
  TaskWriter task = w.task(CallOp::getOperationName());
  task.text("kernel", StringRef(hw::infoOf(kernel).name));
  for (Value matrix : matrices)
    task.buffer(matrix, 0);
  task.create();
}

void RowsProgram::compute() {
  w.drain(ofCores[0], [&] { call(hw::KernelId::CopyF32, {ofCores[0], ofResult}); });
  size_t operand = 1;
  bool stepped = false; // all steps are one call
  for (const RowOp &op : p.ops) {
    if (op.other) {
      Value ring = ofCores[operand++];
      w.drain(ring, [&] { call(op.kernel, {ring, ofResult}); });
    } else if (op.kernel == hw::KernelId::AddF32 || op.kernel == hw::KernelId::MultiplyF32) {
      call(op.kernel, {ofResult, ofResult});
    } else if (op.kernel != hw::KernelId::StepsF32 || !stepped) {
      call(op.kernel, ofResult);
      stepped |= op.kernel == hw::KernelId::StepsF32;
    }
  }
}

void RowsProgram::writeCores() {
  Sum column = w.unit(0), row = w.unit(1);
  const hw::TileKind unit = hw::TileKind::Core;
  auto takes = [&](int64_t channel, StringRef name, ArrayRef<Sum> element, int64_t count) {
    forever(w, unit, hw::nameOf(hw::Direction::S2MM), channel, {}, [&] {
      for (auto [walk, ring] : llvm::zip_equal(p.walks, ofCores))
        if (walk.isRow == (channel == 1))
          fill(w, ring, name, element, whole(count));
    });
  };
  takes(0, "x", {column, row}, p.tiling.rows);
  if (hasShared())
    takes(1, "shared", {column}, 1);
  forever(w, unit, hw::nameOf(hw::Direction::MM2S), 0, {},
          [&] { drain(w, ofResult, "c", {column, row}, whole(p.tiling.rows)); });
  forever(w, unit, kComputeEngine, 0, {}, [&] { w.fill(ofResult, [&] { compute(); }); });
}

void RowsProgram::writeParameters() {
  SmallVector<uint32_t> words(hw::kParameterWords, 0);
  words[hw::kColumnsWord] = static_cast<uint32_t>(p.columns);
  int64_t at = hw::kFirstStepWord;
  for (const RowOp &op : p.ops)
    if (op.kernel == hw::KernelId::LayerNormF32 || op.kernel == hw::KernelId::RmsNormF32) {
      words[hw::kEpsilonWord] = std::bit_cast<uint32_t>(op.epsilon);
    } else if (op.kernel == hw::KernelId::StepsF32) {
      words[at] = static_cast<uint32_t>(op.step.kind);
      words[at + 1] = std::bit_cast<uint32_t>(op.step.a);
      words[at + 2] = std::bit_cast<uint32_t>(op.step.b);
      at += hw::kStepWords;
    }
  for (uint32_t word : words)
    w.launchRegister(word);
}

//===--- memory tiles and shims -------------------------------------------------------===//

void RowsProgram::writeMemoryTiles() {
  StringRef in = hw::nameOf(hw::Direction::S2MM), out = hw::nameOf(hw::Direction::MM2S);
  Value slot = whole(p.tiling.rows);
  auto queue = [&](StringRef engine, int64_t number, function_ref<void(Sum)> body) {
    forever(w, hw::TileKind::Memory, engine, number, columns, [&] { body(w.unit()); });
  };
  queue(in, 0, [&](const Sum &x) {
    for (Value ring : ofMemory)
      fill(w, ring, "x_in", x, slot);
  });
  for (int64_t r = 0; r < rows; ++r)
    queue(out, r, [&](const Sum &x) { drain(w, ofMemory[static_cast<size_t>(r)], "x", {x, r}, slot); });
  if (shared) {
    queue(in, 1, [&](const Sum &x) { fill(w, shared, "shared_in", x, whole(1)); });
    queue(out, rows, [&](const Sum &x) { drain(w, shared, "shared", x, whole(1)); });
  }
  for (int64_t r = 0; r < rows; ++r)
    queue(in, 2 + r, [&](const Sum &x) { fill(w, ofResults[static_cast<size_t>(r)], "c", {x, r}, slot); });
  queue(out, rows + 1, [&](const Sum &x) {
    for (Value ring : ofResults)
      drain(w, ring, "c_out", x, slot);
  });
}

void RowsProgram::loops(ArrayRef<int64_t> left, SmallVector<Sum> &outer, function_ref<void()> body) {
  if (left.empty())
    return body();
  w.loop(left.front(), [&](const Sum &counter) {
    outer.push_back(counter);
    loops(left.drop_front(), outer, body);
    outer.pop_back();
  });
}

/// A queue of shims that has tasks for each block of rows.
void RowsProgram::blocks(hw::Direction direction, int64_t number,
                         function_ref<void(ArrayRef<Sum> outer, Sum block)> body) {
  w.queue(
      hw::nameOf(hw::TileKind::Shim), hw::nameOf(direction), number,
      [&] {
        SmallVector<Sum> outer;
        loops(p.outer, outer, [&] {
          w.loop(p.blocks(), [&](const Sum &block) { w.group("block", {}, {}, [&] { body(outer, block); }); });
        });
      },
      columns);
}

void RowsProgram::writeShims() {
  int64_t ofColumn = rows * p.tiling.rows;
  auto read = [&](int64_t channel, StringRef name) {
    blocks(hw::Direction::MM2S, channel, [&](ArrayRef<Sum> outer, const Sum &block) {
      for (auto [walk, memory] : llvm::zip_equal(p.walks, ddr)) {
        if (walk.isRow != (channel == 1))
          continue;
        Sum first = walk.offset;
        for (auto [counter, stride] : llvm::zip_equal(outer, walk.outer))
          first = first + counter * stride;
        if (!walk.isRow)
          first = first + (block * p.blockRows() + Sum(w.unit()) * ofColumn) * walk.row;
        w.put(name, Sum(w.unit())).buffer(memory, first * kBytes).with(reads(walk, walk.isRow ? 1 : ofColumn)).create();
      }
    });
  };
  read(0, "x_in");
  if (shared)
    read(1, "shared_in");
  int64_t row = p.pitch() * kBytes;
  Value walk = w.descriptor({"f32", {}, p.pitch(), {{ofColumn, 0, row}}});
  blocks(hw::Direction::S2MM, 0, [&](ArrayRef<Sum> outer, const Sum &block) {
    Sum first = block * p.blockRows() + Sum(w.unit()) * ofColumn;
    int64_t apart = p.paddedRows();
    for (size_t dim = outer.size(); dim-- > 0; apart *= p.outer[dim])
      first = first + outer[dim] * apart;
    w.get("c_out", Sum(w.unit())).buffer(result, first * row).with(walk).create();
  });
}

void RowsProgram::write() {
  ddr.resize(p.walks.size());
  for (unsigned argument = 0; argument < p.walks.size(); ++argument) // as a dispatch brings them
    declareArgument(argument);
  declareResult();
  w.channel("x_in", 1, columns);
  w.channel("x", 1, {columns, rows});
  if (hasShared()) {
    w.channel("shared_in", 1, columns);
    w.channel("shared", 1, columns);
  }
  w.channel("c", 1, {columns, rows});
  w.channel("c_out", 1, columns);
  w.graph("main", {columns, rows});
  writeParameters();
  declareRings();
  writeCores();
  writeMemoryTiles();
  writeShims();
}

} // namespace

dlir::DeviceProgramOp aie::writeRows(OpBuilder &builder, Location where, const hw::Machine &machine, StringRef name,
                                     const RowMapping &mapping) {
  OpBuilder::InsertionGuard guard(builder);
  ProgramWriter writer(builder, where, name, kDevice);
  writer.program()->setAttr(kMachineKey, builder.getStringAttr(StringRef(machine.name)));
  RowsProgram(writer, mapping).write();
  return writer.program();
}
