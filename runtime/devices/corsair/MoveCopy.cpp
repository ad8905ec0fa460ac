//===- MoveCopy.cpp - one source range to one destination range -----------===//

#include "MoveCopy.h"

#include "schemas/corsair/SimdFunctions.h"

#include <cstring>

namespace dmxrt::corsair {
namespace {

/// Bytes of one contiguous element of the linear form: tiles count in bytes there.
int64_t linearBytes(ElemKind kind) { return std::max(isa::elementBytes(kind), 1); }

/// Mantissa bytes of a row of a tile.
int64_t runBytes(ElemKind kind) { return isa::tileOf(kind)->runBytes(); }
int64_t depthOf(ElemKind kind) { return isa::tileOf(kind)->depth; }

constexpr int64_t kZero[4] = {};

} // namespace

float loadFloat(const std::byte *at, ElemKind kind) {
  if (kind == ElemKind::F16) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return isa::f16Widen(bits);
  }
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool storeFloat(std::byte *at, ElemKind kind, float value) {
  if (kind == ElemKind::F16) {
    uint16_t bits = isa::f16Round(value);
    std::memcpy(at, &bits, sizeof bits);
    return isa::saturatesF16(value);
  }
  if (kind == ElemKind::Bfp32)
    value = isa::roundToBfp32(value);
  std::memcpy(at, &value, sizeof value);
  return false;
}

MoveCopy::MoveCopy(Quad &quad, Queue &queue, const MoveConfig &config, int64_t n0)
    : quad(quad), queue(queue), config(config) {
  std::copy(std::begin(config.n), std::end(config.n), n);
  n[0] = n0;
}

bool MoveCopy::check(Memory source, Memory destination) {
  auto bad = [&](const auto &...parts) {
    return quad.raise(queue, FaultKind::BadOperand, cat("descriptor: ", parts...));
  };
  bool rows = config.srcRows || config.dstRows, converts = config.kind != config.to && !config.retype;
  if (!spansFit())
    return quad.raise(queue, FaultKind::Capacity, "the descriptor spans more than any memory");
  if (config.kind != config.to && !config.retype && isa::sameBytes(config.kind, config.to))
    return bad("R and C of one format differ in nothing but the name: set retype");
  if (config.retype && !isa::sameBytes(config.kind, config.to))
    return bad("retype from ", isa::nameOf(config.kind), " to ", isa::nameOf(config.to), " would change bytes");
  if (converts && !isa::mayConvert(source, destination))
    return quad.raise(queue, FaultKind::IllegalMove,
                      cat("no conversion between ", isa::nameOf(source), " and ", isa::nameOf(destination)));
  if (config.kind == ElemKind::Raw && (rows || converts || bounded() || config.tail))
    return bad("kind raw can only be copied linearly, without padding");
  if ((config.srcRows && !isa::isTiled(config.kind)) || (config.dstRows && !isa::isTiled(config.to)))
    return bad("a side of rows has a kind without tiles");
  if (rows && ((!config.srcRows && !isFloat(config.kind)) || (!config.dstRows && !isFloat(config.to))))
    return bad("the linear side of a pack or unpack is neither f16 nor f32 nor bfp32");
  if (!rows && converts && !(isFloat(config.kind) && isFloat(config.to)))
    return bad("no conversion from ", isa::nameOf(config.kind), " to ", isa::nameOf(config.to));
  if (config.srcRows && config.dstRows && depthOf(config.kind) != depthOf(config.to))
    return bad("tiles of different depth");
  return true;
}

/// Whether all sums of steps stay far from overflow.
bool MoveCopy::spansFit() const {
  constexpr __int128 kLimit = __int128(1) << 60;
  __int128 items = config.unit;
  for (int i = 0; i < 4; ++i) {
    items *= std::max<int64_t>(n[i], 1);
    __int128 trips = std::max<int64_t>(n[i] - 1, 0);
    if (items > kLimit || trips * std::abs(config.s[i]) > kLimit || trips * std::abs(config.t[i]) > kLimit)
      return false;
  }
  return items * 8 < kLimit && __int128(std::abs(config.estride)) * 128 < kLimit;
}

bool MoveCopy::bounded() const {
  for (int i = 0; i < 4; ++i)
    if (config.lo[i] > 0 || config.hi[i] < n[i])
      return true;
  return false;
}

bool MoveCopy::isValid(const int64_t (&index)[4]) const {
  for (int i = 0; i < 4; ++i)
    if (index[i] < config.lo[i] || index[i] >= config.hi[i])
      return false;
  return true;
}

/// Elements of an item that exist; the others are zeros.
int64_t MoveCopy::validElements(const int64_t (&index)[4]) const {
  int64_t all = config.srcRows || config.dstRows ? depthOf(config.srcRows ? config.kind : config.to) : config.unit;
  if (!isValid(index))
    return 0;
  return config.tail && index[3] == n[3] - 1 ? std::min(config.tail, all) : all;
}

template <typename Visit> bool MoveCopy::eachItem(Visit visit) const {
  int64_t i[4];
  for (i[0] = 0; i[0] < n[0]; ++i[0])
    for (i[1] = 0; i[1] < n[1]; ++i[1])
      for (i[2] = 0; i[2] < n[2]; ++i[2])
        for (i[3] = 0; i[3] < n[3]; ++i[3])
          if (!visit(i))
            return false;
  return true;
}

/// The bytes of a box of items on the linear side.
Region MoveCopy::linear(bool destination, const int64_t (&begin)[4], const int64_t (&end)[4], int64_t elements,
                        int64_t address) const {
  Region region;
  int64_t bytes = linearBytes(destination ? config.to : config.kind);
  bool rows = config.srcRows || config.dstRows;
  region.base = address;
  for (int i = 0; i < 4; ++i) {
    region.step[i] = destination ? config.t[i] : config.s[i];
    region.n[i] = end[i] - begin[i];
    region.base += begin[i] * region.step[i];
  }
  region.unit = bytes * elements;
  if (rows && config.estride && config.estride != bytes) {
    region.unit = bytes;
    region.n[4] = elements;
    region.step[4] = config.estride;
  }
  return region;
}

MoveCopy::Traffic MoveCopy::traffic(bool destination) const {
  Traffic out;
  ElemKind kind = destination ? config.to : config.kind;
  if (destination ? config.dstRows : config.srcRows) {
    out.bytes = static_cast<uint64_t>(n[0] * n[1] * n[2] * n[3] * (runBytes(kind) + 1));
    out.port = out.bytes;
    return out;
  }
  bool rows = config.srcRows || config.dstRows;
  int64_t elements = rows ? depthOf(destination ? config.kind : config.to) : config.unit;
  Region region = linear(destination, kZero, n, elements, 0);
  out.bytes = static_cast<uint64_t>(region.unit * region.n[4]);
  for (int i = 0; i < 4; ++i)
    out.bytes *= static_cast<uint64_t>(n[i]);
  out.port = portBytes(region);
  return out;
}

/// Checks all source bytes that the items read on a linear side.
bool MoveCopy::readLinear(const MoveEnd &source, std::byte *&data) {
  int64_t begin[4], end[4];
  for (int i = 0; i < 4; ++i) {
    begin[i] = std::max<int64_t>(config.lo[i], 0);
    end[i] = std::min(config.hi[i], n[i]);
  }
  int64_t full[4] = {0, 0, 0, n[3] - 1}, last[4] = {0, 0, 0, n[3] - 1};
  bool cut = config.tail && end[3] == n[3];
  auto check = [&](const Region &region) {
    return forEachRun(region, [&](int64_t address, int64_t size) {
      return quad.readable(queue, source.memory, source.unit, address, size, config.kind) != nullptr;
    });
  };
  bool rows = config.dstRows;
  int64_t all = rows ? depthOf(config.to) : config.unit;
  if (cut) {
    int64_t lastBegin[4] = {begin[0], begin[1], begin[2], std::max(begin[3], last[3])};
    if (!check(linear(false, lastBegin, end, std::min(config.tail, all), source.address)))
      return false;
    end[3] = full[3];
  }
  data = quad.card.storage.data(source.memory, source.unit);
  return check(linear(false, begin, end, all, source.address));
}

bool MoveCopy::writeLinear(const MoveEnd &destination, std::byte *&data) {
  int64_t all = config.srcRows ? depthOf(config.kind) : config.unit;
  data = quad.card.storage.data(destination.memory, destination.unit);
  return forEachRun(linear(true, kZero, n, all, destination.address), [&](int64_t address, int64_t size) {
    return quad.writable(queue, destination.memory, destination.unit, address, size, config.to) != nullptr;
  });
}

bool MoveCopy::copyRaw(const MoveEnd &source, const MoveEnd &destination) {
  // Joins what is contiguous on both sides: fewer, longer items.
  int64_t unit = config.unit, count[4] = {n[0], n[1], n[2], n[3]};
  for (int i = 3; i >= 0 && (count[i] == 1 || (config.s[i] == unit && config.t[i] == unit)); --i) {
    unit *= count[i];
    count[i] = 1;
  }
  int64_t i[4];
  for (i[0] = 0; i[0] < count[0]; ++i[0])
    for (i[1] = 0; i[1] < count[1]; ++i[1])
      for (i[2] = 0; i[2] < count[2]; ++i[2])
        for (i[3] = 0; i[3] < count[3]; ++i[3]) {
          int64_t from = source.address, to = destination.address;
          for (int k = 0; k < 4; ++k) {
            from += i[k] * config.s[k];
            to += i[k] * config.t[k];
          }
          std::byte *in = quad.readable(queue, source.memory, source.unit, from, unit, ElemKind::Raw);
          std::byte *out = in ? quad.reachable(queue, destination.memory, destination.unit, to, unit) : nullptr;
          if (!out ||
              !quad.copyKinds(queue, source.memory, source.unit, from, destination.memory, destination.unit, to, unit))
            return false;
          std::memmove(out, in, static_cast<size_t>(unit));
        }
  return true;
}

bool MoveCopy::copyLinear(const MoveEnd &source, const MoveEnd &destination) {
  std::byte *in = nullptr, *out = nullptr;
  if (!readLinear(source, in) || !writeLinear(destination, out))
    return false;
  int64_t from = linearBytes(config.kind), to = linearBytes(config.to);
  bool same = config.kind == config.to || config.retype;
  return eachItem([&](const int64_t (&i)[4]) {
    const std::byte *s = in + source.address;
    std::byte *d = out + destination.address;
    for (int k = 0; k < 4; ++k) {
      s += i[k] * config.s[k];
      d += i[k] * config.t[k];
    }
    int64_t valid = validElements(i);
    if (same)
      std::memmove(d, s, static_cast<size_t>(valid * to));
    else
      for (int64_t k = 0; k < valid; ++k)
        queue.pending.saturated += storeFloat(d + k * to, config.to, loadFloat(s + k * from, config.kind));
    std::memset(d + valid * to, 0, static_cast<size_t>((config.unit - valid) * to));
    return true;
  });
}

int64_t MoveCopy::rowOf(const MoveEnd &end, const int64_t (&index)[4], bool destination) const {
  const int64_t (&step)[4] = destination ? config.t : config.s;
  return end.row + index[0] * step[0] + index[1] * step[1] + index[2] * step[2];
}

/// Checks all rows of tiles that the items touch; neighbours in a band at once.
bool MoveCopy::checkRows(const MoveEnd &end, bool destination, bool writing, std::byte *&data) {
  ElemKind kind = destination ? config.to : config.kind;
  int64_t band = destination ? config.dband : config.sband, step = destination ? config.t[3] : config.s[3],
          bytes = runBytes(kind);
  if (!quad.checkAligned(queue, end.address, 64, "tile") || !quad.checkAligned(queue, step, 64, "tile step") ||
      !quad.checkAligned(queue, band, 64, "tile band"))
    return false;
  data = quad.card.storage.data(end.memory, end.unit);
  auto touch = [&](int64_t address, int64_t size) {
    return (writing ? quad.writable(queue, end.memory, end.unit, address, size, kind)
                    : quad.readable(queue, end.memory, end.unit, address, size, kind)) != nullptr;
  };
  int64_t chunkBegin = writing ? 0 : std::max<int64_t>(config.lo[3], 0),
          chunkEnd = writing ? n[3] : std::min(config.hi[3], n[3]);
  int64_t spanBegin = 0, spanEnd = 0;
  auto flush = [&] {
    for (int64_t chunk = chunkBegin; chunk < chunkEnd && spanBegin < spanEnd; ++chunk) {
      int64_t tile = end.address + spanBegin / 64 * band + chunk * step, row = spanBegin % 64,
              rows = spanEnd - spanBegin;
      if (!touch(tile + row, rows) || !touch(tile + 64 + row * bytes, rows * bytes))
        return false;
    }
    return true;
  };
  for (int64_t i0 = 0; i0 < n[0]; ++i0)
    for (int64_t i1 = 0; i1 < n[1]; ++i1)
      for (int64_t i2 = 0; i2 < n[2]; ++i2) {
        const int64_t index[4] = {i0, i1, i2, chunkBegin};
        if (!writing && !isValid(index))
          continue;
        int64_t row = rowOf(end, index, destination);
        if (row < 0)
          return quad.raise(queue, FaultKind::BadOperand, cat("row ", row, " of a tensor of tiles"));
        if (__int128(row) * std::abs(band) > __int128(1) << 60)
          return quad.raise(queue, FaultKind::Capacity, cat("row ", row, " lies beyond any memory"));
        if (row == spanEnd && spanBegin < spanEnd && row % 64) {
          ++spanEnd;
          continue;
        }
        if (!flush())
          return false;
        spanBegin = row;
        spanEnd = row + 1;
      }
  return flush();
}

bool MoveCopy::copyRows(const MoveEnd &source, const MoveEnd &destination) {
  std::byte *in = nullptr, *out = nullptr;
  if (!checkRows(source, false, false, in) || !checkRows(destination, true, true, out))
    return false;
  bool same = isa::sameBytes(config.kind, config.to);
  int64_t from = runBytes(config.kind), to = runBytes(config.to), depth = depthOf(config.kind);
  int fromBits = isa::tileOf(config.kind)->format.precision, toBits = isa::tileOf(config.to)->format.precision;
  return eachItem([&](const int64_t (&i)[4]) {
    int64_t r = rowOf(source, i, false), w = rowOf(destination, i, true);
    std::byte *d = out + destination.address + w / 64 * config.dband + i[3] * config.t[3];
    std::byte *exponent = d + w % 64, *mantissas = d + 64 + w % 64 * to;
    if (!isValid(i)) {
      *exponent = std::byte{0};
      std::memset(mantissas, 0, static_cast<size_t>(to));
      return true;
    }
    const std::byte *s = in + source.address + r / 64 * config.sband + i[3] * config.s[3];
    if (same) {
      *exponent = s[r % 64];
      std::memmove(mantissas, s + 64 + r % 64 * from, static_cast<size_t>(to));
      return true;
    }
    int16_t unpacked[128];
    float values[128];
    std::span<int16_t> some(unpacked, static_cast<size_t>(depth));
    isa::unpackMantissas(s + 64 + r % 64 * from, static_cast<int>(depth), fromBits, unpacked);
    isa::dequantizeBlock(static_cast<uint8_t>(s[r % 64]), some, fromBits, {values, some.size()});
    *exponent = static_cast<std::byte>(isa::quantizeBlock({values, some.size()}, {toBits}, some));
    isa::packMantissas(unpacked, static_cast<int>(depth), toBits, mantissas);
    return true;
  });
}

bool MoveCopy::packRows(const MoveEnd &source, const MoveEnd &destination) {
  std::byte *in = nullptr, *out = nullptr;
  if (!readLinear(source, in) || !checkRows(destination, true, true, out))
    return false;
  int64_t depth = depthOf(config.to), bytes = runBytes(config.to);
  int64_t pitch = config.estride ? config.estride : linearBytes(config.kind);
  int bits = isa::tileOf(config.to)->format.precision;
  return eachItem([&](const int64_t (&i)[4]) {
    float values[128];
    int16_t mantissas[128];
    int64_t row = rowOf(destination, i, true), valid = validElements(i);
    const std::byte *s =
        in + source.address + i[0] * config.s[0] + i[1] * config.s[1] + i[2] * config.s[2] + i[3] * config.s[3];
    for (int64_t k = 0; k < valid; ++k)
      values[k] = loadFloat(s + k * pitch, config.kind);
    std::fill(values + valid, values + depth, 0.0f);
    auto size = static_cast<size_t>(depth);
    std::byte *d = out + destination.address + row / 64 * config.dband + i[3] * config.t[3];
    d[row % 64] = static_cast<std::byte>(isa::quantizeBlock({values, size}, {bits}, {mantissas, size}));
    isa::packMantissas(mantissas, static_cast<int>(depth), bits, d + 64 + row % 64 * bytes);
    return true;
  });
}

bool MoveCopy::unpackRows(const MoveEnd &source, const MoveEnd &destination) {
  std::byte *in = nullptr, *out = nullptr;
  if (!checkRows(source, false, false, in) || !writeLinear(destination, out))
    return false;
  int64_t depth = depthOf(config.kind), bytes = runBytes(config.kind);
  int64_t pitch = config.estride ? config.estride : linearBytes(config.to);
  int bits = isa::tileOf(config.kind)->format.precision;
  return eachItem([&](const int64_t (&i)[4]) {
    float values[128] = {};
    int16_t mantissas[128];
    auto size = static_cast<size_t>(depth);
    int64_t row = rowOf(source, i, false), valid = validElements(i);
    if (valid) {
      const std::byte *s = in + source.address + row / 64 * config.sband + i[3] * config.s[3];
      isa::unpackMantissas(s + 64 + row % 64 * bytes, static_cast<int>(depth), bits, mantissas);
      isa::dequantizeBlock(static_cast<uint8_t>(s[row % 64]), {mantissas, size}, bits, {values, size});
    }
    std::byte *d =
        out + destination.address + i[0] * config.t[0] + i[1] * config.t[1] + i[2] * config.t[2] + i[3] * config.t[3];
    for (int64_t k = 0; k < depth; ++k)
      queue.pending.saturated += storeFloat(d + k * pitch, config.to, k < valid ? values[k] : 0.0f);
    return true;
  });
}

bool MoveCopy::run(const MoveEnd &source, const MoveEnd &destination) {
  auto aligned = [&](const MoveEnd &end, ElemKind kind, std::string_view what) {
    return quad.checkAligned(queue, end.address, linearBytes(kind), what);
  };
  if ((!config.srcRows && !aligned(source, config.kind, "source")) ||
      (!config.dstRows && !aligned(destination, config.to, "destination")))
    return false;
  if (config.srcRows)
    return config.dstRows ? copyRows(source, destination) : unpackRows(source, destination);
  if (config.dstRows)
    return packRows(source, destination);
  return config.kind == ElemKind::Raw ? copyRaw(source, destination) : copyLinear(source, destination);
}

} // namespace dmxrt::corsair
