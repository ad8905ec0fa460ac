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
// Where a mask keeps the columns up to a diagonal, `granule` bands at a time need as many tiles of columns more than
// the ones before: both products end there, and the softmax by row. The tiles behind are zeros times something.
//
//===----------------------------------------------------------------------===//
#include "KernelWriter.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

namespace {

class BandWriter {
public:
  BandWriter(Program &program, const ArrayUnits &units, const BandedScores &job, int slices, QuadRegisters &registers,
             int quads)
      : program(program), units(units), job(job), slices(slices), registers(registers), quads(quads) {}

  SmallVector<Address> strips;               ///< two halves each
  Address keys, values;                      ///< tiles in ST
  SmallVector<int64_t> keySteps, valueSteps; ///< from trip to trip of each loop over a batch

  void run(size_t loop = 0) {
    if (loop == job.batch.size())
      return blocks();
    program.loop(job.batch[loop], [&](int depth) {
      depths.push_back(depth);
      run(loop + 1);
      depths.pop_back();
    });
  }

private:
  /// A band: a number plus multiples of counters of loops.
  struct Band {
    int64_t first = 0;
    SmallVector<std::pair<int, int64_t>, 2> loops; ///< depth, bands a trip
    int half = 0;
    Band plus(int64_t bands, int half) const { return {first + bands, loops, half}; }
    Band inLoop(int depth, int64_t bands) const {
      Band band = *this;
      band.loops.push_back({depth, bands});
      return band;
    }
  };

  //--- which columns
  /// Bands whose scores end at the same tile, as many as tiles that are multiplied at once; 0: all have all columns.
  int64_t granule() const {
    const int64_t tiles = job.columns / 64, each = job.plan.tilesARound();
    const bool fits = job.upper && *job.upper >= 0 && tiles % each == 0 && job.weightedPlan.rounds() == 1 &&
                      (job.weightedPlan.segment == each || job.weightedPlan.kChunks == each) &&
                      job.plan.segments() == 1;
    const int64_t all = job.bands * (job.rowQuad ? quads : 1);
    const bool aligned = !job.rowQuad || job.bands % each == 0 || each % job.bands == 0;
    return fits && aligned && (all + each - 1) / each + behind(each) <= tiles / each ? each : 0;
  }
  /// Granules that the diagonal is to the right.
  int64_t behind(int64_t each) const { return ((*job.upper + 63) / 64 + each - 1) / each; }

  void blocks() {
    const int64_t each = granule();
    if (!each)
      return chain({}, job.bands);
    const int64_t first = behind(each) + 1, whole = job.bands / each, rest = job.bands % each;
    if (job.rowQuad && rest) {
      SmallVector<int64_t> counts;
      for (int64_t quad = 0; quad < quads; ++quad)
        counts.push_back(quad * job.bands / each + first);
      registers.push_back(counts);
      granules = Address{-1, 0, {hw::registerTerm(static_cast<int>(registers.size()) - 1)}};
      return chain({}, job.bands);
    }
    const Address begin = Address{-1, first, {}}.plusQuad(job.rowQuad ? whole : 0);
    program.loop(whole, [&](int depth) {
      granules = begin.plusLoop(depth, 1);
      chain(Band().inLoop(depth, each), each);
    });
    granules = begin.plus(whole);
    chain(Band().plus(whole * each, 0), rest);
  }

