//===- MathTest.cpp - transcendental ops against the 80-bit libm ----------===//
//
// f32 results must be the correctly rounded ones (computed in double, rounded once, they differ from those of long
// double only in ties too rare for these points); f64 results may be one ulp off; f16 and bf16 are the f32 result
// rounded.
//
//===----------------------------------------------------------------------===//
#include "Cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace dmxc::reference::test {

namespace {

using Wide = long double;
struct Function {
  const char *op;
  Wide (*exact)(Wide);
  std::vector<double> points;
};

const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> anywhere = {0.0, 0.125, -0.125, 0.75, -0.75, 1, -1, 2.5, -2.5, 7, -7, 1e-5, inf, -inf, nan};
const std::vector<double> positive = {0.125, 0.75, 1, 2.5, 7, 100, 1e-5, inf, nan, -1};
const std::vector<double> withinOne = {0.0, 0.125, -0.125, 0.75, -0.75, 1e-5, 0.99, nan, 2};

const std::vector<Function> functions = {
    {"exp", [](Wide x) { return expl(x); }, anywhere},
    {"log", [](Wide x) { return logl(x); }, positive},
    {"log2", [](Wide x) { return log2l(x); }, positive},
    {"log1p", [](Wide x) { return log1pl(x); }, {0.0, 1e-5, -0.5, 2.5, 100, inf, nan, -2}},
    {"expm1", [](Wide x) { return expm1l(x); }, anywhere},
    {"sin", [](Wide x) { return sinl(x); }, anywhere},
    {"cos", [](Wide x) { return cosl(x); }, anywhere},
    {"tan", [](Wide x) { return tanl(x); }, anywhere},
    {"asin", [](Wide x) { return asinl(x); }, withinOne},
    {"acos", [](Wide x) { return acosl(x); }, withinOne},
    {"atan", [](Wide x) { return atanl(x); }, anywhere},
    {"sinh", [](Wide x) { return sinhl(x); }, anywhere},
    {"cosh", [](Wide x) { return coshl(x); }, anywhere},
    {"tanh", [](Wide x) { return tanhl(x); }, anywhere},
    {"asinh", [](Wide x) { return asinhl(x); }, anywhere},
    {"acosh", [](Wide x) { return acoshl(x); }, {1, 1.5, 2.5, 100, inf, nan, 0.5}},
    {"atanh", [](Wide x) { return atanhl(x); }, withinOne},
    {"erf", [](Wide x) { return erfl(x); }, anywhere},
    {"sigmoid", [](Wide x) { return 1 / (1 + expl(-x)); }, anywhere},
    {"silu", [](Wide x) { return x / (1 + expl(-x)); }, anywhere},
    {"gelu", [](Wide x) { return x * erfcl(-x / sqrtl(2)) / 2; }, anywhere},
    {"gelu_tanh",
     [](Wide x) { return x / (1 + expl(-2 * sqrtl(2 / std::numbers::pi_v<Wide>) * (x + 0.044715L * x * x * x))); },
     anywhere},
    {"hard_swish", [](Wide x) { return x * std::min<Wide>(std::max<Wide>(x + 3, 0), 6) / 6; }, anywhere},
    {"softplus", [](Wide x) { return std::max<Wide>(x, 0) + log1pl(expl(-fabsl(x))); }, anywhere},
    {"rsqrt", [](Wide x) { return 1 / sqrtl(x); }, positive},
};

std::string literal(const std::string &type, const std::vector<Wide> &values) {
  std::string text = std::to_string(values.size()) + "x" + type + ":";
  char word[64];
  for (Wide value : values) {
    std::snprintf(word, sizeof word, " %.17g", static_cast<double>(value));
    text += word;
  }
  return text;
}

class ReferenceMath : public testing::TestWithParam<Function> {};

TEST_P(ReferenceMath, IsTheExactFunctionRounded) {
  const Function &function = GetParam();
  for (const std::string type : {"f16", "bf16", "f32", "f64", "f8E5M2"}) {
    Tensor points = tensorOf(literal(type, {function.points.begin(), function.points.end()}));
    std::vector<Wide> in, out;
    for (int64_t i = 0; i < points.numElements(); ++i) {
      in.push_back(points.asDouble(i));
      Wide exact = function.exact(in.back());
      out.push_back(type == "f64" ? exact : static_cast<Wide>(static_cast<float>(exact)));
    }
    runCase({function.op, "", {literal(type, in)}, {literal(type, out)}, "", type == "f64" ? 0x1p-52 : 0});
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, ReferenceMath, testing::ValuesIn(functions),
                         [](const auto &info) { return std::string(info.param.op); });

void PrintTo(const Function &function, std::ostream *os) { *os << function.op; }

} // namespace

std::vector<std::string> mathFunctions() {
  std::vector<std::string> names;
  for (const Function &function : functions)
    names.push_back(function.op);
  return names;
}

} // namespace dmxc::reference::test
