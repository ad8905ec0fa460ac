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
            auto block = [&](const Sum &column) { w.group("block", {}, {}, [&] { body(matrix, row, column); }); };
            const int64_t columns = p.paddedN() / p.blockN();
            if (p.runs.empty() || direction == kS2mm)
              w.loop(sizeOf(p.columnBlocks(), columns), block);
            for (int64_t column = 0; column < columns && !p.runs.empty() && direction == kMm2s; ++column)
              block(column); // each has runs of its own
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
  blocks(kMm2s, 0, p.herd.rows / parts, [&](const Sum &matrix, const Sum &row, const Sum &column) {
    Sum first = matrix * (p.matrixOfA() * n.bytes) + row * (p.blockM() * step) + Sum(w.unit()) * (rows * step);
    if (!p.runs.empty())
      return putRuns(first, column.base);
    for (auto [offset, descriptor] : walks)
      putTiles(w.put("a_in", Sum(w.unit())).buffer(ddr[Part::A], first + offset).with(descriptor));
    if (ofZeros)
      w.put("a_in", Sum(w.unit())).buffer(ddr[Part::A], zeros).with(ofZeros).create();
  });
}

/// Of rows of a what meets the runs of a block of columns, from where the rows begin.
void ProductProgram::putRuns(const Sum &first, int64_t block) {
  int64_t tile = n.k * n.bytes, pitch = p.formOf(Part::A).second * n.bytes;
  for (auto [from, to] : p.runs[static_cast<size_t>(block)]) {
    Value walk = w.descriptor({n.name, {}, n.k, {{2 * (to - from), tile, 0}, {parts * n.m, pitch, 0}}});
    w.put("a_in", Sum(w.unit())).buffer(ddr[Part::A], first + 2 * from * tile).with(walk).create();
  }
}

