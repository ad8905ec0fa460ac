//===- Refused.cpp - operators with no meaning here -----------------------===//
#include "../AtenTable.h"

namespace dmxc::torchfe {

std::vector<AtenRow> refusedOps() {
  const char *random = "random numbers differ from run to run; pass them to the program as an input";
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
  };
}

} // namespace dmxc::torchfe
