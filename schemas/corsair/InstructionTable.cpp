//===- InstructionTable.cpp - every instruction of the DMX ISA ------------===//

#include "Isa.h"

#include <array>

namespace dmx::corsair {
namespace {

using FK = FieldKind;
constexpr Memory GM = Memory::GM;
constexpr int64_t asValue(Memory memory) { return static_cast<int64_t>(memory); }

// Fields: name, kind, bits, affine, default, doc.
constexpr FieldInfo kSlotField{"slot", FK::Unsigned, 8, false, 0, "configuration slot of this queue, 0..15"};
constexpr FieldInfo kSlicesField{"slices", FK::Mask, 8, false, 1, "slices that take part"};
constexpr FieldInfo kOneQuad{"quad", FK::Signed, 16, true, 0, "the other quad"};
constexpr FieldInfo kCountField{"n", FK::Signed, 32, true, -1, "replaces the slot's n0; -1: the slot's own"};

constexpr FieldInfo kNop[] = {{"n", FK::Unsigned, 16, false, 1, "clocks"}};
constexpr FieldInfo kMark[] = {{"label", FK::Label, 16, false, 0, "what follows belongs to this text in reports"}};
constexpr FieldInfo kLoop[] = {{"n", FK::Signed, 32, true, 1, "trips; 0 or less skips the body"}};
constexpr FieldInfo kToken[] = {{"id", FK::Token, 8, false, 0, "token"}, {"n", FK::Unsigned, 16, false, 1, "how many"}};
constexpr FieldInfo kSignalRemote[] = {{"quads", FK::Mask, 32, true, 0, "receiving quads"},
                                       {"id", FK::Token, 8, false, 0, "token"},
                                       {"n", FK::Unsigned, 16, false, 1, "how many"}};
constexpr FieldInfo kWaitRemote[] = {
    kOneQuad, {"id", FK::Token, 8, false, 0, "token"}, {"n", FK::Unsigned, 16, false, 1, "how many"}};
constexpr FieldInfo kBarrier[] = {{"scope", FK::Scope, 8, false, 1, "queues, quad, chiplet or card"},
                                  {"id", FK::Unsigned, 8, false, 0, "must be equal in all participants"},
                                  {"queues", FK::Mask, 8, false, 0xf, "queues of each quad that take part"}};
constexpr FieldInfo kMail[] = {kOneQuad,
                               {"reg", FK::Register, 8, false, 0, "first register"},
                               {"n", FK::Unsigned, 8, false, 1, "registers, 1..8"}};
constexpr FieldInfo kReset[] = {
    {"slices", FK::Mask, 8, false, 0xf, "slices whose units are cleared"},
    {"units", FK::Mask, 8, false, 0x1f, "1 IB, 2 WB, 4 OB, 8 SIMD, 16 DRE, 32 GM, 64 ST, 128 this queue's slots"}};
constexpr FieldInfo kConfig[] = {kSlotField};

constexpr FieldInfo kMove[] = {{"src", FK::Memory, 8, false, asValue(GM), "source; part of the mnemonic"},
                               {"dst", FK::Memory, 8, false, asValue(GM), "destination; part of the mnemonic"},
                               kSlotField,
                               {"saddr", FK::Address, 64, true, 0, "source address"},
                               {"daddr", FK::Address, 64, true, 0, "destination address"},
                               {"srow", FK::Signed, 32, true, 0, "first source row (smode=1)"},
                               {"drow", FK::Signed, 32, true, 0, "first destination row (dmode=1)"},
                               kCountField,
                               kSlicesField,
                               {"cores", FK::Mask, 16, false, 1, "cores whose WB is written"},
                               {"quads", FK::Mask, 32, true, 0, "quads whose GM is written; 0: the own one"}};

constexpr FieldInfo kMatmul[] = {
    kSlotField,
    kSlicesField,
    {"core", FK::Unsigned, 8, false, 0, "first core of group 0"},
    {"imc", FK::Unsigned, 8, false, 1, "num_imc: cores, thus K chunks, of a group"},
    {"ppr", FK::Unsigned, 8, false, 0, "ppr_mode: levels of the reduction tree, imc <= 2^ppr"},
    {"groups", FK::Unsigned, 8, false, 1, "groups of imc cores side by side: 64 output columns each"},
    {"rows", FK::Signed, 16, true, 64, "activation rows, 1..64"},
    {"ib", FK::Address, 64, true, 0, "first activation tile in IB"},
    {"row", FK::Signed, 32, true, 0, "first row within the tiles"},
    {"k0", FK::Signed, 32, true, 0, "index of the first K chunk, compared with key k_chunks"},
    {"ob", FK::Address, 64, true, 0, "result in OB"},
    {"wb", FK::Address, 64, true, 0, "weight tile within each WB"},
    {"st", FK::Address, 64, true, 0, "stream=1: first weight tile in ST"},
    {"acc", FK::Signed, 32, true, 0, "not 0: add to what OB holds"},
    {"steps", FK::Signed, 32, true, 1, "repetitions"},
    {"stream", FK::Unsigned, 8, false, 0, "1: load the weights of each step from ST while the step before computes"}};

constexpr FieldInfo kConv[] = {
    kSlotField,
    kSlicesField,
    {"core", FK::Unsigned, 8, false, 0, "first core of group 0"},
    {"imc", FK::Unsigned, 8, false, 1, "num_imc: cores, thus K chunks, of a group"},
    {"ppr", FK::Unsigned, 8, false, 0, "ppr_mode"},
    {"groups", FK::Unsigned, 8, false, 1, "groups of imc cores side by side: 64 output channels each"},
    {"rows", FK::Signed, 16, true, 64, "output pixels, 1..64"},
    {"img", FK::Address, 64, true, 0, "image tiles in GM or IB (key img_mem)"},
    {"irow", FK::Signed, 32, true, 0, "row of the image's pixel (0, 0) within the tiles"},
    {"pix", FK::Signed, 32, true, 0, "first output pixel, oh * win_ow + ow"},
    {"k0", FK::Signed, 32, true, 0, "first K chunk, (kh * win_kw + kw) * img_blocks + block"},
    {"ob", FK::Address, 64, true, 0, "result in OB"},
    {"wb", FK::Address, 64, true, 0, "weight tile within each WB"},
    {"st", FK::Address, 64, true, 0, "stream=1: first weight tile in ST"},
    {"acc", FK::Signed, 32, true, 0, "not 0: add to what OB holds"},
    {"steps", FK::Signed, 32, true, 1, "repetitions"},
    {"stream", FK::Unsigned, 8, false, 0, "1: load the weights of each step from ST while the step before computes"}};

constexpr FieldInfo kExecSimd[] = {{"fn", FK::Function, 8, false, 0, "function"},
                                   kSlotField,
                                   {"slices", FK::Mask, 8, false, 0xf, "slices that take part; see key split"},
                                   {"d", FK::Address, 64, true, 0, "destination"},
                                   {"a", FK::Address, 64, true, 0, "source a"},
                                   {"b", FK::Address, 64, true, 0, "source b"},
                                   {"c", FK::Address, 64, true, 0, "source c"},
                                   kCountField,
                                   {"imm0", FK::Float, 32, false, 0, "f32 constant"},
                                   {"imm1", FK::Float, 32, false, 0, "f32 constant"},
                                   {"index", FK::Signed, 64, true, 0, "integer parameter"}};

constexpr FieldInfo kTranspose[] = {
    {"src", FK::Memory, 8, false, asValue(GM), "GM or DRE"},
    {"slice", FK::Unsigned, 8, false, 0, "whose DRE works"},
    {"saddr", FK::Address, 64, true, 0, "source"},
    {"daddr", FK::Address, 64, true, 0, "destination in GM"},
    {"rows", FK::Signed, 32, true, 64, "source rows"},
    {"cols", FK::Signed, 32, true, 64, "source columns"},
    {"esize", FK::Unsigned, 8, false, 2, "bytes of an element: 1, 2, 4 or 8"},
    {"spitch", FK::Signed, 32, false, 128, "bytes from source row to source row"},
    {"dpitch", FK::Signed, 32, false, 128, "bytes from destination row to destination row"},
    {"batch", FK::Signed, 32, true, 1, "matrices"},
    {"sbatch", FK::Signed, 64, false, 0, "bytes from matrix to matrix, source"},
    {"dbatch", FK::Signed, 64, false, 0, "bytes from matrix to matrix, destination"}};

constexpr FieldInfo kReshape[] = {{"rule", FK::Rule, 8, false, 0, "strided, gather, scatter or window"},
                                  kSlotField,
                                  {"slice", FK::Unsigned, 8, false, 0, "whose DRE works"},
                                  {"src", FK::Memory, 8, false, asValue(GM), "DDR, GM or DRE"},
                                  {"dst", FK::Memory, 8, false, asValue(GM), "GM or DDR"},
                                  {"saddr", FK::Address, 64, true, 0, "source"},
                                  {"daddr", FK::Address, 64, true, 0, "destination"},
                                  {"iaddr", FK::Address, 64, true, 0, "indices in GM (gather, scatter)"},
                                  {"pix", FK::Signed, 32, true, 0, "first output pixel (window)"},
                                  kCountField};

constexpr FieldInfo kExecCpu[] = {{"fn", FK::CpuFunction, 16, false, 0, "function of the image"}};

constexpr FieldInfo kRd{"rd", FK::Register, 8, false, 0, "result"};
constexpr FieldInfo kRa{"ra", FK::Register, 8, false, 0, "first operand"};
constexpr FieldInfo kRb{"rb", FK::Register, 8, false, 0, "second operand"};
constexpr FieldInfo kTarget{"to", FK::Signed, 16, false, 0, "position in the function to go on at"};
constexpr FieldInfo kImm{"imm", FK::Signed, 64, false, 0, "constant"};
constexpr FieldInfo kThree[] = {kRd, kRa, kRb};
constexpr FieldInfo kTwo[] = {kRd, kRa};
constexpr FieldInfo kLi[] = {kRd, kImm};
constexpr FieldInfo kAddI[] = {kRd, kRa, kImm};
constexpr FieldInfo kBr[] = {kTarget};
constexpr FieldInfo kBranchOn[] = {kRa, kTarget};
constexpr FieldInfo kLoad[] = {
    kRd, kRa, kImm, {"esize", FK::Unsigned, 8, false, 8, "bytes: 1, 4 or 8 (sign-extended from 4)"}};
constexpr FieldInfo kOnlyRd[] = {kRd};

using O = Opcode;
constexpr InstructionInfo kTable[] = {
    {O::Nop, "NOP", Group::Control, kNop, "waits"},
    {O::Mark, "MARK", Group::Control, kMark, "names the task that the queue works on; takes no time"},
    {O::Halt, "HALT", Group::Control, {}, "ends the stream; the last instruction of each"},
    {O::Loop, "LOOP", Group::Control, kLoop, "repeats up to the matching ENDLOOP; at most 8 deep"},
    {O::EndLoop, "ENDLOOP", Group::Control, {}, "closes a LOOP"},
    {O::Signal, "SIGNAL", Group::Control, kToken, "adds tokens for queues of the own quad"},
    {O::Wait, "WAIT", Group::Control, kToken, "takes tokens, waits for them first"},
    {O::SignalRemote, "SIGNALR", Group::Control, kSignalRemote, "adds tokens at other quads, after the link's latency"},
    {O::WaitRemote, "WAITR", Group::Control, kWaitRemote, "takes tokens that one other quad sent"},
    {O::Barrier, "BARRIER", Group::Control, kBarrier, "waits for all participants"},
    {O::Send, "SEND", Group::Control, kMail, "puts registers into the mailbox to another quad; waits while it is full"},
    {O::Recv, "RECV", Group::Control, kMail,
     "takes registers from the mailbox from another quad; waits while it is empty"},
    {O::Reset, "RESET", Group::Control, kReset, "makes units' contents undefined; DDR stays"},
    {O::ConfigAC, "CONFIG_AC", Group::Config, kConfig, "sets a slot of the array controller"},
    {O::ConfigSIMD, "CONFIG_SIMD", Group::Config, kConfig, "sets a slot of the SIMD devices"},
    {O::ConfigGM, "CONFIG_GM", Group::Config, kConfig,
     "sets a descriptor for moves that do not touch ST, EXTRACT and INSERT"},
    {O::ConfigST, "CONFIG_ST", Group::Config, kConfig, "sets a descriptor for moves from or to ST"},
    {O::Move, "MOVE", Group::Move, kMove, "copies by a descriptor; mnemonic MOVE_<src>2<dst>"},
    {O::Matmul, "MATMUL", Group::Compute, kMatmul, "IB times WB into OB"},
    {O::Conv, "CONV", Group::Compute, kConv, "windows of an image times WB into OB"},
    {O::ExecSimd, "EXEC_SIMD", Group::Simd, kExecSimd, "a function over a space of up to 4 dimensions"},
    {O::Transpose, "TRANSPOSE", Group::Reshape, kTranspose, "transposes matrices"},
    {O::Extract, "EXTRACT", Group::Reshape, kReshape, "copies a sub-view to a dense place"},
    {O::Insert, "INSERT", Group::Reshape, kReshape, "copies a dense tensor into a sub-view"},
    {O::ExecCpu, "EXEC_CPU", Group::Cpu, kExecCpu, "calls a function of the quad's CPU"},
    {O::CpuLi, "CPU_LI", Group::CpuCode, kLi, "rd = imm"},
    {O::CpuMov, "CPU_MOV", Group::CpuCode, kTwo, "rd = ra"},
    {O::CpuAdd, "CPU_ADD", Group::CpuCode, kThree, "rd = ra + rb, wraps"},
    {O::CpuAddI, "CPU_ADDI", Group::CpuCode, kAddI, "rd = ra + imm, wraps"},
    {O::CpuSub, "CPU_SUB", Group::CpuCode, kThree, "rd = ra - rb, wraps"},
    {O::CpuMul, "CPU_MUL", Group::CpuCode, kThree, "rd = ra * rb, wraps"},
    {O::CpuDiv, "CPU_DIV", Group::CpuCode, kThree, "rd = floor(ra / rb); rb = 0 is an error"},
    {O::CpuMod, "CPU_MOD", Group::CpuCode, kThree, "rd = ra - rb * floor(ra / rb); rb = 0 is an error"},
    {O::CpuMin, "CPU_MIN", Group::CpuCode, kThree, "the smaller"},
    {O::CpuMax, "CPU_MAX", Group::CpuCode, kThree, "the larger"},
    {O::CpuAnd, "CPU_AND", Group::CpuCode, kThree, "bitwise"},
    {O::CpuOr, "CPU_OR", Group::CpuCode, kThree, "bitwise"},
    {O::CpuXor, "CPU_XOR", Group::CpuCode, kThree, "bitwise"},
    {O::CpuShl, "CPU_SHL", Group::CpuCode, kThree, "rd = ra << (rb & 63)"},
    {O::CpuShr, "CPU_SHR", Group::CpuCode, kThree, "rd = ra >> (rb & 63), arithmetic"},
    {O::CpuSeq, "CPU_SEQ", Group::CpuCode, kThree, "rd = ra == rb"},
    {O::CpuSne, "CPU_SNE", Group::CpuCode, kThree, "rd = ra != rb"},
    {O::CpuSlt, "CPU_SLT", Group::CpuCode, kThree, "rd = ra < rb, signed"},
    {O::CpuSle, "CPU_SLE", Group::CpuCode, kThree, "rd = ra <= rb, signed"},
    {O::CpuBr, "CPU_BR", Group::CpuCode, kBr, "goes on at `to`"},
    {O::CpuBz, "CPU_BZ", Group::CpuCode, kBranchOn, "goes on at `to` if ra is 0"},
    {O::CpuBnz, "CPU_BNZ", Group::CpuCode, kBranchOn, "goes on at `to` if ra is not 0"},
    {O::CpuLd, "CPU_LD", Group::CpuCode, kLoad, "rd = GM[ra + imm]"},
    {O::CpuSt, "CPU_ST", Group::CpuCode, kLoad, "GM[ra + imm] = rd"},
    {O::CpuQuad, "CPU_QUAD", Group::CpuCode, kOnlyRd, "rd = number of the quad"},
    {O::CpuRet, "CPU_RET", Group::CpuCode, {}, "ends the function"},
};

/// Index into kTable by opcode.
constexpr auto kByOpcode = [] {
  std::array<int16_t, 256> table{};
  table.fill(-1);
  for (int16_t i = 0; i < static_cast<int16_t>(std::size(kTable)); ++i)
    table[static_cast<uint8_t>(kTable[i].opcode)] = i;
  return table;
}();

constexpr const char *kGroupNames[] = {"control", "configuration", "move", "compute",
                                       "SIMD",    "reshape",       "CPU",  "CPU bytecode"};

} // namespace

int InstructionInfo::field(std::string_view name) const {
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name)
      return static_cast<int>(i);
  return -1;
}

std::span<const InstructionInfo> instructions() { return kTable; }

const InstructionInfo *findInstruction(uint8_t opcode) {
  return kByOpcode[opcode] < 0 ? nullptr : &kTable[kByOpcode[opcode]];
}

const InstructionInfo &infoOf(Opcode opcode) { return kTable[kByOpcode[static_cast<uint8_t>(opcode)]]; }

std::string_view nameOf(Group group) { return kGroupNames[static_cast<int>(group)]; }

std::optional<Unit> configUnit(Opcode opcode) {
  if (opcode < Opcode::ConfigAC || opcode > Opcode::ConfigST)
    return std::nullopt;
  return static_cast<Unit>(static_cast<int>(opcode) - static_cast<int>(Opcode::ConfigAC));
}

} // namespace dmx::corsair
