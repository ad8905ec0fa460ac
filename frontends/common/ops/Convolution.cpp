//===- Convolution.cpp - convolutions and transposed ones -----------------===//
#include "Formulas.h"
#include "Require.h"
#include "Window.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::frontend {

Val convolve(Emitter &e, Val x, const Val &weights, const Val &bias, const Window &window, int64_t groups) {
  Window w = window;
  for (size_t i = 0; i < w.low.size(); ++i) {
    // Only pads given as numbers are negative.
    int64_t front = std::max<int64_t>(-w.low[i].valueOr(0), 0), back = std::max<int64_t>(-w.high[i].valueOr(0), 0);
    if (!front && !back)
      continue;
    if (front + back > x.extent(i + 2).valueOr(INT64_MAX))
      fail("op-shape", "negative pads cut off more than the input has");
    x = e.sliceAxis(x, i + 2, front, x.extent(i + 2) - front - back);
    if (front)
      w.low[i] = 0;
    if (back)
      w.high[i] = 0;
  }
  llvm::SmallVector<mlir::NamedAttribute> attributes = windowAttributes(e, w);
  attributes.push_back(e.attr("groups", groups));
  Val y = e.emit<ConvOp>({x, weights}, attributes);
  return bias ? withBias(e, y, bias) : y;
}

Val withBias(Emitter &e, const Val &y, const Val &bias) {
  if (bias.rank() != 1 || !mayEqual(bias.extent(0), y.extent(1)))
    fail("op-shape", "the bias " + bias.describe() + " must have one number for each of the " + y.extent(1).str() +
                         " output channels");
  return e.add(y, perChannel(e, bias, y.rank()));
}

