//===- CudaTensor.h - parts of kernels that copy and multiply tiles -*- C++ -*-===//
#pragma once

#include "CudaLaunch.h"

#include <algorithm>

namespace dmxtest {

inline std::string number(uint64_t value) { return std::to_string(value); }

inline std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

/// An mbarrier at `bar`, one arrival; %p0: whether it is thread 0.
inline const std::string kBegin = R"(
	.shared .align 8 .b8 bar[8];
	setp.eq.s32 %p0, %r0, 0;
	@!%p0 bra $made;
	mbarrier.init.shared.b64 [bar], 1;
	fence.mbarrier_init.release.cluster;
$made:
	bar.sync 0;
)";
/// Waits for its phase 0.
inline const std::string kWait = R"(
$wait:
	mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
	@!%p1 bra $wait;
)";

inline std::string expect(uint64_t bytes) {
  return "\tmov.b32 %r3, " + number(bytes) + ";\n\t@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r3;\n";
}
inline std::string load(int map, uint64_t at, const std::string &coordinates) {
  size_t axes = 1 + static_cast<size_t>(std::count(coordinates.begin(), coordinates.end(), ','));
  return "\tmov.b64 %d10, map" + number(static_cast<uint64_t>(map)) +
         ";\n\tcvta.param.u64 %d11, %d10;\n\t@%p0 cp.async.bulk.tensor." + number(axes) +
         "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room+" + number(at) + "], [%d11, {" +
         coordinates + "}], [bar];\n";
}
inline std::vector<uint32_t> counting(size_t words) {
  std::vector<uint32_t> out(words);
  for (size_t i = 0; i < words; ++i)
    out[i] = static_cast<uint32_t>(1000 + i);
  return out;
}

/// A matrix descriptor of `bits` for what is `at` bytes behind `room`.
inline std::string descriptorText(const std::string &to, uint64_t bits, uint32_t at) {
  return "\tmov.b64 " + to + ", room;\n\tadd.s64 " + to + ", " + to + ", " + number(at) + ";\n\tshr.u64 " + to + ", " +
         to + ", 4;\n\tor.b64 " + to + ", " + to + ", " + number(bits) + ";\n";
}

} // namespace dmxtest
