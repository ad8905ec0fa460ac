//===- TaskBytes.cpp - which bytes the device's tasks touch ---------------===//

#include "TaskBytes.h"

#include "schemas/corsair/verify/AccessRules.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// From buffer to buffer: more than any memory holds, so that a place says whose it is.
static constexpr int kApart = 36;

/// Whether a task reaches other quads or what they share.
static bool isLocalTask(Operation *task) {
  auto copy = dyn_cast<dlir::DmaCopyOp>(task);
  return !(copy && copy.getPeers()) && llvm::none_of(task->getOperands(), [](Value operand) {
    return isa<dlir::MemoryType>(operand.getType()) && memoryOf(operand) == hw::Memory::DDR;
  });
}

TaskBytes::TaskBytes(dlir::DeviceProgramOp program, const hw::Machine &machine, const Addresses &placed)
    : placed(placed) {
  image.machine = machine;
  looked.assign(machine.quadCount(), false);
  for (auto graph : program.getBody().getOps<dlir::ScheduledGraphOp>())
    lookAt(graph);
  program.walk([&](dlir::DmaCopyOp copy) {
    if (copy.getPeers())
      exchanged.insert(copy.getBuffers()[1]);
  });
  for (auto memory : program.getBody().getOps<dlir::MemoryOp>()) {
    std::vector<Value> &same = buffers[static_cast<int>(memoryOf(memory))];
    apart[memory] = static_cast<int64_t>(same.size()) << kApart;
    same.push_back(memory);
  }
}

/// The first, the second and the last quad, and those whose registers say something else to loops and local tasks.
void TaskBytes::lookAt(dlir::ScheduledGraphOp graph) {
  const int64_t quads = std::min<int64_t>(graph.unitCount(), image.machine.quadCount());
  SmallVector<dlir::RegisterOp> registers;
  for (auto reg : graph.getBody().getOps<dlir::RegisterOp>())
    if (reg.getValues().size() > 1 &&
        llvm::any_of(reg->getUsers(), [](Operation *user) { return isa<dlir::LoopOp>(user) || isLocalTask(user); }))
      registers.push_back(reg);
  std::set<std::vector<int64_t>> known;
  auto isNew = [&](int64_t quad) {
    std::vector<int64_t> values;
    for (dlir::RegisterOp reg : registers)
      values.push_back(reg.getValues()[quad]);
    return known.insert(std::move(values)).second;
  };
  for (int64_t quad : {int64_t(0), std::min<int64_t>(1, quads - 1), quads - 1}) {
    looked[quad] = true;
    isNew(quad);
  }
  for (int64_t quad = 0; quad < quads; ++quad)
    if (!looked[quad] && isNew(quad))
      looked[quad] = true;
}

TaskBytes::Coded &TaskBytes::codeOf(Operation *task) {
  auto [known, isNew] = codes.try_emplace(task);
  Coded &coded = known->second;
  if (!isNew ||
      !isa<dlir::DmaCopyOp, engine::MatmulOp, engine::ConvOp, engine::SimdOp, engine::ReshapeOp, engine::NopOp>(task))
    return coded;
  GraphContext context{apart, tokens, options};
  FailureOr<std::vector<hw::Instruction>> code = StreamEncoder(image, context).one(task);
  if (failed(code))
    return coded;
  coded.graph = task->getParentOfType<dlir::ScheduledGraphOp>();
  coded.instruction = std::move(code->back());
  coded.isLocal = isLocalTask(task);
  coded.isShared = llvm::any_of(task->getOperands(), [&](Value operand) { return exchanged.contains(operand); });
  if (code->size() > 1)
    coded.config = std::move(code->front());
  return coded;
}

int64_t TaskBytes::valueOf(const hw::Operand &operand, dlir::ScheduledGraphOp graph, int64_t quad,
                           ArrayRef<int64_t> trips) {
  int64_t sum = operand.base;
  for (const hw::Term &term : operand.terms) {
    int64_t source = quad;
    if (term.source < hw::kTermRegister) {
      source = trips[term.source];
    } else if (term.source < hw::kTermQuad) {
      for (auto reg : graph.getBody().getOps<dlir::RegisterOp>())
        if (reg.getNumber() == static_cast<uint64_t>(term.source - hw::kTermRegister))
          source = reg.getValues().size() == 1 ? reg.getValues().front() : reg.getValues()[quad];
    }
    sum += term.scale * source;
  }
  return sum;
}

int64_t TaskBytes::unitsOfQuad(hw::Memory memory) const {
  const hw::Machine &machine = image.machine;
  const hw::MemoryInfo::Scope scope = machine.memory(memory).scope;
  return scope == hw::MemoryInfo::Scope::Slice  ? machine.slices
         : scope == hw::MemoryInfo::Scope::Core ? int64_t(machine.slices) * machine.cores
                                                : 1;
}

int64_t TaskBytes::unitFor(hw::Memory memory, int64_t unit, int64_t quad) const {
  return memory == hw::Memory::DDR ? unit + quad / image.machine.quads : unit + quad * unitsOfQuad(memory);
}

