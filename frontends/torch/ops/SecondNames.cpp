//===- SecondNames.cpp - operators that torch has under two names ---------===//
#include "../AtenTable.h"

namespace dmxc::torchfe {

std::vector<std::pair<std::string_view, std::string_view>> secondNames() {
  return {
      {"absolute", "abs"},
      {"adjoint", "mT"},
      {"arccos", "acos"},
      {"arccosh", "acosh"},
      {"arcsin", "asin"},
      {"arcsinh", "asinh"},
      {"arctan", "atan"},
      {"arctan2", "atan2"},
      {"arctanh", "atanh"},
      {"argwhere", "nonzero"},
      {"clip", "clamp"},
      {"concatenate", "cat"},
      {"divide", "div"},
      {"ger", "outer"},
      {"greater", "gt"},
      {"greater_equal", "ge"},
      {"grid_sampler", "grid_sampler_2d"},
      {"less", "lt"},
      {"less_equal", "le"},
      {"linalg_matmul", "matmul"},
      {"mH", "mT"},
      {"matrix_H", "mT"},
      {"multiply", "mul"},
      {"native_channel_shuffle", "channel_shuffle"},
      {"negative", "neg"},
      {"not_equal", "ne"},
      {"row_stack", "vstack"},
      {"special_digamma", "digamma"},
      {"special_erf", "erf"},
      {"special_erfc", "erfc"},
      {"special_erfinv", "erfinv"},
      {"special_exp2", "exp2"},
      {"special_expit", "sigmoid"},
      {"special_expm1", "expm1"},
      {"special_gammaln", "lgamma"},
      {"special_i0", "i0"},
      {"special_log1p", "log1p"},
      {"special_logit", "logit"},
      {"special_logsumexp", "logsumexp"},
      {"special_modified_bessel_i0", "i0"},
      {"special_modified_bessel_i1", "special_i1"},
      {"special_multigammaln", "mvlgamma"},
      {"special_polygamma", "polygamma"},
      {"special_psi", "digamma"},
      {"special_sinc", "sinc"},
      {"subtract", "sub"},
      {"trapz", "trapezoid"},
  };
}

} // namespace dmxc::torchfe
