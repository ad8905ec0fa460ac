//===- Vectors.h - public expected words, where they are there --*- C++ -*-===//
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace aietest {

using Json = nlohmann::json;

/// Null where the file is not beside the checkout.
inline Json readVectors(const std::string &name) {
  std::ifstream file(std::string(DMX_AIE_VECTORS) + "/" + name);
  return file ? Json::parse(file) : Json();
}

/// "0x1A0000" or a number.
inline uint64_t numberOf(const Json &json) {
  return json.is_string() ? std::stoull(json.get<std::string>(), nullptr, 16) : json.get<uint64_t>();
}
inline std::vector<uint32_t> wordsOf(const Json &json) {
  std::vector<uint32_t> words;
  for (const Json &word : json)
    words.push_back(static_cast<uint32_t>(std::stoull(word.get<std::string>(), nullptr, 16)));
  return words;
}

#define AIE_VECTORS(variable, name)                                                                                    \
  const Json variable = readVectors(name);                                                                             \
  if (variable.is_null())                                                                                              \
  GTEST_SKIP() << "no " << DMX_AIE_VECTORS << "/" << (name) << ": nothing to compare with"

} // namespace aietest