bool TaskBytes::isLookedAt(Value buffer, int64_t unit) const {
  const hw::Memory memory = memoryOf(buffer);
  const size_t quad = unit / unitsOfQuad(memory);
  return memory == hw::Memory::DDR || exchanged.contains(buffer) || (quad < looked.size() && looked[quad]);
}

bool TaskBytes::touched(Operation *task, int64_t quad, ArrayRef<int64_t> trips, std::vector<dlir::Touched> &out) {
  Coded &coded = codeOf(task);
  if (!coded.instruction)
    return false;
  if (coded.isLocal && !coded.isShared && !looked[quad])
    return true;
  const std::vector<hw::Operand> &operands = coded.instruction->operands;
  if (!llvm::all_of(operands, [](const hw::Operand &operand) { return operand.terms.empty(); }) || !coded.isLocal)
    return add(coded, quad, trips, out);
  if (std::vector<dlir::Touched> first; !coded.touched) {
    if (!add(coded, 0, trips, first))
      return false;
    coded.touched = std::move(first);
  }
  for (const dlir::Touched &one : *coded.touched) {
    if (!looked[quad] && !exchanged.contains(one.buffer))
      continue;
    out.push_back(one);
    for (int64_t &unit : out.back().units)
      unit = unitFor(memoryOf(one.buffer), unit, quad);
  }
  return true;
}

bool TaskBytes::add(const Coded &coded, int64_t quad, ArrayRef<int64_t> trips, std::vector<dlir::Touched> &out) const {
  hw::access::Site site{&*coded.instruction, &image.machine, static_cast<uint32_t>(quad), {}};
  for (const hw::Operand &operand : coded.instruction->operands)
    site.values.push_back(hw::access::Interval::of(valueOf(operand, coded.graph, quad, trips)));
  std::vector<hw::Access> found;
  hw::access::addAccesses(site, coded.config ? &*coded.config : nullptr, found);
  for (const hw::Access &access : found) {
    if (!access.range)
      return false;
    const std::vector<Value> &same = buffers[static_cast<int>(access.memory)];
    int64_t number = (access.range->begin + (int64_t(1) << (kApart - 1))) >> kApart;
    if (number < 0 || number >= static_cast<int64_t>(same.size()))
      return false;
    SmallVector<int64_t, 4> units;
    llvm::copy_if(access.units, std::back_inserter(units),
                  [&](uint32_t unit) { return isLookedAt(same[number], unit); });
    if (units.empty())
      continue;
    dlir::Touched &one = out.emplace_back();
    one.buffer = same[number];
    one.units = std::move(units);
    one.write = access.write;
    one.all = access.all && !access.runs.empty();
    const int64_t base = number << kApart;
    if (access.runs.empty())
      one.runs.push_back({access.range->begin - base, access.range->end - access.range->begin, {}});
    for (const hw::Runs &runs : access.runs) {
      dlir::ByteRuns &made = one.runs.emplace_back(dlir::ByteRuns{runs.begin - base, runs.bytes, {}});
      for (auto [count, bytes] : runs.steps)
        made.steps.push_back({count, bytes});
    }
  }
  return true;
}

int64_t TaskBytes::groupOf(StringRef scope, int64_t quad) const {
  return scope == "card" ? 0 : scope == "chiplet" ? quad / image.machine.quads : quad;
}

/// Bands of 64 runs, and the tiles along each.
static dlir::ByteRuns bytesOfTiles(dlir::PieceOp piece, hw::ElemKind kind) {
  const hw::TileShape shape = *hw::tileOf(kind);
  const size_t rank = piece.getExtent().size(), along = rank - (hw::nameOf(kind).back() == 'c' ? 2 : 1);
  int64_t runs = 1;
  for (auto [dim, extent] : llvm::enumerate(piece.getExtent()))
    runs *= dim == along ? 1 : extent;
  const int64_t bands = llvm::divideCeil(runs, hw::kTileRuns),
                tiles = llvm::divideCeil(piece.getExtent()[along], shape.depth);
  return {static_cast<int64_t>(piece.getOffset()),
          shape.bytes(),
          {{bands, piece.getStrides()[0]}, {tiles, piece.getStrides()[1]}}};
}

SmallVector<dlir::ByteRuns, 2> TaskBytes::bytesOf(dlir::PieceOp piece) const {
  for (auto argument : piece->getParentRegion()->getOps<dlir::ArgumentOp>()) {
    std::optional<hw::ElemKind> kind = hw::elemKindFromName(argument.getForm().str());
    if (argument.getName() != piece.getArgument() || !kind)
      continue;
    const auto offset = static_cast<int64_t>(piece.getOffset());
    if (argument.getRole() == dlir::ArgumentRole::constant)
      return {{offset, piece.getExtent().front(), {}}};
    if (hw::isTiled(*kind) && piece.getStrides().size() == 2 && piece.getExtent().size() > 1)
      return {bytesOfTiles(piece, *kind)};
    if (hw::isTiled(*kind) || piece.getStrides().size() != piece.getExtent().size())
      continue;
    dlir::ByteRuns runs{offset, hw::elementBytes(*kind), {}};
    for (auto [extent, stride] : llvm::zip(piece.getExtent(), piece.getStrides()))
      runs.steps.push_back({extent, stride});
    return {runs};
  }
  return {};
}
