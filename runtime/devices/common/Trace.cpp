//===- Trace.cpp - a run as a Chrome trace --------------------------------===//
#include "Trace.h"

namespace dmxrt::sim {

void Trace::process(uint32_t process, const std::string &name) {
  if (!processes.insert(process).second)
    return;
  entry();
  out.add("{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %u, \"args\": {\"name\": ", process);
  out.quoted(name);
  out.add("}}");
}

void Trace::row(uint32_t process, uint32_t row, const std::string &name) {
  if (!rows.insert({process, row}).second)
    return;
  entry();
  out.add("{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %u, \"tid\": %u, \"args\": {\"name\": ", process, row);
  out.quoted(name);
  out.add("}}");
}

void Trace::begin(uint32_t process, uint32_t row, double microseconds, double duration, std::string_view name) {
  entry();
  out.add("{\"ph\": \"X\", \"pid\": %u, \"tid\": %u, \"ts\": %s, \"dur\": %s, \"name\": ", process, row,
          fixed(microseconds, 4).c_str(), fixed(duration, 4).c_str());
  out.quoted(name);
  out.add(", \"args\": {");
  arguments = 0;
}

void Trace::argument(const char *name, std::string_view text) {
  key(name);
  out.quoted(text);
}

void Trace::argument(const char *name, uint32_t number) {
  key(name);
  out.add("%u", number);
}

void Trace::finish() { out.add("}}"); }

} // namespace dmxrt::sim
