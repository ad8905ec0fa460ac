//===- WinogradScheme.h - the transforms of minimal filtering ---*- C++ -*-===//
//
// What the kernels, their blocking and the packing of weights share.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace dmxc::cpu::winograd {

constexpr int64_t kOut = 2, kTaps = 3;
constexpr int64_t kWeightRows = 4, kPanels = kWeightRows * kWeightRows; ///< of transformed weights
constexpr int64_t kPad = 16;                                            ///< elements of a cache line

using Matrix = std::array<std::array<int, 5>, 5>;
/// What a tile goes through along one axis.
struct Scheme {
  int64_t in; ///< inputs it reads, which become as many positions
  Matrix input, output;
  double weights[kWeightRows][kTaps]; ///< a row for each position, the last one for all that are left

  int64_t positions() const { return in * in; }
  /// Whether the first output does without a position: a tile whose second one is outside does, too.
  bool forSecondOnly(int64_t position) const { return output[0][position] == 0; }
  int64_t firstPositions() const {
    return std::count_if(output[0].begin(), output[0].begin() + in, [](int c) { return c != 0; });
  }
};
constexpr Scheme kStride1{4,
                          {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}},
                          {{{1, 1, 1, 0}, {0, 1, -1, -1}}},
                          {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
/// F(2, 2) of the even inputs, and the odd ones times the tap in the middle.
constexpr Scheme kStride2{5,
                          {{{1, 0, -1, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 1, 0, -1}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}}},
                          {{{1, 1, 0, 1, 0}, {0, 1, -1, 0, 1}}},
                          {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}}};
constexpr const Scheme &schemeOf(int64_t stride) { return stride == 1 ? kStride1 : kStride2; }

} // namespace dmxc::cpu::winograd
