//===- Futex.h - waiting for a word to change -------------------*- C++ -*-===//
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dmxrt {

inline void cpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Sleeps while `word` is `expected`; may return early.
inline void futexWait(const std::atomic<uint32_t> &word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

/// Wakes all threads that sleep on `word`.
inline void futexWake(const std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// A counter that one or more threads raise and others wait on: spins first,
/// then sleeps. Raising costs a system call only while somebody sleeps.
class Gate {
public:
  uint32_t value() const { return count.load(std::memory_order_acquire); }
  void raise() {
    // Sequential consistency pairs with waitFor: either the sleeper sees the
    // new count or this thread sees the sleeper.
    count.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0)
      futexWake(count);
  }
  /// Whether the count has reached `target` (modulo 2^32).
  bool has(uint32_t target) const { return reached(value(), target); }
  /// Whether it does while this thread spins.
  bool spinFor(uint32_t target, uint32_t spins) const {
    for (uint32_t i = 0; i < spins; ++i) {
      if (has(target))
        return true;
      cpuRelax();
    }
    return has(target);
  }
  /// Until it has.
  void waitFor(uint32_t target, uint32_t spins) {
    if (spinFor(target, spins))
      return;
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    for (;;) {
      uint32_t seen = count.load(std::memory_order_seq_cst);
      if (reached(seen, target))
        break;
      futexWait(count, seen);
    }
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

private:
  static bool reached(uint32_t seen, uint32_t target) { return static_cast<int32_t>(seen - target) >= 0; }
  std::atomic<uint32_t> count{0};
  std::atomic<uint32_t> sleepers{0};
};

} // namespace dmxrt
