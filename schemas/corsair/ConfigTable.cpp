//===- ConfigTable.cpp - every key of CONFIG instructions -----------------===//

#include "Isa.h"

namespace dmx::corsair {
namespace {

constexpr uint8_t bit(Unit unit) { return static_cast<uint8_t>(1u << static_cast<int>(unit)); }
constexpr uint8_t kDma = bit(Unit::GM) | bit(Unit::ST), kGm = bit(Unit::GM);
constexpr uint8_t kAc = bit(Unit::AC), kSimd = bit(Unit::SIMD);
constexpr uint8_t kWindow = kAc | kSimd | kGm;

constexpr int64_t kKinds = kElemKinds - 1;
constexpr int64_t kF16 = static_cast<int64_t>(ElemKind::F16), kRaw = static_cast<int64_t>(ElemKind::Raw);
constexpr int64_t kActs = static_cast<int64_t>(ElemKind::Bfp16R), kWeights = static_cast<int64_t>(ElemKind::Bfp16C);
constexpr int64_t kGmMem = static_cast<int64_t>(Memory::GM), kMemMax = kMemories - 1;
/// Strides and addresses: far beyond any memory, far from overflow.
constexpr int64_t kBig = int64_t(1) << 40, kMany = int64_t(1) << 31, kTile = 4160;

using K = ConfigKey;
// key, name, units, default, min, max, doc
constexpr ConfigKeyInfo kTable[] = {
    {K::Kind, "kind", kDma, kRaw, 0, kKinds, "element kind of the source; raw: any, copied with its kind"},
    {K::To, "to", kDma, kRaw, 0, kKinds, "kind at the destination; raw: the source's. Another one converts"},
    {K::Retype, "retype", kDma, 0, 0, 1, "1: R and C of one format are exchanged without conversion"},
    {K::SrcMode, "smode", kDma, 0, 0, 1, "0: linear bytes; 1: rows of tiles"},
    {K::DstMode, "dmode", kDma, 0, 0, 1, "0: linear bytes; 1: rows of tiles"},
    {K::Unit, "unit", kDma, 1, 1, kMany,
     "elements of an item, contiguous (raw and tiles in linear mode: bytes); a row of a tile is always one item"},
    {K::N0, "n0", kDma | kSimd, 1, 0, kMany, "items along dimension 0, the outermost"},
    {K::N1, "n1", kDma | kSimd, 1, 0, kMany, "along dimension 1"},
    {K::N2, "n2", kDma | kSimd, 1, 0, kMany, "along dimension 2"},
    {K::N3, "n3", kDma | kSimd, 1, 0, kMany, "along dimension 3, the innermost; with a side of tiles: along K"},
    {K::S0, "s0", kDma, 0, -kBig, kBig, "source step of dimension 0: bytes; smode=1: rows"},
    {K::S1, "s1", kDma, 0, -kBig, kBig, "of dimension 1"},
    {K::S2, "s2", kDma, 0, -kBig, kBig, "of dimension 2"},
    {K::S3, "s3", kDma, 0, -kBig, kBig, "of dimension 3: bytes; smode=1: bytes from tile to tile along K"},
    {K::T0, "t0", kDma, 0, -kBig, kBig, "destination step of dimension 0: bytes; dmode=1: rows"},
    {K::T1, "t1", kDma, 0, -kBig, kBig, "of dimension 1"},
    {K::T2, "t2", kDma, 0, -kBig, kBig, "of dimension 2"},
    {K::T3, "t3", kDma, 0, -kBig, kBig, "of dimension 3: bytes; dmode=1: bytes from tile to tile along K"},
    {K::SrcBand, "sband", kDma, 0, -kBig, kBig, "smode=1: bytes from one 64-row band of tiles to the next"},
    {K::DstBand, "dband", kDma, 0, -kBig, kBig, "dmode=1: the same at the destination"},
    {K::SrcSlice, "sslice", kDma, 0, -kBig, kBig, "source bytes added per slice of the mask (0: multicast)"},
    {K::DstSlice, "dslice", kDma, 0, -kBig, kBig, "destination bytes added per slice of the mask"},
    {K::SrcCore, "score", kDma, 0, -kBig, kBig, "source bytes added per core of the mask (0: multicast)"},
    {K::Tail, "tail", kDma, 0, 0, 128,
     "elements of the last item along dimension 3 that exist; the rest is zero. 0: all"},
    {K::ElemStride, "estride", kDma, 0, -kBig, kBig,
     "linear side of a row of a tile: bytes from element to element; 0: contiguous"},
    {K::Lo0, "lo0", kDma, 0, -kMany, kMany, "items before lo0 along dimension 0 are zeros, not read"},
    {K::Lo1, "lo1", kDma, 0, -kMany, kMany, "of dimension 1"},
    {K::Lo2, "lo2", kDma, 0, -kMany, kMany, "of dimension 2"},
    {K::Lo3, "lo3", kDma, 0, -kMany, kMany, "of dimension 3"},
    {K::Hi0, "hi0", kDma, kMany, -kMany, kMany, "items from hi0 on along dimension 0 are zeros, not read"},
    {K::Hi1, "hi1", kDma, kMany, -kMany, kMany, "of dimension 1"},
    {K::Hi2, "hi2", kDma, kMany, -kMany, kMany, "of dimension 2"},
    {K::Hi3, "hi3", kDma, kMany, -kMany, kMany, "of dimension 3"},
    {K::IndexKind, "ikind", kGm, static_cast<int64_t>(ElemKind::I32), 0, kKinds,
     "i32 or i64: the indices of gather and scatter"},
    {K::IndexPitch, "ipitch", kGm, 4, 0, kBig, "bytes from index to index"},
    {K::IndexRange, "irange", kGm, kMany, 1, kMany,
     "indices lie in -irange..irange-1; negative ones count from the end"},
    {K::WinH, "win_h", kWindow, 1, 1, kMany, "rows of the image"},
    {K::WinW, "win_w", kWindow, 1, 1, kMany, "columns of the image"},
    {K::WinKH, "win_kh", kWindow, 1, 1, 4096, "rows of the kernel"},
    {K::WinKW, "win_kw", kWindow, 1, 1, 4096, "columns of the kernel"},
    {K::WinSH, "win_sh", kWindow, 1, 1, 4096, "stride down"},
    {K::WinSW, "win_sw", kWindow, 1, 1, 4096, "stride across"},
    {K::WinPH, "win_ph", kWindow, 0, 0, 4096, "padding above"},
    {K::WinPW, "win_pw", kWindow, 0, 0, 4096, "padding to the left"},
    {K::WinDH, "win_dh", kWindow, 1, 1, 4096, "dilation down"},
    {K::WinDW, "win_dw", kWindow, 1, 1, 4096, "dilation across"},
    {K::WinOW, "win_ow", kWindow, 1, 1, kMany, "columns of the output"},
    {K::WinC, "win_c", kGm, 1, 1, kMany, "window rule: contiguous elements of a pixel"},
    {K::ActKind, "kind", kAc, kActs, 0, kKinds, "activations in IB: an R kind"},
    {K::WeightKind, "wkind", kAc, kWeights, 0, kKinds, "weights in WB: a C kind"},
    {K::IbChunk, "ib_chunk", kAc, kTile, -kBig, kBig, "bytes from K chunk to K chunk in IB"},
    {K::IbStep, "ib_step", kAc, 0, -kBig, kBig, "IB bytes added per step"},
    {K::ObRow, "ob_row", kAc, 256, 0, kBig, "OB bytes from row to row"},
    {K::ObGroup, "ob_group", kAc, 16384, 0, kBig, "OB bytes from group to group"},
    {K::ObStep, "ob_step", kAc, 0, 0, kBig, "OB bytes added per step"},
    {K::StChunk, "st_chunk", kAc, kTile, -kBig, kBig, "stream: ST bytes from K chunk (core) to K chunk"},
    {K::StGroup, "st_group", kAc, 0, -kBig, kBig, "stream: ST bytes from group to group"},
    {K::StStep, "st_step", kAc, 0, -kBig, kBig, "stream: ST bytes added per step"},
    {K::StepAcc, "step_acc", kAc, 0, 0, 1,
     "1: steps are successive groups of K chunks and accumulate; 0: every step has the same chunks"},
    {K::KChunks, "k_chunks", kAc, kMany, 1, kMany,
     "K chunks of the whole product; chunks from here on are missing partials"},
    {K::ImgBand, "img_band", kAc, kTile, -kBig, kBig, "CONV: bytes from one 64-pixel band of tiles to the next"},
    {K::ImgChunk, "img_chunk", kAc, kTile, -kBig, kBig, "CONV: bytes from channel block to channel block"},
    {K::ImgBlocks, "img_blocks", kAc, 1, 1, kMany, "CONV: channel blocks of a pixel"},
    {K::ImgMem, "img_mem", kAc, kGmMem, 0, kMemMax, "CONV: GM or IB"},
    {K::PixSlice, "pix_slice", kAc, 0, 0, kMany, "CONV: output pixels added per slice of the mask"},
    {K::Pixels, "pixels", kAc, kMany, 1, kMany, "CONV: output pixels of the image; rows from here on are skipped"},
    {K::DKind, "dk", kSimd, kF16, 0, kKinds, "kind of the destination"},
    {K::AKind, "ak", kSimd, kF16, 0, kKinds, "kind of a"},
    {K::BKind, "bk", kSimd, kF16, 0, kKinds, "kind of b"},
    {K::CKind, "ck", kSimd, kF16, 0, kKinds, "kind of c"},
    {K::DMem, "dm", kSimd, kGmMem, 0, kMemMax, "memory of the destination: GM, SIMD or OB"},
    {K::AMem, "am", kSimd, kGmMem, 0, kMemMax, "memory of a: GM, SIMD or OB"},
    {K::BMem, "bm", kSimd, kGmMem, 0, kMemMax, "memory of b"},
    {K::CMem, "cm", kSimd, kGmMem, 0, kMemMax, "memory of c"},
    {K::D0, "d0", kSimd, 0, -kBig, kBig, "destination bytes per step of dimension 0; 0 along a broadcast"},
    {K::D1, "d1", kSimd, 0, -kBig, kBig, "of dimension 1"},
    {K::D2, "d2", kSimd, 0, -kBig, kBig, "of dimension 2"},
    {K::D3, "d3", kSimd, 0, -kBig, kBig, "of dimension 3"},
    {K::A0, "a0", kSimd, 0, -kBig, kBig, "the same of a"},
    {K::A1, "a1", kSimd, 0, -kBig, kBig, "of dimension 1"},
    {K::A2, "a2", kSimd, 0, -kBig, kBig, "of dimension 2"},
    {K::A3, "a3", kSimd, 0, -kBig, kBig, "of dimension 3"},
    {K::B0, "b0", kSimd, 0, -kBig, kBig, "the same of b"},
    {K::B1, "b1", kSimd, 0, -kBig, kBig, "of dimension 1"},
    {K::B2, "b2", kSimd, 0, -kBig, kBig, "of dimension 2"},
    {K::B3, "b3", kSimd, 0, -kBig, kBig, "of dimension 3"},
    {K::C0, "c0", kSimd, 0, -kBig, kBig, "the same of c"},
    {K::C1, "c1", kSimd, 0, -kBig, kBig, "of dimension 1"},
    {K::C2, "c2", kSimd, 0, -kBig, kBig, "of dimension 2"},
    {K::C3, "c3", kSimd, 0, -kBig, kBig, "of dimension 3"},
    {K::Inner, "inner", kSimd, 1, 1, 4, "row functions: how many innermost dimensions make a row"},
    {K::Split, "split", kSimd, 1, 0, 4, "k: the slices of the mask share dimension k-1; 0: each does everything"},
    {K::Causal, "causal", kSimd, 0, 0, 3,
     "k: a row has index + i valid columns, i its place in dimension k-1; 0: index columns (index 0: all)"},
    {K::CountPad, "count_pad", kSimd, 0, 0, 1, "pool_avg: 1: padding counts in the divisor"},
};

} // namespace

std::span<const ConfigKeyInfo> configKeys() { return kTable; }

const ConfigKeyInfo *findConfigKey(ConfigKey key) {
  for (const ConfigKeyInfo &info : kTable)
    if (info.key == key)
      return &info;
  return nullptr;
}

const ConfigKeyInfo *findConfigKey(std::string_view name, Unit unit) {
  for (const ConfigKeyInfo &info : kTable)
    if (info.units & bit(unit) && info.name == name)
      return &info;
  return nullptr;
}

} // namespace dmx::corsair
