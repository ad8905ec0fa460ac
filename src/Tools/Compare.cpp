//===- Compare.cpp - how near tensors are to expected ones ----------------===//
#include "dmxc/Tools/Compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dmxc::tools {

namespace {

/// One element, exact for 64-bit integers.
struct Element {
  double value;
  __int128 whole;
};

Element elementOf(const Tensor &tensor, int64_t i) {
  if (tensor.dtype() == DType::U64)
    return {static_cast<double>(tensor.as<uint64_t>()[i]), tensor.as<uint64_t>()[i]};
  if (isFloat(tensor.dtype()))
    return {tensor.asDouble(i), 0};
  int64_t value = tensor.asInt(i);
  return {static_cast<double>(value), value};
}

double distance(const Element &a, const Element &b, bool isFloating) {
  if (isFloating)
    return std::fabs(a.value - b.value);
  __int128 difference = a.whole > b.whole ? a.whole - b.whole : b.whole - a.whole;
  return static_cast<double>(difference);
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string valueString(const Tensor &tensor, int64_t i) {
  if (tensor.dtype() == DType::U64)
    return std::to_string(tensor.as<uint64_t>()[i]);
  if (isFloat(tensor.dtype()))
    return number(tensor.asDouble(i));
  return std::to_string(tensor.asInt(i));
}

/// The difference that an element may have: atol + rtol * |expected|.
struct Allowance {
  double rtol, atol;
};

Allowance allowanceOf(const Tolerance &tolerance, const Tensor &expected) {
  if (tolerance.rtol || tolerance.atol)
    return {tolerance.rtol.value_or(kUsualRtol), tolerance.atol.value_or(kUsualAtol)};
  if (!isFloat(expected.dtype()))
    return {0, 0};
  double largest = 0;
  for (int64_t i = 0; i < expected.numElements(); ++i)
    if (double size = std::fabs(expected.asDouble(i)); std::isfinite(size))
      largest = std::max(largest, size);
  return {kOfElement, kOfLargest * largest};
}

uint64_t nextRandom(uint64_t &state) { // splitmix64
  uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

} // namespace

std::string indexString(const Shape &shape, int64_t position) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    int64_t dim = shape[axis] > 0 ? shape[axis] : 1;
    text = std::to_string(position % dim) + (text.empty() ? "" : ", ") + text;
    position /= dim;
  }
  return "[" + text + "]";
}

std::string ruleText(const Tolerance &tolerance) {
  char text[120];
  bool isGiven = tolerance.rtol || tolerance.atol;
  Allowance given = isGiven ? allowanceOf(tolerance, {}) : Allowance{kOfElement, kOfLargest};
  std::snprintf(text, sizeof text, "|error| <= %g |expected| + %g", given.rtol, given.atol);
  std::string elements = text;
  if (tolerance.minSqnr) {
    std::snprintf(text, sizeof text, "floats by their noise, SQNR >= %g dB", *tolerance.minSqnr);
    return std::string(text) + (isGiven ? "; integers " + elements : "; integers equal");
  }
  return isGiven ? elements : elements + " max |expected|; integers equal";
}

Comparison compareTensors(const Tensor &actual, const Tensor &expected, Tolerance tolerance) {
  Comparison c;
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    c.pass = false;
    c.structural = "is " + std::string(dtypeName(actual.dtype())) + " " + shapeString(actual.shape()) + ", expected " +
                   std::string(dtypeName(expected.dtype())) + " " + shapeString(expected.shape());
    return c;
  }
  bool floating = isFloat(actual.dtype());
  Allowance allowance = allowanceOf(tolerance, expected);
  double worstExcess = -1, signal = 0, noise = 0;
  c.count = actual.numElements();
  for (int64_t i = 0; i < c.count; ++i) {
    Element a = elementOf(actual, i), e = elementOf(expected, i);
    double excess = 0;
    bool bothNan = std::isnan(a.value) && std::isnan(e.value);
    if (!std::isfinite(a.value) || !std::isfinite(e.value)) {
      bool same = bothNan || a.value == e.value;
      excess = same ? 0 : INFINITY;
      noise += excess;
    } else {
      double difference = distance(a, e, floating);
      double magnitude = std::fabs(e.value);
      signal += e.value * e.value;
      noise += difference * difference;
      c.maxAbsolute = std::max(c.maxAbsolute, difference);
      if (magnitude > 0)
        c.maxRelative = std::max(c.maxRelative, difference / magnitude);
      double allowed = allowance.atol + allowance.rtol * magnitude;
      excess = difference <= allowed ? 0 : difference - allowed;
      // A difference beyond an allowance of the same size rounds to zero.
      if (difference > allowed && excess == 0)
        excess = difference;
    }
    if (excess == 0)
      continue;
    c.pass = false;
    if (c.mismatches++ == 0)
      c.first = i;
    if (excess > worstExcess) {
      worstExcess = excess;
      c.worst = i;
    }
  }
  c.sqnr = noise == 0 ? INFINITY : 10 * std::log10(signal / noise);
  if (floating && tolerance.minSqnr) {
    c.judgedBySqnr = true;
    c.pass = c.sqnr >= *tolerance.minSqnr;
  }
  return c;
}

double Comparison::relativeRms() const { return std::pow(10, -sqnr / 20); }

std::string describe(const Comparison &c, const Tensor &actual, const Tensor &expected) {
  if (!c.structural.empty())
    return c.structural;
  std::string figures = "max abs " + number(c.maxAbsolute) + ", max rel " + number(c.maxRelative);
  if (c.judgedBySqnr) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f dB", c.sqnr);
    figures = std::string("SQNR ") + text + ", " + figures;
  }
  if (c.pass || c.judgedBySqnr)
    return c.pass ? figures : figures + ", which is too noisy";
  auto at = [&](const char *which, int64_t i) {
    return std::string("\n  ") + which + " mismatch at " + indexString(actual.shape(), i) + ": got " +
           valueString(actual, i) + ", expected " + valueString(expected, i);
  };
  char share[32];
  std::snprintf(share, sizeof share, "%.3g", 100.0 * static_cast<double>(c.mismatches) / static_cast<double>(c.count));
  return std::to_string(c.mismatches) + " of " + std::to_string(c.count) + " elements differ (" + share + " %); " +
         figures + at("first", c.first) + at("worst", c.worst);
}

Tensor randomTensor(DType type, const Shape &shape, uint64_t seed) {
  Tensor tensor(type, shape);
  fillRandom(tensor, seed);
  return tensor;
}

void fillRandom(Tensor &tensor, uint64_t seed) {
  uint64_t state = seed;
  nextRandom(state); // so that seeds 0 and 1 do not share a stream
  state ^= seed << 32;
  for (int64_t i = 0, count = tensor.numElements(); i < count; ++i) {
    uint64_t bits = nextRandom(state);
    if (isFloat(tensor.dtype()))
      tensor.setDouble(i, static_cast<double>(bits >> 11) * 0x1p-52 - 1.0);
    else
      tensor.setInt(i, static_cast<int64_t>(bits >> 63));
  }
}

} // namespace dmxc::tools
