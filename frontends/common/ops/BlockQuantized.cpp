//===- BlockQuantized.cpp - numbers of few bits with a scale a block ------===//
#include "BlockQuantized.h"
#include "Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

/// Each byte as 8 / `width` numbers of the last axis, the lowest bits first.
Val spreadBits(Emitter &e, const Val &bytes, int64_t width) {
  const int64_t each = 8 / width, last = bytes.rank() - 1;
  Tensor places(DType::U8, {each});
  for (int64_t i = 0; i < each; ++i)
    places.setInt(i, i * width);
  Val shifted = e.emit<ShrOp>({unsqueeze(e, bytes, last + 1), e.constant(std::move(places))});
  Val parts = e.emit<AndOp>({shifted, e.intScalar(DType::U8, (1 << width) - 1)});
  Dims joined = bytes.dims();
  joined.back() = joined.back() * each;
  return e.reshape(parts, joined);
}

/// Numbers whose bits may lie in two bytes.
Val acrossBytes(Emitter &e, const Val &bytes, int64_t bits, Dim count) {
  const int64_t last = bytes.rank() - 1;
  Val single = spreadBits(e, bytes, 1), codes;
  for (int64_t i = 0; i < bits; ++i) {
    Val bit = e.emit<ShlOp>({e.sliceAxis(single, last, i, count, bits), e.intScalar(DType::U8, i)});
    codes = codes ? either(e, codes, bit) : bit;
  }
  return codes;
}

} // namespace

Val unpackedBits(Emitter &e, const Val &bytes, int64_t bits, Dim count) {
  const int64_t last = bytes.rank() - 1;
  if (bits == 8)
    return e.sliceAxis(bytes, last, 0, count);
  if (8 % bits != 0)
    return acrossBytes(e, bytes, bits, count);
  return e.sliceAxis(spreadBits(e, bytes, bits), last, 0, count);
}

namespace {

/// The zero points as f32 [.., blocks]; null where there are none to subtract.
Val zerosOf(Emitter &e, const BlockQuantized &q) {
  if (!q.zeros)
    return q.bits ? e.scalar(DType::F32, 1 << (q.bits - 1)) : Val();
  bool packed = q.bits && q.zeros.dtype() == DType::U8;
  return e.cast(packed ? unpackedBits(e, q.zeros, q.bits, q.scales.extent(-1)) : q.zeros, DType::F32);
}

Val scaled(Emitter &e, const Val &codes, const Val &zeros, const Val &scales) {
  Val numbers = e.cast(codes, DType::F32);
  return e.mul(zeros ? e.sub(numbers, zeros) : numbers, scales);
}

/// With the blocks in the order that `groups` says.
Val byGroups(Emitter &e, const BlockQuantized &q, const Val &codes, Val zeros, const Val &scales) {
  const int64_t last = scales.rank() - 1;
  Val groups = e.sliceAxis(q.groups, 0, 0, q.count);
  if (zeros && zeros.rank())
    zeros = e.gather(zeros, groups, last);
  return scaled(e, codes, zeros, e.gather(scales, groups, last));
}

} // namespace

Val blockDequantize(Emitter &e, const BlockQuantized &q) {
  const int64_t last = q.codes.rank() - 1;
  Val scales = e.cast(q.scales, DType::F32), zeros = zerosOf(e, q);
  Dim blocks = scales.extent(-1), whole = q.groups ? q.count : blocks * q.block;
  // The last block may be cut short: where the bytes hold no more, zeros fill it up.
  Dim held = q.bits ? Dim::floorDiv(q.codes.extent(-1) * 8, q.bits) : q.codes.extent(-1);
  bool filled = held == whole || held.valueOr(0) >= whole.valueOr(INT64_MAX);
  Val codes = q.bits ? unpackedBits(e, q.codes, q.bits, filled ? whole : q.count) : q.codes;
  if (q.groups)
    return byGroups(e, q, codes, zeros, scales);
  if (!filled) {
    Dims low(codes.rank(), 0), high = low;
    high.back() = whole - codes.extent(-1);
    codes = e.pad(codes, e.scalarLike(codes, 0), low, high);
  }
  Dims split = codes.dims(), joined = split;
  split.back() = blocks;
  split.push_back(q.block);
  if (zeros && zeros.rank())
    zeros = unsqueeze(e, zeros, zeros.rank());
  Val real = scaled(e, e.reshape(codes, split), zeros, unsqueeze(e, scales, scales.rank()));
  return e.sliceAxis(e.reshape(real, joined), last, 0, q.count);
}

} // namespace dmxc::frontend
