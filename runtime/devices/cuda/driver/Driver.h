//===- Driver.h - NVIDIA's driver, opened where it is -----------*- C++ -*-===//
#pragma once

#include "DriverApi.h"
#include "runtime/Error.h"

namespace dmxrt::cuda {

/// The driver's library. Opened once a file and process, never closed: the driver keeps threads.
class Driver {
public:
  /// `file` as dlopen takes it. An error says why there is none: for people, without a subject.
  static Result<const Driver *> open(const std::string &file);
  static constexpr const char *kFile = "libcuda.so.1";

  DriverApi api{};
  /// 12040: CUDA 12.4; 0 where it does not say.
  int version() const;
  static std::string versionText(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

  /// A sentence: what the code is called, what it means and what to do.
  std::string explain(DriverCode code) const;
  /// "cannot WHAT: ..."; of another status where the memory does not suffice.
  Error failure(DriverCode code, std::string_view what) const;

private:
  Status load(const std::string &file);
};

/// What a code of the driver means, and what to do.
struct DriverError {
  DriverCode code;
  const char *name; ///< CUDA_ERROR_...
  const char *text;
  bool endsContext; ///< nothing of the process can use the GPU after it
};
/// Null for one that is not known here.
const DriverError *findDriverError(DriverCode code);

} // namespace dmxrt::cuda
