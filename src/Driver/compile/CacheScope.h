//===- CacheScope.h - the cache of a compile --------------------*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Support/CodeCache.h"
#include "dmxc/Support/Diagnostic.h"

namespace dmxc::driver {

/// Opens the cache that --cache or DMXC_CACHE names for its life. What is wrong with it is a warning: it makes compiles
/// shorter, and they do without.
class CacheScope {
public:
  CacheScope(const Options &options, Diagnostics &diagnostics);
  ~CacheScope() { CodeCache::use(nullptr); }
  CacheScope(const CacheScope &) = delete;

  /// When all is compiled: keeps the folder's bound, and says what could not be kept.
  void finish();
  /// What came from it; nothing where there is none.
  std::optional<CodeCache::Counts> counts() const;

private:
  void warn(const std::string &message);

  Diagnostics &diagnostics;
  std::unique_ptr<CodeCache> cache;
};

} // namespace dmxc::driver
