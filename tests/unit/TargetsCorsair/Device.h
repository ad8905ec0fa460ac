//===- Device.h - encoded programs on the simulated card --------*- C++ -*-===//
#pragma once

#include "Stages.h"
#include "corsair/CorsairHarness.h"

namespace dmxtest {

/// A device with an encoded program and its constants.
inline std::unique_ptr<CorsairProgram> makeDevice(const Encoded &encoded, std::vector<std::string> settings = {},
                                                  uint32_t threads = 2) {
  EXPECT_FALSE(encoded.assembly.empty()) << encoded.error;
  if (encoded.assembly.empty())
    return nullptr;
  auto program = std::make_unique<CorsairProgram>(encoded.assembly, CorsairProgram::Options{threads, settings});
  for (const auto &[name, bytes] : encoded.constants)
    program->set(name, bytes);
  return program;
}

inline const nlohmann::json &taskOf(const nlohmann::json &report, const std::string &name) {
  for (const auto &task : report["tasks"])
    if (task["name"] == name)
      return task;
  ADD_FAILURE() << "no task " << name;
  return report["tasks"][0];
}

inline double clocksOf(const nlohmann::json &task) {
  return task["last_clock"].get<double>() - task["first_clock"].get<double>();
}

} // namespace dmxtest