/// Of each column of cores the panel that it has of a block: those of a block are of the same depth.
void ProductProgram::putPanelOfRuns(int64_t block) {
  int64_t width = n.n * n.bytes, tiles = 2 * p.pairsOf(block);
  Sum first = p.depthBefore(block) * p.herd.resultColumns() * width;
  if (tiles)
    w.put("b_in", Sum(w.unit()))
        .buffer(ddr[Part::B], first + Sum(w.unit()) * (tiles * n.k * width))
        .with(w.descriptor({n.name, {}, n.n, {{tiles, n.k * width, 0}, {n.k, width, 0}}}))
        .create();
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
void ProductProgram::putResidual(StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel,
                                 const Matrix &of) {
  int64_t pitch = p.paddedN() * of.bytes;
  Sum begin = matrix * (p.paddedM() * pitch) + row * (p.blockM() * pitch) + panel * (n.n * of.bytes);
  if (p.herd.bands > 1)
    begin = begin + Sum(w.unit()) * (p.herd.rows * n.m * pitch);
  Value walk = w.descriptor({of.kind, {}, n.n, {{p.residualTiles() * n.m, pitch, 0}}});
  w.put(channel, Sum(w.unit())).buffer(ddr[Part::Residual], begin).with(walk).create();
}

/// A panel of b, and what goes with its columns, in the order in which cores take it.
void ProductProgram::putPanel(StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel) {
  int64_t width = n.n * n.bytes;
  Sum ofMatrix = matrix * (p.paddedN() / n.n) + panel;
  putTiles(w.put(channel, Sum(w.unit()))
               .buffer(ddr[Part::B], ofMatrix * (p.paddedK() * width))
               .with(w.descriptor({n.name, {}, n.n, {{p.paddedK() / n.k, n.k * width, 0}, {n.k, width, 0}}})));
  putBehindPanel(channel, matrix, row, panel);
}

/// What goes with a panel's columns.
void ProductProgram::putBehindPanel(StringRef channel, const Sum &matrix, const Sum &row, const Sum &panel) {
  Sum ofRow = p.image ? matrix * (p.paddedN() / n.n) + panel : panel; // groups have their own
  if (p.has(Part::Bias))
    putRow(Part::Bias, channel, ofRow);
  if (p.has(Part::Residual) && !p.addsBytes())
    putResidual(channel, matrix, row, panel, c);
  if (p.has(Part::Scales))
    putRow(Part::Scales, channel, ofRow);
  if (p.addsBytes())
    putResidual(channel, matrix, row, panel, y);
}

/// Of a block's rows the parts that come by a channel: of a matrix as they lie, of an image the pixels of all windows.
void ProductProgram::putStaying(int64_t channel, const Sum &matrix, const Sum &row) {
  int64_t pitch = p.formOf(Part::A).second * n.bytes, step = p.image ? p.image->step() * n.bytes : pitch;
  int64_t part = n.m * step, panels = p.herd.panels;
  Sum first = matrix * (p.matrixOfA() * n.bytes) + row * (p.blockM() * step) + channel * part;
  if (panels == 1)
    first = first + Sum(w.unit()) * (parts * part);
  DescriptorSpec spec{n.name, {}, n.k, {{Stay::partsOf(p.herd, channel), panels * part, 0}}};
  if (p.image) {
    spec.unit = p.image->step();
    spec.dims.push_back({stay->planes, p.image->plane() * n.bytes, 0});
    spec.dims.push_back({stay->length / spec.unit, step, 0});
  } else {
    spec.dims.push_back({n.m, pitch, 0});
    spec.dims.push_back({p.paddedK() / n.k, n.k * n.bytes, 0});
  }
  w.put(channel ? "b_in" : "a_in", Sum(w.unit())).buffer(ddr[Part::A], first).with(w.descriptor(spec)).create();
}

/// Which panel of b a column of cores, or of its channels one, has of a block.
Sum ProductProgram::panelOf(const Sum &column, int64_t channel) {
  Sum first = column * p.herd.resultColumns();
  return p.herd.bands > 1 ? first : first + Sum(w.unit()) * p.herd.panels + channel;
}

/// Of a channel that brings rows of a for several blocks beside each other, and perhaps panels of b.
void ProductProgram::blocksOfStay(int64_t channel, bool bringsB) {
  int64_t uses = stay->uses;
  auto panel = [&](const Sum &matrix, const Sum &row, const Sum &column) {
    if (bringsB)
      putPanel(channel ? "b_in" : "a_in", matrix, row, panelOf(column, channel));
  };
  auto group = [&](function_ref<void()> body) { w.group("block", {}, {}, body); };
  auto ofColumns = [&](const Sum &matrix, const Sum &row, const Sum &columns) {
    group([&] {
      if (Stay::partsOf(p.herd, channel) > 0)
        putStaying(channel, matrix, row);
      panel(matrix, row, columns * uses);
    });
    if (uses > 1)
      w.loop(uses - 1, [&](const Sum &next) { group([&] { panel(matrix, row, columns * uses + next + 1); }); });
  };
  w.queue(
      hw::nameOf(kShim), hw::nameOf(kMm2s), channel,
      [&] {
        w.loop(p.matrices, [&](const Sum &matrix) {
          w.loop(p.paddedM() / p.blockM(), [&](const Sum &row) {
            w.loop(p.paddedN() / p.blockN() / uses, [&](const Sum &columns) { ofColumns(matrix, row, columns); });
          });
        });
      },
      p.herd.bringing());
}

/// Each channel of results has rows of cores: some rows of a panel, all of a panel, or all of all of them.
void ProductProgram::writeShimsOfResults() {
  int64_t pitch = p.paddedN() * y.bytes, panels = std::max<int64_t>(1, p.herd.panels / outs);
  for (int64_t out = 0; out < outs; ++out) {
    int64_t rows = (firstRow(out + 1) - firstRow(out)) / panels * n.m;
    Value ofC = w.descriptor({y.kind, {}, n.n, {{panels, 0, n.n * y.bytes}, {rows, 0, pitch}}});
    bool isPanel = p.herd.panels > 1 && outs > 1;
    int64_t firstOfRows = isPanel ? 0 : firstRow(out) * n.m * pitch, firstOfColumns = isPanel ? out : 0;
    blocks(kS2mm, out, p.herd.columns, [&](const Sum &matrix, const Sum &row, const Sum &column) {
      Sum begin = matrix * (p.paddedM() * pitch) + row * (p.blockM() * pitch) + firstOfRows;
      if (p.herd.bands > 1)
        begin = begin + Sum(w.unit()) * (parts * n.m * pitch);
      Sum first = panelOf(column, firstOfColumns) * (n.n * y.bytes);
      w.get(kOut[out], Sum(w.unit())).buffer(ddr[Part::C], begin + first).with(ofC).create();
    });
  }
}

void ProductProgram::writeShims() {
  if (stay)
    for (int64_t channel = 0; channel < p.herd.panels; ++channel)
      blocksOfStay(channel, p.herd.panels > 1);
  else
    writeRowsOfA();
  if (p.herd.panels == 1)
    blocks(kMm2s, 1, p.herd.columns, [&](const Sum &matrix, const Sum &row, const Sum &column) {
      if (p.runs.empty())
        return putPanel("b_in", matrix, row, panelOf(column, 0));
      putPanelOfRuns(column.base);
      putBehindPanel("b_in", matrix, row, panelOf(column, 0));
    });
  writeShimsOfResults();
}
