//===- Program.cpp - a product as a program of grids of units -------------===//
#include "ProductProgram.h"

#include "dmxc/Dialect/DLIR/TaskDims.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include <bit>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr const char *kNames[] = {"a", "b", "bias", "r", "scales", "c"};

/// An operand, its form in DDR, and where the host's numbers lie in that.
void ProductProgram::declareOperand(const Operand &operand) {
  StringRef name = kNames[static_cast<size_t>(operand.part)];
  bool operandOfCores = operand.part == Part::A || operand.part == Part::B;
  bool isResult = operand.part == Part::C;
  operandOfCores = operandOfCores || (operand.part == Part::Residual && p.addsBytes());
  StringRef kind = operandOfCores ? n.name : isResult ? y.kind : operand.part == Part::Scales ? "f32" : c.kind;
  int64_t bytes = operandOfCores ? n.bytes : isResult ? y.bytes : 4;
  auto [rows, pitch] = p.formOf(operand.part);
  dlir::ArgumentRole role = operand.part == Part::C ? dlir::ArgumentRole::output
                            : operand.packed        ? dlir::ArgumentRole::constant
                                                    : dlir::ArgumentRole::input;
  w.argument(role, name, operand.tensor, kind);
  Value memory = ddr[operand.part] = w.memory("DDR", name, rows * pitch * bytes);
  ArrayRef<int64_t> shape = operand.tensor.getShape();
  if (operand.packed) {
    w.piece(memory, name, 0, 0, {0}, {rows * pitch * bytes}, {pitch * bytes});
    return;
  }
  if (p.image || p.matrices > 1 || operand.part == Part::B || !operand.most.empty()) {
    declarePlaces(operand, memory, bytes, pitch);
    return;
  }
  SmallVector<int64_t> begin(shape.size()), strides(shape.size(), bytes);
  for (size_t dim = shape.size(); dim-- > 0;)
    if (dim + 1 < shape.size())
      strides[dim] = dim + 2 == shape.size() ? pitch * bytes : strides[dim + 1] * shape[dim + 1];
  w.piece(memory, name, 0, 0, begin, shape, strides);
}

/// Where the numbers of an operand or result lie that is not simply rows.
void ProductProgram::declarePlaces(const Operand &operand, Value memory, int64_t bytes, int64_t pitch) {
  SmallVector<int64_t> extent, strides, first, split, phase;
  for (const hw::Axis &axis : p.axesOf(operand)) {
    extent.push_back(axis.extent);
    strides.push_back(axis.stride);
    first.push_back(axis.first);
    split.push_back(axis.split);
    phase.push_back(axis.phase);
  }
  bool dimByDim = extent == operand.shape() && operand.most.empty();
  SmallVector<int64_t> begin(operand.shape().size()), apart(begin);
  for (size_t dim = 0; dimByDim && dim < apart.size(); ++dim)
    apart[dim] = strides[dim] * bytes;
  dlir::PieceOp piece = w.piece(memory, kNames[static_cast<size_t>(operand.part)], 0, 0, begin, operand.shape(), apart);
  Builder b(piece.getContext());
  NamedAttrList border;
  border.set(kPitch, b.getI64IntegerAttr(pitch * bytes));
  for (auto [key, values] : {std::pair(kFirst, &first), {kSplit, &split}, {kPhase, &phase}})
    border.set(key, b.getDenseI64ArrayAttr(*values));
  if (!dimByDim) {
    border.set(kExtents, b.getDenseI64ArrayAttr(extent));
    border.set(kStrides, b.getDenseI64ArrayAttr(strides));
  }
  if (!operand.most.empty()) {
    SmallVector<Dim> dims = p.sizesOf(operand);
    border.set(kSizes, dmir::DimsAttr::get(piece.getContext(), dims));
    for (Dim size : dims)
      if (!size.isStatic())
        numberOf(size);
  }
  piece->setAttr(kPieceBorder, border.getDictionary(piece.getContext()));
}

//===--- sizes that a run brings --------------------------------------------------------===//

int64_t ProductProgram::numberOf(Dim size) {
  auto number = llvm::find(sizes, size) - sizes.begin();
  if (static_cast<size_t>(number) == sizes.size()) {
    sizes.push_back(size);
    registers.emplace_back();
  }
  return number;
}

Sum ProductProgram::sizeOf(Dim size, int64_t most) {
  if (size.isStatic())
    return *size.known();
  Value &reg = registers[static_cast<size_t>(numberOf(size))];
  return reg ? reg : reg = w.launchRegister(most);
}

