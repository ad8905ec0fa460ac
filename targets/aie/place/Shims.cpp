//===- Shims.cpp - how shims bring operands of a product and take results -===//
#include "ProductProgram.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

/// A queue of shims that has a task, or a few, for each block of results; `row` and `column` count blocks of a matrix.
void ProductProgram::blocks(hw::Direction direction, int64_t number, int64_t units,
                            function_ref<void(Sum matrix, Sum row, Sum column)> body) {
  w.queue(
      hw::nameOf(kShim), hw::nameOf(direction), number,
      [&] {
        w.loop(sizeOf(p.openMatrices(), p.matrices), [&](const Sum &matrix) {
          w.loop(sizeOf(p.rowBlocks(), p.paddedM() / p.blockM()), [&](const Sum &row) {
            w.loop(sizeOf(p.columnBlocks(), p.paddedN() / p.blockN()),
                   [&](const Sum &column) { w.group("block", {}, {}, [&] { body(matrix, row, column); }); });
          });
        });
      },
      units);
}

/// Tiles of k after each other, each of some rows of a matrix or some windows of an image.
void ProductProgram::writeRowsOfA() {
  int64_t rows = parts * n.m, tile = n.k * n.bytes, pitch = p.formOf(Part::A).second * n.bytes;
  int64_t step = p.image ? p.image->step() * n.bytes : pitch, zeros = 0;
  SmallVector<std::pair<int64_t, Value>> walks; // from where on
  auto walk = [&](int64_t offset, SmallVector<DescriptorDim> dims) {
    walks.emplace_back(offset, w.descriptor({n.name, {}, n.k, std::move(dims)}));
  };
  if (!p.image) {
    walk(0, {{p.paddedK() / n.k, tile, 0}, {rows, step, 0}});
  } else {
    for (const ImageTask &task : tasksOf(*p.image, n.k))
      walk(task.offset * n.bytes,
           {{task.steps, task.stride * n.bytes, 0}, {task.tiles, task.tile * n.bytes, 0}, {rows, step, 0}});
    zeros = p.hasTileOfZeros() ? p.matrices * p.matrixOfA() * n.bytes : 0;
  }
  Value ofZeros = zeros ? w.descriptor({n.name, {}, n.k, {{rows, tile, 0}}}) : Value();
  blocks(kMm2s, 0, p.herd.rows / parts, [&](const Sum &matrix, const Sum &row, const Sum &) {
    Sum first = matrix * (p.matrixOfA() * n.bytes) + row * (p.blockM() * step) + Sum(w.unit()) * (rows * step);
    for (auto [offset, descriptor] : walks)
      putTiles(w.put("a_in", Sum(w.unit())).buffer(ddr[Part::A], first + offset).with(descriptor));
    if (ofZeros)
      w.put("a_in", Sum(w.unit())).buffer(ddr[Part::A], zeros).with(ofZeros).create();
  });
}

/// As many tiles along k as there are in a run.
void ProductProgram::putTiles(TaskWriter &put) {
  if (Dim pairs = p.pairs(); !pairs.isStatic())
    put.sum("count", sizeOf(pairs, p.paddedK() / (2 * n.k)) * 2);
  put.create();
}

/// The numbers of a matrix step's columns at its first words, again and again in all rows of a pair of tiles of b.
void ProductProgram::putRow(Part part, StringRef channel, const Sum &panel) {
  StringRef kind = part == Part::Bias ? c.kind : "f32";
  auto put = [&](int64_t bytes, const DescriptorSpec &spec) {
    Value ofRow = w.descriptor(spec);
    w.put(channel, Sum(w.unit())).buffer(ddr[part], panel * bytes).with(ofRow).create();
  };
  int64_t step = n.step.n;
  if (p.packs(part)) // it lies so already
    return put(p.biasWords() * 4, {kind, {}, step, {{p.biasWords() / step, step * 4, 0}}});
  int64_t perRow = p.biasRun(), times = step / perRow; // words of a step's row; rows that hold them all
  DescriptorSpec spec{kind, {}, perRow, {}};
  spec.dims = {{2 * n.k / times, 0, 0}, {times, perRow * 4, 0}, {n.n / step, step * 4, 0}};
  spec.keepsDims = true;
  put(n.n * 4, spec);
}

