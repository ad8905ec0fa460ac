//===- StateMemory.cpp - decoders whose caches are states of the session --===//
#include "Memory.h"

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

} // namespace

std::unique_ptr<Memory> stateMemory(const Roles &roles) {
  return std::make_unique<StateMemory>(roles.positions.has_value());
}

} // namespace dmxc::tools
