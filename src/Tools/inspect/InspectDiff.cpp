//===- InspectDiff.cpp - dmx-inspect --diff -------------------------------===//
#include "InspectCode.h"

#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/Inspect.h"

#include <ostream>

namespace dmxc::tools {

using namespace bundle;

Status printDiff(const Bundle &a, const InspectOptions &options, std::ostream &out) {
  auto b = Bundle::open(options.diffWith);
  if (!b)
    return b.takeError();
  std::vector<Difference> differences = diff(a, *b);
  explainCode(a, *b, differences);
  if (options.json) {
    Json list = Json::array();
    for (const Difference &d : differences)
      list.push_back({{"what", d.what}, {"name", d.name}, {"a", d.a}, {"b", d.b}});
    out << jsonText({{"equal", differences.empty()}, {"differences", std::move(list)}});
  } else {
    for (const Difference &d : differences)
      out << d.what << " " << visible(d.name) << "\n  - " << (d.a.empty() ? "(absent)" : visibleLines(d.a)) << "\n  + "
          << (d.b.empty() ? "(absent)" : visibleLines(d.b)) << "\n";
    if (differences.empty())
      out << "no differences\n";
  }
  if (differences.empty())
    return Status::ok();
  return Error{ErrorKind::Mismatch, "'" + a.path() + "' and '" + options.diffWith + "' differ in " +
                                        std::to_string(differences.size()) +
                                        (differences.size() == 1 ? " place" : " places")};
}

} // namespace dmxc::tools
