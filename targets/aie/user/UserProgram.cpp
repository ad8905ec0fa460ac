//===- UserProgram.cpp - a user's kernel as a program of grids of units ---===//
//
// shim c      MM2S 0: rows of each operand      MM2S 1: what all cores share      S2MM 0: results
// memory c    a ring for each core, through which its operands go; one for what is shared; one for each core's results
// core (c,r)  a ring an operand, by two channels, and a ring a result; calls, of which some may be for one result
//
//===----------------------------------------------------------------------===//
#include "UserMapping.h"

#include "targets/aie/place/Units.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr int64_t kSlots = 2;

class UserProgram {
public:
  UserProgram(ProgramWriter &writer, const UserMapping &mapping, int64_t accessBytes)
      : w(writer), p(mapping), accessBytes(accessBytes), rows(mapping.herdRows), columns(mapping.herdColumns) {}
  void write();

private:
  using List = SmallVector<size_t>;
  void declare(dlir::ArgumentRole role, ArrayRef<size_t> same);
  void declareArguments();
  void declareChannels();
  void declareRings();
  Value ring(StringRef memory, const std::string &name, int64_t bytes, hw::TileKind home, QueueName from, QueueName to);
  void writeCores();
  void compute();
  void call(int64_t begin, int64_t end);
  void writeMemoryTiles();
  void writeShims();
  void blocks(hw::Direction direction, int64_t number, function_ref<void(Sum block)> body);
  /// A part as it lies in a tile.
  Value part(const UserTensor &tensor);
  /// So many rows of a tensor, one step after the other.
  Value walk(const UserTensor &tensor, int64_t count);
  int64_t largest(const List &list) const;

  ProgramWriter &w;
  const UserMapping &p;
  int64_t accessBytes, rows, columns;
  List ofRows, shared, results;
  SmallVector<Value> ddr, ofCores, memoryRows, memoryResults; ///< by tensor, by tensor, by row, by row
  Value memoryShared;
};

StringRef engineOf(hw::Direction direction) { return hw::nameOf(direction); }
const StringRef kIn = hw::nameOf(hw::Direction::S2MM), kOut = hw::nameOf(hw::Direction::MM2S);

int64_t UserProgram::largest(const List &list) const {
  int64_t most = 0;
  for (size_t i : list)
    most = std::max(most, p.tensors[i].partBytes());
  return (most + accessBytes - 1) / accessBytes * accessBytes;
}

//===--- declarations -----------------------------------------------------------------===//

/// What one tensor of the host is: one operand, or several.
void UserProgram::declare(dlir::ArgumentRole role, ArrayRef<size_t> same) {
  const UserTensor &t = p.tensors[same.front()];
  const std::string name = (t.isResult ? "y" : "x") + std::to_string(t.argument);
  w.argument(role, name, t.tensor, t.kind);
  Value memory = w.memory("DDR", name, p.formRows(t) * t.pitch * t.bytes);
  ArrayRef<int64_t> shape = t.tensor.getShape();
  SmallVector<int64_t> begin(shape.size(), 0), strides(t.strides);
  for (int64_t &stride : strides)
    stride *= t.bytes;
  setBorder(w.piece(memory, name, 0, 0, begin, shape, strides), shape.size(), t.pitch * t.bytes);
  for (size_t i : same)
    ddr[i] = memory;
}

/// As a dispatch brings them.
void UserProgram::declareArguments() {
  ddr.resize(p.tensors.size());
  std::map<unsigned, List> same;
  for (size_t i = 0; i + p.results < p.tensors.size(); ++i)
    same[p.tensors[i].argument].push_back(i);
  for (const auto &[argument, list] : same)
    declare(dlir::ArgumentRole::input, list);
  for (size_t i : results)
    declare(dlir::ArgumentRole::output, i);
}

void UserProgram::declareChannels() {
  w.channel("x_in", 1, columns);
  w.channel("x", 1, {columns, rows});
  if (!shared.empty()) {
    w.channel("shared_in", 1, columns);
    w.channel("shared", 1, columns);
  }
  w.channel("y", 1, {columns, rows});
  w.channel("y_out", 1, columns);
}

Value UserProgram::ring(StringRef memory, const std::string &name, int64_t bytes, hw::TileKind home, QueueName from,
                        QueueName to) {
  return w.ring(memory, name, kSlots, bytes, hw::nameOf(home), from, to);
}

