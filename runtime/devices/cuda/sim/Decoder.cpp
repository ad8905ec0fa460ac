//===- Decoder.cpp - from an instruction to what it does ----------------------===//

#include "Decoder.h"
#include "SharedMemory.h"
#include "clock/Occupancy.h"
#include "schemas/cuda/Limits.h"
#include "schemas/cuda/TensorMap.h"

#include <algorithm>

namespace dmxrt::cuda {

bool Decoder::hasOperands(size_t count) {
  return operands() == count || refuse("'", instruction->name(), "' has ", operands(), " operands, not ", count);
}

uint32_t Decoder::constantSlot(uint64_t bits) {
  auto [known, isNew] = constants.emplace(bits, static_cast<uint32_t>(program.constants.size()));
  if (isNew)
    program.constants.push_back(bits);
  return Constants + known->second;
}

/// Whether an instruction of the kernel has the variable.
static bool mentions(const std::vector<PtxOperand> &operands, std::string_view name) {
  for (const PtxOperand &each : operands)
    if ((each.kind == PtxOperand::Symbol && each.name == name) || mentions(each.parts, name))
      return true;
  return false;
}
static bool mentions(const PtxKernel &kernel, std::string_view name) {
  for (const PtxInstruction &each : kernel.code)
    if (mentions(each.operands, name))
      return true;
  return false;
}

/// Variables of shared memory that the kernel has, those of the launch's size last.
void Decoder::layShared() {
  uint64_t at = kSharedBegin;
  auto align = [&](uint32_t by) { at = (at + by - 1) / by * by; };
  for (bool isExtern : {false, true})
    for (const auto *list : {&module.shared, &kernel.shared})
      for (const PtxVariable &each : *list) {
        if (each.isExtern != isExtern || !mentions(kernel, each.name))
          continue;
        align(each.align);
        shared.emplace(each.name, at);
        at += each.bytes;
      }
  program.sharedBegin = at;
  program.talks = !shared.empty();
}

bool Decoder::symbol(std::string_view name, PtxType type, uint32_t &slot) {
  if (auto found = shared.find(name); found != shared.end() && type.bits >= 32)
    return slot = constantSlot(found->second), true;
  if (type.bits != 64)
    return refuse("an address has 64 bits");
  for (uint32_t i = 0; i < module.globals.size(); ++i)
    if (module.globals[i].name == name)
      return slot = Tables + i, true;
  for (uint32_t i = 0; i < kernel.locals.size(); ++i)
    if (kernel.locals[i].name == name)
      return slot = Locals + i, true;
  for (uint32_t i = 0; i < kernel.parameters.size(); ++i)
    if (kernel.parameters[i].name == name && kernel.parameters[i].bytes == dmx::cuda::kMapBytes)
      return slot = Parameters + i, true;
  return refuse("there is no variable '", name, "'");
}

uint32_t Decoder::registerBits(const PtxOperand &operand) const {
  return operand.kind == PtxOperand::Register ? kernel.registers[operand.number].bits : 0;
}

bool Decoder::source(Op &op, const PtxOperand &from, PtxType type, bool wider) {
  if (op.sources == std::size(op.source))
    return refuseForm();
  uint32_t &slot = op.source[op.sources++];
  uint64_t mask = type.bits == 64 ? ~uint64_t(0) : (uint64_t(1) << type.bits) - 1;
  switch (from.kind) {
  case PtxOperand::Register: {
    PtxType own = kernel.registers[from.number];
    if (own.isPredicate() || (wider ? own.bits < type.bits : own.bits != type.bits))
      return refuse("'", instruction->name(), "' reads ", from.name, ", a register of ", own.bits, " bits");
    slot = from.number;
    return true;
  }
  case PtxOperand::Integer:
    if (type.isFloat())
      return refuse("'", instruction->name(), "' has an integer where a number of floating point is wanted");
    slot = constantSlot(from.bits & mask);
    return true;
  case PtxOperand::Float32:
  case PtxOperand::Float64:
    if (type.bits != (from.kind == PtxOperand::Float32 ? 32 : 64))
      return refuse("'", instruction->name(), "' has a number of another width");
    slot = constantSlot(from.bits);
    return true;
  case PtxOperand::Special: {
    static constexpr std::string_view names[] = {"tid.x",       "ntid.x",          "ctaid.x",          "nctaid.x",
                                                 "laneid",      "cluster_ctarank", "cluster_nctarank", "clusterid.x",
                                                 "nclusterid.x"};
    auto found = std::find(std::begin(names), std::end(names), from.name);
    if (found == std::end(names))
      return refuse("'%", from.name, "' is no special register that is known here");
    slot = SpecialPlace + static_cast<uint32_t>(found - std::begin(names));
    return type.bits == 32 || refuse("'%", from.name, "' has 32 bits");
  }
  case PtxOperand::Symbol:
    return symbol(from.name, type, slot);
  default:
    return refuse("'", instruction->name(), "' has an operand of another kind than it takes");
  }
}

bool Decoder::result(Op &op, const PtxOperand &to, PtxType type, bool wider) {
  if (to.kind != PtxOperand::Register || op.results == std::size(op.result))
    return refuse("'", instruction->name(), "' has no register for its result");
  PtxType own = kernel.registers[to.number];
  if (own.isPredicate() || (wider ? own.bits < type.bits : own.bits != type.bits))
    return refuse("'", instruction->name(), "' writes ", to.name, ", a register of ", own.bits, " bits");
  op.result[op.results++] = to.number;
  return true;
}

bool Decoder::predicate(const PtxOperand &from, int32_t &out) {
  if (from.kind != PtxOperand::Register || !kernel.registers[from.number].isPredicate())
    return refuse("'", instruction->name(), "' has something else where a predicate is wanted");
  out = static_cast<int32_t>(from.number);
  return true;
}

bool Decoder::address(Op &op, const PtxOperand &from, bool isParameter) {
  if (from.kind != PtxOperand::Address || from.parts.size() != 1)
    return refuse("'", instruction->name(), "' has no address");
  op.offset = static_cast<int64_t>(from.bits);
  const PtxOperand &base = from.parts[0];
  if (!isParameter)
    return source(op, base, {'b', 64});
  for (uint32_t i = 0; i < kernel.parameters.size(); ++i)
    if (base.kind == PtxOperand::Symbol && kernel.parameters[i].name == base.name)
      return op.source[op.sources++] = Parameters + i, true;
  return refuse("there is no parameter '", base.name, "'");
}

bool Decoder::sharedAddress(Op &op, const PtxOperand &from, int64_t &offset) {
  if (from.kind != PtxOperand::Address || from.parts.size() != 1)
    return refuse("'", instruction->name(), "' has no address");
  talk();
  offset = static_cast<int64_t>(from.bits);
  bool isShort = registerBits(from.parts[0]) == 32;
  return source(op, from.parts[0], {'b', static_cast<uint8_t>(isShort ? 32 : 64)});
}

bool Decoder::number(size_t i, uint64_t most, uint64_t &out) {
  if (i >= operands() || operand(i).kind != PtxOperand::Integer || operand(i).bits > most)
    return refuse("'", instruction->name(), "' has no number up to ", most, " as operand ", i + 1);
  out = operand(i).bits;
  return true;
}

static bool decodeFlow(Decoder &d, std::string_view root, Op &op) {
  if (root == "ret" || root == "exit") {
    op.flow = Op::Exit;
    return d.hasOperands(0);
  }
  if (root == "brx") {
    op.flow = Op::Indexed;
    bool isKnown = d.take("idx") && (d.take("uni"), d.hasOperands(2));
    return isKnown && d.source(op, 0, {'u', 32}) && (d.operand(1).kind == PtxOperand::Symbol || d.refuseForm());
  }
  if (root != "bra")
    return false;
  d.take("uni");
  op.flow = Op::Branch;
  return d.hasOperands(1) && (d.operand(0).kind == PtxOperand::Symbol || d.refuseForm());
}

bool Decoder::decode(const PtxInstruction &given, Op &op) {
  instruction = &given;
  next = 0;
  problem.clear();
  op.line = given.line;
  op.guard = given.guard;
  op.guardNot = given.guardNot;
  bool known = false;
  for (auto family : {decodeFlow, decodeMemory, decodeInteger, decodeFloat, decodeComparison, decodeMove,
                      decodeConversion, decodeCluster, decodeBarrier, decodeWarp, decodeBulk, decodeMatrix})
    if (family(*this, given.root, op)) {
      known = true;
      break;
    } else if (!problem.empty()) {
      return false;
    } else {
      next = 0;
    }
  if (!known || next != given.modifiers.size())
    return refuseForm();
  op.cost = costOf(given);
  if (op.flow == Op::Branch)
    op.target = given.targets[0];
  if (op.flow == Op::Indexed) {
    op.immediate = static_cast<uint32_t>(program.branchLists.size());
    program.branchLists.push_back(given.targets);
  }
  return true;
}

void Decoder::placeSlots() {
  auto place = [&](uint32_t &slot) {
    uint32_t at = slot & (Constants - 1);
    switch (slot & ~(Constants - 1)) {
    case Constants:
      slot = program.registers + at;
      break;
    case Parameters:
      slot = program.parameterSlot(at);
      break;
    case SpecialPlace:
      slot = program.specialSlot(at);
      break;
    case Tables:
      slot = program.tableSlot(at);
      break;
    case Locals:
      slot = program.localSlot(at);
      break;
    default:
      break;
    }
  };
  for (Op &op : program.ops)
    for (uint32_t i = 0; i < op.sources; ++i)
      place(op.source[i]);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// What the launch gives a thread where the text bounds it: .maxnreg, or what so many blocks leave to each.
static uint32_t registersOf(const PtxKernel &kernel) {
  constexpr uint32_t all = dmx::cuda::kRegisters, most = dmx::cuda::kMostRegisters, unit = dmx::cuda::kRegisterStep;
  uint32_t given = kernel.mostRegisters;
  if (!given && kernel.leastBlocks && kernel.blockThreads)
    given = all / (kernel.leastBlocks * kernel.blockThreads);
  return std::min(given, most) / unit * unit;
}

static Result<Program> loadKernel(const PtxModule &module, const PtxKernel &kernel) {
  Program program;
  program.name = kernel.name;
  program.line = kernel.line;
  program.blockThreads = kernel.blockThreads;
  program.cluster = kernel.cluster;
  program.firstRegisters = registersOf(kernel);
  program.registers = program.predicates = static_cast<uint32_t>(kernel.registers.size());
  program.tables = static_cast<uint32_t>(module.globals.size());
  for (const PtxParameter &parameter : kernel.parameters)
    program.parameterBytes.push_back(static_cast<uint8_t>(parameter.bytes));
  for (const PtxVariable &local : kernel.locals) {
    program.localBytes = (program.localBytes + local.align - 1) / local.align * local.align;
    program.localOffsets.push_back(program.localBytes);
    program.localBytes += local.bytes;
  }
  program.localBytes = (program.localBytes + 63) / 64 * 64;
  auto refuse = [&](uint32_t line, const std::string &why) {
    return badBundle("kernel '", kernel.name, "', line ", line, ": ", why);
  };
  if (program.localBytes > 1 << 20)
    return refuse(kernel.line, "its threads have more than 1 MiB of local memory each");
  Decoder decoder(module, kernel, program);
  for (const PtxInstruction &instruction : kernel.code)
    if (!decoder.decode(instruction, program.ops.emplace_back()))
      return refuse(instruction.line, decoder.problem);
  if (program.ops.empty() || (program.ops.back().flow == Op::Next) || program.ops.back().guard >= 0)
    return refuse(kernel.code.empty() ? kernel.line : kernel.code.back().line, "the kernel's last instruction goes on");
  auto leadsBehind = [&](uint32_t target) { return target >= program.ops.size(); };
  for (const Op &op : program.ops)
    if ((op.flow == Op::Branch && leadsBehind(op.target)) ||
        (op.flow == Op::Indexed && std::ranges::any_of(program.branchLists[op.immediate], leadsBehind)))
      return refuse(op.line, "a branch leads behind the kernel's last instruction");
  decoder.placeSlots();
  std::vector<uint8_t> bits;
  for (PtxType type : kernel.registers)
    bits.push_back(type.isPredicate() ? 0 : type.bits);
  program.liveRegisters = liveRegisters(program, bits);
  return program;
}

std::string ProgramModule::placeOf(uint32_t line) const {
  auto isBehind = [](uint32_t other, const PtxPlace &place) { return other < place.line; };
  auto next = std::upper_bound(places.begin(), places.end(), line, isBehind);
  if (next == places.begin() || next[-1].ownLine == 0)
    return {};
  auto file = files.find(next[-1].file);
  return file == files.end() ? "" : cat(file->second, ":", next[-1].ownLine);
}

std::string ProgramModule::withPlaces(std::string_view said) const {
  constexpr std::string_view word = "line ";
  std::string out;
  while (!said.empty()) {
    size_t at = std::min(said.find(word), said.size()), end = std::min(at + word.size(), said.size());
    uint32_t line = 0;
    for (; end < said.size() && said[end] >= '0' && said[end] <= '9' && line < UINT32_MAX / 16; ++end)
      line = line * 10 + static_cast<uint32_t>(said[end] - '0');
    std::string place = line ? placeOf(line) : "";
    out += said.substr(0, end);
    out += place.empty() ? "" : cat(" (", place, ")");
    said.remove_prefix(end);
  }
  return out;
}

/// Puts a kernel's places behind those of the ones before; none of theirs is the kernel's.
static void addPlaces(ProgramModule &out, const PtxKernel &kernel) {
  out.places.push_back({kernel.line, 0, 0});
  out.places.insert(out.places.end(), kernel.places.begin(), kernel.places.end());
}

Result<std::shared_ptr<const ProgramModule>> loadPtx(std::string_view text) {
  auto parsed = parsePtx(text);
  if (!parsed)
    return parsed.takeError();
  auto out = std::make_shared<ProgramModule>();
  for (const PtxVariable &global : parsed->globals) {
    Table &table = out->tables.emplace_back();
    table.bytes = global.bytes;
    table.room = std::make_unique<std::byte[]>(global.bytes + global.align);
    auto at = reinterpret_cast<uintptr_t>(table.room.get());
    table.begin = table.room.get() + (global.align - at % global.align) % global.align;
    std::copy(global.values.begin(), global.values.end(), table.begin);
  }
  for (const auto &[number, name] : parsed->files)
    out->files.emplace(number, name);
  for (const PtxKernel &kernel : parsed->kernels) {
    addPlaces(*out, kernel);
    auto program = loadKernel(*parsed, kernel);
    if (!program)
      return badBundle(out->withPlaces(program.takeError().message));
    out->kernels.push_back(std::move(*program));
  }
  return std::shared_ptr<const ProgramModule>(std::move(out));
}

} // namespace dmxrt::cuda
