//===- Bands.cpp - rows of scores, 64 after 64 ----------------------------===//
//
// A strip holds 64 rows of scores, another one their weights; of both there are two, so that the arrays multiply for
// one band while the vector device works on another:
//
//     queue Load    query b1 -> IB               weights b0 -> IB      query b2 -> IB
//     queue Array   b1 x keys                    b0 x values           b2 x keys
//     queue Store   -> scores 1                  -> result b0          -> scores 0
//     queue Vector  scores 0 -> weights 0 (b0)   scores 1 -> weights 1 (b1)
//
// Where a mask keeps the columns up to a diagonal, some bands need as many tiles of columns more than those before, a
// granule: both products end there, and the softmax by row. The tiles behind are zeros times something. Under a window
// they begin later, too.
//
//===----------------------------------------------------------------------===//
#include "KernelWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

class BandWriter {
public:
  BandWriter(Program &program, const ArrayUnits &units, ArrayRef<BandedScores> jobs, int slices,
             QuadRegisters &registers, int quads)
      : program(program), units(units), jobs(jobs), slices(slices), registers(registers), quads(quads) {}

  SmallVector<Address> strips;               ///< two halves each
  Address keys, values;                      ///< tiles in ST
  SmallVector<int64_t> keySteps, valueSteps; ///< from trip to trip of each loop over a batch

  std::function<void()> bringValues; ///< before the first product by them, outside of all loops

  void run(size_t loop = 0) {
    ArrayRef<int64_t> batch = jobs.front().batch;
    if (!batch.empty())
      prepare();
    if (loop < batch.size())
      return program.loop(batch[loop], [&](int depth) {
        depths.push_back(depth);
        run(loop + 1);
        depths.pop_back();
      });
    half = 0;
    for (const BandedScores &each : jobs) {
      job = &each;
      blocks();
    }
    finish();
  }

private:
  /// A band: a number plus multiples of counters of loops.
  struct Band {
    int64_t first = 0;
    SmallVector<std::pair<int, int64_t>, 2> loops; ///< depth, bands a trip
    int half = 0;                                  ///< of the strips; of the next band the other one
    Band plus(int64_t bands) const { return {first + bands, loops, static_cast<int>((half + bands) % 2)}; }
    Band inLoop(int depth, int64_t bands) const {
      Band band = *this;
      band.loops.push_back({depth, bands});
      return band;
    }
  };

  //--- which columns
  /// Granules of columns, of as many tiles as are multiplied at once: a number of no buffer, and how many.
  struct Columns {
    Address first{-1, 0, {}};
    std::optional<Address> count; ///< nothing: all columns
    int64_t most = 0;             ///< of `count`
  };

  /// Tiles of columns that both products take at a time; 0: they take all.
  int64_t granule() const {
    const int64_t tiles = job->columns / 64, each = job->plan.tilesARound();
    const bool fits = job->upper && job->rowQuad % 64 == 0 && tiles % each == 0 && job->weightedPlan.rounds() == 1 &&
                      (job->weightedPlan.segment == each || job->weightedPlan.kChunks == each) &&
                      job->plan.segments() == 1 && job->plan.rowSlices() == 1 &&
                      job->weightedPlan.sliceRows() <= job->weightedPlan.rowsAtOnce();
    if (!fits || std::min(lastTile(0, 0), lastTile(quads - 1, 0)) < 0)
      return 0;
    return std::max(lastTile(0, job->bands - 1), lastTile(quads - 1, job->bands - 1)) < tiles ? each : 0;
  }
  /// The last tile of columns that a quad's band keeps something of, and the first one.
  int64_t lastTile(int64_t quad, int64_t band) const {
    return (*job->upper + 63) / 64 + quad * job->rowQuad / 64 + band;
  }
  int64_t firstTile(int64_t quad, int64_t band) const {
    return job->lower ? std::max<int64_t>(0, *job->lower + quad * job->rowQuad + band * 64) / 64 : 0;
  }

