//===- Sequences.cpp - sessions of sequences ------------------------------===//
#include "Instance.h"

#include <algorithm>

namespace dmxrt::triton {

std::string Sequences::idOf(TRITONBACKEND_Request *request) {
  const char *text = nullptr; // a request has one of the two
  drop(TRITONBACKEND_RequestCorrelationIdString(request, &text));
  if (text && *text)
    return text;
  uint64_t number = 0;
  check(TRITONBACKEND_RequestCorrelationId(request, &number));
  return std::to_string(number);
}

dmx_session *Sequences::of(TRITONBACKEND_Request *request) {
  uint32_t flags = 0;
  check(TRITONBACKEND_RequestFlags(request, &flags));
  const std::string id = idOf(request);
  auto found = std::find_if(running.begin(), running.end(), [&](const Sequence &each) { return each.id == id; });
  const bool starts = flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START;
  if (found == running.end() && !starts)
    refuse("the sequence '" + id +
           "' has no state here: it has not begun, has ended, or has given way to others after a long wait; "
           "begin it anew with the start flag");
  if (found == running.end()) {
    if (static_cast<int64_t>(running.size()) >= model.settings().maxSequences) {
      idle.push_back(std::move(running.back().session));
      running.pop_back();
    }
    Session session = idle.empty() ? model.makeSession() : std::move(idle.back());
    if (!idle.empty())
      idle.pop_back();
    running.push_front({id, std::move(session)});
  } else {
    running.splice(running.begin(), running, found);
  }
  dmx_error error = DMX_ERROR_INIT;
  if (starts)
    check(dmx_session_reset_state(running.front().session.get(), &error), error);
  return running.front().session.get();
}

void Sequences::done(TRITONBACKEND_Request *request) {
  uint32_t flags = 0;
  check(TRITONBACKEND_RequestFlags(request, &flags));
  if (!(flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END))
    return;
  const std::string id = idOf(request);
  auto found = std::find_if(running.begin(), running.end(), [&](const Sequence &each) { return each.id == id; });
  if (found == running.end())
    return;
  idle.push_back(std::move(found->session));
  running.erase(found);
}

} // namespace dmxrt::triton
