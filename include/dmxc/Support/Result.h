//===- Result.h - a value or an explained failure ---------------*- C++ -*-===//
//
// The error channel of everything below the compiler proper (files, archives,
// tensors). Standard C++ only, no exceptions.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dmxc {

/// What kind of failure it was; decides the exit code of a tool (README.md).
enum class ErrorKind {
  Model,      ///< the model or bundle is invalid or unsupported: exit 1
  Usage,      ///< wrong arguments: exit 2
  IO,         ///< a file cannot be read or written: exit 3
  Constraint, ///< the target cannot satisfy the constraints: exit 4
  Mismatch,   ///< a comparison failed: exit 5
  Internal    ///< a bug of ours: exit 70
};

/// The exit code that README.md assigns to a failure.
int exitCodeOf(ErrorKind kind);

/// A failure in one sentence: what, where, expected and got, what to do.
struct Error {
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
  /// Of a Constraint: nodes of the model without which the rest may satisfy it, and why they do not, a clause.
  std::vector<std::string> nodes = {};
  std::string reason = {};
};

/// Either a T or an Error. Check with `if (!r)`, then read `*r` or `r.error()`.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::move(value)) {}
  Result(Error error) : storage(std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return std::get<0>(storage); }
  const T &operator*() const { return std::get<0>(storage); }
  T *operator->() { return &std::get<0>(storage); }
  const T *operator->() const { return &std::get<0>(storage); }
  const Error &error() const { return std::get<1>(storage); }
  Error takeError() { return std::move(std::get<1>(storage)); }

private:
  std::variant<T, Error> storage;
};

/// Success or an Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failed(true), failure(std::move(error)) {}
  static Status ok() { return Status(); }

  /// True on success, like Result.
  explicit operator bool() const { return !failed; }
  const Error &error() const { return failure; }
  Error takeError() { return std::move(failure); }

private:
  bool failed = false;
  Error failure;
};

inline Error modelError(std::string message) { return {ErrorKind::Model, std::move(message)}; }
inline Error ioError(std::string message) { return {ErrorKind::IO, std::move(message)}; }
inline Error usageError(std::string message) { return {ErrorKind::Usage, std::move(message)}; }

} // namespace dmxc
