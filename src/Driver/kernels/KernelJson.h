//===- KernelJson.h - values of a kernel file -------------------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Kernels.h"

#include <nlohmann/json.hpp>

#include <set>

namespace dmxc::driver {

/// The file's text as JSON. Throws an Error, as all that reads it does.
nlohmann::json parseKernelJson(const std::string &file, std::string_view text);

/// A value with its place: "mine.json: kernels[0].operands[1]". What is not as asked for is thrown as an Error that
/// begins with it.
class KernelJson {
public:
  KernelJson(const nlohmann::json &value, std::string file, std::string path = "");

  std::string place() const;
  [[noreturn]] void fail(const std::string &clause) const;
  /// Fails for a key that is none of these.
  void onlyKeys(const std::vector<std::string> &keys) const;
  bool has(const char *key) const;

  KernelJson at(const char *key) const;
  std::string text(const char *key) const;
  std::string textOr(const char *key, const std::string &otherwise) const;
  int64_t integerOr(const char *key, int64_t otherwise) const;
  bool flagOr(const char *key, bool otherwise) const;
  std::vector<std::string> texts(const char *key) const;
  std::vector<int64_t> integers(const char *key) const;
  /// The objects of an array; where it may be empty, also of none.
  std::vector<KernelJson> list(const char *key, size_t least) const;
  /// A number, or an expression over names.
  Dim dim(const char *key, int64_t otherwise) const;
  std::vector<Dim> dims(const char *key) const;
  std::vector<std::string> keys() const;
  /// All of an object, which are bools, numbers and texts.
  std::map<std::string, dmir::KernelDecl::Value> values() const;

private:
  KernelJson inner(const nlohmann::json &value, const std::string &step) const;
  const nlohmann::json &find(const char *key) const;
  Dim toDim() const;
  std::string toText() const;
  int64_t toInteger() const;

  const nlohmann::json &value;
  std::string file, path;
};

/// The names of a kernel's dims that are expressions over others.
class NamedDims {
public:
  /// Reads "dims" of a kernel; `known` are the names that stand for themselves.
  NamedDims(const KernelJson &kernel, std::set<std::string> known);
  /// With what each name stands for in its place. Fails, at the place, for an unknown name and for one that leads to
  /// itself.
  Dim resolve(Dim dim, const KernelJson &place);

private:
  std::set<std::string> known;
  std::map<std::string, Dim> named;
  std::vector<std::string> open; ///< those that are being resolved
};

/// Which blocks run a body, of a kernel with such operands and results: {grid, block, shared, cluster, maps}.
dmir::KernelLaunch readLaunch(const KernelJson &json, const dmir::KernelDecl &decl, NamedDims &named);

/// How cores run a body that has 'cycles', of such a kernel: 'cycles', 'l1' and 'library'.
dmir::KernelCore readCore(const KernelJson &body, const dmir::KernelDecl &decl, NamedDims &named);

} // namespace dmxc::driver
