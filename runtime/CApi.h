//===- CApi.h - what the functions of dmx.h have in common ------*- C++ -*-===//
#pragma once

#include "runtime/bundle/Bundle.h"
#include "runtime/session/Session.h"

#include <algorithm>
#include <cstring>
#include <new>

struct dmx_bundle {
  std::shared_ptr<const dmxrt::Bundle> impl;
};

struct dmx_session {
  std::unique_ptr<dmxrt::Session> impl;
};

namespace dmxrt::capi {

/// Copies status and sentence into the caller's struct, as far as it reaches.
dmx_status report(dmx_error *error, dmx_status status, std::string_view message);

/// Runs `body`, which returns a Status, and stops what it throws.
template <typename Body> dmx_status guarded(dmx_error *error, Body body) {
  try {
    Status status = body();
    return report(error, status.error().status, status.error().message);
  } catch (const std::bad_alloc &) {
    return report(error, DMX_STATUS_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception &exception) {
    return report(error, DMX_STATUS_INTERNAL, exception.what());
  } catch (...) {
    return report(error, DMX_STATUS_INTERNAL, "unknown failure inside the runtime");
  }
}

inline Error isNull(std::string_view what) { return fail(DMX_STATUS_INVALID_ARGUMENT, "argument ", what, " is NULL"); }

/// An error that names the entry points that there are.
Error noEntryPoint(const Bundle &bundle, const char *name);

/// Copies a struct of options as far as both sides know it. What a newer caller sets beyond that is refused,
/// not ignored: it may be what keeps the caller safe.
template <typename Options> Status copyIn(const Options *given, Options &out, std::string_view initializer) {
  if (!given)
    return {};
  if (given->struct_size < sizeof(size_t))
    return fail(DMX_STATUS_INVALID_ARGUMENT, "options->struct_size is not set; use ", initializer);
  const std::byte *bytes = reinterpret_cast<const std::byte *>(given);
  for (size_t i = sizeof out; i < given->struct_size; ++i)
    if (bytes[i] != std::byte{})
      return fail(DMX_STATUS_UNSUPPORTED, "options has a field that this runtime (", dmx_version_string(),
                  ") does not know; use a newer one");
  std::memcpy(static_cast<void *>(&out), given, std::min(given->struct_size, sizeof out));
  return {};
}

/// Copies `info` to the caller up to the caller's struct_size, which is kept.
template <typename Info> Status copyOut(Info info, Info *out) {
  if (!out)
    return isNull("info");
  if (out->struct_size < sizeof(size_t))
    return fail(DMX_STATUS_INVALID_ARGUMENT, "info->struct_size is not set");
  info.struct_size = out->struct_size;
  std::memcpy(static_cast<void *>(out), &info, std::min(out->struct_size, sizeof info));
  return {};
}

} // namespace dmxrt::capi