void ProductProgram::writeSizes() {
  if (sizes.empty())
    return;
  SmallVector<int64_t> numbers;
  for (Value reg : registers)
    numbers.push_back(reg ? static_cast<int64_t>(reg.getDefiningOp<dlir::RegisterOp>().getNumber()) : -1);
  dlir::DeviceProgramOp program = w.program();
  program->setAttr(dlir::kTaskDims, dmir::DimsAttr::get(program.getContext(), sizes));
  program.setDimRegisters(numbers);
}

Value ProductProgram::ring(hw::TileKind unit, const std::string &name, const Matrix &matrix, QueueName from,
                           QueueName to, int64_t slots, int64_t uses) {
  return w.ring(unit == kCore ? "L1" : "L2", name, slots, matrix.size(), hw::nameOf(unit), from, to, uses);
}

/// Of memory tiles: parts of a come by one channel in turn and go along their rows by one each; results come by one
/// each and leave in turn.
void ProductProgram::declareRings() {
  StringRef in = hw::nameOf(kS2mm), out = hw::nameOf(kMm2s);
  coreA = ring(kCore, "a", a, {in, 0}, {kComputeEngine, 0});
  coreB = ring(kCore, "b", b, {in, 1}, {kComputeEngine, 0});
  if (p.narrows())
    coreC = ring(kCore, "c", c, {kComputeEngine, 0}, {kComputeEngine, 0}, 1);
  coreY =
      ring(kCore, p.narrows() ? "y" : "c", y, {kComputeEngine, 0}, {out, 0}, p.narrows() ? p.resultSlots() : kSlots);
  coreC = p.narrows() ? coreC : coreY;
  for (int64_t turn = 0; turn < (stay ? stay->turns : 1); ++turn)
    for (int64_t part = 0; part < parts; ++part) {
      std::string name = (turn ? "a_next" : "a_part") + std::to_string(part);
      if (stay)
        tileA.push_back(ring(kMemory, name, {1, stay->slot, n.bytes, n.name}, {in, part % p.herd.panels}, {out, part},
                             1, stay->uses * static_cast<int64_t>(stay->walks.size())));
      else
        tileA.push_back(ring(kMemory, name, a, {in, 0}, {out, part}));
    }
  for (int64_t panel = 0; panel < p.herd.panels; ++panel)
    tileB.push_back(ring(kMemory, "b_panel" + (panel ? std::to_string(panel) : std::string()), panelB,
                         {in, p.herd.panels > 1 ? panel : 1}, {out, parts + panel}));
  for (int64_t at = 0; at < outs; ++at)
    for (int64_t row = firstRow(at); row < firstRow(at + 1); ++row)
      tileC.push_back(
          ring(kMemory, "c_row" + std::to_string(row), y, {in, 2 + row}, {out, parts + p.herd.panels + at}));
}

Value ProductProgram::whole(const Matrix &matrix) {
  int64_t row = matrix.columns * matrix.bytes;
  return w.descriptor({matrix.kind, {}, matrix.columns, {{matrix.rows, row, row}}});
}

Value ProductProgram::steps(const Matrix &matrix, int64_t stepRows, int64_t stepColumns) {
  int64_t row = matrix.columns * matrix.bytes, step = stepColumns * matrix.bytes;
  DescriptorSpec spec{matrix.kind, {}, stepColumns, {}};
  spec.keepsDims = true;
  for (auto [count, stride] : {std::pair(matrix.rows / stepRows, stepRows * row),
                               std::pair(matrix.columns / stepColumns, step), std::pair(stepRows, row)})
    spec.dims.push_back({count, stride, stride});
  return w.descriptor(spec);
}

//===--- cores ------------------------------------------------------------------------===//

void ProductProgram::call(StringRef kernel, ArrayRef<Value> matrices) {
  TaskWriter task = w.task(CallOp::getOperationName());
  task.text("kernel", kernel);
  for (Value matrix : matrices)
    task.buffer(matrix, 0);
  task.create();
}

/// What the op before has made, where another one takes it.
void ProductProgram::round() {
  if (!n.round.empty())
    call(n.round, coreC);
}

/// What all products of a configuration have code for and a parameter says; cores that tell blocks apart have code for
/// one product.
void ProductProgram::where(size_t parameter, bool has, function_ref<void()> body) {
  if (stretches.size() == 1)
    w.loop(parameters[parameter], [&](const Sum &) { body(); });
  else if (has)
    body();
}

