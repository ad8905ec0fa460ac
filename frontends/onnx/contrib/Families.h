//===- Families.h - the operators of com.microsoft --------------*- C++ -*-===//
#pragma once

#include "../OpTable.h"

namespace dmxc::onnxfe {

inline constexpr const char *kMicrosoft = "com.microsoft";
/// The element types that the domain's float operators have.
inline constexpr TypeSet kContribFloat = bitOf(DType::F16) | bitOf(DType::BF16) | bitOf(DType::F32);

// Each is defined in the file that is named as it is.
std::vector<OpRows> contribAttentionOps();
std::vector<OpRows> contribCropOps();
std::vector<OpRows> contribEmbedOps();
std::vector<OpRows> contribFusedOps();
std::vector<OpRows> contribGroupQueryOps();
std::vector<OpRows> contribInverseOps();
std::vector<OpRows> contribMoeOps();
std::vector<OpRows> contribNBitsOps();
std::vector<OpRows> contribNormOps();
std::vector<OpRows> contribOtherOps();
std::vector<OpRows> contribPositionBiasOps();
std::vector<OpRows> contribQLinearOps();
std::vector<OpRows> contribQMatMulOps();
std::vector<OpRows> contribQMoeOps();
std::vector<OpRows> contribRecurrentOps();
std::vector<OpRows> contribRotaryOps();
std::vector<OpRows> contribRefusedOps(); ///< those that no other family has

} // namespace dmxc::onnxfe
