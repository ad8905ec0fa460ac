//===- Norm.h - parts of normalisations -------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

namespace dmxc::frontend {

/// x normalised over the axes.
Val normalize(Emitter &e, dmir::Normalization kind, const Val &x, const std::vector<int64_t> &axes, double epsilon);

/// The mean over axes, x without it, and the mean of that squared.
struct Moments {
  Val mean, centered, variance;
};
/// The axes stay as 1.
Moments momentsOf(Emitter &e, const Val &x, const std::vector<int64_t> &axes);
/// Those of each channel of [n, c, ..]: mean and variance are vectors.
Moments momentsOfChannels(Emitter &e, const Val &x);
/// x [n, c, ..] as [n, groups, numbers of a group]; fails where the channels do not divide into groups.
Val groupsOfChannels(Emitter &e, const Val &x, int64_t groups);
/// All axes of [n, c, ..] but the channels.
std::vector<int64_t> axesBesideChannels(int64_t rank);

/// 1 / sqrt(variance + epsilon).
Val inverseDeviation(Emitter &e, const Val &variance, double epsilon);

} // namespace dmxc::frontend