/// Tiles along k in pairs; a row (a bias, scales) comes as one pair more of b.
void ProductProgram::writeSums(Value pairs) {
  auto row = [&](StringRef kernel) {
    w.drain(coreB, [&] { call(kernel, {coreB, coreC}); });
    w.drain(coreB, [] {});
  };
  call(n.zero, coreC);
  w.loop(pairs, [&](const Sum &) {
    for (int64_t tile = 0; tile < 2; ++tile)
      w.drain({coreA, coreB}, [&] { call(n.matmul, {coreA, coreB, coreC}); });
  });
  where(1, p.has(Part::Bias), [&] {
    round();
    row(n.bias);
  });
  if (p.has(Part::Residual) && !p.addsBytes()) {
    round();
    writeResidual("residual_f32", {coreB, coreC});
  }
  where(2, p.relu, [&] { call(n.relu, coreC); });
  if (p.has(Part::Scales))
    row("scale_i8_i32");
  else if (p.floats)
    call("float_i32", coreC);
}

/// Sums, and what is done to them in their place or on the way to a narrower one.
void ProductProgram::writeResult(Value pairs) {
  w.fill(coreC, [&] {
    writeSums(pairs);
    if (!n.steps.empty() && !p.narrows())
      where(3, !p.steps.empty(), [&] {
        round();
        call(n.steps, coreC);
      });
  });
  if (p.narrows())
    w.fill(coreY, [&] {
      w.drain(coreC, [&] {
        p.addsBytes() ? writeResidual("add_narrow_f32_i8", {coreB, coreC, coreY})
                      : call(p.narrow.kernel, {coreC, coreY});
      });
    });
}

/// Of the blocks beside each other; in loops where code goes round rings of two slots.
void ProductProgram::writeResults() {
  if (stretches.size() == 1)
    return writeResult(pairs[0]);
  for (auto [stretch, count] : llvm::zip_equal(stretches, pairs)) {
    if (stretch.blocks > 1)
      w.loop(stretch.blocks / 2 * 2, [&](const Sum &) { writeResult(count); });
    if (stretch.blocks % 2)
      writeResult(count);
  }
}

/// The tiles of all rows of a column come in pairs, as b does; a core adds its own.
void ProductProgram::writeResidual(StringRef kernel, ArrayRef<Value> matrices) {
  constexpr std::optional<int64_t> kOwn[] = {std::nullopt, 0, 1, std::nullopt}; // of a pair
  for (auto [times, own] : llvm::zip(ofResidual, kOwn))
    w.loop(times, [&](const Sum &) {
      for (int64_t tile = 0; tile < 2; ++tile)
        w.drain(coreB, [&] {
          if (own == tile)
            call(kernel, matrices);
        });
    });
}

void ProductProgram::writeCores() {
  Sum column = w.unit(0), row = w.unit(1);
  // An element is one of those of the column where it has its own.
  auto elementOf = [&](bool owns, const Sum &one) {
    return owns ? SmallVector<Sum>{column, row} : SmallVector<Sum>{one};
  };
  forever(w, kCore, hw::nameOf(kS2mm), 0, {},
          [&] { fill(w, coreA, "a", elementOf(p.herd.owns(), row), stay ? packedA() : whole(a)); });
  forever(w, kCore, hw::nameOf(kS2mm), 1, {},
          [&] { fill(w, coreB, "b", elementOf(p.herd.panels > 1, column), whole(b)); });
  if (p.herd.panels > 1)
    shareElements();
  forever(w, kCore, hw::nameOf(kMm2s), 0, {}, [&] { drain(w, coreY, "c", {column, row}, whole(y)); });
  forever(w, kCore, kComputeEngine, 0, {}, [&] { writeResults(); });
}

/// Rows of cores have one panel of b after the other, and in each the rows of the result.
void ProductProgram::shareElements() {
  w.program()->walk([&](dlir::GetOp get) {
    if (get.getChannel() != "a" && get.getChannel() != "b")
      return;
    AffineMap element = *get.getElement();
    SmallVector<AffineExpr> of(element.getResults());
    of[1] = get.getChannel() == "a" ? of[1] % parts : of[1].floorDiv(parts);
    get->setAttr("element", AffineMapAttr::get(
                                AffineMap::get(element.getNumDims(), element.getNumSymbols(), of, get.getContext())));
  });
}

//===--- memory tiles -------------------------------------------------------------------===//

