//===- ProductSchedule.cpp - buffers, loops and DDR of a product ----------===//
#include "ProductSchedule.h"

using namespace mlir;
using namespace dmxc;

ProductSchedule::ProductSchedule(const hw::Machine &machine, const ProductKernel &kernel, DlirWriter &writer,
                                 const ProductBuffers &ddr, const ScheduleOptions &options)
    : machine(machine), kernel(kernel), writer(writer), ddr(ddr), options(options),
      activationKind(hw::nameOf(kernel.activationKind)), weightKind(hw::nameOf(kernel.weightKind)),
      resultKind(hw::nameOf(kernel.resultKind)) {
  collectOuter();
  int64_t rows = rowIsOuter ? 1 : kernel.row.trips, columns = columnIsOuter ? 1 : kernel.column.trips;
  if (kernel.row.split && !rowIsOuter)
    rows /= kernel.quads;
  if (kernel.column.split && !columnIsOuter)
    columns /= kernel.quads;
  plan = planProduct(machine, kernel, rows, columns);
  layOut();
}

/// Batches, and the split dim where the quads' shares of it differ.
void ProductSchedule::collectOuter() {
  auto add = [&](const ProductDim &dim) {
    Outer loop{&dim, dim.split ? (dim.trips + kernel.quads - 1) / kernel.quads : dim.trips, {}};
    for (int64_t quad = 0; dim.split && dim.trips % kernel.quads && quad < kernel.quads; ++quad)
      loop.trips.push_back((dim.trips - quad + kernel.quads - 1) / kernel.quads);
    outer.push_back(std::move(loop));
  };
  for (const ProductDim &dim : kernel.batch)
    add(dim);
  rowIsOuter = kernel.row.split && kernel.row.trips % kernel.quads;
  columnIsOuter = kernel.column.split && kernel.column.trips % kernel.quads;
  if (rowIsOuter)
    add(kernel.row);
  if (columnIsOuter)
    add(kernel.column);
}

/// Dense layouts on the chip of what a quad needs of each operand.
void ProductSchedule::layOut() {
  gmActivationBytes = plan.rows * kernel.band();
  stashBytes = plan.columns / plan.sliceColumns * kernel.columnBytes();
  localPitch = plan.columns * 64 * kernel.element();
  gmResultBytes = plan.rows * 64 * localPitch;
  gmBiasBytes = plan.columns * kernel.column.b;
  for (Outer &loop : llvm::reverse(outer)) {
    auto place = [&](int64_t &local, int64_t &bytes, int64_t global) {
      if (!global)
        return;
      local = bytes;
      bytes *= loop.most;
    };
    place(loop.a, gmActivationBytes, loop.dim->a);
    place(loop.w, stashBytes, loop.dim->w);
    place(loop.o, gmResultBytes, loop.dim->o);
    place(loop.b, gmBiasBytes, loop.dim->b);
  }
}

void ProductSchedule::declareBuffers() {
  int64_t imc = 1;
  for (const ProductKernel::Chunk &chunk : kernel.chunks)
    imc = std::max(imc, chunk.imc);
  inputHalf = imc * kernel.activationTile();
  weightHalf = (kernel.weightTile() + 127) / 128 * 128;
  resultHalf = plan.steps * plan.groups * kernel.rows * 256;
  gmActivations = writer.memory(hw::Memory::GM, "gm_activations", gmActivationBytes);
  gmResult = writer.memory(hw::Memory::GM, "gm_result", gmResultBytes);
  if (ddr.bias)
    gmBias = writer.memory(hw::Memory::GM, "gm_bias", gmBiasBytes, /*permanent=*/true);
  stash = writer.memory(hw::Memory::ST, "stash", stashBytes, /*permanent=*/true);
  ib = writer.memory(hw::Memory::IB, "ib", plan.inputHalves * inputHalf);
  int64_t wbBytes = plan.streamed ? static_cast<int64_t>(machine.memory(hw::Memory::WB).size)
                                  : (plan.weightHalves - 1) * weightHalf + kernel.weightTile();
  wb = writer.memory(hw::Memory::WB, "wb", wbBytes);
  ob = writer.memory(hw::Memory::OB, "ob", plan.resultHalves * resultHalf);
}

ProductSchedule::Handover ProductSchedule::handover(int64_t halves) {
  Handover result;
  for (int64_t i = 0; i < halves; ++i) {
    result.ready.push_back(writer.token());
    result.free.push_back(writer.token(1));
  }
  return result;
}

//===--- places -------------------------------------------------------------------------===//

ProductSchedule::Member ProductSchedule::member(Operand operand) {
  static constexpr Member kMembers[] = {&ProductDim::a, &ProductDim::w, &ProductDim::o, &ProductDim::b};
  return kMembers[static_cast<int>(operand)];
}
ProductSchedule::LocalMember ProductSchedule::localMember(Operand operand) {
  static constexpr LocalMember kMembers[] = {&Outer::a, &Outer::w, &Outer::o, &Outer::b};
  return kMembers[static_cast<int>(operand)];
}

