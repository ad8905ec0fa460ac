//===- Walk.h - the words of a BD, in order ---------------------*- C++ -*-===//
#pragma once

#include "schemas/aie/Bd.h"

#include <array>
#include <utility>

namespace dmxrt::aie {

namespace hw = dmx::aie;

/// Goes over the words that a BD moves: each is at an address or, in padding, a zero.
class Walk {
public:
  Walk() = default;
  /// With the iteration at which the BD is.
  explicit Walk(const hw::Bd &bd);

  bool padding() const { return inPadding; }
  /// In words, where it is no padding.
  int64_t address() const { return base + offset; }
  void next() {
    if (!padded && ++at[0] != extent[0]) {
      offset += bd->step(0);
      return;
    }
    carry();
  }
  /// Calls visit(first, words) for runs of words until it returns false; each word that is moved is in at least one.
  template <typename Visit> bool eachRun(Visit visit) const;

private:
  void carry();
  void locate();
  /// Steps and counts of the dims that are not part of the innermost run, whose words are given; false where a dim is
  /// padded or not whole.
  bool sorted(std::array<std::pair<int64_t, int64_t>, 4> &outer, int64_t &run) const;

  const hw::Bd *bd = nullptr;
  int64_t base = 0, offset = 0;
  int64_t at[4] = {}, extent[4] = {}; ///< extents with their padding; -1: ends with the length
  bool padded = false, inPadding = false;
};

template <typename Visit> bool Walk::eachRun(Visit visit) const {
  std::array<std::pair<int64_t, int64_t>, 4> outer;
  int64_t run = 1;
  if (sorted(outer, run)) {
    auto [d0, d1, d2, d3] = outer;
    for (int64_t i = 0; i < d0.second; ++i)
      for (int64_t j = 0; j < d1.second; ++j)
        for (int64_t k = 0; k < d2.second; ++k)
          for (int64_t l = 0; l < d3.second; ++l)
            if (!visit(base + i * d0.first + j * d1.first + k * d2.first + l * d3.first, run))
              return false;
    return true;
  }
  Walk walk = *this;
  for (int64_t i = 0, words = (*bd)[hw::BdField::Length]; i < words; ++i, walk.next())
    if (!walk.padding() && !visit(walk.address(), int64_t(1)))
      return false;
  return true;
}

} // namespace dmxrt::aie