/// The terms of a matrix step after each other, of each all rows: into the order of matrix steps.
Value ProductProgram::packedA() {
  const hw::MatrixStep &step = n.step;
  DescriptorSpec spec{n.name, {}, step.m * step.k, {}};
  spec.keepsDims = true;
  spec.dims = {{n.k / step.k, 0, step.m * step.k * n.bytes}, {n.m / step.m, 0, step.m * n.k * n.bytes}};
  return w.descriptor(spec);
}

/// By a channel its parts of a, of one of the turns.
void ProductProgram::fillStaying(int64_t channel, int64_t turn) {
  for (int64_t part = channel; part < parts; part += p.herd.panels)
    fill(w, tileA[static_cast<size_t>(turn * parts + part)], channel ? "b_in" : "a_in", Sum(w.unit()),
         whole({1, stay->slot, n.bytes, n.name}));
}

/// The other side of blocksOfStay.
void ProductProgram::fillMemoryTiles(int64_t channel) {
  int64_t chunks = stay->once ? 1 : p.herd.panels > 1 ? stay->uses * stay->chunks : 0;
  auto panels = [&] {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      fill(w, tileB[static_cast<size_t>(channel)], channel ? "b_in" : "a_in", Sum(w.unit()), whole(panelB));
  };
  auto rows = [&] {
    for (int64_t turn = 0; turn < stay->turns; ++turn)
      fillStaying(channel, turn);
  };
  auto body = [&] {
    if (stay->once)
      rows();
    w.loop(kForever, [&](const Sum &) {
      if (!stay->once)
        rows();
      panels();
    });
  };
  w.queue(hw::nameOf(kMemory), hw::nameOf(kS2mm), channel, body, p.herd.bringing());
}

/// Rows of a come once for several blocks beside each other, and leave for each of them.
void ProductProgram::writeStayingRows() {
  int64_t units = p.herd.bringing();
  for (int64_t channel = 0; channel < p.herd.panels; ++channel)
    fillMemoryTiles(channel);
  SmallVector<Value> walks;
  for (const Stay::Walk &walk : stay->walks) {
    DescriptorSpec spec{n.name, {}, n.step.k, {}};
    for (auto [count, apart] : walk.dims)
      spec.dims.push_back({count, apart * n.bytes, 0});
    walks.push_back(w.descriptor(spec));
  }
  for (int64_t part = 0; part < parts; ++part)
    forever(w, kMemory, hw::nameOf(kMm2s), part, units, [&] {
      SmallVector<Sum> element{Sum(w.unit()), part};
      if (!p.herd.owns())
        element = {Sum(w.unit()) * parts + part};
      for (int64_t turn = 0; turn < stay->turns; ++turn)
        for (int64_t use = 0; use < (stay->turns > 1 ? stay->uses : 1); ++use)
          for (auto [walk, descriptor] : llvm::zip_equal(stay->walks, walks)) {
            Value ring = tileA[static_cast<size_t>(turn * parts + part)];
            w.drain(ring, [&] { w.put("a", element).buffer(ring, walk.offset * n.bytes).with(descriptor).create(); });
          }
    });
}

void ProductProgram::writeTilesOfA() {
  int64_t units = p.herd.bringing();
  forever(w, kMemory, hw::nameOf(kS2mm), 0, units, [&] {
    for (Value ring : tileA)
      fill(w, ring, "a_in", Sum(w.unit()), whole(a));
  });
  for (int64_t part = 0; part < parts; ++part)
    forever(w, kMemory, hw::nameOf(kMm2s), part, units, [&] {
      drain(w, tileA[static_cast<size_t>(part)], "a", Sum(w.unit()) * parts + part, steps(a, n.step.m, n.step.k));
    });
}