namespace {

/// Whether a transposed convolution is computed phase by phase.
bool hasPhases(const Window &w) {
  bool numbers = llvm::all_of(w.kernel, [](Dim size) { return size.isStatic(); }) &&
                 llvm::all_of(w.low, [](Dim low) { return low.valueOr(-1) >= 0; });
  bool dense = llvm::all_of(w.dilations, [](int64_t dilation) { return dilation == 1; });
  return numbers && dense && llvm::any_of(w.strides, [](int64_t stride) { return stride > 1; });
}

/// Whether a phase's channels lie beside each other: where they are many, what is made of a position can be moved
/// together. Groups have all phases of a channel together.
bool phasesComeFirst(const Val &weights, int64_t groups) {
  constexpr int64_t many = 16;
  return groups == 1 && weights.extent(0).valueOr(0) > 0 && weights.extent(0).valueOr(0) % many == 0;
}

/// Whether phases are convolutions of their own: few, of which some have so many fewer taps than others that as many
/// taps for each of them would be 1.4 times those that there are.
bool phasesDiffer(const Window &w) {
  constexpr int64_t most = 4;
  int64_t phases = 1;
  double filled = 1, own = 1;
  for (auto [kernel, stride] : llvm::zip(w.kernel, w.strides)) {
    const int64_t size = *kernel.known(), whole = (size + stride - 1) / stride * stride;
    if (size < stride || stride > most) // some have none, or they are many
      return false;
    phases *= stride;
    filled *= static_cast<double>(whole);
    own *= static_cast<double>(size);
  }
  return phases <= most && filled >= 1.4 * own;
}

/// Phase by phase, the last axis' fastest, the channels of each. `inner`: the window of most taps.
Val convolveEachPhase(Emitter &e, const Val &x, const Val &weights, const Window &w, const Window &inner) {
  const size_t axes = w.kernel.size();
  std::vector<int64_t> phase(axes, 0);
  std::vector<Val> parts;
  for (bool more = true; more;) {
    Window own = inner;
    Dims starts{0, 0}, sizes{weights.extent(0), weights.extent(1)};
    std::vector<int64_t> steps{1, 1};
    for (size_t i = 0; i < axes; ++i) {
      const int64_t stride = w.strides[i], last = *w.kernel[i].known() - 1 - phase[i], taps = last / stride + 1;
      own.kernel[i] = taps;
      own.low[i] = taps - 1;
      starts.push_back(last % stride);
      sizes.push_back(taps);
      steps.push_back(stride);
    }
    parts.push_back(convolve(e, x, e.slice(weights, starts, sizes, steps), Val(), own, 1));
    more = false;
    for (size_t i = axes; i-- > 0 && !more;) {
      more = ++phase[i] < w.strides[i];
      if (!more)
        phase[i] = 0;
    }
  }
  return e.concat(parts, 1);
}

/// Every stride-th tap makes results of one phase: a convolution of the input as it is, with channels for each phase,
/// which then take turns. `weights` [O, C/g, k..] are flipped; `out`: the result's spatial dims.
Val convolvePhases(Emitter &e, const Val &x, Val weights, const Window &w, const Dims &out, int64_t groups) {
  size_t axes = w.kernel.size();
  const bool phasesFirst = phasesComeFirst(weights, groups);
  Window inner = w;
  inner.strides.assign(axes, 1);
  Dims front(axes + 2, 0), none(axes + 2, 0), split{weights.extent(0), weights.extent(1)}, starts{0, 0};
  Dims phased{x.extent(0)}, joined{x.extent(0), weights.extent(0)}, first(axes + 2, 0), cut = joined;
  std::vector<int64_t> steps{1, 1}, gather, turns{0, static_cast<int64_t>(phasesFirst ? 1 + axes : 1)};
  auto channels = [&] { gather.push_back(0), phased.push_back(weights.extent(0)); };
  if (!phasesFirst)
    channels();
  for (size_t i = 0; i < axes; ++i) {
    int64_t stride = w.strides[i], size = *w.kernel[i].known(), taps = (size + stride - 1) / stride;
    Dim count = Dim::ceilDiv(w.low[i] + out[i], stride);
    front[i + 2] = taps * stride - size;
    split.append({taps, stride});
    starts.append({0, stride - 1});
    steps.insert(steps.end(), {1, -1});
    gather.push_back(3 + 2 * i);
    phased.push_back(stride);
    joined.push_back(count * stride);
    turns.insert(turns.end(), {static_cast<int64_t>(2 + axes + i), static_cast<int64_t>((phasesFirst ? 1 : 2) + i)});
    inner.kernel[i] = taps;
    inner.low[i] = taps - 1;
    inner.high[i] = count - x.extent(i + 2);
    first[i + 2] = w.low[i];
    cut.push_back(out[i]);
  }
  if (phasesFirst)
    channels();
  gather.push_back(1);
  Dims panel{weights.extent(0), weights.extent(1)};
  for (size_t i = 0; i < axes; ++i) {
    gather.push_back(2 + 2 * i);
    panel[0] = panel[0] * w.strides[i];
    panel.push_back(inner.kernel[i]);
    phased.push_back(Dim::ceilDiv(w.low[i] + out[i], w.strides[i]));
  }
  Val y;
  if (phasesFirst && phasesDiffer(w)) {
    y = convolveEachPhase(e, x, weights, w, inner);
  } else {
    weights = e.reshape(e.pad(weights, e.scalarLike(weights, 0), front, none), split);
    weights = e.reshape(e.transpose(e.slice(weights, starts, split, steps), gather), panel);
    y = convolve(e, x, weights, Val(), inner, groups);
  }
  y = e.reshape(y, phased);
  y = e.reshape(e.transpose(y, turns), joined);
  return e.slice(y, first, cut, std::vector<int64_t>(axes + 2, 1));
}

/// [C, O/g, k..] -> [g, C/g, O/g, k..] -> [g, O/g, C/g, k..] -> [O, C/g, k..], then flipped.
Val flipped(Emitter &e, const Val &weights, const Window &w, int64_t groups) {
  Dim out = weights.extent(1);
  Dims split{groups, Dim::floorDiv(weights.extent(0), groups), out}, joined{out * groups, split[1]};
  std::vector<int64_t> swap{0, 2, 1};
  Dims starts(weights.rank(), 0);
  Shape steps(weights.rank(), 1);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    split.push_back(w.kernel[i]);
    joined.push_back(w.kernel[i]);
    swap.push_back(i + 3);
    starts[i + 2] = w.kernel[i] - 1;
    steps[i + 2] = -1;
  }
  return e.slice(e.reshape(e.transpose(e.reshape(weights, split), swap), joined), starts, joined, steps);
}

} // namespace

/// A convolution with the flipped weights: of the phases, or of the input with zeros between its elements.
Val convolveTransposed(Emitter &e, Val x, Val weights, const Val &bias, Window w, const std::vector<int64_t> &extra,
                       int64_t groups) {
  size_t axes = w.kernel.size();
  Dim in = x.extent(1);
  requireShape(groups > 0 && mayEqual(weights.extent(0), in) && in.valueOr(0) % groups == 0,
               "the weights must have the " + in.str() + " input channels as dim 0, divisible by the groups");
  weights = flipped(e, weights, w, groups);
  if (hasPhases(w)) {
    Dims out;
    for (size_t i = 0; i < axes; ++i)
      out.push_back((x.extent(i + 2) - 1) * w.strides[i] + w.kernel[i] - w.low[i] - w.high[i] + extra[i]);
    Val y = convolvePhases(e, x, weights, w, out, groups);
    return bias ? withBias(e, y, bias) : y;
  }
  Shape interior(x.rank(), 0);
  Dims none(x.rank(), 0);
  for (size_t i = 0; i < axes; ++i) {
    interior[i + 2] = w.strides[i] - 1;
    Dim reach = (w.kernel[i] - 1) * w.dilations[i];
    w.low[i] = reach - w.low[i];
    w.high[i] = reach - w.high[i] + extra[i];
    w.strides[i] = 1;
  }
  x = e.pad(x, e.scalarLike(x, 0), none, none, interior);
  return convolve(e, x, weights, bias, w, groups);
}

} // namespace dmxc::frontend
