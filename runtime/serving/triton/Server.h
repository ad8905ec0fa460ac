//===- Server.h - Triton's C API as C++ sees it -----------------*- C++ -*-===//
//
// Everything below the exported functions throws Failure, which becomes the server's error with its status.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmx/dmx.h"
#include "triton/core/tritonbackend.h"

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace dmxrt::triton {

/// A status of the server and one sentence.
class Failure : public std::exception {
public:
  Failure(TRITONSERVER_Error_Code code, std::string text) : code(code), text(std::move(text)) {}
  const char *what() const noexcept override { return text.c_str(); }
  TRITONSERVER_Error_Code code;
  std::string text;
};

/// What is wrong with a request or a configuration.
[[noreturn]] inline void refuse(std::string text) { throw Failure(TRITONSERVER_ERROR_INVALID_ARG, std::move(text)); }

/// Throws what a function of the server says.
inline void check(TRITONSERVER_Error *error) {
  if (!error)
    return;
  Failure failure(TRITONSERVER_ErrorCode(error), TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  throw failure;
}

/// The server's status for one of the runtime's.
inline TRITONSERVER_Error_Code codeOf(dmx_status status) {
  switch (status) {
  case DMX_STATUS_INVALID_ARGUMENT:
  case DMX_STATUS_KERNEL: // the data, e.g. an index out of range
    return TRITONSERVER_ERROR_INVALID_ARG;
  case DMX_STATUS_IO:
    return TRITONSERVER_ERROR_NOT_FOUND;
  case DMX_STATUS_UNSUPPORTED:
    return TRITONSERVER_ERROR_UNSUPPORTED;
  case DMX_STATUS_BUSY:
  case DMX_STATUS_OUT_OF_MEMORY:
  case DMX_STATUS_UNTRUSTED:
    return TRITONSERVER_ERROR_UNAVAILABLE;
  default:
    return TRITONSERVER_ERROR_INTERNAL;
  }
}

/// Throws what a function of dmx.h says: check(dmx_session_run(session, error), error).
inline void check(dmx_status status, const dmx_error &error) {
  if (status)
    throw Failure(codeOf(status), error.message);
}

/// Runs `body`; what it throws becomes the server's error.
template <typename Body> TRITONSERVER_Error *guarded(Body body) {
  try {
    body();
    return nullptr;
  } catch (const Failure &failure) {
    return TRITONSERVER_ErrorNew(failure.code, failure.what());
  } catch (const std::bad_alloc &) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory");
  } catch (const std::exception &other) {
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, other.what());
  }
}

/// Nanoseconds of the clock that the server's statistics use.
inline uint64_t now() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

/// For errors that nobody can be told of.
inline void drop(TRITONSERVER_Error *error) {
  if (error)
    TRITONSERVER_ErrorDelete(error);
}

inline void log(TRITONSERVER_LogLevel level, const std::string &text) {
  drop(TRITONSERVER_LogMessage(level, __FILE__, __LINE__, text.c_str()));
}

} // namespace dmxrt::triton