void UserProgram::declareRings() {
  const hw::TileKind core = hw::TileKind::Core, memory = hw::TileKind::Memory;
  for (auto [i, t] : llvm::enumerate(p.tensors)) {
    QueueName compute{kComputeEngine, 0};
    ofCores.push_back(t.isResult
                          ? ring("L1", "y" + std::to_string(t.argument), t.partBytes(), core, compute, {kOut, 0})
                          : ring("L1", "x" + std::to_string(i), t.partBytes(), core, {kIn, t.isShared}, compute));
  }
  auto rowName = [](const char *what, int64_t row) { return what + std::to_string(row); };
  for (int64_t r = 0; r < rows; ++r)
    memoryRows.push_back(ring("L2", rowName("x_row", r), largest(ofRows), memory, {kIn, 0}, {kOut, r}));
  if (!shared.empty())
    memoryShared = ring("L2", "shared", largest(shared), memory, {kIn, 1}, {kOut, rows});
  for (int64_t r = 0; r < rows; ++r)
    memoryResults.push_back(ring("L2", rowName("y_row", r), largest(results), memory, {kIn, 2 + r}, {kOut, rows + 1}));
}

Value UserProgram::part(const UserTensor &t) {
  DescriptorSpec spec{t.kind, {}, t.stretch, {{t.rows, t.stretch * t.bytes, t.stretch * t.bytes}}};
  spec.keepsDims = true;
  return w.descriptor(spec);
}

Value UserProgram::walk(const UserTensor &t, int64_t count) {
  if (!t.isStepped)
    return w.descriptor({t.kind, {}, count * t.stretch, {}});
  DescriptorSpec spec{t.kind, {}, count > 1 ? t.run() : t.stretch, {}};
  auto dim = [&](int64_t times, int64_t apart) {
    if (times > 1)
      spec.dims.push_back({times, t.isResult ? 0 : apart * t.bytes, t.isResult ? apart * t.bytes : 0});
  };
  dim(p.steps, t.stretch);
  dim(count, t.pitch);
  dim(t.stretch / spec.unit, spec.unit);
  return w.descriptor(spec);
}

//===--- cores ------------------------------------------------------------------------===//

void UserProgram::call(int64_t begin, int64_t end) {
  TaskWriter task = w.task(CallOp::getOperationName());
  task.text("kernel", p.symbol).array("part", {begin, end});
  for (Value tensor : ofCores)
    task.buffer(tensor, 0);
  task.create();
}

void UserProgram::compute() {
  SmallVector<Value> whole, stepped;
  for (size_t i = 0; i + p.results < p.tensors.size(); ++i)
    (p.tensors[i].isStepped ? stepped : whole).push_back(ofCores[i]);
  auto calls = [&] {
    if (stepped.empty())
      return call(0, p.items);
    for (int64_t step = 0; step < p.steps; ++step)
      w.drain(stepped, [&] { call(step * p.step, std::min((step + 1) * p.step, p.allStep)); });
  };
  if (whole.empty())
    return calls();
  w.drain(whole, calls);
}

void UserProgram::writeCores() {
  Sum column = w.unit(0), row = w.unit(1);
  const hw::TileKind unit = hw::TileKind::Core;
  auto takes = [&](int64_t channel, StringRef name, ArrayRef<Sum> element, const List &list) {
    forever(w, unit, kIn, channel, {}, [&] {
      for (size_t i : list)
        fill(w, ofCores[i], name, element, part(p.tensors[i]));
    });
  };
  takes(0, "x", {column, row}, ofRows);
  if (!shared.empty())
    takes(1, "shared", {column}, shared);
  forever(w, unit, kOut, 0, {}, [&] {
    for (size_t i : results)
      drain(w, ofCores[i], "y", {column, row}, part(p.tensors[i]));
  });
  SmallVector<Value> filled;
  for (size_t i : results)
    filled.push_back(ofCores[i]);
  forever(w, unit, kComputeEngine, 0, {}, [&] { w.fill(filled, [&] { compute(); }); });
}

//===--- memory tiles and shims -------------------------------------------------------===//

