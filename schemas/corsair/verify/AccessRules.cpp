//===- AccessRules.cpp - what each instruction touches --------------------===//
//
// ISA.md sections 5 to 8 as hulls. The engines of the simulated card are the
// exact form; a test compares the two access by access.
//
//===----------------------------------------------------------------------===//

#include "AccessRules.h"

#include <algorithm>
#include <bit>

namespace dmx::corsair::access {
namespace {

using K = ConfigKey;

/// Values of a CONFIG's keys, defaults filled in.
class Keys {
public:
  explicit Keys(const Instruction &in) : in(in) {}
  int64_t operator()(K key) const {
    for (auto [name, value] : in.config)
      if (name == key)
        return value;
    return findConfigKey(key)->byDefault;
  }
  /// The key `after` places behind another in the enumeration.
  int64_t operator()(K first, int after) const { return (*this)(static_cast<K>(static_cast<int>(first) + after)); }
  ElemKind kind(K key) const { return static_cast<ElemKind>((*this)(key)); }

private:
  const Instruction &in;
};

bool isPerSlice(Memory memory) { return memory != Memory::DDR && memory != Memory::GM; }
/// Tiles count in bytes where they are not addressed by row.
int64_t linearBytes(ElemKind kind) { return std::max(elementBytes(kind), 1); }

/// All rules of one instruction under one descriptor.
class Rules {
public:
  Rules(const Site &site, const Instruction *config, std::vector<Access> &out)
      : site(site), in(*site.in), key(config ? *config : in), out(out) {}
  void move();
  void product();
  void simd();
  void transpose();
  void reshape();

private:
  const Site &site;
  const Instruction &in;
  const Keys key;
  std::vector<Access> &out;

  void add(Memory memory, bool write, std::vector<uint32_t> units, const Span &span, bool all = true) {
    if (!span.isEmpty() && !units.empty())
      out.push_back({memory, write, std::move(units), span.range(), 0, 0, span.runs(), all});
  }
  /// Adds an access per slice of the mask, `perSlice` bytes further each; of GM and DDR the hull.
  void addSlices(Memory memory, bool write, const Span &span, int64_t perSlice, bool all = true);
  template <typename Visit> void eachSlice(Visit visit) const {
    uint32_t mask = site.mask("slices");
    for (int slice = 0, rank = 0; slice < site.machine->slices; ++slice)
      if (mask >> slice & 1)
        visit(slice, rank++);
  }
  int sliceCount() const { return std::popcount(site.mask("slices")); }
  /// Trips of dimension 0: the instruction's, or the descriptor's. Unknown: nothing.
  std::optional<Wide> trips() const;
  std::vector<uint32_t> receivers() const;

