//===- HostCode.h - functions that users wrote, on the host -----*- C++ -*-===//
//
// Cores have no code of their own here, so that of a user is an object of the host's processor, as a compiler makes it.
// It is not linked with anything: what it would need from elsewhere is refused, and nothing of it is ever writable and
// executable, or written to by what it runs. The compiler asks the same loader whether an object is one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace dmx::aie {

/// The interface "plain" of KERNELS.md: buffers, sizes, what is computed of them, scratch (none here).
using UserFunctionPtr = int32_t (*)(void **buffers, const int64_t *dims, int64_t begin, int64_t end, void *scratch);

/// An object with its addresses filled in, on pages of its own.
class HostCode {
public:
  /// Trusts nothing of the bytes. None of it can run before `find`. Null, and why, in a clause, where they are no
  /// object that has all it needs, runs nothing by itself and can lie anywhere.
  static std::shared_ptr<const HostCode> load(std::span<const std::byte> object, std::string &error);
  ~HostCode();
  HostCode(const HostCode &) = delete;
  HostCode &operator=(const HostCode &) = delete;

  bool has(const std::string &symbol) const { return functions.count(symbol) != 0; }
  /// "'argmax', 'helper'": the functions that it has.
  std::string names() const;
  /// Null where it does not define such a function, or the system gives no executable pages.
  UserFunctionPtr find(const std::string &symbol) const;

private:
  HostCode() = default;
  std::byte *base = nullptr;
  uint64_t size = 0, codeBytes = 0; ///< code comes first
  std::map<std::string, uint64_t> functions;
  friend class ObjectLoader;
};

} // namespace dmx::aie
