//===- EngineCpu.cpp - EXEC_CPU: bytecode of the quad's CPU ---------------===//

#include "Quad.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::corsair {
namespace {

using isa::Opcode;
constexpr int kMaxInstructions = 1000000;

class CpuEngine {
public:
  CpuEngine(Quad &quad, Queue &queue, const isa::Instruction &in)
      : quad(quad), queue(queue), code(quad.image().functions[static_cast<size_t>(in.get("fn"))]) {}
  bool run(uint64_t issue, Interval &when);

private:
  Quad &quad;
  Queue &queue;
  const isa::Code &code;
  size_t position = 0;

  bool bad(FaultKind kind, const std::string &what) {
    return quad.raise(
        queue, kind,
        cat("function '", code.name, "' at ", position, " (", code.instructions[position].info().name, "): ", what));
  }
  bool step(const isa::Instruction &in, size_t &next);
  bool arithmetic(const isa::Instruction &in);
  bool memory(const isa::Instruction &in);
  bool get(const isa::Instruction &in, const char *field, int64_t &out) {
    return quad.readRegister(queue, static_cast<uint32_t>(in.get(field)), out);
  }
  bool put(const isa::Instruction &in, int64_t value) {
    return quad.writeRegister(queue, static_cast<uint32_t>(in.get("rd")), value);
  }
};

int64_t floorDiv(int64_t a, int64_t b) {
  if (b == -1)
    return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

bool CpuEngine::arithmetic(const isa::Instruction &in) {
  int64_t a = 0, b = 0;
  if (!get(in, "ra", a) || !get(in, "rb", b))
    return false;
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  auto wrapped = [](uint64_t value) { return static_cast<int64_t>(value); };
  if ((in.opcode == Opcode::CpuDiv || in.opcode == Opcode::CpuMod) && b == 0)
    return bad(FaultKind::CpuFault, "division by zero");
  switch (in.opcode) {
  case Opcode::CpuAdd:
    return put(in, wrapped(ua + ub));
  case Opcode::CpuSub:
    return put(in, wrapped(ua - ub));
  case Opcode::CpuMul:
    return put(in, wrapped(ua * ub));
  case Opcode::CpuDiv:
    return put(in, floorDiv(a, b));
  case Opcode::CpuMod:
    return put(in, wrapped(ua - ub * static_cast<uint64_t>(floorDiv(a, b))));
  case Opcode::CpuMin:
    return put(in, std::min(a, b));
  case Opcode::CpuMax:
    return put(in, std::max(a, b));
  case Opcode::CpuAnd:
    return put(in, a & b);
  case Opcode::CpuOr:
    return put(in, a | b);
  case Opcode::CpuXor:
    return put(in, a ^ b);
  case Opcode::CpuShl:
    return put(in, wrapped(ua << (ub & 63)));
  case Opcode::CpuShr:
    return put(in, a >> (ub & 63));
  case Opcode::CpuSeq:
    return put(in, a == b);
  case Opcode::CpuSne:
    return put(in, a != b);
  case Opcode::CpuSlt:
    return put(in, a < b);
  default:
    return put(in, a <= b);
  }
}

bool CpuEngine::memory(const isa::Instruction &in) {
  int64_t base = 0, size = in.get("esize"), value = 0;
  if (!get(in, "ra", base))
    return false;
  auto at = static_cast<int64_t>(static_cast<uint64_t>(base) + static_cast<uint64_t>(in.get("imm")));
  if (!quad.checkAligned(queue, at, size, "GM"))
    return false;
  ElemKind kind = size == 8 ? ElemKind::I64 : size == 4 ? ElemKind::I32 : ElemKind::U8;
  if (in.opcode == Opcode::CpuLd) {
    std::byte *data = quad.readable(queue, Memory::GM, quad.number, at, size, size == 1 ? ElemKind::Raw : kind);
    if (!data)
      return false;
    std::memcpy(&value, data, static_cast<size_t>(size));
    return put(in, size == 4 ? static_cast<int32_t>(value) : value);
  }
  if (!get(in, "rd", value))
    return false;
  std::byte *data = quad.writable(queue, Memory::GM, quad.number, at, size, kind);
  if (data)
    std::memcpy(data, &value, static_cast<size_t>(size));
  return data != nullptr;
}

bool CpuEngine::step(const isa::Instruction &in, size_t &next) {
  int64_t a = 0;
  switch (in.opcode) {
  case Opcode::CpuLi:
    return put(in, in.get("imm"));
  case Opcode::CpuMov:
    return get(in, "ra", a) && put(in, a);
  case Opcode::CpuAddI:
    return get(in, "ra", a) &&
           put(in, static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(in.get("imm"))));
  case Opcode::CpuBr:
    next = static_cast<size_t>(in.get("to"));
    return true;
  case Opcode::CpuBz:
  case Opcode::CpuBnz:
    if (!get(in, "ra", a))
      return false;
    if ((a == 0) == (in.opcode == Opcode::CpuBz))
      next = static_cast<size_t>(in.get("to"));
    return true;
  case Opcode::CpuLd:
  case Opcode::CpuSt:
    return memory(in);
  case Opcode::CpuQuad:
    return put(in, quad.number);
  default:
    return arithmetic(in);
  }
}

bool CpuEngine::run(uint64_t issue, Interval &when) {
  int count = 0;
  for (; code.instructions[position].opcode != Opcode::CpuRet; ++count) {
    size_t next = position + 1;
    if (count == kMaxInstructions)
      return bad(FaultKind::CpuFault, cat("more than ", kMaxInstructions, " instructions"));
    if (!step(code.instructions[position], next))
      return false;
    position = next;
  }
  uint64_t clocks = ceilClocks(quad.machine.cpuCallClocks) + static_cast<uint64_t>(count);
  Timeline::Demand cpu[] = {{&quad.timeline.cpu, clocks}};
  when = quad.timeline.transfer({}, issue, 0, cpu, clocks, 0);
  quad.record(queue, Engine::Cpu, 0, when.end - clocks, when.end);
  return true;
}

} // namespace

bool executeCpu(Quad &quad, Queue &queue, const isa::Instruction &in, uint64_t issue, Interval &when) {
  return CpuEngine(quad, queue, in).run(issue, when);
}

} // namespace dmxrt::corsair
