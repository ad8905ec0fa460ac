//===- AccessSpan.cpp - bytes that what is repeated covers ----------------===//

#include "AccessRules.h"

namespace dmx::corsair::access {
namespace {

int64_t floorDiv(Wide a, int64_t b) { return static_cast<int64_t>(a / b - (a % b < 0)); }

/// Rows from..to of the tile at an address: their exponents and their mantissas.
Span rowsOfTile(const Interval &address, Wide from, Wide to, const TileShape &tile) {
  Span rows = Span(address, to - from + 1).shift(from);
  rows.join(Span(address, (to - from + 1) * tile.runBytes()).shift(kTileRuns + from * tile.runBytes()));
  return rows;
}

} // namespace

Span rowsSpan(const Interval &address, const Interval &first, Wide last, int64_t band, ElemKind kind) {
  std::optional<TileShape> tile = tileOf(kind);
  if (!tile || !first.known || first.low > (Wide(1) << 40) || first.low < -(Wide(1) << 40) || last > (Wide(1) << 41))
    return Span(Interval::unknown(), 1);
  int64_t low = floorDiv(first.low, kTileRuns), high = floorDiv(last, kTileRuns);
  Wide from = first.low - low * kTileRuns, to = last - high * kTileRuns;
  if (low == high)
    return rowsOfTile(address, from, to, *tile).shift(low * Wide(band));
  Span span = rowsOfTile(address, from, kTileRuns - 1, *tile).shift(low * Wide(band));
  if (high - low > 1)
    span.join(Span(address, tile->bytes()).repeat(high - low - 1, band).shift((low + 1) * Wide(band)));
  span.join(rowsOfTile(address, 0, to, *tile).shift(high * Wide(band)));
  return span;
}

Span::Span(const Interval &address, Wide bytes)
    : begin(address.low), end(address.high + bytes), known(address.known), empty(bytes <= 0) {
  if (known && !empty && address.low == address.high && end < kFar)
    parts.push_back({static_cast<int64_t>(begin), static_cast<int64_t>(bytes), {}});
}

Span &Span::repeat(Wide count, Wide step) {
  empty |= count <= 0;
  Wide far = (count - 1) * step;
  (far < 0 ? begin : end) += far;
  if (empty || begin < -kFar || end > kFar)
    parts.clear();
  for (Runs &part : parts)
    if (count > 1 && step)
      part.steps.push_back({static_cast<int64_t>(count), static_cast<int64_t>(step)});
  return *this;
}

Span &Span::shift(Wide bytes) {
  begin += bytes;
  end += bytes;
  if (begin < -kFar || end > kFar)
    parts.clear();
  for (Runs &part : parts)
    part.begin += static_cast<int64_t>(bytes);
  return *this;
}

void Span::join(const Span &other) {
  if (other.empty)
    return;
  if (empty) {
    *this = other;
    return;
  }
  known &= other.known;
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  if (other.parts.empty())
    parts.clear();
  else if (!parts.empty())
    parts.insert(parts.end(), other.parts.begin(), other.parts.end());
}

std::optional<ByteRange> Span::range() const {
  if (!known || begin < -kFar || end > kFar)
    return std::nullopt;
  return ByteRange{static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

} // namespace dmx::corsair::access
