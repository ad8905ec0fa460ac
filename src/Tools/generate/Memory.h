//===- Memory.h - how a decoder remembers the tokens before -----*- C++ -*-===//
//
// Private to the Tools room. One class a form of decoder, each in a file of its own: caches that are inputs and outputs
// of a run (CarriedMemory.cpp), states in the session (StateMemory.cpp), none (NoMemory.cpp).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Tools/Roles.h"

#include <limits>
#include <memory>

namespace dmxc::tools {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

class Memory {
public:
  virtual ~Memory() = default;
  /// Binds what a run behind `length` tokens needs of it; ids, mask and positions are bound.
  virtual Status bind(ModelSession &session, int64_t length) = 0;
  /// Keeps what the run gave.
  virtual Status keep(ModelSession &session) = 0;
  /// Forgets all of `length` tokens but the first `kept`.
  virtual Status truncate(ModelSession &session, int64_t length, int64_t kept) = 0;
  /// Whether truncate takes other numbers than 0.
  virtual bool forgetsSingleTokens() const = 0;
  /// Whether a run gets the tokens before again.
  virtual bool recomputes() const { return false; }
  /// Most tokens.
  virtual int64_t room() const { return kNoLimit; }
  /// Read and written by the last run.
  virtual uint64_t bytesMoved() const { return 0; }
};

/// `context`: most tokens, 0 where that is not known. Errors are ErrorKind::Model.
Result<std::unique_ptr<Memory>> carriedMemory(const ModelSession &session, const Roles &roles, int64_t context);
/// `bytes`: of all states.
std::unique_ptr<Memory> stateMemory(ModelSession &session, const Roles &roles, uint64_t bytes);
std::unique_ptr<Memory> noMemory();

} // namespace dmxc::tools
