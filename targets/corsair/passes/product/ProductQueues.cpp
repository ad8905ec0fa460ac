//===- ProductQueues.cpp - the queues around the arrays -------------------===//
//
// Fetch, compute and drain walk the same loops in the same order, so that halves alternate alike in all three.
//
//===----------------------------------------------------------------------===//
#include "ProductSchedule.h"

using namespace mlir;
using namespace dmxc;

//===--- fetch ----------------------------------------------------------------------------===//

/// Tiles of a chunk for one round of rows, into IB.
void ProductSchedule::fetchTiles(Sum row, const ProductKernel::Chunk &chunk) {
  int64_t half = inputs.take();
  SmallVector<Value> wait{inputs.free[half]};
  if (pipelined && chunk.first == 0)
    wait.append(loadsPerRow, activationsReady);
  DmaSpec spec{activationKind, {}, chunk.imc * kernel.activationTile()};
  spec.sourceUnitStep = plan.sliceRows > 1 ? kernel.band() : 0;
  writer.group("fetch tiles", wait, inputs.ready[half], [&] {
    writer.copy(hw::Memory::GM, hw::Memory::IB)
        .buffer(gmActivations, onChip(Operand::A) + row * (plan.sliceRows * kernel.band()) +
                                   Sum(chunk.first * kernel.activationTile()))
        .buffer(ib, half * inputHalf)
        .with(writer.descriptor(spec))
        .integer("units", plan.sliceMask())
        .create();
  });
}

/// Tiles of a chunk for one round of columns, one for each core, into WB.
void ProductSchedule::fetchWeights(Sum column, const ProductKernel::Chunk &chunk) {
  int64_t half = weights.take(), tile = kernel.weightTile(), bytes = kernel.columnBytes();
  DmaSpec spec{weightKind, {}, tile};
  spec.sourceSubunitStep = tile;
  // Cores of all groups lie in a row; so do their tiles if a chunk is all of k.
  bool dense = chunk.imc == kernel.kTiles;
  int64_t copies = dense ? 1 : plan.groups, cores = dense ? plan.groups * chunk.imc : chunk.imc;
  writer.group("fetch weights", weights.free[half], weights.ready[half], [&] {
    for (int64_t group = 0; group < copies; ++group)
      writer.copy(hw::Memory::ST, hw::Memory::WB)
          .buffer(stash, onChip(Operand::W) + column * (plan.groups * bytes) + Sum(group * bytes + chunk.first * tile))
          .buffer(wb, half * weightHalf)
          .with(writer.descriptor(spec))
          .integer("units", plan.sliceMask())
          .integer("subunits", ((int64_t(1) << cores) - 1) << (group * cores))
          .create();
  });
}

void ProductSchedule::fetchQueue() {
  inputs.next = weights.next = 0;
  SmallVector<Value> wait;
  if (!pipelined)
    wait.push_back(activationsReady);
  if (weightsReady && !plan.streamed)
    wait.push_back(weightsReady);
  if (!wait.empty())
    writer.group("operands", wait, {}, [] {});
  forOuter(Operand::O, [&] {
    if (once)
      fetchTiles(Sum(), kernel.chunks.front());
    writer.pairs(plan.columnUnits(), [&](Sum column) {
      if (!plan.streamed && weightsPerColumn)
        fetchWeights(column, kernel.chunks.front());
      if (!once || (!plan.streamed && !weightsPerColumn))
        writer.pairs(plan.rowRounds(), [&](const Sum &row) {
          for (const ProductKernel::Chunk &chunk : kernel.chunks) {
            if (!plan.streamed && !weightsPerColumn)
              fetchWeights(column, chunk);
            fetchTiles(row, chunk);
          }
        });
    });
  });
}

//===--- compute --------------------------------------------------------------------------===//

void ProductSchedule::multiply(const Sum &column, const ProductKernel::Chunk &chunk, int64_t ibPlace, int64_t wbPlace,
                               int64_t obPlace) {
  int64_t sumsBytes = kernel.rows * 256, bytes = kernel.columnBytes();
  TaskWriter task = writer.task("corsair.matmul");
  task.buffer(ib, ibPlace).buffer(wb, wbPlace).buffer(ob, obPlace);
  if (plan.streamed)
    task.buffer(stash, onChip(Operand::W) + column * (plan.steps * plan.groups * bytes) +
                           Sum(chunk.first * kernel.weightTile()))
        .integer("stash_chunk", kernel.weightTile())
        .integer("stash_group", bytes)
        .integer("stash_step", plan.groups * bytes)
        .sum("steps", plan.steps);
  task.integer("num_imc", chunk.imc)
      .integer("ppr_mode", chunk.ppr)
      .integer("groups", plan.groups)
      .integer("slices", plan.sliceMask())
      .text("activation_kind", activationKind)
      .text("weight_kind", weightKind)
      .sum("rows", kernel.rows)
      .sum("accumulate", chunk.first ? 1 : 0)
      .integer("activation_chunk", kernel.activationTile())
      .integer("result_row", 256)
      .integer("result_group", sumsBytes)
      .integer("result_step", plan.groups * sumsBytes)
      .create();
}

