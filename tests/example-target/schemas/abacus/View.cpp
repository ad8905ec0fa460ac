//===- View.cpp - what dmx-inspect shows of the abacus --------------------===//
#include "Machine.h"

#include "schemas/queues/View.h"

namespace dmx::abacus {

using Text = std::optional<std::string>;
using Bytes = std::span<const std::byte>;

Text describeCode(Bytes code, std::string_view kernel, bool, std::string &error) {
  return queues::describe(code, kMachine, kernel, error);
}
Text printCode(Bytes code, std::string_view kernel, std::string &error) {
  return queues::print(code, kMachine, kernel, error);
}
Text compareCode(Bytes a, Bytes b, std::string &error) { return queues::compare(a, b, kMachine, error); }

} // namespace dmx::abacus
