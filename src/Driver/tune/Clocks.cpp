//===- Clocks.cpp - what a device's simulator counted ---------------------===//
#include "Clocks.h"

#include <nlohmann/json.hpp>

#include <fstream>

using nlohmann::json;

namespace dmxc::driver {

Result<int64_t> clocksOf(const std::string &report) {
  std::ifstream in(report);
  json document = json::parse(in, nullptr, /*allow_exceptions=*/false);
  int64_t sum = 0;
  if (document.is_object() && document.contains("last") && document["last"].is_array())
    for (const json &kernel : document["last"])
      if (kernel.is_object() && kernel.contains("main") && kernel["main"].contains("clocks"))
        sum += kernel["main"]["clocks"].get<int64_t>();
  if (sum > 0)
    return sum;
  return usageError(
      "nothing of this model runs on a processor, or on a device that reports clocks, which is what tuning "
      "measures; choose another target with -t");
}

} // namespace dmxc::driver
