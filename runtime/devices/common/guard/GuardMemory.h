//===- GuardMemory.h - bytes between inaccessible pages ---------*- C++ -*-===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace dmxrt {

/// Which end of guarded bytes the inaccessible page is next to; on the other side, and where alignment asks for it on
/// this one, up to a page of a pattern lies between.
enum class GuardSide : uint8_t { Start, End };

/// What is around guarded bytes, and in them at first: a signalling NaN as f64 and, word by word, a NaN as f32, f16 and
/// bf16; as an integer it is too large for an index. There are two, so that a NaN that was read where it should not is
/// no other's pattern when it is written.
enum class GuardPattern : uint64_t { Input = 0x7FF47FA57FA57FA5, Result = 0x7FF27FA37FA37FA3 };

/// Memory in pages of its own.
class GuardedBytes {
public:
  /// `alignment`: a power of two, at most a page. Throws std::bad_alloc when the system gives no pages.
  GuardedBytes(uint64_t size, uint64_t alignment, GuardSide side, GuardPattern pattern);
  ~GuardedBytes();
  GuardedBytes(GuardedBytes &&other) noexcept;
  GuardedBytes &operator=(GuardedBytes &&) = delete;

  std::byte *data() const { return bytes; }
  uint64_t size() const { return count; }
  /// From now on a write is a fault.
  void makeReadOnly();
  /// The offset of a byte outside whose pattern has changed; none when all is as it was.
  std::optional<int64_t> strayWrite() const;
  /// Whether an address lies in its pages or the inaccessible ones beside them.
  bool covers(uintptr_t address) const { return address - reinterpret_cast<uintptr_t>(mapping) < mapped; }

private:
  std::byte *mapping = nullptr; // with the inaccessible pages
  uint64_t mapped = 0;
  std::byte *bytes = nullptr;
  uint64_t count = 0;
  GuardPattern pattern;
};

} // namespace dmxrt