  void blocks() {
    const int64_t each = granule();
    if (!each) {
      columns = {};
      return chain({}, job->bands);
    }
    // Bands whose scores end at the same tile are one chain, where all quads have such.
    const bool aligned = lastTile(0, 0) % each == 0 && job->rowQuad / 64 % each == 0;
    const int64_t whole = aligned ? job->bands / each : 0, rest = job->bands - whole * each;
    alignedBlocks(whole, each);
    if (!rest)
      return;
    Band from;
    from.first = whole * each;
    columns = columnsOf(whole * each, rest, each);
    chain(from, rest);
  }

  /// Blocks of bands. Under a window those are apart that begin at the first column in some quad.
  void alignedBlocks(int64_t blocks, int64_t each) {
    const int64_t step = job->rowQuad / 64 / each;
    int64_t apart = 0;
    auto begin = [&] { return *job->lower + std::min<int64_t>(0, (quads - 1) * job->rowQuad) + apart * each * 64; };
    for (; job->lower && apart < blocks && begin() < 0; ++apart) {
      columns = columnsOf(apart * each, each, each);
      Band from;
      from.first = apart * each;
      chain(from, each);
    }
    if (apart == blocks)
      return;
    finish();
    prepare();
    const int64_t end = lastTile(0, apart * each) / each + 1,
                  first = job->lower ? (*job->lower + apart * each * 64) / 64 / each : 0;
    program.loop(blocks - apart, [&](int depth) {
      auto moved = [&](int64_t number) { return Address{-1, number, {}}.plusQuad(step).plusLoop(depth, 1); };
      if (job->lower)
        columns = {moved(first), Address{-1, end - first, {}}, end - first};
      else
        columns = {{-1, 0, {}}, moved(end), job->columns / 64 / each};
      Band from;
      from.first = apart * each;
      chain(from.inLoop(depth, each), each);
      finish();
    });
  }

  /// Of so many bands one after the other, which take the same.
  Columns columnsOf(int64_t band, int64_t bands, int64_t each) {
    SmallVector<int64_t> begins, ends;
    int64_t most = 0;
    for (int64_t quad = 0; quad < quads; ++quad) {
      begins.push_back(firstTile(quad, band) / each);
      ends.push_back(lastTile(quad, band + bands - 1) / each + 1);
      most = std::max(most, ends.back() - begins.back());
    }
    if (!job->lower) {
      const std::optional<Address> count = ofQuads(ends);
      return count ? Columns{{-1, 0, {}}, count, most} : Columns();
    }
    for (auto [begin, end] : llvm::zip(begins, ends)) // as many in each quad
      begin = std::max<int64_t>(0, end - most);
    const std::optional<Address> first = ofQuads(begins);
    return first ? Columns{*first, Address{-1, most, {}}, most} : Columns();
  }
  /// A number of each quad, in a register where they differ; nothing where none is left.
  std::optional<Address> ofQuads(const SmallVector<int64_t> &numbers) {
    if (llvm::all_equal(numbers))
      return Address{-1, numbers.front(), {}};
    auto known = llvm::find(registers, numbers);
    const auto number = static_cast<int>(known - registers.begin());
    if (known == registers.end()) {
      if (number == hw::kRegisters)
        return std::nullopt;
      registers.push_back(numbers);
    }
    return Address{-1, 0, {hw::registerTerm(number)}};
  }
  static Address plusTimes(Address place, const Address &number, int64_t scale) {
    place = place.plus(number.offset * scale);
    for (hw::Term term : number.terms) {
      term.scale *= scale;
      place = place.plus(term);
    }
    return place;
  }

  //--- which order
  /// Bands one after the other: the scores of one before the values of the one before, which the last one still lacks
  /// then.
  void chain(Band from, int64_t count) {
    from.half = half;
    const int64_t pairs = (count - 1) / 2;
    scores(from);
    finish();
    if (pairs)
      prepare();
    program.loop(pairs, [&](int depth) {
      const Band even = from.inLoop(depth, 2);
      scores(even.plus(1));
      weighted(even);
      scores(even.plus(2));
      weighted(even.plus(1));
    });
    Band last = from.plus(2 * pairs);
    if (count % 2 == 0) {
      scores(last.plus(1));
      weighted(last);
      last = last.plus(1);
    }
    half = 1 - last.half;
    lacking = Lacking{job, last, columns};
  }

