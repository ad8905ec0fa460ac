//===- Refused.cpp - operators with no meaning here -----------------------===//
#include "../AtenTable.h"

namespace dmxc::torchfe {

std::vector<AtenRow> refusedOps() {
  const char *random = "random numbers differ from run to run; pass them to the program as an input";
  const char *complex = "complex numbers are not supported";
  return {
      {"rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> "
       "Tensor",
       nullptr, random},
      {"randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None) -> "
       "Tensor",
       nullptr, random},
      {"randperm(SymInt n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? pin_memory=None) "
       "-> "
       "Tensor",
       nullptr, random},
      {"randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long, Layout? layout=None, Device? "
       "device=None, bool? pin_memory=None) -> Tensor",
       nullptr, random},
      {"rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, "
       "MemoryFormat? memory_format=None) -> Tensor",
       nullptr, random},
      {"randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
       "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
       nullptr, random},
      {"bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", nullptr, random},
      {"bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", nullptr, random},
      {"multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
       nullptr, random},
      {"resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)", nullptr,
       "a tensor that changes its storage has no place in an exported program"},
      {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor", nullptr, complex},
      {"_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor", nullptr, complex},
      {"_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor", nullptr, complex},
      {"fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor", nullptr, complex},
      {"view_as_real(Tensor(a) self) -> Tensor(a)", nullptr, complex},
      {"view_as_complex(Tensor(a) self) -> Tensor(a)", nullptr, complex},
      {"complex(Tensor real, Tensor imag) -> Tensor", nullptr, complex},
  };
}

} // namespace dmxc::torchfe
