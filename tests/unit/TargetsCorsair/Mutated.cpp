//===- Mutated.cpp - the golden vector's program, changed -----------------===//

#include "Mutated.h"

#include <fstream>

namespace dmxtest {

std::vector<std::string> goldenLines() {
  std::vector<std::string> lines;
  std::ifstream file(DMXC_CORSAIR_TESTS "/v17.mlir");
  for (std::string line; std::getline(file, line);)
    if (line.find("//") == std::string::npos)
      lines.push_back(line);
  return lines;
}

std::string mutated(const std::vector<std::string> &original, std::mt19937 &random) {
  std::vector<std::string> lines = original;
  auto any = [&](size_t count) { return static_cast<size_t>(random() % count); };
  for (size_t changes = 1 + any(2); changes > 0; --changes) {
    size_t at = any(lines.size());
    switch (any(5)) {
    case 0:
      lines.erase(lines.begin() + static_cast<long>(at));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<long>(at), lines[at]);
      break;
    case 2:
      std::swap(lines[at], lines[any(lines.size())]);
      break;
    default: {
      static constexpr const char *kNumbers[] = {"0",     "-1",    "1",          "63",         "65",
                                                 "33280", "99999", "2147483648", "4294967297", "9223372036854775807"};
      std::string &line = lines[at];
      size_t digit = line.find_first_of("0123456789", any(line.size() + 1));
      if (digit != std::string::npos)
        line.replace(digit, line.find_first_not_of("0123456789", digit) - digit, kNumbers[any(std::size(kNumbers))]);
    }
    }
  }
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

} // namespace dmxtest