  /// The values of the last band.
  void finish() {
    if (!lacking)
      return;
    const BandedScores *now = std::exchange(job, lacking->job);
    std::swap(columns, lacking->columns);
    weighted(lacking->band);
    std::swap(columns, lacking->columns);
    job = now;
    lacking.reset();
  }

  //--- places
  Address placed(Address place, ArrayRef<int64_t> batch, int64_t step, const Band &band) const {
    for (auto [depth, bytes] : llvm::zip(depths, batch))
      place = place.plusLoop(depth, bytes);
    place = place.plus(band.first * step);
    for (auto [depth, bands] : band.loops)
      place = place.plusLoop(depth, bands * step);
    return place;
  }
  DeviceTensor strip(int number, int half) const {
    const hw::ElemKind kind = number == weights() ? job->weightKind : hw::ElemKind::F16;
    DeviceTensor tensor = DeviceTensor::dense(kind, {64, job->columns}, rowMajor(2));
    tensor.address = strips[number].plus(half * tensor.elements() * tensor.elementSize());
    return tensor;
  }
  DeviceTensor placed(const BandTensor &tensor, const Band &band) const {
    if (tensor.strip >= 0)
      return strip(tensor.strip, halfOf(tensor.strip, band));
    DeviceTensor at = tensor.at;
    at.address = placed(at.address, tensor.batch, tensor.band, band);
    return at;
  }
  /// What the vector device alone sees has one half.
  int halfOf(int number, const Band &band) const { return number == 0 || number == weights() ? band.half : 0; }
  int weights() const { return job->units.back().out; }

  //--- what a band is
  void scores(const Band &band) {
    MatmulOperands at = PlacedProduct(placed(job->query, band), nullptr, strip(0, band.half)).operands;
    at.st = placed(keys, keySteps, 0, band);
    const QueueWriter store = program.on(Queue::Store), vector = program.on(Queue::Vector);
    store.wait(kScoresFree + band.half);
    if (columns.count) {
      const int64_t tiles = job->plan.tilesARound();
      at.st = plusTimes(at.st, columns.first, job->plan.groups * job->plan.bytesPerGroup());
      at.out = plusTimes(at.out, columns.first, tiles * 64 * 2);
      emitRounds(program, units, job->plan, at, *columns.count);
    } else
      emitProduct(program, units, job->plan, at);
    store.signal(kScoresFull + band.half);
    vector.wait(kScoresFull + band.half);
    for (const BandUnit &unit : job->units) {
      if (unit.out == weights())
        vector.wait(kWeightsFree + band.half);
      vectorOp(unit, band);
      if (&unit == lastReader())
        vector.signal(kScoresFree + band.half);
    }
    vector.signal(kWeightsFull + band.half);
  }

  const BandUnit *lastReader() const {
    const BandUnit *last = &job->units.front();
    for (const BandUnit &unit : job->units)
      if (llvm::any_of(unit.inputs, [](const BandTensor &input) { return input.strip == 0; }))
        last = &unit;
    return last;
  }

  void prepare() {
    if (bringValues)
      std::exchange(bringValues, nullptr)();
  }

  void weighted(const Band &band) {
    prepare();
    MatmulOperands at = PlacedProduct(strip(weights(), band.half), nullptr, placed(job->result, band)).operands;
    at.st = placed(values, valueSteps, 0, band);
    const QueueWriter load = program.on(Queue::Load);
    load.wait(kWeightsFull + band.half);
    if (columns.count) {
      const int64_t chunks = job->weightedPlan.segment;
      at.a = plusTimes(at.a, columns.first, chunks * 64 * at.aColumn);
      at.st = plusTimes(at.st, columns.first, chunks * Spread::kTileBytes);
      emitSegments(program, units, job->weightedPlan, at, *columns.count);
    } else
      emitProduct(program, units, job->weightedPlan, at);
    load.signal(kWeightsFree + band.half);
  }