  //--- which order
  /// Bands one after the other: the scores of one before the values of the one before.
  void chain(const Band &from, int64_t count) {
    if (!count)
      return;
    const int64_t pairs = (count - 1) / 2;
    scores(from);
    program.loop(pairs, [&](int depth) {
      const Band even = from.inLoop(depth, 2);
      scores(even.plus(1, 1));
      weighted(even);
      scores(even.plus(2, 0));
      weighted(even.plus(1, 1));
    });
    const Band last = from.plus(2 * pairs, 0);
    if (count % 2 == 0)
      scores(last.plus(1, 1));
    weighted(last);
    if (count % 2 == 0)
      weighted(last.plus(1, 1));
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
    DeviceTensor tensor = DeviceTensor::dense(hw::ElemKind::F16, {64, job.columns}, rowMajor(2));
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
  int weights() const { return job.units.back().out; }

  //--- what a band is
  void scores(const Band &band) {
    MatmulShape shape(placed(job.query, band), job.keys.at, strip(0, band.half));
    shape.operands.st = placed(keys, keySteps, 0, band);
    const QueueWriter store = program.on(Queue::Store), vector = program.on(Queue::Vector);
    store.wait(kScoresFree + band.half);
    if (granules)
      emitRounds(program, units, job.plan, shape.operands, *granules);
    else
      emitProduct(program, units, job.plan, shape.operands);
    store.signal(kScoresFull + band.half);
    vector.wait(kScoresFull + band.half);
    for (const BandUnit &unit : job.units) {
      if (unit.out == weights())
        vector.wait(kWeightsFree + band.half);
      vectorOp(unit, band);
      if (&unit == lastReader())
        vector.signal(kScoresFree + band.half);
    }
    vector.signal(kWeightsFull + band.half);
  }

  const BandUnit *lastReader() const {
    const BandUnit *last = &job.units.front();
    for (const BandUnit &unit : job.units)
      if (llvm::any_of(unit.inputs, [](const BandTensor &input) { return input.strip == 0; }))
        last = &unit;
    return last;
  }

  void weighted(const Band &band) {
    MatmulShape shape(strip(weights(), band.half), job.values.at, placed(job.result, band));
    shape.operands.st = placed(values, valueSteps, 0, band);
    const QueueWriter load = program.on(Queue::Load);
    load.wait(kWeightsFull + band.half);
    if (granules)
      emitSegments(program, units, job.weightedPlan, shape.operands, *granules);
    else
      emitProduct(program, units, job.weightedPlan, shape.operands);
    load.signal(kWeightsFree + band.half);
  }

  void vectorOp(const BandUnit &unit, const Band &band) {
    SimdOp op{unit.function, {64, job.columns}};
    op.imm0 = unit.imm0, op.imm1 = unit.imm1;
    op.result = SimdOp::operand(strip(unit.out, halfOf(unit.out, band)), op.dims);
    for (const BandTensor &input : unit.inputs)
      op.sources.push_back(SimdOp::operand(placed(input, band), op.dims));
    if (unit.function == hw::SimdFunction::Softmax)
      op.inner = 1;
    if (unit.index) {
      op.index = placed(*unit.index, {}, unit.indexBand, band);
      op.countFromRow(unit.turned);
    } else if (granules && !op.inner) {
      op.limitColumns(job.plan.tilesARound() * 64, *granules);
    }
    [[maybe_unused]] const bool done = emitSimd(program, std::move(op), slices);
    assert(done && "rows of a band are one dim");
  }

  Program &program;
  const ArrayUnits units;
  const BandedScores &job;
  const int slices;
  QuadRegisters &registers;
  const int quads;
  SmallVector<int> depths;         ///< of the open loops over a batch
  std::optional<Address> granules; ///< of columns, in the band that is written
};

} // namespace

void KernelWriter::multiplyBands(const BandedScores &job) {
  auto shapeOf = [&](const BandTensor &matrix) {
    DeviceTensor all = matrix.at; // one for each trip
    for (size_t i = job.batch.size(); i-- > 0;) {
      all.shape.insert(all.shape.begin(), job.batch[i]);
      all.strides.insert(all.strides.begin(), matrix.batch[i]);
    }
    return all;
  };
  const ArrayUnits units{buffers.unit(hw::Memory::IB), buffers.unit(hw::Memory::WB), buffers.unit(hw::Memory::OB)};
  BandWriter bands(*main, units, job, machine.slices, registers, quads);
  std::tie(bands.keys, bands.keySteps) = packAll(job.plan, shapeOf(job.keys));
  std::tie(bands.values, bands.valueSteps) = packAll(job.weightedPlan, shapeOf(job.values));
  const int64_t bytes = kBandRows * job.columns * 2;
  for (int number = 0; number < job.strips; ++number)
    bands.strips.push_back({buffers.add(hw::Memory::GM, node + ".strip", 2 * bytes), 0, {}});
  main->task(node);
  bands.run();
  main->on(Queue::Array).uses(units.wb, true);
  streamed = true;
}
