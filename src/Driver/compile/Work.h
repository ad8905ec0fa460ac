//===- Work.h - what the process is doing now -------------------*- C++ -*-===//
#pragma once

#include <string_view>

namespace dmxc::driver {

/// Notes the step (phase) and detail (pass) that is running, for the message of
/// a crash. The texts are copied (63 characters).
void setCurrentWork(std::string_view step, std::string_view detail = "");
/// The two texts; NUL-terminated, readable in a signal handler.
const char *currentStep();
const char *currentDetail();

} // namespace dmxc::driver