void ProductSchedule::computeQueue() {
  inputs.next = weights.next = sums.next = 0;
  if (weightsReady && plan.streamed)
    writer.group("operands", weightsReady, {}, [] {});
  forOuter(Operand::O, [&] {
    int64_t kept = once ? inputs.take() : 0;
    if (once)
      writer.group("tiles", inputs.ready[kept], {}, [] {});
    writer.pairs(plan.columnUnits(), [&](Sum column) {
      bool keepsColumn = !plan.streamed && weightsPerColumn;
      int64_t wbHalf = keepsColumn ? weights.take() : 0;
      if (keepsColumn)
        writer.group("columns", weights.ready[wbHalf], {}, [] {});
      writer.pairs(plan.rowRounds(), [&](const Sum &) {
        int64_t obHalf = sums.take();
        for (const ProductKernel::Chunk &chunk : kernel.chunks) {
          SmallVector<Value> wait, signal;
          if (chunk.first == 0)
            wait.push_back(sums.free[obHalf]);
          int64_t half = once ? kept : inputs.take();
          if (!once) {
            wait.push_back(inputs.ready[half]);
            signal.push_back(inputs.free[half]);
          }
          int64_t place = wbHalf;
          if (!plan.streamed && !weightsPerColumn) {
            place = weights.take();
            wait.push_back(weights.ready[place]);
            signal.push_back(weights.free[place]);
          }
          if (&chunk == &kernel.chunks.back())
            signal.push_back(sums.ready[obHalf]);
          writer.group("matmul", wait, signal,
                       [&] { multiply(column, chunk, half * inputHalf, place * weightHalf, obHalf * resultHalf); });
        }
      });
      if (keepsColumn)
        writer.group("columns", {}, weights.free[wbHalf], [] {});
    });
    if (once)
      writer.group("tiles", {}, inputs.free[kept], [] {});
  });
}

//===--- drain ----------------------------------------------------------------------------===//

/// Adds the columns' bias to the sums in OB. Slices that share the columns have each their own.
void ProductSchedule::addBias(const Sum &column, int64_t obPlace) {
  int64_t sumsBytes = kernel.rows * 256, columns = plan.groups * plan.sliceColumns, bytes = kernel.column.b;
  for (int64_t slice = 0; slice < plan.sliceColumns; ++slice)
    writer.task("corsair.simd")
        .text("function", "add")
        .buffer(ob, obPlace)
        .buffer(ob, obPlace)
        .buffer(gmBias, onChip(Operand::B) + column * (plan.steps * columns * bytes) + Sum(slice * plan.groups * bytes))
        .array("dims", {plan.steps, plan.groups, kernel.rows, 64})
        .text("to_kind", "bfp32")
        .array("to_strides", {plan.groups * sumsBytes, sumsBytes, 256, 4})
        .text("a_kind", "bfp32")
        .array("a_strides", {plan.groups * sumsBytes, sumsBytes, 256, 4})
        .text("b_kind", "bfp32")
        .array("b_strides", {columns * bytes, bytes, 0, 4})
        .integer("slices", plan.sliceColumns > 1 ? int64_t(1) << slice : plan.sliceMask())
        .integer("split", 0)
        .create();
}

void ProductSchedule::drainQueue() {
  sums.next = 0;
  int64_t sumsBytes = kernel.rows * 256, element = kernel.element();
  DmaSpec spec{"bfp32", resultKind, 64};
  spec.dims = {{plan.steps, plan.groups * sumsBytes, plan.sliceColumns * plan.groups * 64 * element},
               {plan.groups, sumsBytes, 64 * element},
               {kernel.rows, 256, localPitch}};
  spec.targetUnitStep = plan.sliceColumns > 1 ? plan.groups * 64 * element : plan.sliceRows > 1 ? 64 * localPitch : 0;
  forOuter(Operand::O, [&] {
    writer.pairs(plan.columnUnits(), [&](Sum column) {
      writer.pairs(plan.rowRounds(), [&](const Sum &row) {
        int64_t half = sums.take();
        writer.group("drain", sums.ready[half], {sums.free[half], results.ready[0]}, [&] {
          if (ddr.bias)
            addBias(column, half * resultHalf);
          writer.copy(hw::Memory::OB, hw::Memory::GM)
              .buffer(ob, half * resultHalf)
              .buffer(gmResult, onChip(Operand::O) + unitPlace(column, row))
              .with(writer.descriptor(spec))
              .integer("units", plan.sliceMask())
              .create();
        });
      });
    });
  });
}
