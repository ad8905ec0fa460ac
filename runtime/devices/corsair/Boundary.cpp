//===- Boundary.cpp - tensors between host and card -----------------------===//

#include "Boundary.h"
#include "Region.h"

#include "schemas/corsair/SimdFunctions.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace dmxrt::corsair {
namespace {

using isa::HostType;

template <typename T> T load(const std::byte *at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <typename T> void put(std::byte *at, T value) { std::memcpy(at, &value, sizeof value); }

bool isIntegerKind(ElemKind kind) { return kind >= ElemKind::Bool && kind <= ElemKind::I64; }

double hostFloat(const std::byte *at, HostType type) {
  switch (type) {
  case HostType::F16:
    return isa::f16Widen(load<uint16_t>(at));
  case HostType::BF16:
    return isa::bf16Widen(load<uint16_t>(at));
  case HostType::F32:
    return load<float>(at);
  default:
    return load<double>(at);
  }
}

void putHostFloat(std::byte *at, HostType type, float value) {
  switch (type) {
  case HostType::F16:
    return put(at, isa::f16Round(value));
  case HostType::BF16: { // ties to even; NaN stays NaN
    auto bits = std::bit_cast<uint32_t>(value);
    return put(at,
               static_cast<uint16_t>(std::isnan(value) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16));
  }
  case HostType::F32:
    return put(at, value);
  default:
    return put(at, static_cast<double>(value));
  }
}

int64_t integerAt(const std::byte *at, int bytes, bool isUnsigned) {
  switch (bytes) {
  case 1:
    return isUnsigned ? int64_t(load<uint8_t>(at)) : load<int8_t>(at);
  case 2:
    return load<int16_t>(at);
  case 4:
    return load<int32_t>(at);
  default:
    return load<int64_t>(at);
  }
}

/// Stores an integer in fewer bytes; what does not fit becomes the nearest that does, so that an index
/// out of range stays out of range.
void putInteger(std::byte *at, int bytes, bool isUnsigned, int64_t value) {
  int bits = 8 * bytes;
  if (bits < 64) {
    int64_t high = (int64_t(1) << (isUnsigned ? bits : bits - 1)) - 1, low = isUnsigned ? 0 : -high - 1;
    value = std::clamp(value, low, high);
  }
  std::memcpy(at, &value, static_cast<size_t>(bytes));
}

bool isUnsignedHost(HostType type) { return type == HostType::Bool || type == HostType::U8; }
bool isUnsignedKind(ElemKind kind) { return kind == ElemKind::Bool || kind == ElemKind::U8; }

void toDevice(std::byte *out, ElemKind kind, const std::byte *in, HostType type) {
  if (isIntegerKind(kind))
    return putInteger(out, isa::elementBytes(kind), isUnsignedKind(kind),
                      integerAt(in, isa::bytesOf(type), isUnsignedHost(type)));
  if (kind == ElemKind::F16)
    return put(out, type == HostType::F16 ? load<uint16_t>(in) : isa::f16Round(hostFloat(in, type)));
  auto value = static_cast<float>(hostFloat(in, type));
  put(out, kind == ElemKind::Bfp32 ? isa::roundToBfp32(value) : value);
}

void toHost(std::byte *out, HostType type, const std::byte *in, ElemKind kind) {
  if (isIntegerKind(kind))
    return putInteger(out, isa::bytesOf(type), isUnsignedHost(type),
                      integerAt(in, isa::elementBytes(kind), isUnsignedKind(kind)));
  putHostFloat(out, type, kind == ElemKind::F16 ? isa::f16Widen(load<uint16_t>(in)) : load<float>(in));
}

/// The host's steps in the device's order of dimensions, and the piece's first element.
struct HostView {
  std::vector<int64_t> step;
  int64_t offset = 0;

  HostView(const isa::Argument &argument, const isa::Piece &piece) {
    size_t rank = argument.shape.size();
    std::vector<int64_t> dense(rank);
    int64_t bytes = isa::bytesOf(argument.type);
    for (size_t i = rank; i-- > 0; bytes *= argument.shape[i])
      dense[i] = bytes;
    for (size_t i = 0; i < rank; ++i) {
      step.push_back(dense[argument.perm.empty() ? i : argument.perm[i]]);
      offset += piece.begin[i] * step[i];
    }
  }
};

/// Visits every index of a box, the last dimension fastest.
template <typename Visit> void eachIndex(const std::vector<int64_t> &extent, size_t rank, Visit visit) {
  std::vector<int64_t> index(rank);
  for (size_t i = 0; i < rank; ++i)
    if (extent[i] == 0)
      return;
  for (;;) {
    visit(index);
    size_t dim = rank;
    while (dim-- > 0) {
      if (++index[dim] < extent[dim])
        break;
      index[dim] = 0;
    }
    if (dim == ~size_t(0))
      return;
  }
}

int64_t dot(const std::vector<int64_t> &index, const std::vector<int64_t> &step) {
  int64_t sum = 0;
  for (size_t i = 0; i < index.size(); ++i)
    sum += index[i] * step[i];
  return sum;
}

/// The runs of a piece in a block form: how many, how long, and where run r begins on the host.
struct Runs {
  int64_t count = 0, length = 0, elementStep = 0;
  std::vector<int64_t> offsets;

  Runs(const isa::Argument &argument, const isa::Piece &piece) {
    HostView host(argument, piece);
    size_t rank = piece.extent.size();
    bool columns = static_cast<int>(argument.form) & 1;
    size_t along = columns ? rank - 2 : rank - 1;
    length = piece.extent[along];
    elementStep = host.step[along];
    if (!length)
      return; // however many runs of nothing there are
    std::vector<int64_t> outer = piece.extent;
    outer[along] = 1;
    eachIndex(outer, rank,
              [&](const std::vector<int64_t> &index) { offsets.push_back(host.offset + dot(index, host.step)); });
    count = static_cast<int64_t>(offsets.size());
  }
};

} // namespace

void Boundary::mark(const isa::Piece &piece, uint64_t address, uint64_t size, ElemKind kind) {
  Problem none;
  if (hazards)
    storage.shadow(piece.memory, piece.unit).write(address, size, byteKind(kind), Actor(), none);
}

bool Boundary::check(const isa::Piece &piece, uint64_t address, uint64_t size, ElemKind kind, Problem &problem) {
  return !hazards || storage.shadow(piece.memory, piece.unit).read(address, size, byteKind(kind), Actor(), problem);
}

/// Visits the contiguous runs of a plain piece on the card: visit(address, bytes).
template <typename Visit>
bool Boundary::plainRuns(const isa::Argument &argument, const isa::Piece &piece, Visit visit) {
  if (std::ranges::find(piece.extent, 0) != piece.extent.end())
    return true;
  size_t rank = piece.extent.size(), inner = rank;
  auto run = static_cast<int64_t>(isa::elementBytes(argument.form));
  while (inner > 0 && (piece.extent[inner - 1] == 1 || piece.strides[inner - 1] == run))
    run *= piece.extent[--inner];
  bool good = true;
  eachIndex(piece.extent, inner, [&](const std::vector<int64_t> &index) {
    good = good && visit(piece.address + static_cast<uint64_t>(dot(index, piece.strides)), static_cast<uint64_t>(run));
  });
  return good;
}

/// Visits the tiles of a piece: visit(address, first run, first element).
template <typename Visit> bool Boundary::tiles(const isa::Argument &argument, const isa::Piece &piece, Visit visit) {
  Runs runs(argument, piece);
  int64_t depth = isa::tileOf(argument.form)->depth;
  for (int64_t run = 0; run < runs.count; run += isa::kTileRuns)
    for (int64_t k = 0; k < runs.length; k += depth) {
      int64_t offset = run / isa::kTileRuns * piece.strides[0] + k / depth * piece.strides[1];
      if (!visit(runs, piece.address + static_cast<uint64_t>(offset), run, k))
        return false;
    }
  return true;
}

void Boundary::writePlain(const isa::Argument &argument, const isa::Piece &piece, const std::byte *host) {
  HostView view(argument, piece);
  std::byte *out = storage.data(piece.memory, piece.unit) + piece.address;
  eachIndex(piece.extent, piece.extent.size(), [&](const std::vector<int64_t> &index) {
    toDevice(out + dot(index, piece.strides), argument.form, host + view.offset + dot(index, view.step), argument.type);
  });
  plainRuns(argument, piece,
            [&](uint64_t address, uint64_t size) { return mark(piece, address, size, argument.form), true; });
}

void Boundary::readPlain(const isa::Argument &argument, const isa::Piece &piece, std::byte *host) {
  HostView view(argument, piece);
  const std::byte *in = storage.data(piece.memory, piece.unit) + piece.address;
  eachIndex(piece.extent, piece.extent.size(), [&](const std::vector<int64_t> &index) {
    toHost(host + view.offset + dot(index, view.step), argument.type, in + dot(index, piece.strides), argument.form);
  });
}

void Boundary::writeTiles(const isa::Argument &argument, const isa::Piece &piece, const std::byte *host) {
  isa::TileShape shape = *isa::tileOf(argument.form);
  int bits = shape.format.precision;
  std::vector<float> values(static_cast<size_t>(shape.depth));
  std::vector<int16_t> mantissas(values.size());
  tiles(argument, piece, [&](const Runs &runs, uint64_t address, int64_t firstRun, int64_t k) {
    std::byte *tile = storage.data(piece.memory, piece.unit) + address;
    std::memset(tile, 0, static_cast<size_t>(shape.bytes()));
    for (int64_t r = 0; r < std::min<int64_t>(isa::kTileRuns, runs.count - firstRun); ++r) {
      const std::byte *from = host + runs.offsets[static_cast<size_t>(firstRun + r)] + k * runs.elementStep;
      int64_t valid = std::min<int64_t>(shape.depth, runs.length - k);
      for (int64_t i = 0; i < valid; ++i)
        values[static_cast<size_t>(i)] = static_cast<float>(hostFloat(from + i * runs.elementStep, argument.type));
      std::fill(values.begin() + valid, values.end(), 0.0f);
      tile[r] = static_cast<std::byte>(isa::quantizeBlock(values, {bits}, mantissas));
      isa::packMantissas(mantissas.data(), shape.depth, bits, tile + 64 + r * shape.runBytes());
    }
    mark(piece, address, static_cast<uint64_t>(shape.bytes()), argument.form);
    return true;
  });
}

void Boundary::readTiles(const isa::Argument &argument, const isa::Piece &piece, std::byte *host) {
  isa::TileShape shape = *isa::tileOf(argument.form);
  int bits = shape.format.precision;
  std::vector<float> values(static_cast<size_t>(shape.depth));
  std::vector<int16_t> mantissas(values.size());
  tiles(argument, piece, [&](const Runs &runs, uint64_t address, int64_t firstRun, int64_t k) {
    const std::byte *tile = storage.data(piece.memory, piece.unit) + address;
    for (int64_t r = 0; r < std::min<int64_t>(isa::kTileRuns, runs.count - firstRun); ++r) {
      isa::unpackMantissas(tile + 64 + r * shape.runBytes(), shape.depth, bits, mantissas.data());
      isa::dequantizeBlock(static_cast<uint8_t>(tile[r]), mantissas, bits, values);
      std::byte *to = host + runs.offsets[static_cast<size_t>(firstRun + r)] + k * runs.elementStep;
      for (int64_t i = 0; i < std::min<int64_t>(shape.depth, runs.length - k); ++i)
        putHostFloat(to + i * runs.elementStep, argument.type, values[static_cast<size_t>(i)]);
    }
    return true;
  });
}

void Boundary::write(const isa::Argument &argument, const std::byte *host) {
  for (const isa::Piece &piece : argument.pieces) {
    if (argument.role == isa::Role::Const) {
      auto size = static_cast<uint64_t>(piece.extent[0]);
      if (size)
        std::memcpy(storage.data(piece.memory, piece.unit) + piece.address, host + piece.begin[0], size);
      mark(piece, piece.address, size, argument.form);
    } else if (isa::isTiled(argument.form)) {
      writeTiles(argument, piece, host);
    } else {
      writePlain(argument, piece, host);
    }
  }
}

uint64_t Boundary::saturated(const isa::Argument &argument, const std::byte *host) {
  if (argument.form != ElemKind::F16 || argument.type == HostType::F16)
    return 0;
  const auto step = static_cast<uint64_t>(isa::bytesOf(argument.type));
  uint64_t found = 0;
  for (uint64_t at = 0; at < argument.hostBytes(); at += step)
    if (double value = hostFloat(host + at, argument.type); value > 0)
      found += isa::saturatesF16(value);
  return found;
}

void Boundary::clear(const isa::Argument &argument) {
  for (const isa::Piece &piece : argument.pieces) {
    auto zero = [&](uint64_t address, uint64_t size) {
      std::memset(storage.data(piece.memory, piece.unit) + address, 0, size);
      mark(piece, address, size, argument.form);
      return true;
    };
    if (std::optional<isa::TileShape> shape = isa::tileOf(argument.form))
      tiles(argument, piece, [&](const Runs &, uint64_t address, int64_t, int64_t) {
        return zero(address, static_cast<uint64_t>(shape->bytes()));
      });
    else
      plainRuns(argument, piece, zero);
  }
}

std::optional<Fault> Boundary::read(const isa::Argument &argument, std::byte *host) {
  for (const isa::Piece &piece : argument.pieces) {
    Problem problem;
    auto good = [&](uint64_t address, uint64_t size) { return check(piece, address, size, argument.form, problem); };
    std::optional<isa::TileShape> shape = isa::tileOf(argument.form);
    auto tileGood = [&](const Runs &runs, uint64_t address, int64_t run, int64_t) {
      auto rows = static_cast<uint64_t>(std::min<int64_t>(isa::kTileRuns, runs.count - run));
      return good(address, rows) && good(address + 64, rows * static_cast<uint64_t>(shape->runBytes()));
    };
    if (!(shape ? tiles(argument, piece, tileGood) : plainRuns(argument, piece, good))) {
      bool poison = problem.why == Problem::Undefined;
      FaultKind kind = poison ? FaultKind::UnwrittenOutput : faultOf(problem);
      std::string found = poison ? "was never written"
                                 : cat("is ", isa::nameOf(kindFound(problem)), ", not ", isa::nameOf(argument.form));
      return Fault{kind, 0, 0,
                   cat(nameOf(kind), ": output '", argument.name, "': byte ", problem.address, " of ",
                       isa::nameOf(piece.memory), " ", piece.unit, " ", found)};
    }
    shape ? readTiles(argument, piece, host) : readPlain(argument, piece, host);
  }
  return std::nullopt;
}

int64_t Boundary::scalar(const isa::Argument &argument, const std::byte *host) {
  return integerAt(host, isa::bytesOf(argument.type), isUnsignedHost(argument.type));
}

} // namespace dmxrt::corsair
