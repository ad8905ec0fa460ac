//===- Quad.h - one quad of a simulated card --------------------*- C++ -*-===//
#pragma once

#include "Card.h"
#include "schemas/blockfp/DotProduct.h"

#include <atomic>

namespace dmxrt::corsair {

/// What a local WAIT waits for.
struct LocalWait {
  bool active = false;
  uint32_t id = 0;
  uint64_t count = 0;
};

/// One queue: its stream, its place in it and its time.
struct Queue {
  struct Frame {
    uint32_t begin = 0;
    int64_t trips = 0, counter = 0;
  };
  uint32_t index = 0, stream = isa::kNoStream, position = 0, mark = kNoMark;
  bool done = true;
  uint64_t time = 0;      ///< end of the last instruction
  uint64_t lastIssue = 0; ///< start of the last engine instruction
  bool issuedBefore = false;
  int depth = 0;
  std::array<Frame, isa::kMaxLoopDepth> frames;
  std::array<const MoveConfig *, isa::kConfigSlots> gm{}, st{};
  std::array<const ArrayConfig *, isa::kConfigSlots> array{};
  std::array<const SimdConfig *, isa::kConfigSlots> simd{};
  LocalWait local;
  RemoteWait remote;
  uint16_t thread = 0;
  VectorClock clock{};
  Usage pending;      ///< of the instruction in hand
  bool stuck = false; ///< read undefined bytes
  bool isReady() const { return !done && !stuck && !local.active && remote.kind == RemoteWait::Kind::None; }
};

/// What products keep from one to the next on a host thread.
struct ProductScratch {
  isa::TileMatmul product;
  std::vector<std::byte> tiles; ///< gathered activation tiles
};

/// Interprets the streams of one quad in the order of their issue times.
class Quad {
public:
  enum Outcome { Blocked, Suspended, Done, Faulted };

  Quad(Card &card, const ProgramRun &what, const RunOptions &options, const isa::Launch &launch, int ddrUsers,
       const VectorClock &clocks, uint64_t start);
  /// Runs until nothing can be done without other quads, or only after them; up to
  /// `grant` it need not ask them. `scratch` is the host thread's.
  Outcome run(uint64_t grant, ProductScratch &scratch);
  /// No event that is still to come is earlier; read while the quad runs.
  uint64_t lowerBound() const { return published.load(std::memory_order_acquire); }
  uint64_t candidate = 0;    ///< Suspended: the next event that this quad itself can do
  bool madeProgress = false; ///< in the last `run`
  std::string describeWaits() const;
  /// Queues that the program uses.
  uint32_t launchedMask() const { return launched; }
  /// The threads' clocks at the end.
  void saveClocks(VectorClock &out) const;

  std::optional<Fault> fault;
  std::optional<Fault> poison; ///< of a stuck queue; the fault unless there is another
  QuadResult result;
  std::map<uint32_t, Usage> marks;
  uint64_t lastTime = 0;

  // --- for the engines -------------------------------------------------------
  Card &card;
  const isa::Machine &machine;
  const uint32_t number;
  Timeline timeline;
  ProductScratch *scratch = nullptr; ///< in `run`

  /// The value of a field of the instruction at hand.
  int64_t value(Queue &queue, const isa::Instruction &in, int field);
  int64_t value(Queue &queue, const isa::Instruction &in, std::string_view field) {
    return value(queue, in, in.info().field(field));
  }
  /// Records a fault of the instruction at hand; false. A read of undefined bytes stops its queue only:
  /// when the write that should have come before it follows, the two are reported as a race.
  bool raise(Queue &queue, FaultKind kind, const std::string &text);
  /// Bytes of a range after all checks, or null and a fault.
  std::byte *readable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind);
  std::byte *writable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind);
  bool discard(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size);
  /// The kinds of a range's bytes in order; nothing without hazard checks.
  template <typename Visit> void visitKinds(Memory memory, uint32_t unit, int64_t address, int64_t size, Visit visit) {
    if (!options.hazards)
      return;
    auto lock = card.storage.lock(memory, unit);
    card.storage.shadow(memory, unit)
        .kinds(static_cast<uint64_t>(address), static_cast<uint64_t>(size),
               [&](uint64_t, uint64_t, sim::ByteKind kind) { visit(static_cast<ElemKind>(kind)); });
  }
  /// Gives destination bytes the kinds of source bytes, as a write.
  bool copyKinds(Queue &queue, Memory source, uint32_t sourceUnit, int64_t from, Memory destination,
                 uint32_t destinationUnit, int64_t to, int64_t size);
  /// Only the capacity check and the bytes.
  std::byte *reachable(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size);
  bool checkAligned(Queue &queue, int64_t address, int64_t alignment, std::string_view what);
  /// Unit of a memory of this quad; of a core's WB with `core`.
  uint32_t unitOf(Memory memory, int slice, int core = 0) const;
  uint32_t chiplet() const { return number / static_cast<uint32_t>(machine.quads); }
  Actor actor(const Queue &queue) const;
  bool readRegister(Queue &queue, uint32_t index, int64_t &out);
  bool writeRegister(Queue &queue, uint32_t index, int64_t in);
  /// Adds an engine's interval to figures and trace.
  void record(Queue &queue, Engine engine, int instance, uint64_t start, uint64_t end);
  bool hazards() const { return options.hazards; }
  const isa::Image &image() const { return *what.image; }

private:
  const ProgramRun what;
  const RunOptions options;
  std::array<Queue, 4> queues;
  uint32_t launched = 0;
  std::array<int64_t, isa::kRegisters> registers{};
  Shadow registerShadow;
  std::array<TokenQueue, isa::kTokens> tokens;
  std::atomic<uint64_t> published{0};

  uint64_t issueTime(const Queue &queue) const;
  Queue *earliest();
  bool pollRemote();
  bool pollRemote(Queue &queue);
  uint64_t horizon(uint64_t time) const;
  bool anyRemote() const;
  bool step(Queue &queue);
  bool control(Queue &queue, const Decoded &decoded);
  bool exchange(Queue &queue, const isa::Instruction &in);
  bool engine(Queue &queue, const Decoded &decoded, Interval &when);
  bool configure(Queue &queue, const Decoded &decoded);
  bool reset(Queue &queue, const isa::Instruction &in);
  bool barrier(Queue &queue, const isa::Instruction &in);
  bool takeMessage(Queue &queue);
  bool putMessage(Queue &queue);
  void account(Queue &queue, uint64_t start, uint64_t end);
  void wakeLocal(uint32_t id);
  std::shared_ptr<const VectorClock> release(Queue &queue);
  std::string where(const Queue &queue) const;
  std::string describe(const Epoch &epoch, bool wrote) const;
  bool report(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind, bool writing,
              const Problem &problem);
  bool access(Queue &queue, Memory memory, uint32_t unit, int64_t address, int64_t size, ElemKind kind, bool writing);
};

// The engines: what an instruction does and when. False after a fault.
bool executeMove(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);
bool executeProduct(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);
bool executeSimd(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);
bool executeTranspose(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);
bool executeReshape(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);
bool executeCpu(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when);

} // namespace dmxrt::corsair
