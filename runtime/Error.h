//===- Error.h - the runtime's error channel --------------------*- C++ -*-===//
//
// Every fallible function returns a Result or a Status; CApi.cpp copies the
// sentence into the caller's dmx_error. The only exception the runtime has to
// expect is std::bad_alloc, which CApi.cpp turns into a status as well.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmx/dmx.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace dmxrt {

struct Error {
  dmx_status status = DMX_STATUS_INTERNAL;
  std::string message;
};

/// Either a T or an Error. Check with `if (!r)`, then read `*r` or `r.error()`.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : storage(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return *std::get_if<0>(&storage); }
  const T &operator*() const { return *std::get_if<0>(&storage); }
  T *operator->() { return std::get_if<0>(&storage); }
  const T *operator->() const { return std::get_if<0>(&storage); }
  const Error &error() const { return *std::get_if<1>(&storage); }
  Error takeError() { return std::move(*std::get_if<1>(&storage)); }

private:
  std::variant<T, Error> storage;
};

/// Success (status DMX_OK, no allocation) or an Error.
class [[nodiscard]] Status {
public:
  Status() { failure.status = DMX_OK; }
  Status(Error error) : failure(std::move(error)) {}

  explicit operator bool() const { return failure.status == DMX_OK; }
  const Error &error() const { return failure; }
  Error takeError() { return std::move(failure); }

private:
  Error failure;
};

namespace detail {
inline void append(std::string &out, std::string_view text) { out += text; }
template <typename T>
  requires std::is_arithmetic_v<T>
void append(std::string &out, T number) {
  out += std::to_string(number);
}
} // namespace detail

/// Concatenates texts and numbers.
template <typename... Parts> std::string cat(const Parts &...parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

template <typename... Parts> Error fail(dmx_status status, const Parts &...parts) {
  return Error{status, cat(parts...)};
}
/// The bundle is damaged or contradicts itself.
template <typename... Parts> Error badBundle(const Parts &...parts) {
  return Error{DMX_STATUS_INVALID_BUNDLE, cat(parts...)};
}

/// `error` with "where: " before its sentence.
inline Error within(std::string_view where, Error error) {
  error.message = cat(where, ": ", error.message);
  return error;
}

} // namespace dmxrt
