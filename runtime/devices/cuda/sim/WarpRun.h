//===- WarpRun.h - how a warp goes through its program ----------*- C++ -*-===//
//
// The threads of a warp have program counters of their own. Those at the lowest one go on together, so that threads
// that parted at a branch meet again where its ways do. Those that wait for something stand aside, and those at an
// instruction that needs others stand there until they come.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Launch.h"

namespace dmxrt::cuda {

class WarpRun {
public:
  enum class Turn : uint8_t { Used, Waits, Ended, Failed };

  /// `idle`: instructions of the launch since a warp ended.
  WarpRun(const Launch &launch, Block *block, uint64_t &idle);
  void start(uint32_t blockNumber, uint32_t warpNumber);
  /// Goes on for so many instructions, or until no thread can.
  Turn run(uint64_t budget);

  Warp warp;
  uint32_t faultLine = 0;
  uint64_t steps = 0;
  bool ended = false;

  /// Calls each(wait, lanes, line) for those that wait.
  template <typename Each> void forEachWait(Each each) const {
    for (const Group &group : groups)
      if (group.state == Group::Waits)
        each(group.wait, group.lanes, program.ops[group.at].line);
  }

private:
  struct Group {
    enum State : uint8_t { Ready, Meets, Waits } state = Ready;
    uint32_t lanes = 0, at = 0;
    uint64_t ticket = 0;
    Wait wait;
  };

  void fill(uint32_t slot, uint64_t value);
  void fillConstants();
  bool tryAgain();
  bool regroup();
  bool finishMeetings();
  bool stands() const;
  bool meet(const Op &op);
  bool take(const Op &op);
  bool guardOf(const Op &op, uint32_t &active);
  bool step(const Op &op, uint32_t active);
  bool checkSources(const Op &op, uint32_t active);
  bool checkRegisters(const Op &op, uint32_t active);
  bool choose(const Op &op, uint32_t active);
  bool exit(const Op &op, uint32_t active);
  bool fail(const Op &op, uint32_t lanes, std::string what);

  const Launch &launch;
  const Program &program;
  uint64_t &idle;
  std::unique_ptr<Warp::Slot[]> slots;
  std::vector<uint32_t> written, predicates, predicateWritten, stamps;
  std::vector<uint32_t> flying;
  std::vector<std::byte> local;
  std::vector<Group> groups;
  uint32_t current = 0, at = 0; // lanes that go on, and where
  uint32_t nearest = 0;         // where the first of the others is that could
  bool failed = false;
};

} // namespace dmxrt::cuda
