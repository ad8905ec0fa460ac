//===- EntryName.cpp - the rules for names of entries ---------------------===//
#include "EntryName.h"

#include <algorithm>
#include <array>

namespace dmxc::bundle {

static constexpr std::array<std::string_view, 5> groups = {"graph.json", "weights/", "code/", "debug/", "tests/"};

unsigned entryGroup(std::string_view name) {
  for (unsigned i = 0; i < groups.size(); ++i)
    if (i == 0 ? name == groups[i] : name.starts_with(groups[i]) && name.size() > groups[i].size())
      return i;
  return groups.size();
}

std::string entryNameProblem(std::string_view name) {
  if (entryGroup(name) == groups.size())
    return "a name must be graph.json or lie below weights/, code/, debug/ or "
           "tests/";
  if (name.size() > 1024)
    return "the name is longer than 1024 bytes";
  if (!std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("._+/-").find(c) != std::string_view::npos;
      }))
    return "only the characters [A-Za-z0-9._+/-] are allowed in a name";
  size_t start = 0;
  while (start <= name.size()) {
    size_t end = std::min(name.find('/', start), name.size());
    std::string_view part = name.substr(start, end - start);
    if (part.empty() || part == "." || part == "..")
      return "the name has an empty, '.' or '..' component";
    start = end + 1;
  }
  return {};
}

} // namespace dmxc::bundle