/// The tiles of all cores of a column, of numbers as those of a matrix.
void ProductProgram::putResidual(const Sum &matrix, const Sum &row, const Sum &panel, const Matrix &of) {
  int64_t pitch = p.paddedN() * of.bytes;
  Sum begin = matrix * (p.paddedM() * pitch) + row * (p.blockM() * pitch) + panel * (n.n * of.bytes);
  Value walk = w.descriptor({of.kind, {}, n.n, {{p.residualTiles() * n.m, pitch, 0}}});
  w.put("b_in", Sum(w.unit())).buffer(ddr[Part::Residual], begin).with(walk).create();
}

/// A panel of b, and what goes with its columns, in the order in which cores take it.
void ProductProgram::putPanel(StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel) {
  int64_t width = n.n * n.bytes;
  Sum ofMatrix = matrix * (p.paddedN() / n.n) + panel, ofRow = p.image ? ofMatrix : panel; // groups have their own
  putTiles(w.put(channel, Sum(w.unit()))
               .buffer(ddr[Part::B], ofMatrix * (p.paddedK() * width))
               .with(w.descriptor({n.name, {}, n.n, {{p.paddedK() / n.k, n.k * width, 0}, {n.k, width, 0}}})));
  if (p.has(Part::Bias))
    putRow(Part::Bias, channel, ofRow);
  if (p.has(Part::Residual) && !p.addsBytes())
    putResidual(matrix, row, panel, c);
  if (p.has(Part::Scales))
    putRow(Part::Scales, channel, ofRow);
  if (p.addsBytes())
    putResidual(matrix, row, panel, y);
}

/// All of k of a block's rows, part after part, each tile after tile.
void ProductProgram::putRowsOfA(const Sum &matrix, const Sum &row) {
  int64_t tile = n.k * n.bytes, pitch = p.formOf(Part::A).second * n.bytes;
  DescriptorSpec spec{n.name, {}, n.k, {{parts, n.m * pitch, 0}, {p.paddedK() / n.k, tile, 0}, {n.m, pitch, 0}}};
  w.put("a_in", Sum(w.unit()))
      .buffer(ddr[Part::A], matrix * (p.paddedM() * pitch) + row * (p.blockM() * pitch))
      .with(w.descriptor(spec))
      .create();
}

/// Of two panels of b each, one goes with the rows of a, which come once for several blocks.
void ProductProgram::writeSharedShims() {
  int64_t uses = p.usesOfA(), all = p.herd.resultColumns();
  auto panelOf = [&](const Sum &column, int64_t which) { return column * all + Sum(w.unit()) * 2 + which; };
  w.queue(
      hw::nameOf(kShim), hw::nameOf(kMm2s), 0,
      [&] {
        w.loop(p.matrices, [&](const Sum &matrix) {
          w.loop(p.paddedM() / p.blockM(), [&](const Sum &row) {
            w.loop(p.paddedN() / p.blockN() / uses, [&](const Sum &columns) {
              w.group("block", {}, {}, [&] {
                putRowsOfA(matrix, row);
                putPanel("a_in", matrix, row, panelOf(columns * uses, 0));
              });
              if (uses > 1)
                w.loop(uses - 1, [&](const Sum &next) {
                  w.group("block", {}, {},
                          [&] { putPanel("a_in", matrix, row, panelOf(columns * uses + next + 1, 0)); });
                });
            });
          });
        });
      },
      p.herd.columns);
  blocks(kMm2s, 1, p.herd.columns, [&](const Sum &matrix, const Sum &row, const Sum &column) {
    putPanel("b_in", matrix, row, panelOf(column, 1));
  });
}

void ProductProgram::writeShims() {
  if (p.herd.panels > 1) {
    writeSharedShims();
  } else {
    writeRowsOfA();
    blocks(kMm2s, 1, p.herd.columns, [&](const Sum &matrix, const Sum &row, const Sum &column) {
      putPanel("b_in", matrix, row, column * p.herd.columns + Sum(w.unit()));
    });
  }
  int64_t out = p.paddedN() * y.bytes, panels = p.herd.panels;
  for (int64_t part = 0; part < outs; ++part) {
    int64_t rows = (firstRow(part + 1) - firstRow(part)) / panels * n.m;
    Value ofC = w.descriptor({y.kind, {}, n.n, {{panels, 0, n.n * y.bytes}, {rows, 0, out}}});
    blocks(kS2mm, part, p.herd.columns, [&](const Sum &matrix, const Sum &row, const Sum &column) {
      Sum begin = matrix * (p.paddedM() * out) + row * (p.blockM() * out) + firstRow(part) * n.m * out;
      Sum first = (column * p.blockN() + Sum(w.unit()) * (panels * n.n)) * y.bytes;
      w.get(kOut[part], Sum(w.unit())).buffer(ddr[Part::C], begin + first).with(ofC).create();
    });
  }
}
