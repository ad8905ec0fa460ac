//===- BarrierOps.cpp - barriers of a block, mbarriers, fences ----------------===//

#include "Block.h"
#include "Decoder.h"
#include "Lanes.h"

#include "schemas/cuda/Limits.h"

namespace dmxrt::cuda {
namespace {

uint32_t firstOf(uint32_t lanes) { return static_cast<uint32_t>(std::countr_zero(lanes)); }
Knowledge &knowledgeOf(Warp &w) { return w.block->knows[w.number]; }

bool nothing(Warp &, const Op &) { return true; }

// --- bar, barrier --------------------------------------------------------------------------

enum : uint32_t { Arrives = 1, IsAligned = 2 };

/// A value that all active lanes must have.
bool uniform(Warp &w, uint32_t slot, uint32_t &out) {
  out = static_cast<uint32_t>(w.slots[slot][firstOf(w.active)]);
  for (uint32_t left = w.active; left; left &= left - 1)
    if (static_cast<uint32_t>(w.slots[slot][firstOf(left)]) != out)
      return w.fail(firstOf(left), "diverged: threads of a warp come to a barrier with different operands");
  return true;
}

bool comeToBarrier(Warp &w, const Op &op) {
  uint32_t id = 0, threads = w.block->threads();
  if (!uniform(w, op.source[0], id) || (op.sources > 1 && !uniform(w, op.source[1], threads)))
    return false;
  if (id >= Barriers::kNamed)
    return w.fail(firstOf(w.active), cat("bar-count: there is no barrier ", id, "; a block has 0 to 15"));
  NamedBarrier &barrier = w.block->barriers.named(id);
  w.block->idle += 8; // what each warp knows is joined
  if (w.ticket == 0) {
    if (threads == 0 || threads % kLanes)
      return w.fail(firstOf(w.active), cat("bar-count: a barrier cannot be of ", threads, " threads"));
    w.ticket = barrier.round;
    // A warp counts as a whole where all of it comes.
    auto count = op.immediate & IsAligned ? kLanes : static_cast<uint32_t>(std::popcount(w.active));
    std::string problem = w.block->barriers.arriveNamed(id, threads, count, knowledgeOf(w));
    if (!problem.empty())
      return w.fail(firstOf(w.active), std::move(problem));
    w.block->release(w.number);
  }
  if (op.immediate & Arrives)
    return true;
  if (barrier.round == w.ticket)
    w.wait = {Wait::Round, id, 0};
  else
    knowledgeOf(w).join(barrier.done);
  return true;
}

bool decodeNamed(Decoder &d, std::string_view root, Op &op) {
  if (root == "bar" && d.take("warp")) { // the threads' own memory is all that it orders here
    op.step = nothing;
    op.meeting = Op::Masked;
    return d.take("sync") && d.hasOperands(1) && d.source(op, 0, {'b', 32});
  }
  d.take("cta");
  bool arrives = d.take("arrive");
  if (!arrives && !d.take("sync"))
    return false;
  bool isAligned = root == "bar" || d.take("aligned");
  d.talk();
  op.step = comeToBarrier;
  op.immediate = (arrives ? Arrives : 0) | (isAligned ? IsAligned : 0);
  op.meeting = isAligned ? Op::Whole : Op::Alone;
  if (d.operands() == 0 || d.operands() > 2 || (arrives && d.operands() != 2))
    return d.refuseForm();
  return d.source(op, 0, {'b', 32}) && (d.operands() == 1 || d.source(op, 1, {'b', 32}));
}

// --- mbarrier ------------------------------------------------------------------------------

uint64_t addressOf(const Warp &w, const Op &op, uint32_t lane) {
  return Block::ofShared(w.slots[op.source[0]][lane] + static_cast<uint64_t>(op.offset));
}

bool makeMbarrier(Warp &w, const Op &op) {
  for (uint32_t left = w.active; left; left &= left - 1) {
    uint32_t lane = firstOf(left);
    std::string problem =
        w.block->barriers.make(addressOf(w, op, lane), static_cast<uint32_t>(w.slots[op.source[1]][lane]),
                               w.block->actors.ofWarp(w.number), knowledgeOf(w));
    if (!problem.empty())
      return w.fail(lane, std::move(problem));
  }
  return true;
}

bool dropMbarrier(Warp &w, const Op &op) {
  for (uint32_t left = w.active; left; left &= left - 1)
    if (std::string problem = w.block->barriers.drop(addressOf(w, op, firstOf(left))); !problem.empty())
      return w.fail(firstOf(left), std::move(problem));
  return true;
}

enum : uint32_t { Expects = 1, Relaxed = 2, OnlyExpects = 4 };

/// Arrivals, bytes that are to come, or both. The state that it gives is the number of the phase.
bool arrive(Warp &w, const Op &op) {
  Barriers &barriers = w.block->barriers;
  for (uint32_t left = w.active; left; left &= left - 1) {
    uint32_t lane = firstOf(left);
    uint64_t number = op.sources > 1 ? w.slots[op.source[1]][lane] : 1;
    std::string problem;
    Mbarrier *barrier = barriers.findFor(addressOf(w, op, lane), knowledgeOf(w), problem);
    if (!barrier)
      return w.fail(lane, std::move(problem));
    uint64_t phase = barrier->phase;
    if (op.immediate & Expects)
      problem = barriers.expect(*barrier, static_cast<int64_t>(number));
    if (problem.empty() && !(op.immediate & OnlyExpects))
      problem = barriers.arrive(*barrier, op.immediate & Expects ? 1 : static_cast<uint32_t>(number),
                                op.immediate & Relaxed ? nullptr : &knowledgeOf(w));
    if (!problem.empty())
      return w.fail(lane, std::move(problem));
    if (op.results)
      w.slots[op.result[0]][lane] = phase;
  }
  if (!(op.immediate & OnlyExpects))
    w.block->release(w.number);
  return !op.results || wrote(w, op.result[0]);
}

enum : uint32_t { Tries = 1, ByParity = 2, WaitsRelaxed = 4 };

/// Whether a phase has ended. One that tries waits for it, but may come back without, as it may after a time.
bool lookAtPhase(Warp &w, const Op &op) {
  Barriers &barriers = w.block->barriers;
  uint32_t ended = 0, before = kLanes;
  for (uint32_t left = w.active; left; left &= left - 1) {
    uint32_t lane = firstOf(left);
    uint64_t phase = w.slots[op.source[1]][lane];
    // Mostly all lanes look at the same.
    if (before < kLanes && addressOf(w, op, lane) == addressOf(w, op, before) &&
        phase == w.slots[op.source[1]][before]) {
      ended |= (ended >> before & 1) << lane;
      continue;
    }
    before = lane;
    std::string problem;
    const Mbarrier *barrier = barriers.findFor(addressOf(w, op, lane), knowledgeOf(w), problem);
    if (!barrier)
      return w.fail(lane, std::move(problem));
    if (op.immediate & ByParity && phase > 1)
      return w.fail(lane, cat("mbar-init: a parity is 0 or 1, not ", phase));
    if (!(op.immediate & ByParity ? barrier->hasEnded(static_cast<uint32_t>(phase)) : barrier->phase != phase))
      continue;
    ended |= 1u << lane;
    if (!(op.immediate & WaitsRelaxed))
      knowledgeOf(w).join(barrier->done);
  }
  bool mayComeBack = !w.block->launch.recorder && w.ticket == 0 && nextRandom(w.block->random) % 4 == 0;
  if (!ended && op.immediate & Tries && !mayComeBack) {
    uint32_t lane = firstOf(w.active);
    w.ticket = 1;
    w.wait = {Wait::Phase, addressOf(w, op, lane), static_cast<uint32_t>(w.slots[op.source[1]][lane] & 1)};
    return true;
  }
  uint32_t &to = w.predicates[op.predicateResult];
  to = (to & ~w.active) | ended;
  w.predicateWritten[op.predicateResult] |= w.active;
  return true;
}

/// What stands behind an mbarrier instruction's name: [.sem] [.scope] .shared .b64; whether it is relaxed.
bool takeTail(Decoder &d, bool &relaxed) {
  relaxed = d.take("relaxed");
  d.takeAny({"release", "acquire"});
  d.takeAny({"cta", "cluster"});
  return d.takeShared() && d.take("b64");
}

bool decodeArrive(Decoder &d, Op &op) {
  bool expects = d.take("expect_tx"), relaxed = false;
  if (!takeTail(d, relaxed) || d.operands() < 2 || (expects && d.operands() != 3) || d.operands() > 3)
    return false;
  op.step = arrive;
  op.immediate = (expects ? Expects : 0) | (relaxed ? Relaxed : 0);
  bool sinks = d.operand(0).kind == PtxOperand::Nothing;
  return (sinks || d.result(op, 0, {'b', 64})) && d.sharedAddress(op, d.operand(1), op.offset) &&
         (d.operands() == 2 || d.source(op, 2, {'b', 32}));
}

bool decodeWait(Decoder &d, bool tries, Op &op) {
  bool byParity = d.take("parity"), relaxed = false;
  if (!takeTail(d, relaxed) || d.operands() < 3 || d.operands() > (tries ? 4u : 3u))
    return false;
  op.step = lookAtPhase;
  op.immediate = (tries ? Tries : 0) | (byParity ? ByParity : 0) | (relaxed ? WaitsRelaxed : 0);
  const auto bits = static_cast<uint8_t>(byParity ? 32 : 64);
  return d.predicate(d.operand(0), op.predicateResult) && d.sharedAddress(op, d.operand(1), op.offset) &&
         d.source(op, 2, {'b', bits}) && (d.operands() == 3 || d.source(op, 3, {'b', 32}));
}

bool decodeMbarrier(Decoder &d, Op &op) {
  if (d.take("arrive"))
    return decodeArrive(d, op);
  bool tries = d.take("try_wait");
  if (tries || d.take("test_wait"))
    return decodeWait(d, tries, op);
  bool makes = d.take("init"), expects = !makes && d.take("expect_tx"), unused = false;
  if (!makes && !expects && !d.take("inval"))
    return false;
  if (!takeTail(d, unused))
    return false;
  op.step = makes ? makeMbarrier : expects ? arrive : dropMbarrier;
  op.immediate = expects ? Expects | OnlyExpects | Relaxed : 0;
  return d.hasOperands(makes || expects ? 2 : 1) && d.sharedAddress(op, d.operand(0), op.offset) &&
         (!(makes || expects) || d.source(op, 1, {'b', 32}));
}

// --- fences --------------------------------------------------------------------------------

/// What a warp knows of plain writes holds for the async proxy too.
bool fenceProxy(Warp &w, const Op &) {
  Knowledge &own = knowledgeOf(w);
  for (size_t i = 0; i < own.seen.size(); ++i)
    own.fenced[i] = std::max(own.fenced[i], own.seen[i]);
  w.block->release(w.number);
  return true;
}

bool fenceMbarriers(Warp &w, const Op &) {
  w.block->barriers.fence(w.block->actors.ofWarp(w.number));
  return true;
}

bool decodeFence(Decoder &d, Op &op) {
  d.talk();
  op.step = nothing;
  if (!d.hasOperands(0))
    return false;
  if (d.take("mbarrier_init")) {
    op.step = fenceMbarriers;
    return d.take("release") && d.take("cluster");
  }
  if (d.take("proxy")) {
    if (d.take("alias"))
      return true;
    if (!d.take("async"))
      return false;
    if (!d.take("global")) { // which is no shared memory
      d.takeShared();
      op.step = fenceProxy;
    }
    return true;
  }
  d.takeAny({"sc", "acq_rel", "acquire", "release"});
  return d.takeAny({"cta", "cluster", "gpu", "sys"});
}

bool takeRegisters(Warp &w, const Op &op) { return w.block->setRegisters(w, op.immediate, /*more=*/true); }
bool giveRegisters(Warp &w, const Op &op) { return w.block->setRegisters(w, op.immediate, /*more=*/false); }

/// setmaxnreg
bool decodeRegisterCount(Decoder &d, Op &op) {
  uint64_t count = 0;
  op.meeting = Op::Whole;
  d.talk();
  op.step = d.take("inc") ? takeRegisters : d.take("dec") ? giveRegisters : nullptr;
  if (!op.step || !d.take("sync") || !d.take("aligned") || !d.take("u32") || !d.hasOperands(1) ||
      !d.number(0, 256, count))
    return false;
  op.immediate = static_cast<uint32_t>(count);
  d.made().movesRegisters = true;
  if (count < dmx::cuda::kFewestRegisters || count % dmx::cuda::kRegisterStep)
    return d.refuse("setmaxnreg takes ", dmx::cuda::kFewestRegisters, " to 256, a multiple of ",
                    dmx::cuda::kRegisterStep, ", not ", count);
  return d.made().firstRegisters ||
         d.refuse("setmaxnreg does nothing in a kernel that has neither .maxnreg nor .minnctapersm and .reqntid");
}

} // namespace

bool decodeBarrier(Decoder &d, std::string_view root, Op &op) {
  if (root == "bar" || root == "barrier")
    return decodeNamed(d, root, op);
  if (root == "mbarrier")
    return decodeMbarrier(d, op);
  if (root == "fence")
    return decodeFence(d, op);
  if (root == "setmaxnreg")
    return decodeRegisterCount(d, op);
  if (root != "membar")
    return false;
  op.step = nothing;
  return d.takeAny({"cta", "gl", "sys"}) && d.hasOperands(0);
}

} // namespace dmxrt::cuda