int64_t ProductSchedule::step(const ProductDim &dim, Operand operand) const {
  return dim.*member(operand) * (dim.split ? kernel.quads : 1);
}

void ProductSchedule::forOuter(Operand operand, function_ref<void()> body) {
  std::function<void(size_t)> nest = [&](size_t i) {
    if (i == outer.size())
      return body();
    Outer &loop = outer[i];
    if (!(loop.*localMember(operand)))
      return nest(i + 1);
    writer.loop(loop.count ? Sum(loop.count) : Sum(loop.most), [&](const Sum &counter) {
      loop.counter = counter;
      nest(i + 1);
    });
    loop.counter = Sum();
  };
  nest(0);
}

Sum ProductSchedule::inDdr(Operand operand) {
  Sum place;
  for (const Outer &loop : outer)
    place = place + loop.counter * step(*loop.dim, operand);
  auto add = [&](const ProductDim &dim) {
    if (dim.split)
      place = place + Sum(writer.unit()) * (dim.*member(operand));
  };
  for (const ProductDim &dim : kernel.batch)
    add(dim);
  add(kernel.row);
  add(kernel.column);
  return place;
}

Sum ProductSchedule::onChip(Operand operand) {
  Sum place;
  for (const Outer &loop : outer)
    place = place + loop.counter * (loop.*localMember(operand));
  return place;
}

/// Bytes from the start of a quad's result: the tiles of one unit of columns and one round of rows.
Sum ProductSchedule::unitPlace(const Sum &column, const Sum &row) {
  return row * (plan.sliceRows * 64 * localPitch) +
         column * (plan.steps * plan.groups * plan.sliceColumns * 64 * kernel.element());
}

//===--- between DDR and the chip -------------------------------------------------------===//

void ProductSchedule::loadWeights() {
  int64_t next = step(kernel.column, Operand::W), bytes = kernel.columnBytes();
  DmaSpec spec{weightKind, {}, bytes};
  spec.dims = {{plan.columnRounds(), plan.sliceColumns * plan.groups * next, plan.groups * bytes},
               {plan.groups, next, bytes}};
  spec.sourceUnitStep = plan.sliceColumns > 1 ? plan.groups * next : 0;
  forOuter(Operand::W, [&] {
    writer.copy(hw::Memory::DDR, hw::Memory::ST)
        .buffer(ddr.weights, inDdr(Operand::W))
        .buffer(stash, onChip(Operand::W))
        .with(writer.descriptor(spec))
        .integer("units", plan.sliceMask())
        .create();
  });
}

void ProductSchedule::loadBias() {
  DmaSpec spec{"bfp32", {}, 64};
  spec.dims = {{plan.columns, step(kernel.column, Operand::B), kernel.column.b}};
  forOuter(Operand::B, [&] {
    writer.copy(hw::Memory::DDR, hw::Memory::GM)
        .buffer(ddr.bias, inDdr(Operand::B))
        .buffer(gmBias, onChip(Operand::B))
        .with(writer.descriptor(spec))
        .create();
  });
}

/// Every quad needs its own rows, or is the only one of its chiplet.
void ProductSchedule::loadOwnActivations() {
  int64_t next = step(kernel.row, Operand::A), bytes = kernel.band();
  DmaSpec spec{activationKind, {}, bytes};
  spec.dims = {{plan.sliceRows, next, bytes}};
  auto rounds = [&] {
    writer.loop(plan.rowRounds(), [&](Sum row) {
      writer.group("load activations", {}, pipelined ? ValueRange(activationsReady) : ValueRange(), [&] {
        writer.copy(hw::Memory::DDR, hw::Memory::GM)
            .buffer(ddr.activations, inDdr(Operand::A) + row * (plan.sliceRows * next))
            .buffer(gmActivations, onChip(Operand::A) + row * (plan.sliceRows * bytes))
            .with(writer.descriptor(spec))
            .create();
      });
    });
  };
  forOuter(Operand::A, rounds);
  if (!pipelined)
    writer.group("activations", {}, activationsReady, [] {});
}