  void vectorOp(const BandUnit &unit, const Band &band) {
    const int64_t each = job->plan.tilesARound() * 64, width = columns.count ? columns.most * each : job->columns;
    SimdOp op{unit.function, {64, width}};
    op.imm0 = unit.imm0, op.imm1 = unit.imm1;
    auto operand = [&](const DeviceTensor &tensor) {
      SimdOperand made = SimdOp::operand(tensor, op.dims);
      made.address = plusTimes(made.address, columns.first, each * made.strides.back());
      return made;
    };
    op.result = operand(strip(unit.out, halfOf(unit.out, band)));
    for (const BandTensor &input : unit.inputs)
      op.sources.push_back(operand(placed(input, band)));
    if (unit.function == hw::SimdFunction::Softmax)
      op.inner = 1;
    if (unit.index) { // from the first of the columns on, or before the last
      op.index = placed(*unit.index, {}, unit.indexBand, band);
      op.index = plusTimes(op.index, columns.first, unit.turned ? each : -each);
      if (unit.turned)
        op.index = op.index.plus(width - job->columns);
      op.countFromRow(unit.turned);
    } else if (columns.count && !op.inner) {
      op.limitColumns(each, *columns.count);
    }
    [[maybe_unused]] const bool done = emitSimd(program, std::move(op), slices);
    assert(done && "rows of a band are one dim");
  }

  struct Lacking {
    const BandedScores *job;
    Band band;
    Columns columns;
  };

  Program &program;
  const ArrayUnits units;
  ArrayRef<BandedScores> jobs;
  const BandedScores *job = nullptr; ///< that is written
  const int slices;
  QuadRegisters &registers;
  const int quads;
  SmallVector<int> depths; ///< of the open loops over a batch
  Columns columns;         ///< of the bands that are written
  std::optional<Lacking> lacking;
  int half = 0; ///< of the next band's strips
};

} // namespace

void KernelWriter::multiplyBands(ArrayRef<BandedScores> jobs) {
  const BandedScores &job = jobs.front();
  auto shapeOf = [&](const BandTensor &matrix) {
    DeviceTensor all = matrix.at; // one for each trip
    for (size_t i = job.batch.size(); i-- > 0;) {
      all.shape.insert(all.shape.begin(), job.batch[i]);
      all.strides.insert(all.strides.begin(), matrix.batch[i]);
    }
    return all;
  };
  const ArrayUnits units = arrayUnits();
  BandWriter bands(*main, units, jobs, machine.slices, registers, quads);
  std::tie(bands.keys, bands.keySteps) = packAll(job.plan, shapeOf(job.keys));
  for (int number = 0; number < job.strips; ++number) {
    const int64_t each = hw::elementBytes(number == job.units.back().out ? job.weightKind : hw::ElemKind::F16);
    bands.strips.push_back({buffers.add(hw::Memory::GM, node + ".strip", 2 * kBandRows * job.columns * each), 0, {}});
  }
  bands.bringValues = [&] {
    fetchLate(job.values.at.address.buffer);
    std::tie(bands.values, bands.valueSteps) = packAll(job.weightedPlan, shapeOf(job.values));
    main->task(node);
  };
  if (quads == 1)
    std::exchange(bands.bringValues, nullptr)();
  main->task(node);
  bands.run();
  main->on(Queue::Array).uses(units.wb, true);
  streamed = true;
}

bool BandedScores::goesOnWith(const BandedScores &other) const {
  auto same = [](const BandTensor &a, const BandTensor &b) {
    return a.at.address.buffer == b.at.address.buffer && a.at.address.offset == b.at.address.offset &&
           a.at.strides == b.at.strides && a.at.shape == b.at.shape && a.batch == b.batch;
  };
  return same(keys, other.keys) && same(values, other.values) && batch == other.batch && columns == other.columns &&
         strips == other.strips && weightKind == other.weightKind && units.size() == other.units.size() &&
         units.back().out == other.units.back().out && plan == other.plan && weightedPlan == other.weightedPlan;
}