void UserProgram::writeMemoryTiles() {
  auto queue = [&](StringRef engine, int64_t number, function_ref<void(Sum)> body) {
    forever(w, hw::TileKind::Memory, engine, number, columns, [&] { body(w.unit()); });
  };
  auto each = [&](const List &list, function_ref<void(Value)> body) {
    for (size_t i : list)
      body(part(p.tensors[i]));
  };
  queue(kIn, 0, [&](const Sum &x) {
    each(ofRows, [&](Value walk) {
      for (Value ring : memoryRows)
        fill(w, ring, "x_in", x, walk);
    });
  });
  for (int64_t r = 0; r < rows; ++r)
    queue(kOut, r, [&](const Sum &x) {
      each(ofRows, [&](Value walk) { drain(w, memoryRows[static_cast<size_t>(r)], "x", {x, r}, walk); });
    });
  if (memoryShared) {
    queue(kIn, 1,
          [&](const Sum &x) { each(shared, [&](Value walk) { fill(w, memoryShared, "shared_in", x, walk); }); });
    queue(kOut, rows,
          [&](const Sum &x) { each(shared, [&](Value walk) { drain(w, memoryShared, "shared", x, walk); }); });
  }
  for (int64_t r = 0; r < rows; ++r)
    queue(kIn, 2 + r, [&](const Sum &x) {
      each(results, [&](Value walk) { fill(w, memoryResults[static_cast<size_t>(r)], "y", {x, r}, walk); });
    });
  queue(kOut, rows + 1, [&](const Sum &x) {
    each(results, [&](Value walk) {
      for (Value ring : memoryResults)
        drain(w, ring, "y_out", x, walk);
    });
  });
}

/// A queue of shims that has tasks for each block of rows.
void UserProgram::blocks(hw::Direction direction, int64_t number, function_ref<void(Sum block)> body) {
  w.queue(
      hw::nameOf(hw::TileKind::Shim), engineOf(direction), number,
      [&] { w.loop(p.blocks(), [&](const Sum &block) { w.group("block", {}, {}, [&] { body(block); }); }); }, columns);
}

void UserProgram::writeShims() {
  auto begin = [&](const UserTensor &t, const Sum &block) {
    Sum row = block * p.blockRows() + Sum(w.unit()) * p.ofColumn();
    return t.isShared ? Sum(0) : row * (t.pitch * t.bytes);
  };
  auto read = [&](int64_t channel, StringRef name, const List &list) {
    blocks(hw::Direction::MM2S, channel, [&](const Sum &block) {
      for (size_t i : list) {
        const UserTensor &t = p.tensors[i];
        w.put(name, Sum(w.unit()))
            .buffer(ddr[i], begin(t, block))
            .with(walk(t, t.isShared ? 1 : p.ofColumn()))
            .create();
      }
    });
  };
  read(0, "x_in", ofRows);
  if (!shared.empty())
    read(1, "shared_in", shared);
  blocks(hw::Direction::S2MM, 0, [&](const Sum &block) {
    for (size_t i : results) {
      const UserTensor &t = p.tensors[i];
      w.get("y_out", Sum(w.unit())).buffer(ddr[i], begin(t, block)).with(walk(t, p.ofColumn())).create();
    }
  });
}

void UserProgram::write() {
  ofRows = p.of(false);
  shared = p.of(true);
  results = p.ofResults();
  declareArguments();
  declareChannels();
  w.graph("main", {columns, rows});
  declareRings();
  writeCores();
  writeMemoryTiles();
  writeShims();
}

} // namespace

dlir::DeviceProgramOp aie::writeUser(OpBuilder &builder, Location where, const hw::Machine &machine, StringRef name,
                                     const UserMapping &mapping) {
  OpBuilder::InsertionGuard guard(builder);
  ProgramWriter writer(builder, where, name, kDevice);
  CoreFunction function{mapping.kernel, mapping.symbol, mapping.library, mapping.cycles, mapping.dims, {},
                        mapping.results};
  for (const UserTensor &tensor : mapping.tensors)
    function.buffers.push_back(tensor.name);
  writer.program()->setAttr(kMachineKey, builder.getStringAttr(StringRef(machine.name)));
  writer.program()->setAttr(kFunction, attrOf(function, builder.getContext()));
  writer.program()->setAttr(dmir::kUserBodiesAttr, builder.getArrayAttr({mapping.body}));
  UserProgram(writer, mapping, machine.accessBytes).write();
  return writer.program();
}
