//===- CacheScope.cpp - the cache of a compile --------------------------------===//
#include "CacheScope.h"

#include <cstdlib>

namespace dmxc::driver {

CacheScope::CacheScope(const Options &options, Diagnostics &diagnostics) : diagnostics(diagnostics) {
  const char *named = std::getenv("DMXC_CACHE");
  std::string folder = !options.cache.empty() ? options.cache : named ? named : "";
  if (folder.empty())
    return;
  Result<std::unique_ptr<CodeCache>> opened = CodeCache::open(folder, options.cacheLimit << 20);
  if (!opened) {
    warn(opened.error().message);
    return;
  }
  cache = std::move(*opened);
  CodeCache::use(cache.get());
}

void CacheScope::warn(const std::string &message) {
  Diagnostic warning;
  warning.severity = Severity::Warning;
  warning.id = "cache";
  warning.text = message;
  diagnostics.report(std::move(warning));
}

void CacheScope::finish() {
  if (!cache)
    return;
  cache->trim();
  if (std::string problem = cache->problem(); !problem.empty())
    warn(problem);
}

std::optional<CodeCache::Counts> CacheScope::counts() const {
  return cache ? std::optional(cache->counts()) : std::nullopt;
}

} // namespace dmxc::driver
