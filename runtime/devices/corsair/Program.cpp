//===- Program.cpp - streams made ready for execution ---------------------===//

#include "Program.h"

namespace dmxrt::corsair {
namespace {

using K = isa::ConfigKey;

/// Values of a CONFIG's keys, defaults filled in.
class Keys {
public:
  explicit Keys(const isa::Instruction &in) : in(in) {}
  int64_t operator()(K key) const {
    for (auto [name, value] : in.config)
      if (name == key)
        return value;
    return isa::findConfigKey(key)->byDefault;
  }
  ElemKind kind(K key) const { return static_cast<ElemKind>((*this)(key)); }
  /// A key and those that follow it in the enumeration.
  void four(K first, int64_t (&out)[4]) const {
    for (int i = 0; i < 4; ++i)
      out[i] = (*this)(static_cast<K>(static_cast<int>(first) + i));
  }
  Window window() const {
    return {(*this)(K::WinH),  (*this)(K::WinW),  (*this)(K::WinKH), (*this)(K::WinKW),
            (*this)(K::WinSH), (*this)(K::WinSW), (*this)(K::WinPH), (*this)(K::WinPW),
            (*this)(K::WinDH), (*this)(K::WinDW), (*this)(K::WinOW)};
  }

private:
  const isa::Instruction &in;
};

MoveConfig moveConfig(const Keys &key) {
  MoveConfig out;
  out.kind = key.kind(K::Kind);
  out.to = key.kind(K::To) == ElemKind::Raw ? out.kind : key.kind(K::To);
  out.retype = key(K::Retype);
  out.srcRows = key(K::SrcMode);
  out.dstRows = key(K::DstMode);
  out.unit = key(K::Unit);
  key.four(K::N0, out.n);
  key.four(K::S0, out.s);
  key.four(K::T0, out.t);
  key.four(K::Lo0, out.lo);
  key.four(K::Hi0, out.hi);
  out.sband = key(K::SrcBand);
  out.dband = key(K::DstBand);
  out.sslice = key(K::SrcSlice);
  out.dslice = key(K::DstSlice);
  out.score = key(K::SrcCore);
  out.tail = key(K::Tail);
  out.estride = key(K::ElemStride);
  out.indexKind = key.kind(K::IndexKind);
  out.indexPitch = key(K::IndexPitch);
  out.indexRange = key(K::IndexRange);
  out.channels = key(K::WinC);
  out.window = key.window();
  return out;
}

ArrayConfig arrayConfig(const Keys &key) {
  ArrayConfig out;
  out.acts = key.kind(K::ActKind);
  out.weights = key.kind(K::WeightKind);
  out.ibChunk = key(K::IbChunk);
  out.ibStep = key(K::IbStep);
  out.obRow = key(K::ObRow);
  out.obGroup = key(K::ObGroup);
  out.obStep = key(K::ObStep);
  out.stChunk = key(K::StChunk);
  out.stGroup = key(K::StGroup);
  out.stStep = key(K::StStep);
  out.chunks = key(K::KChunks);
  out.stepAccumulates = key(K::StepAcc);
  out.imgBand = key(K::ImgBand);
  out.imgChunk = key(K::ImgChunk);
  out.imgBlocks = key(K::ImgBlocks);
  out.pixSlice = key(K::PixSlice);
  out.pixels = key(K::Pixels);
  out.imgMemory = static_cast<Memory>(key(K::ImgMem));
  out.window = key.window();
  return out;
}

SimdConfig simdConfig(const Keys &key) {
  constexpr K kKinds[] = {K::DKind, K::AKind, K::BKind, K::CKind}, kMemories[] = {K::DMem, K::AMem, K::BMem, K::CMem},
              kSteps[] = {K::D0, K::A0, K::B0, K::C0};
  SimdConfig out;
  key.four(K::N0, out.n);
  for (int i = 0; i < 4; ++i) {
    out.operands[i].kind = key.kind(kKinds[i]);
    out.operands[i].memory = static_cast<Memory>(key(kMemories[i]));
    key.four(kSteps[i], out.operands[i].step);
  }
  out.inner = key(K::Inner);
  out.split = key(K::Split);
  out.causal = key(K::Causal);
  out.countPad = key(K::CountPad);
  out.window = key.window();
  return out;
}

bool touchesDdr(const isa::Instruction &in) {
  if (in.opcode != isa::Opcode::Move && in.opcode != isa::Opcode::Extract && in.opcode != isa::Opcode::Insert)
    return false;
  auto ddr = static_cast<int64_t>(Memory::DDR);
  return in.get("src") == ddr || in.get("dst") == ddr;
}

Stream decodeStream(const isa::Code &code) {
  Stream out;
  std::vector<uint32_t> open;
  for (const isa::Instruction &in : code.instructions) {
    auto position = static_cast<uint32_t>(out.code.size());
    Decoded decoded;
    decoded.in = &in;
    if (in.opcode == isa::Opcode::Loop) {
      open.push_back(position);
    } else if (in.opcode == isa::Opcode::EndLoop) {
      decoded.match = open.back();
      out.code[open.back()].match = position;
      open.pop_back();
    } else if (auto unit = isa::configUnit(in.opcode)) {
      if (*unit == isa::Unit::AC)
        decoded.array = std::make_shared<ArrayConfig>(arrayConfig(Keys(in)));
      else if (*unit == isa::Unit::SIMD)
        decoded.simd = std::make_shared<SimdConfig>(simdConfig(Keys(in)));
      else
        decoded.move = std::make_shared<MoveConfig>(moveConfig(Keys(in)));
    }
    out.usesDdr |= touchesDdr(in);
    out.code.push_back(std::move(decoded));
  }
  return out;
}

} // namespace

std::vector<Stream> decodeStreams(const isa::Image &image) {
  std::vector<Stream> out;
  for (const isa::Code &code : image.streams)
    out.push_back(decodeStream(code));
  return out;
}

} // namespace dmxrt::corsair
