//===- StateMemory.cpp - decoders whose caches are states of the session --===//
#include "Memory.h"

#include <algorithm>

namespace dmxc::tools {

namespace {

/// States of one size. Where tokens have positions, those behind the current one are masked or written anew, so that
/// forgetting them needs no more than counting.
class StateMemory : public Memory {
public:
  explicit StateMemory(bool hasPositions) : hasPositions(hasPositions) {}
  Status bind(ModelSession &, int64_t) override { return Status::ok(); }
  Status keep(ModelSession &) override { return Status::ok(); }
  Status truncate(ModelSession &session, int64_t, int64_t kept) override {
    return kept ? Status::ok() : session.resetState();
  }
  bool forgetsSingleTokens() const override { return hasPositions; }

private:
  bool hasPositions;
};

/// States with a row a token, which the session counts.
class GrowingStateMemory : public Memory {
public:
  GrowingStateMemory(int64_t capacity, uint64_t rowBytes) : capacity(capacity), rowBytes(rowBytes) {}
  Status bind(ModelSession &, int64_t) override { return Status::ok(); }
  /// A run reads the rows before, and writes its own.
  Status keep(ModelSession &session) override {
    moved = static_cast<uint64_t>(session.stateRows().value_or(StateRows()).length) * rowBytes;
    return Status::ok();
  }
  Status truncate(ModelSession &session, int64_t, int64_t kept) override {
    return kept ? session.truncateState(kept) : session.resetState();
  }
  bool forgetsSingleTokens() const override { return true; }
  int64_t room() const override { return capacity; }
  uint64_t bytesMoved() const override { return moved; }

private:
  const int64_t capacity;
  const uint64_t rowBytes;
  uint64_t moved = 0;
};

} // namespace

std::unique_ptr<Memory> stateMemory(ModelSession &session, const Roles &roles, uint64_t bytes) {
  if (std::optional<StateRows> rows = session.stateRows())
    return std::make_unique<GrowingStateMemory>(rows->capacity,
                                                bytes / static_cast<uint64_t>(std::max<int64_t>(rows->capacity, 1)));
  return std::make_unique<StateMemory>(roles.positions.has_value());
}

} // namespace dmxc::tools
