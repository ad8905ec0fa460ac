//===- Diagnostic.h - messages about the user's model -----------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace dmxc {

enum class Severity { Note, Help, Warning, Error };

/// One message in clang's grammar with the node in the place of the line:
///   model.onnx: node 'enc/MatMul_2': error: text [id]
///   note: ...
///   help: ...
struct Diagnostic {
  Severity severity = Severity::Error;
  std::string id;   ///< stable, kebab-case: "op-dtype"
  std::string file; ///< as the user gave it; may be empty
  std::string node; ///< the model node's name; may be empty
  std::string text;
  ErrorKind kind = ErrorKind::Model;                      ///< decides the exit code when it is an error
  std::vector<std::pair<Severity, std::string>> attached; ///< notes and helps, in order

  Diagnostic &note(std::string t) {
    attached.emplace_back(Severity::Note, std::move(t));
    return *this;
  }
  Diagnostic &help(std::string t) {
    attached.emplace_back(Severity::Help, std::move(t));
    return *this;
  }
};

/// Collects messages of one run and hands each to a consumer as it comes. Thread-safe.
class Diagnostics {
public:
  using Consumer = std::function<void(const Diagnostic &)>;
  explicit Diagnostics(Consumer consumer = {}) : consumer(std::move(consumer)) {}

  void report(Diagnostic diagnostic);
  /// An Error of the lower rooms as a message about `file`.
  void report(const Error &error, const std::string &id, const std::string &file = "");

  void setWarningsAsErrors(bool on) { warningsAsErrors = on; }
  size_t errorCount() const;
  const std::vector<Diagnostic> &all() const { return reported; }
  /// Exit code of the first error; 0 without one.
  int exitCode() const;

private:
  Consumer consumer;
  std::vector<Diagnostic> reported;
  bool warningsAsErrors = false;
  mutable std::mutex mutex;
};

/// The text form above, without a trailing newline; `color` adds ANSI colours.
std::string renderText(const Diagnostic &diagnostic, bool color);
/// One JSON object on one line.
std::string renderJson(const Diagnostic &diagnostic);

/// The nearest of `names` to `text` by edit distance, or "" when nothing is near: for "did you mean".
std::string nearestName(const std::string &text, const std::vector<std::string> &names);

} // namespace dmxc