/// All quads of a chiplet need all rows: each loads its share and sends it to the others, who wait for all.
void ProductSchedule::loadSharedActivations() {
  int64_t bands = gmActivationBytes / kernel.band(), most = std::min<int64_t>(machine.quadsPerChiplet(), kernel.quads);
  std::vector<int64_t> first, count, mask;
  for (int64_t quad = 0; quad < kernel.quads; ++quad) {
    int64_t base = quad / machine.quadsPerChiplet() * machine.quadsPerChiplet(), rank = quad - base;
    int64_t here = std::min<int64_t>(machine.quadsPerChiplet(), kernel.quads - base);
    first.push_back(pipelined ? rank : bands * rank / here);
    count.push_back(bands * (rank + 1) / here - bands * rank / here);
    mask.push_back(((int64_t(1) << here) - 1) << base);
  }
  Sum start = writer.launchRegister(first), receivers = writer.launchRegister(mask);
  Sum trips = llvm::all_equal(count) ? Sum(count.front()) : Sum(writer.launchRegister(count));
  DmaSpec spec{activationKind, {}, kernel.band()};
  auto meet = [&] { writer.barrier("chiplet", 0, {0}); };
  writer.loop(trips, [&](Sum trip) {
    writer.group("load activations", {}, pipelined ? ValueRange(activationsReady) : ValueRange(), [&] {
      Sum place = (trip * (pipelined ? most : 1) + start) * kernel.band();
      writer.copy(hw::Memory::DDR, hw::Memory::GM)
          .buffer(ddr.activations, place)
          .buffer(gmActivations, place)
          .with(writer.descriptor(spec))
          .sum("peers", receivers)
          .create();
      if (pipelined)
        meet();
    });
  });
  if (!pipelined)
    writer.group("activations", {}, activationsReady, meet);
}

void ProductSchedule::loadActivations() {
  if (sharedActivations)
    loadSharedActivations();
  else
    loadOwnActivations();
}

void ProductSchedule::storeResults() {
  int64_t columns = plan.steps * plan.groups * plan.sliceColumns, element = kernel.element();
  int64_t nextColumn = step(kernel.column, Operand::O), nextRow = step(kernel.row, Operand::O);
  bool dense = nextColumn == 64 * element;
  DmaSpec spec{resultKind, {}, dense ? 64 * columns : 64};
  spec.dims = {{plan.sliceRows, 64 * localPitch, nextRow}, {kernel.rows, localPitch, kernel.row.o / 64}};
  if (!dense)
    spec.dims.push_back({columns, 64 * element, nextColumn});
  forOuter(Operand::O, [&] {
    writer.loop(plan.columnUnits(), [&](Sum column) {
      writer.loop(plan.rowRounds(), [&](Sum row) {
        writer.group("store results", results.ready[0], {}, [&] {
          writer.copy(hw::Memory::GM, hw::Memory::DDR)
              .buffer(gmResult, onChip(Operand::O) + unitPlace(column, row))
              .buffer(ddr.result,
                      inDdr(Operand::O) + row * (plan.sliceRows * nextRow) + column * (columns * nextColumn))
              .with(writer.descriptor(spec))
              .create();
        });
      });
    });
  });
}

//===--- graphs ---------------------------------------------------------------------------===//

void ProductSchedule::run(bool constantWeights) {
  declareBuffers();
  auto registers = [&] {
    for (Outer &loop : outer)
      loop.count = loop.trips.empty() ? Value() : writer.launchRegister(loop.trips);
  };
  if (constantWeights || ddr.bias) {
    writer.graph("init", kernel.quads);
    registers();
    writer.queue(0, [&] {
      if (constantWeights)
        writer.group("load weights", {}, {}, [&] { loadWeights(); });
      if (ddr.bias)
        writer.group("load bias", {}, {}, [&] { loadBias(); });
    });
  }
  writer.graph("main", kernel.quads);
  registers();
  // Several quads of a chiplet share activations if no index of those is split.
  sharedActivations = kernel.quads > 1;
  for (const ProductDim *dim : {&kernel.row, &kernel.column})
    sharedActivations &= !(dim->split && dim->a);
  for (const ProductDim &dim : kernel.batch)
    sharedActivations &= !(dim.split && dim.a);
  int64_t quads = std::min<int64_t>(machine.quadsPerChiplet(), kernel.quads);
  bool even = kernel.quads % quads == 0 && plan.rows % quads == 0 && plan.sliceRows % quads == 0;
  pipelined = !options.resident && outer.empty() && plan.columnUnits() == 1 && (!sharedActivations || even);
  loadsPerRow = sharedActivations && pipelined ? plan.sliceRows / quads : 1;
  once = plan.rowRounds() == 1 && kernel.chunks.size() == 1;
  weightsPerColumn = kernel.chunks.size() == 1;

  activationsReady = writer.token();
  weightsReady = constantWeights ? Value() : writer.token();
  inputs = handover(plan.inputHalves);
  if (!plan.streamed)
    weights = handover(plan.weightHalves);
  sums = handover(plan.resultHalves);
  results.ready.push_back(writer.token());
  writer.queue(0, [&] {
    if (weightsReady)
      writer.group("load weights", {}, weightsReady, [&] { loadWeights(); });
    loadActivations();
    storeResults();
  });
  writer.queue(1, [&] { fetchQueue(); });
  writer.queue(2, [&] { computeQueue(); });
  writer.queue(3, [&] { drainQueue(); });
}
