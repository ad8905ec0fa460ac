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

std::map<std::string_view, std::string_view> functionalForms() {
  return {
      {"__iand__.Scalar", "__and__.Scalar"},
      {"__iand__.Tensor", "__and__.Tensor"},
      {"__ilshift__.Scalar", "__lshift__.Scalar"},
      {"__ilshift__.Tensor", "__lshift__.Tensor"},
      {"__ior__.Scalar", "__or__.Scalar"},
      {"__ior__.Tensor", "__or__.Tensor"},
      {"__irshift__.Scalar", "__rshift__.Scalar"},
      {"__irshift__.Tensor", "__rshift__.Tensor"},
      {"__ixor__.Scalar", "__xor__.Scalar"},
      {"__ixor__.Tensor", "__xor__.Tensor"},
      {"float_power_.Scalar", "float_power.Tensor_Scalar"},
      {"float_power_.Tensor", "float_power.Tensor_Tensor"},
      {"floor_divide_.Tensor", "floor_divide.default"},
      {"ldexp_.default", "ldexp.Tensor"},
      {"pow_.Scalar", "pow.Tensor_Scalar"},
      {"pow_.Tensor", "pow.Tensor_Tensor"},
      {"transpose_.default", "transpose.int"},
  };
}

} // namespace dmxc::torchfe
