//===- Walk.cpp - the words of a BD, in order -----------------------------===//
#include "Walk.h"

#include <algorithm>

namespace dmxrt::aie {

using F = hw::BdField;

Walk::Walk(const hw::Bd &bd) : bd(&bd) {
  base = bd[F::Base] + bd[F::IterationCurrent] * bd[F::IterationStep];
  for (size_t dim = 0; dim < 4; ++dim) {
    extent[dim] = bd.wrap(dim) ? bd.before(dim) + bd.wrap(dim) + bd.after(dim) : -1;
    padded |= bd.before(dim) || bd.after(dim);
  }
  locate();
}

void Walk::carry() {
  if (padded) // then `next` has not counted
    ++at[0];
  for (size_t dim = 0; dim < 3 && at[dim] == extent[dim]; ++dim) {
    at[dim] = 0;
    ++at[dim + 1];
  }
  locate();
}

void Walk::locate() {
  offset = 0;
  inPadding = false;
  for (size_t dim = 0; dim < 4; ++dim) {
    int64_t inside = at[dim] - bd->before(dim);
    inPadding |= inside < 0 || (extent[dim] >= 0 && inside >= bd->wrap(dim));
    offset += inside * bd->step(dim);
  }
}

/// The smallest step first, so that a walk in another order over whole rows is one run.
bool Walk::sorted(std::array<std::pair<int64_t, int64_t>, 4> &outer, int64_t &run) const {
  int64_t left = (*bd)[F::Length];
  outer.fill({0, 1});
  size_t used = 0;
  for (size_t dim = 0; dim < 4 && left > 1; ++dim) {
    int64_t count = extent[dim] < 0 ? left : std::min(extent[dim], left);
    if (padded || left % count)
      return false;
    outer[used++] = {bd->step(dim), count};
    left /= count;
  }
  std::sort(outer.begin(), outer.begin() + static_cast<ptrdiff_t>(used));
  run = 1;
  for (size_t i = 0; i < used && outer[i].first <= run; ++i) {
    run += outer[i].first * (outer[i].second - 1);
    outer[i] = {0, 1};
  }
  return !padded;
}

} // namespace dmxrt::aie
