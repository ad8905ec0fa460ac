//===- InspectSupport.h - calls of dmx-inspect's logic ----------*- C++ -*-===//
#pragma once

#include "TestDir.h"
#include "dmxc/Tools/Inspect.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace dmxc::tools::test {

/// What is printed. A failure is expected when `kind` is given, and described there.
inline std::string inspect(const InspectOptions &options, ErrorKind *kind = nullptr, std::string *message = nullptr) {
  std::ostringstream out;
  Status done = inspectBundle(options, out);
  EXPECT_EQ(static_cast<bool>(done), kind == nullptr) << (done ? "" : done.error().message);
  if (!done && kind)
    *kind = done.error().kind;
  if (!done && message)
    *message = done.error().message;
  return out.str();
}

inline void expectParts(const std::string &text, std::initializer_list<const char *> parts) {
  for (const char *part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

} // namespace dmxc::tools::test
