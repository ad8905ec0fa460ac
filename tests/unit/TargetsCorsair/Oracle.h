//===- Oracle.h - what a product must give, computed otherwise --*- C++ -*-===//
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dmxtest {

/// m x n results of a product of BFP16_64 operands, and perhaps a bias of BFP32_1, as f16, chunks of `imc` blocks
/// reduced and then added in order: by the single-block functions of the numerics library, not by the tile product that
/// the simulator uses.
std::vector<float> expectedProduct(const std::vector<float> &a, const std::vector<float> &w, int64_t m, int64_t k,
                                   int64_t n, int64_t imc, const std::vector<float> &bias = {});

/// One 64 x 64 tile of the same by the executable form of the numerics specification, as bits of f16. Nothing where
/// that is not at hand.
std::optional<std::vector<uint16_t>> specifiedTile(const std::vector<float> &a, const std::vector<float> &w, int64_t k,
                                                   int64_t n, int64_t rowTile, int64_t columnTile);

} // namespace dmxtest