/// On their way in or out matrices get the order of matrix steps.
void ProductProgram::writeMemoryTiles() {
  int64_t columns = p.herd.columns;
  auto queue = [&](hw::Direction direction, int64_t number, int64_t units, function_ref<void(Sum)> body) {
    forever(w, kMemory, hw::nameOf(direction), number, units, [&] { body(Sum(w.unit())); });
  };
  if (stay)
    writeStayingRows();
  else
    writeTilesOfA();
  if (p.herd.panels == 1)
    queue(kS2mm, 1, columns, [&](const Sum &x) { fill(w, tileB[0], "b_in", x, whole(b)); });
  for (int64_t panel = 0; panel < p.herd.panels; ++panel)
    queue(kMm2s, parts + panel, columns, [&](const Sum &x) {
      SmallVector<Sum> element{x};
      if (p.herd.panels > 1)
        element.push_back(panel);
      drain(w, tileB[static_cast<size_t>(panel)], "b", element, steps(panelB, n.step.k, n.step.n));
    });
  for (int64_t row = 0; row < p.herd.rows; ++row)
    queue(kS2mm, 2 + row, columns,
          [&](const Sum &x) { fill(w, tileC[static_cast<size_t>(row)], "c", {x, row}, steps(y, n.step.m, n.step.n)); });
  for (int64_t out = 0; out < outs; ++out)
    queue(kMm2s, parts + p.herd.panels + out, columns, [&](const Sum &x) {
      for (int64_t row = firstRow(out); row < firstRow(out + 1); ++row)
        drain(w, tileC[static_cast<size_t>(row)], kOut[out], x, whole(y));
    });
}

void ProductProgram::writeParameters() {
  SmallVector<int64_t> values{stretches[0].pairs, p.has(Part::Bias), p.relu};
  if (!n.steps.empty() || p.narrows())
    values.push_back(!p.steps.empty());
  for (auto [i, value] : llvm::enumerate(values)) {
    Sum size = i == 0 ? sizeOf(p.pairs(), value) : Sum(value);
    parameters[i] = size.terms.empty() ? w.launchRegister(value) : size.terms[0].first;
  }
  hw::Step none;
  bool hasResidual = p.has(Part::Residual);
  for (int64_t i = 0; i < hw::kMostSteps && (hasResidual || p.narrows() || !p.steps.empty()); ++i) {
    const hw::Step &step = i < static_cast<int64_t>(p.steps.size()) ? p.steps[i] : none;
    for (uint32_t word :
         {static_cast<uint32_t>(step.kind), std::bit_cast<uint32_t>(step.a), std::bit_cast<uint32_t>(step.b)})
      w.launchRegister(word);
  }
  if (hasResidual)
    writeResidualParameters();
  writePairs();
}

/// Stretches of as many pairs have one register.
void ProductProgram::writePairs() {
  std::map<int64_t, Value> registersOf{{stretches[0].pairs, parameters[0]}};
  for (const Stretch &stretch : stretches) {
    Value &reg = registersOf[stretch.pairs];
    pairs.push_back(reg = reg ? reg : w.launchRegister(stretch.pairs));
  }
}

void ProductProgram::writeResidualParameters() {
  std::array<SmallVector<int64_t>, hw::kResidualWords> values;
  for (int64_t column = 0; column < p.herd.columns; ++column)
    for (int64_t row = 0; row < p.herd.rows; ++row)
      for (const int64_t of = row % p.residualRows(),
                         own[] = {of / 2, 1 - of % 2, of % 2, p.residualTiles() / 2 - 1 - of / 2};
           auto [all, value] : llvm::zip(values, own))
        all.push_back(value);
  for (auto [reg, all] : llvm::zip(ofResidual, values))
    reg = w.launchRegister(all);
}

void ProductProgram::write() {
  int64_t rows = p.herd.rows, columns = p.herd.columns;
  const bool owns = p.herd.owns(); // columns have their own rows of a
  for (const Operand &operand : p.operands)
    declareOperand(operand);
  w.channel("a_in", 1, p.herd.bringing());
  w.channel("b_in", 1, columns);
  w.channel("a", 1, owns ? SmallVector<int64_t>{columns, parts} : SmallVector<int64_t>{rows});
  w.channel("b", 1, p.herd.panels > 1 ? SmallVector<int64_t>{columns, p.herd.panels} : SmallVector<int64_t>{columns});
  w.channel("c", 1, {columns, rows});
  for (int64_t out = 0; out < outs; ++out)
    w.channel(kOut[out], 1, columns);
  w.graph("main", {columns, rows});
  writeParameters();
  declareRings();
  writeCores();
  writeMemoryTiles();
  writeShims();
  writeSizes();
}

dlir::DeviceProgramOp aie::writeProgram(OpBuilder &builder, Location where, const hw::Machine &machine, StringRef name,
                                        const Mapping &mapping) {
  OpBuilder::InsertionGuard guard(builder);
  ProgramWriter writer(builder, where, name, kDevice);
  writer.program()->setAttr(kMachineKey, builder.getStringAttr(StringRef(machine.name)));
  ProductProgram(writer, machine, mapping).write();
  return writer.program();
}