  // MOVE
  Span walkedRows(const char *address, const char *first, const Wide (&begin)[4], const Wide (&end)[4], K steps,
                  int64_t band, ElemKind kind) const;
  Span moveSource(Wide n0) const;
  Span moveDestination(Wide n0) const;
  Span linear(bool destination, const Wide (&begin)[4], const Wide (&end)[4], int64_t elements) const;
  // MATMUL, CONV
  Span chunkSpan(const Interval &address, int64_t step, int64_t chunk, Wide bytes) const;
  void activations();
  void weights();
  void results();
  Span image(ElemKind kind) const;
  // EXEC_SIMD
  void operand(int number, const int64_t (&n)[4], const int64_t (&origin)[4], int slice);
  Span imageSpan(const Span &pixel, const int64_t (&n)[4], const int64_t (&origin)[4]) const;
};

void Rules::addSlices(Memory memory, bool write, const Span &span, int64_t perSlice, bool all) {
  if (!isPerSlice(memory)) {
    Span hull = span;
    add(memory, write, {site.unitOf(memory, 0)}, hull.repeat(sliceCount(), perSlice), all);
    return;
  }
  std::vector<uint32_t> same;
  eachSlice([&](int slice, int rank) {
    Span one = span;
    if (perSlice)
      add(memory, write, {site.unitOf(memory, slice)}, one.shift(rank * Wide(perSlice)), all);
    else
      same.push_back(site.unitOf(memory, slice));
  });
  if (!same.empty())
    add(memory, write, same, span, all);
}

std::optional<Wide> Rules::trips() const {
  Interval n = site.value("n");
  if (!n.known)
    return std::nullopt;
  return n.low < 0 ? std::max<Wide>(n.high, key(K::N0)) : n.high;
}

std::vector<uint32_t> Rules::receivers() const {
  Interval mask = site.value("quads");
  std::vector<uint32_t> units;
  for (uint32_t peer = 0; peer < static_cast<uint32_t>(site.machine->quadCount()); ++peer)
    if (mask.known && mask.low == mask.high && static_cast<uint64_t>(mask.low) >> peer & 1)
      units.push_back(peer);
  return units.empty() ? std::vector<uint32_t>{site.quad} : units;
}

// --- MOVE ---------------------------------------------------------------------

Span Rules::linear(bool destination, const Wide (&begin)[4], const Wide (&end)[4], int64_t elements) const {
  ElemKind kind = key.kind(destination && key(K::To) ? K::To : K::Kind);
  int64_t bytes = linearBytes(kind), pitch = key(K::ElemStride);
  bool scattered = (key(K::SrcMode) || key(K::DstMode)) && pitch && pitch != bytes;
  Span span(site.value(destination ? "daddr" : "saddr"), scattered ? bytes : bytes * elements);
  if (scattered)
    span.repeat(elements, pitch);
  for (int i = 0; i < 4; ++i) {
    int64_t step = key(destination ? K::T0 : K::S0, i);
    span.repeat(end[i] - begin[i], step).shift(begin[i] * step);
  }
  return span;
}

/// Rows that three dims walk over; their hull where they leave some out.
Span Rules::walkedRows(const char *address, const char *first, const Wide (&begin)[4], const Wide (&end)[4], K steps,
                       int64_t band, ElemKind kind) const {
  Interval row = site.value(first);
  Wide last = row.high, count = 1;
  const bool one = row.low == row.high;
  for (int i = 0; i < 3; ++i) {
    int64_t step = key(steps, i);
    row.low += (step < 0 ? end[i] - 1 : begin[i]) * step;
    last += (step < 0 ? begin[i] : end[i] - 1) * step;
    count *= end[i] - begin[i];
  }
  Span span = rowsSpan(site.value(address), row, last, band, kind);
  return one && last - row.low + 1 <= count ? span : span.hull();
}

Span Rules::moveSource(Wide n0) const {
  Wide begin[4], end[4];
  for (int i = 0; i < 4; ++i) { // items outside lo..hi-1 are zeros and not read
    begin[i] = std::max<Wide>(key(K::Lo0, i), 0);
    end[i] = std::min<Wide>(key(K::Hi0, i), i ? key(K::N0, i) : n0);
    if (end[i] <= begin[i])
      return Span();
  }
  if (key(K::SrcMode)) {
    Span span = walkedRows("saddr", "srow", begin, end, K::S0, key(K::SrcBand), key.kind(K::Kind));
    int64_t step = key(K::S3);
    return span.repeat(end[3] - begin[3], step).shift(begin[3] * step);
  }
  int64_t all =
      key(K::DstMode) ? tileOf(key.kind(key(K::To) ? K::To : K::Kind)).value_or(TileShape()).depth : key(K::Unit);
  int64_t tail = key(K::Tail);
  if (!tail || end[3] != key(K::N3))
    return linear(false, begin, end, all);
  // The last item along dimension 3 is shorter.
  Wide lastBegin[4] = {begin[0], begin[1], begin[2], end[3] - 1}, fullEnd[4] = {end[0], end[1], end[2], end[3] - 1};
  Span span = linear(false, lastBegin, end, std::min(tail, all));
  if (fullEnd[3] > begin[3])
    span.join(linear(false, begin, fullEnd, all));
  return span;
}

Span Rules::moveDestination(Wide n0) const {
  ElemKind to = key.kind(key(K::To) ? K::To : K::Kind);
  Wide begin[4] = {}, end[4];
  for (int i = 0; i < 4; ++i)
    end[i] = i ? key(K::N0, i) : n0;
  for (Wide count : end)
    if (count <= 0)
      return Span();
  if (!key(K::DstMode))
    return linear(true, begin, end,
                  key(K::SrcMode) ? tileOf(key.kind(K::Kind)).value_or(TileShape()).depth : key(K::Unit));
  return walkedRows("daddr", "drow", begin, end, K::T0, key(K::DstBand), to).repeat(end[3], key(K::T3));
}

void Rules::move() {
  auto from = static_cast<Memory>(in.get("src")), to = static_cast<Memory>(in.get("dst"));
  std::optional<Wide> n0 = trips();
  Span source = n0 ? moveSource(*n0) : Span(Interval::unknown(), 1);
  Span destination = n0 ? moveDestination(*n0) : Span(Interval::unknown(), 1);
  bool spread = isPerSlice(from) || isPerSlice(to);
  if (to == Memory::WB)
    source.repeat(std::popcount(site.mask("cores")), key(K::SrcCore));
  if (spread)
    addSlices(from, false, source, key(K::SrcSlice));
  else
    add(from, false, {site.unitOf(from, 0)}, source);
  if (to == Memory::GM) {
    add(to, true, receivers(), spread ? destination.repeat(sliceCount(), key(K::DstSlice)) : destination);
  } else if (to == Memory::WB) {
    eachSlice([&](int slice, int rank) {
      std::vector<uint32_t> units;
      for (int core = 0; core < site.machine->cores; ++core)
        if (site.mask("cores") >> core & 1)
          units.push_back(site.unitOf(to, slice, core));
      Span one = destination;
      add(to, true, units, one.shift(rank * Wide(key(K::DstSlice))));
    });
  } else if (spread) {
    addSlices(to, true, destination, key(K::DstSlice));
  } else {
    add(to, true, {site.unitOf(to, 0)}, destination);
  }
}

// --- MATMUL and CONV ----------------------------------------------------------

/// Tiles of the K chunks that exist, `chunk` bytes apart, over all steps.
Span Rules::chunkSpan(const Interval &address, int64_t step, int64_t chunk, Wide bytes) const {
  Interval steps = site.value("steps"), k0 = site.value("k0");
  if (!steps.known || !k0.known)
    return Span(Interval::unknown(), 1);
  int64_t imc = in.get("imc");
  Wide chunks = std::max<Wide>(key(K::KChunks) - std::max<Wide>(k0.low, 0), 0);
  Span all;
  if (!key(K::StepAcc)) {
    all.join(Span(address, bytes).repeat(std::min<Wide>(imc, chunks), chunk).repeat(steps.high, step));
    return all;
  }
  Wide full = std::min(chunks / imc, steps.high);
  all.join(Span(address, bytes).repeat(imc, chunk).repeat(full, step));
  if (full < steps.high) // the step that the chunks end in
    all.join(Span(address, bytes).repeat(chunks % imc, chunk).shift(full * step));
  return all;
}

Span Rules::image(ElemKind kind) const {
  Interval row = site.value("irow");
  Wide pixels = Wide(key(K::WinH)) * key(K::WinW);
  Span span = rowsSpan(site.value("img"), row, row.high + pixels - 1, key(K::ImgBand), kind);
  return span.repeat(key(K::ImgBlocks), key(K::ImgChunk));
}

void Rules::activations() {
  ElemKind kind = key.kind(K::ActKind);
  if (in.opcode == Opcode::Conv)
    return addSlices(static_cast<Memory>(key(K::ImgMem)), false, image(kind), 0, /*all=*/false);
  std::optional<TileShape> tile = tileOf(kind);
  Interval row = site.value("row"), rows = site.value("rows"), address = site.value("ib");
  if (!tile || !row.known || !rows.known)
    return addSlices(Memory::IB, false, Span(Interval::unknown(), 1), 0);
  Wide count = row.high + rows.high - row.low, run = tile->runBytes();
  auto chunks = [&](Wide bytes) { return chunkSpan(address, key(K::IbStep), key(K::IbChunk), bytes); };
  Span span = chunks(count).shift(row.low); // exponents, then mantissas
  span.join(chunks(count * run).shift(kTileRuns + row.low * run));
  addSlices(Memory::IB, false, row.low == row.high ? span : span.hull(), 0);
}

void Rules::weights() {
  std::optional<TileShape> tile = tileOf(key.kind(K::WeightKind));
  if (!tile)
    return;
  int64_t bytes = tile->bytes(), imc = in.get("imc"), groups = in.get("groups"), core = in.get("core");
  Interval address = site.value("wb");
  auto cores = [&](Wide used) { // of each group
    std::vector<uint32_t> units;
    eachSlice([&](int slice, int) {
      for (int64_t i = 0; i < groups * imc; ++i)
        if (i % imc < used)
          units.push_back(site.unitOf(Memory::WB, slice, static_cast<int>(core + i)));
    });
    return units;
  };
  if (!in.get("stream")) {
    Interval k0 = site.value("k0");
    return add(Memory::WB, false, cores(k0.known ? key(K::KChunks) - k0.low : imc), Span(address, bytes));
  }
  addSlices(Memory::ST, false,
            chunkSpan(site.value("st"), key(K::StStep), key(K::StChunk), bytes).repeat(groups, key(K::StGroup)), 0);
  // The array controller loads one half while the other is in use.
  int64_t half = (bytes + 127) / 128 * 128;
  bool two = address.known && 2 * half <= static_cast<int64_t>(site.machine->memory(Memory::WB).size) - address.high;
  add(Memory::WB, true, cores(imc), Span(address, (two ? half : 0) + bytes));
}

void Rules::results() {
  Interval steps = site.value("steps"), rows = site.value("rows"), acc = site.value("acc");
  bool known = steps.known && rows.known;
  auto part = [&](int rank, Wide most) {
    Span span(known ? site.value("ob") : Interval::unknown(), 256);
    return span.repeat(most, key(K::ObRow))
        .repeat(in.get("groups"), key(K::ObGroup))
        .repeat(steps.high, key(K::ObStep));
  };
  eachSlice([&](int slice, int rank) {
    Wide most = rows.high;
    if (in.opcode == Opcode::Conv && known) { // rows behind the last pixel are skipped
      Interval pixel = site.value("pix");
      if (pixel.known)
        most = std::clamp<Wide>(key(K::Pixels) - pixel.low - rank * Wide(key(K::PixSlice)), 0, most);
    }
    std::vector<uint32_t> unit{site.unitOf(Memory::OB, slice)};
    // Steps that accumulate read what the first one wrote.
    if (!acc.known || acc.low != 0 || acc.high != 0)
      add(Memory::OB, false, unit, part(rank, most));
    add(Memory::OB, true, unit, part(rank, most));
  });
}

void Rules::product() {
  Interval steps = site.value("steps");
  if (steps.known && steps.high <= 0)
    return;
  activations();
  weights();
  results();
}

// --- EXEC_SIMD ----------------------------------------------------------------

bool isWindow(SimdFunction function) { return function >= SimdFunction::PoolMax; }
bool isReduction(SimdFunction function) {
  return function >= SimdFunction::ReduceSum && function <= SimdFunction::ArgMin;
}
bool isRotation(SimdFunction function) {
  return function == SimdFunction::Rope || function == SimdFunction::RopeInterleaved;
}

/// From the first row and column of an image that a tap falls on to the last ones.
Span Rules::imageSpan(const Span &pixel, const int64_t (&n)[4], const int64_t (&origin)[4]) const {
  Interval index = site.value("index");
  if (!index.known)
    return Span(Interval::unknown(), 1);
  auto along = [&](Span &span, Wide first, Wide last, int axis) { // axis 0: rows, 1: columns
    Wide stride = key(K::WinSH, axis), pad = key(K::WinPH, axis), size = key(K::WinH, axis);
    Wide reach = Wide(key(K::WinKH, axis) - 1) * key(K::WinDH, axis);
    Wide low = std::clamp<Wide>(first * stride - pad, 0, size),
         high = std::clamp<Wide>(last * stride - pad + reach, -1, size - 1);
    int64_t step = key(K::A1, axis);
    span.repeat(high - low + 1, step).shift(low * step);
  };
  Span span = pixel;
  along(span, index.low + origin[1], index.high + origin[1] + n[1] - 1, 0);
  along(span, origin[2], Wide(origin[2]) + n[2] - 1, 1);
  return span;
}

/// `n` of the whole or, in a slice's memory, of the slice's part, which begins at `origin`.
void Rules::operand(int number, const int64_t (&n)[4], const int64_t (&origin)[4], int slice) {
  constexpr K kKinds[] = {K::DKind, K::AKind, K::BKind, K::CKind}, kMemories[] = {K::DMem, K::AMem, K::BMem, K::CMem},
              kSteps[] = {K::D0, K::A0, K::B0, K::C0};
  constexpr const char *kNames[] = {"d", "a", "b", "c"};
  auto function = static_cast<SimdFunction>(in.get("fn"));
  int64_t count[4] = {n[0], n[1], n[2], n[3]};
  for (int64_t i = 4 - key(K::Inner); number == 0 && isReduction(function) && i < 4; ++i)
    count[i] = 1;
  if (number >= 2 && isRotation(function))
    count[3] /= 2;
  if (number >= 2 && isWindow(function)) {
    count[0] = 1;
    count[1] = number == 2 ? key(K::WinKH) : 1;
    count[2] = number == 2 ? key(K::WinKW) : 1;
  }
  auto memory = static_cast<Memory>(key(kMemories[number]));
  bool reads = number == 1 && isWindow(function);
  Span span(site.value(kNames[number]), elementBytes(key.kind(kKinds[number])));
  for (int i = 0; i < 4; ++i)
    if (!reads || i == 0 || i == 3)
      span.repeat(count[i], key(kSteps[number], i));
  if (reads)
    span = imageSpan(span, n, origin);
  // A softmax reads the valid columns.
  bool ends = (function == SimdFunction::Softmax || function == SimdFunction::LogSoftmax) && number == 1 &&
              (site.value("index").high || key(K::Causal));
  add(memory, number == 0, {site.unitOf(memory, slice)}, span, !reads && !ends);
}

void Rules::simd() {
  auto function = static_cast<SimdFunction>(in.get("fn"));
  std::optional<Wide> n0 = trips();
  int64_t whole[4];
  for (int i = 0; i < 4; ++i)
    whole[i] = i ? key(K::N0, i) : static_cast<int64_t>(std::min<Wide>(n0.value_or(1), int64_t(1) << 40));
  for (int64_t extent : whole)
    if (extent <= 0)
      return;
  constexpr K kKinds[] = {K::DKind, K::AKind, K::BKind, K::CKind}, kMemories[] = {K::DMem, K::AMem, K::BMem, K::CMem};
  Interval n = site.value("n");
  bool varies = n.low != n.high;
  int64_t split = key(K::Split), parts = std::max(sliceCount(), 1), origin[4] = {};
  for (int number : {1, 2, 3, 0}) {
    if (number > operandCount(function) || (number >= 2 && key.kind(kKinds[number]) == ElemKind::Raw))
      continue;
    auto memory = static_cast<Memory>(key(kMemories[number]));
    if (!n0 || !isPerSlice(memory)) { // all parts together
      size_t first = out.size();
      operand(number, whole, origin, 0);
      for (size_t i = first; !n0 && i < out.size(); ++i)
        out[i].range.reset();
      continue;
    }
    eachSlice([&](int slice, int rank) {
      int64_t part[4] = {whole[0], whole[1], whole[2], whole[3]}, begin[4] = {};
      if (split) {
        int64_t &extent = part[split - 1], share = (extent + parts - 1) / parts, at = std::min(rank * share, extent);
        begin[split - 1] = at;
        // With other trip counts other slices have the last, shorter part.
        extent = split == 1 && varies ? share : std::min(share, extent - at);
      }
      if (std::find(std::begin(part), std::end(part), 0) == std::end(part))
        operand(number, part, begin, slice);
    });
  }
}

// --- TRANSPOSE, EXTRACT, INSERT -----------------------------------------------

void Rules::transpose() {
  auto from = static_cast<Memory>(in.get("src"));
  Interval rows = site.value("rows"), cols = site.value("cols"), batch = site.value("batch");
  bool known = rows.known && cols.known && batch.known;
  auto span = [&](const char *address, Wide unit, Wide lines, const char *pitch, const char *step) {
    Span one(known ? site.value(address) : Interval::unknown(), known ? unit * in.get("esize") : 1);
    return known ? one.repeat(lines, in.get(pitch)).repeat(batch.high, in.get(step)) : one;
  };
  int slice = static_cast<int>(in.get("slice"));
  add(from, false, {site.unitOf(from, slice)}, span("saddr", cols.high, rows.high, "spitch", "sbatch"));
  add(Memory::GM, true, {site.quad}, span("daddr", rows.high, cols.high, "dpitch", "dbatch"));
}

void Rules::reshape() {
  auto rule = static_cast<Rule>(in.get("rule"));
  auto from = static_cast<Memory>(in.get("src")), to = static_cast<Memory>(in.get("dst"));
  int slice = static_cast<int>(in.get("slice"));
  std::optional<Wide> n0 = trips();
  int64_t element = linearBytes(key.kind(K::Kind)), indexRange = key(K::IndexRange);
  Wide item = element * Wide(rule == Rule::Window ? key(K::WinC) : key(K::Unit));
  Interval saddr = n0 ? site.value("saddr") : Interval::unknown(), daddr = n0 ? site.value("daddr") : saddr;
  Span source(saddr, item), destination(daddr, item);
  Wide trip = n0.value_or(1);
  if (rule == Rule::Window) { // any pixel of the image, the windows of n0 pixels
    source.repeat(key(K::WinH), key(K::S1)).repeat(key(K::WinW), key(K::S2));
    destination.repeat(trip, key(K::T0)).repeat(Wide(key(K::WinKH)) * key(K::WinKW), key(K::T1));
  } else {
    source.repeat(trip > 0 && rule == Rule::Gather ? indexRange : trip, key(K::S0));
    destination.repeat(trip > 0 && rule == Rule::Scatter ? indexRange : trip, key(K::T0));
    for (int i = 1; i < 4; ++i) {
      source.repeat(key(K::N0, i), key(K::S0, i));
      destination.repeat(key(K::N0, i), key(K::T0, i));
    }
  }
  if (rule == Rule::Gather || rule == Rule::Scatter) {
    Span indices(n0 ? site.value("iaddr") : saddr, linearBytes(key.kind(K::IndexKind)));
    add(Memory::GM, false, {site.quad}, indices.repeat(trip, key(K::IndexPitch)));
  }
  add(from, false, {site.unitOf(from, slice)}, source, rule != Rule::Gather && rule != Rule::Window);
  add(to, true, {site.unitOf(to, slice)}, destination, rule != Rule::Scatter);
}

} // namespace

void addAccesses(const Site &site, const Instruction *config, std::vector<Access> &out) {
  Rules rules(site, config, out);
  switch (site.in->opcode) {
  case Opcode::Move:
    return rules.move();
  case Opcode::Matmul:
  case Opcode::Conv:
    return rules.product();
  case Opcode::ExecSimd:
    return rules.simd();
  case Opcode::Transpose:
    return rules.transpose();
  case Opcode::Extract:
  case Opcode::Insert:
    return rules.reshape();
  default:
    return;
  }
}

} // namespace dmx::corsair::access
