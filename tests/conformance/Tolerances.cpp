//===- Tolerances.cpp - how near each case must come ----------------------===//
#include "Tolerances.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace dmxc::conformance {
namespace {

/// The fields of a line; quoted ones may hold commas.
std::vector<std::string> fieldsOf(const std::string &line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

} // namespace

std::map<std::string, Tolerance> readTolerances(const std::string &path) {
  std::map<std::string, Tolerance> tolerances;
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line))
    return tolerances;
  std::vector<std::string> head = fieldsOf(line);
  auto column = [&](const char *name) { return std::find(head.begin(), head.end(), name) - head.begin(); };
  size_t name = column("case"), rtol = column("rtol"), atol = column("atol"), group = column("class");
  while (std::getline(file, line)) {
    std::vector<std::string> fields = fieldsOf(line);
    if (std::max({name, rtol, atol}) >= fields.size())
      continue;
    std::string shortName = fields[name].substr(fields[name].find_last_of('/') + 1);
    tolerances.emplace(shortName, Tolerance{std::atof(fields[rtol].c_str()), std::atof(fields[atol].c_str()),
                                            group < fields.size() ? fields[group] : ""});
  }
  return tolerances;
}

} // namespace dmxc::conformance
