//===- Lanes.h - functions of registers, lane by lane -----------*- C++ -*-===//
#pragma once

#include "Warp.h"

namespace dmxrt::cuda {

/// Marks the lanes' results as written.
inline bool wrote(Warp &w, uint32_t slot) {
  w.written[slot] |= w.active;
  w.stamps[slot] = w.fences;
  return true;
}

/// Steps that compute F::of(a..) of values of type T; the result has the type that F gives.
template <typename F, typename T> bool step1(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]];
  forLanes(w.active, [&](uint32_t i) { to[i] = toBits(F::of(fromBits<T>(a[i]))); });
  return wrote(w, op.result[0]);
}
template <typename F, typename T> bool step2(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]];
  forLanes(w.active, [&](uint32_t i) { to[i] = toBits(F::of(fromBits<T>(a[i]), fromBits<T>(b[i]))); });
  return wrote(w, op.result[0]);
}
template <typename F, typename T> bool step3(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &a = w.slots[op.source[0]], &b = w.slots[op.source[1]], &c = w.slots[op.source[2]];
  forLanes(w.active,
           [&](uint32_t i) { to[i] = toBits(F::of(fromBits<T>(a[i]), fromBits<T>(b[i]), fromBits<T>(c[i]))); });
  return wrote(w, op.result[0]);
}

} // namespace dmxrt::cuda
