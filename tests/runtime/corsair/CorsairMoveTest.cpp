//===- CorsairMoveTest.cpp - MOVE: every pair, strides, rows, conversion --===//

#include "CorsairHarness.h"

#include "runtime/devices/corsair/MoveCopy.h"
#include "schemas/corsair/SimdFunctions.h"

#include <random>

using namespace dmxtest;
using namespace dmxrt::corsair;

namespace {

/// One stream on quad 0 (or another) over memories that the test fills and looks at itself.
class RawCard {
public:
  explicit RawCard(const std::string &stream, uint32_t quad = 0) {
    std::string error, text = ".stream s\n" + stream +
                              "  HALT\n.kernel k\n  .footprint DDR=0x8000 GM=0x8000 ST=0x8000 OB=0x8000 WB=0x2100 "
                              "IB=0x8000 DRE=0x4000 SIMD=0x8000\n  .main\n    .launch quad=" +
                              std::to_string(quad) + " q0=s\n";
    auto read = isa::assemble(text, isa::builtinMachine(), error);
    EXPECT_TRUE(read) << error;
    if (!read)
      return;
    image = std::make_unique<isa::Image>(std::move(*read));
    EXPECT_TRUE(storage.reserve(image->machine, image->kernels[0].footprint.bytes));
    card = std::make_unique<Card>(image->machine, storage);
  }
  std::byte *data(Memory memory, uint32_t unit = 0) { return storage.data(memory, unit); }
  /// Bytes by the host, with their kind.
  template <typename T>
  void put(Memory memory, uint32_t unit, uint64_t address, const std::vector<T> &values, ElemKind kind) {
    std::memcpy(data(memory, unit) + address, values.data(), values.size() * sizeof(T));
    Problem none;
    storage.shadow(memory, unit).write(address, values.size() * sizeof(T), byteKind(kind), Actor(), none);
  }
  template <typename T> std::vector<T> get(Memory memory, uint32_t unit, uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), data(memory, unit) + address, count * sizeof(T));
    return values;
  }
  RunResult run() {
    std::vector<Stream> streams = decodeStreams(*image);
    return card->run({image.get(), &streams, &image->kernels[0].main, {}}, RunOptions());
  }
  void expectRun() {
    RunResult result = run();
    EXPECT_FALSE(result.fault) << result.fault->text;
  }

  std::unique_ptr<isa::Image> image;
  Storage storage;
  std::unique_ptr<Card> card;
};

std::vector<uint16_t> halves(size_t count, uint32_t seed = 9) {
  std::vector<uint16_t> out;
  for (float value : noise(seed, count))
    out.push_back(isa::f16Round(value));
  return out;
}

std::string configName(Memory source, Memory destination) {
  return source == Memory::ST || destination == Memory::ST ? "CONFIG_ST" : "CONFIG_GM";
}

std::string moveName(Memory source, Memory destination) {
  return "MOVE_" + std::string(isa::nameOf(source)) + "2" + std::string(isa::nameOf(destination));
}

} // namespace

TEST(CorsairMove, EveryLegalPairCopiesUpToFourDimensions) {
  const std::vector<uint16_t> values = halves(2048);
  for (int s = 0; s < isa::kMemories; ++s)
    for (int d = 0; d < isa::kMemories; ++d) {
      auto source = static_cast<Memory>(s), destination = static_cast<Memory>(d);
      if (!isa::isLegalMove(source, destination))
        continue;
      for (int dims = 1; dims <= 4; ++dims) {
        std::string keys = " kind=f16 unit=3";
        const int64_t n[4] = {2, 3, 2, 4}, from[4] = {1024, 256, 96, 10}, to[4] = {400, 128, 56, 6};
        for (int i = 4 - dims; i < 4; ++i)
          keys += " n" + std::to_string(i) + "=" + std::to_string(n[i]) + " s" + std::to_string(i) + "=" +
                  std::to_string(from[i]) + " t" + std::to_string(i) + "=" + std::to_string(to[i]);
        // Neither slice 0 nor core 0, to see that units are told apart.
        std::string text = "  " + configName(source, destination) + " slot=7" + keys + "\n  " +
                           moveName(source, destination) + " slot=7 saddr=0x20 daddr=0x40 slices=0x4 cores=0x20\n";
        SCOPED_TRACE(text);
        RawCard card(text, 5);
        auto unit = [&](Memory memory) -> uint32_t {
          switch (memory) {
          case Memory::DDR:
            return 1;
          case Memory::GM:
            return 5;
          case Memory::WB:
            return (5 * 4 + 2) * 16 + 5;
          default:
            return 5 * 4 + 2;
          }
        };
        // GM to the own GM: apart from the source.
        bool same = source == destination;
        card.put(source, unit(source), 0, std::vector<uint16_t>(values.begin(), values.begin() + (same ? 1536 : 2048)),
                 ElemKind::F16);
        std::vector<uint16_t> expected = card.get<uint16_t>(destination, unit(destination), 0, 2048);
        int64_t i[4];
        for (i[0] = 0; i[0] < (dims > 3 ? n[0] : 1); ++i[0])
          for (i[1] = 0; i[1] < (dims > 2 ? n[1] : 1); ++i[1])
            for (i[2] = 0; i[2] < (dims > 1 ? n[2] : 1); ++i[2])
              for (i[3] = 0; i[3] < n[3]; ++i[3])
                for (int64_t e = 0; e < 3; ++e) {
                  int64_t in = 0x20 + 2 * e, out = 0x40 + 2 * e;
                  for (int k = 4 - dims; k < 4; ++k) {
                    in += i[k] * from[k];
                    out += i[k] * to[k];
                  }
                  expected[static_cast<size_t>(out / 2)] = values[static_cast<size_t>(in / 2)];
                }
        if (same)
          continue; // overlapping ranges: the other pairs show the addressing
        card.expectRun();
        EXPECT_EQ(card.get<uint16_t>(destination, unit(destination), 0, 2048), expected);
      }
    }
}

TEST(CorsairMove, SlicesCoresAndQuadsAreSpreadOrServedAtOnce) {
  std::vector<uint16_t> values = halves(1024);
  RawCard multicast("  CONFIG_GM slot=0 kind=f16 unit=64\n  MOVE_GM2IB slot=0 slices=0xb\n");
  RawCard spread("  CONFIG_GM slot=0 kind=f16 unit=64 sslice=256 dslice=64\n  MOVE_GM2IB slot=0 slices=0xb\n");
  RawCard cores("  CONFIG_ST slot=0 kind=f16 unit=16 sslice=0 score=32\n  MOVE_ST2WB slot=0 slices=0x3 cores=0x8009\n");
  RawCard quads("  CONFIG_GM slot=0 kind=f16 unit=64\n  MOVE_DDR2GM slot=0 quads=0xa\n");
  RawCard gather("  CONFIG_GM slot=0 kind=f16 unit=8 dslice=32\n  MOVE_OB2GM slot=0 daddr=0x100 slices=0x5\n");
  for (RawCard *card : {&multicast, &spread, &cores, &quads, &gather}) {
    card->put(Memory::GM, 0, 0x400, values, ElemKind::F16);
    card->put(Memory::GM, 0, 0, std::vector<uint16_t>(values.begin(), values.begin() + 512), ElemKind::F16);
    card->put(Memory::DDR, 0, 0, values, ElemKind::F16);
    for (uint32_t slice = 0; slice < 4; ++slice) {
      card->put(Memory::ST, slice, 0, halves(64, 20 + slice), ElemKind::F16);
      card->put(Memory::OB, slice, 0, halves(64, 30 + slice), ElemKind::F16);
    }
    card->expectRun();
  }
  for (uint32_t slice : {0u, 1u, 3u})
    EXPECT_EQ(multicast.get<uint16_t>(Memory::IB, slice, 0, 64),
              std::vector<uint16_t>(values.begin(), values.begin() + 64));
  uint32_t rank = 0;
  for (uint32_t slice : {0u, 1u, 3u}) {
    EXPECT_EQ(spread.get<uint16_t>(Memory::IB, slice, 64 * rank, 64),
              std::vector<uint16_t>(values.begin() + 128 * rank, values.begin() + 128 * rank + 64));
    ++rank;
  }
  for (uint32_t slice : {0u, 1u}) {
    rank = 0;
    std::vector<uint16_t> stash = halves(64, 20 + slice);
    for (uint32_t core : {0u, 3u, 15u}) {
      EXPECT_EQ(cores.get<uint16_t>(Memory::WB, slice * 16 + core, 0, 16),
                std::vector<uint16_t>(stash.begin() + 16 * rank, stash.begin() + 16 * rank + 16));
      ++rank;
    }
  }
  for (uint32_t quad : {1u, 3u})
    EXPECT_EQ(quads.get<uint16_t>(Memory::GM, quad, 0, 64), std::vector<uint16_t>(values.begin(), values.begin() + 64));
  EXPECT_EQ(quads.get<uint16_t>(Memory::GM, 2, 0, 64), std::vector<uint16_t>(64));
  EXPECT_EQ(gather.get<uint16_t>(Memory::GM, 0, 0x100, 8), halves(8, 30));
  EXPECT_EQ(gather.get<uint16_t>(Memory::GM, 0, 0x120, 8), halves(8, 32));
}

TEST(CorsairMove, MulticastFromGmCostsOneRead) {
  auto reads = [](const std::string &stride) {
    RawCard card("  CONFIG_GM slot=0 kind=f16 unit=64" + stride + "\n  MOVE_GM2IB slot=0 slices=0xf\n");
    card.put(Memory::GM, 0, 0, halves(1024), ElemKind::F16);
    RunResult result = card.run();
    return std::pair(result.quads[0].usage.readBytes[static_cast<int>(Memory::GM)],
                     result.quads[0].usage.writtenBytes[static_cast<int>(Memory::IB)]);
  };
  EXPECT_EQ(reads(""), (std::pair<uint64_t, uint64_t>(128, 512)));
  EXPECT_EQ(reads(" sslice=128"), (std::pair<uint64_t, uint64_t>(512, 512)));
}

TEST(CorsairMove, TimesAreSetupDataAndLatency) {
  auto clocks = [](const std::string &text) {
    RawCard card(text);
    card.put(Memory::GM, 0, 0, std::vector<std::byte>(0x8000), ElemKind::Bfp16R);
    card.put(Memory::ST, 0, 0, std::vector<std::byte>(0x8000), ElemKind::Bfp16C);
    card.put(Memory::DDR, 0, 0, std::vector<std::byte>(0x8000), ElemKind::Bfp16R);
    RunResult result = card.run();
    EXPECT_FALSE(result.fault) << result.fault->text;
    return result.clocks - 1; // CONFIG
  };
  // The tile moves of the machine document: 8 tiles to IB, one tile to each WB, and DDR's share of one quad.
  EXPECT_EQ(clocks("  CONFIG_GM slot=0 kind=bfp16r unit=29120\n  MOVE_GM2IB slot=0\n"), 16 + 114 + 30); // 7 tiles / 256
  EXPECT_EQ(clocks("  CONFIG_ST slot=0 kind=bfp16c unit=4160\n  MOVE_ST2WB slot=0 slices=0x1 cores=0xff\n"),
            16 + 65 + 12);
  EXPECT_EQ(clocks("  CONFIG_GM slot=0 kind=bfp16r unit=4160\n  MOVE_DDR2GM slot=0\n"), 16 + 96 + 170); // 4160 / 43.7
  // Rows of 2 bytes take a beat of 64 each: 64 * 64 / 256.
  EXPECT_EQ(clocks("  CONFIG_GM slot=0 kind=raw unit=2 n3=64 s3=128 t3=128\n  MOVE_GM2IB slot=0\n"), 16 + 16 + 30);
}

TEST(CorsairMove, PackingRowsQuantizesLikeTheLibrary) {
  // f16 [100, 100] row-major to BFP16 R tiles, 2 x 2 of them, ragged at both ends; and packed by columns to C.
  std::vector<uint16_t> values = halves(10000);
  std::vector<float> wide;
  for (uint16_t bits : values)
    wide.push_back(isa::f16Widen(bits));
  for (bool columns : {false, true}) {
    std::string keys = columns ? " to=bfp16c n0=100 s0=2 t0=1 n3=2 s3=12800 t3=4160 estride=200"
                               : " to=bfp16r n0=100 s0=200 t0=1 n3=2 s3=128 t3=4160";
    std::string error;
    auto layout = isa::makeLayout(isa::BlockFormat(), columns ? isa::Orientation::Column : isa::Orientation::Row, 100,
                                  100, error);
    std::vector<std::byte> expected(static_cast<size_t>(layout->bytes()));
    ASSERT_FALSE(isa::quantizeTensor(*layout, {wide.data(), 100}, {}, expected.data()));
    // The footprint of a RawCard holds the tensor only in part: 20,000 bytes in, 16,640 out.
    RawCard card("  CONFIG_GM slot=0 kind=f16" + keys + " dmode=1 dband=8320 tail=36\n  MOVE_GM2IB slot=0 daddr=0x0\n");
    card.put(Memory::GM, 0, 0, values, ElemKind::F16);
    card.expectRun();
    std::vector<std::byte> got = card.get<std::byte>(Memory::IB, 0, 0, expected.size());
    // Rows 36..63 of the second band are not written by the move.
    for (int64_t band = 0; band < 2; ++band)
      for (int64_t chunk = 0; chunk < 2; ++chunk)
        for (int64_t row = 0; row < (band ? 36 : 64); ++row) {
          size_t tile = static_cast<size_t>(band * 8320 + chunk * 4160),
                 mantissas = tile + 64 + static_cast<size_t>(row) * 64;
          ASSERT_EQ(got[tile + static_cast<size_t>(row)], expected[tile + static_cast<size_t>(row)])
              << band << chunk << row;
          ASSERT_EQ(std::memcmp(&got[mantissas], &expected[mantissas], 64), 0) << band << chunk << row;
        }
  }
}

TEST(CorsairMove, RowsAreGatheredUnpackedAndRequantized) {
  std::vector<uint16_t> values = halves(96 * 64);
  auto prepare = [&](RawCard &card) {
    card.put(Memory::GM, 0, 0, values, ElemKind::F16);
    card.expectRun();
  };
  std::string pack = "  CONFIG_GM slot=0 kind=f16 to=bfp16r n0=96 s0=128 t0=1 dmode=1 dband=4160\n  MOVE_GM2GM slot=0 "
                     "saddr=0x0 daddr=0x4000\n";
  // Every third row from row 5 on, to rows 2.. of a tile in IB.
  RawCard gathered(pack + "  CONFIG_GM slot=1 kind=bfp16r smode=1 dmode=1 sband=4160 n0=30 s0=3 t0=1\n  MOVE_GM2IB "
                          "slot=1 saddr=0x4000 srow=5 daddr=0x40 drow=2\n");
  prepare(gathered);
  for (size_t row = 0; row < 30; ++row) {
    size_t from = 5 + 3 * row, tile = 0x4000 + from / 64 * 4160;
    EXPECT_EQ(gathered.data(Memory::IB)[0x40 + 2 + row], gathered.data(Memory::GM)[tile + from % 64]);
    EXPECT_EQ(std::memcmp(gathered.data(Memory::IB) + 0x80 + (2 + row) * 64,
                          gathered.data(Memory::GM) + tile + 64 + from % 64 * 64, 64),
              0);
  }
  // Unpacked to f32: the values the library gives back.
  RawCard unpacked(pack + "  CONFIG_GM slot=1 kind=bfp16r to=f32 smode=1 sband=4160 n0=64 s0=1 t0=256\n  MOVE_GM2SIMD "
                          "slot=1 saddr=0x4000 daddr=0x0\n");
  prepare(unpacked);
  std::vector<float> back = unpacked.get<float>(Memory::SIMD, 0, 0, 4096);
  isa::TensorLayout layout =
      *isa::makeLayout(isa::BlockFormat(), isa::Orientation::Row, 64, 64, *std::make_unique<std::string>());
  std::vector<float> expected(4096);
  isa::dequantizeTile(layout, unpacked.data(Memory::GM) + 0x4000, 0, 0, expected.data(), 64);
  EXPECT_EQ(back, expected);
  // To another block format through the exact values.
  RawCard narrow(pack + "  CONFIG_GM slot=1 kind=bfp16r to=bfp12x64r smode=1 dmode=1 sband=4160 dband=2112 n0=64 s0=1 "
                        "t0=1\n  MOVE_GM2GM slot=1 saddr=0x4000 daddr=0x7000\n");
  prepare(narrow);
  std::vector<std::byte> tile(2112);
  ASSERT_FALSE(isa::convertTile(*isa::tileOf(ElemKind::Bfp16R), narrow.data(Memory::GM) + 0x4000,
                                *isa::tileOf(ElemKind::Bfp12x64R), tile.data()));
  EXPECT_EQ(std::memcmp(tile.data(), narrow.data(Memory::GM) + 0x7000, tile.size()), 0);
}

TEST(CorsairMove, PaddingIsZeroAndNotRead) {
  // A 3 x 3 image of 4-element pixels with a border of one pixel: 5 x 5.
  RawCard card("  CONFIG_GM slot=0 kind=f16 unit=4 n2=5 n3=5 s2=24 s3=8 t2=40 t3=8 lo2=1 hi2=4 lo3=1 hi3=4\n  "
               "MOVE_GM2SIMD slot=0 saddr=0x0 daddr=0x0\n");
  std::vector<uint16_t> values = halves(36);
  card.put(Memory::GM, 0, 0x20, values, ElemKind::F16); // item (1, 1) is at saddr + 32
  card.expectRun();
  std::vector<uint16_t> got = card.get<uint16_t>(Memory::SIMD, 0, 0, 100);
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 5; ++x)
      for (int c = 0; c < 4; ++c) {
        bool inside = y > 0 && y < 4 && x > 0 && x < 4;
        EXPECT_EQ(got[static_cast<size_t>((y * 5 + x) * 4 + c)],
                  inside ? values[static_cast<size_t>(((y - 1) * 3 + x - 1) * 4 + c)] : 0);
      }
}

TEST(CorsairMove, RetypeIsFreeAndChangesTheKindOnly) {
  std::string text = "  CONFIG_ST slot=0 kind=bfp16r to=bfp16c retype=1 unit=4160\n  MOVE_ST2WB slot=0 saddr=0x0 "
                     "daddr=0x0 cores=0x1\n  CONFIG_GM slot=0 kind=bfp16r unit=4160\n"
                     "  MOVE_GM2IB slot=0\n  CONFIG_AC slot=0\n  MATMUL slot=0\n";
  RawCard card(text);
  std::vector<std::byte> tile(4160, std::byte{1});
  card.put(Memory::ST, 0, 0, tile, ElemKind::Bfp16R);
  card.put(Memory::GM, 0, 0, tile, ElemKind::Bfp16R);
  card.expectRun();
  EXPECT_EQ(card.get<std::byte>(Memory::WB, 0, 0, 4160), tile);
}

TEST(CorsairMove, RawCopiesKeepTheKindsOfTheirBytes) {
  std::string text =
      "  CONFIG_GM slot=0 kind=raw unit=64 n3=2 s3=64 t3=128\n  MOVE_GM2GM slot=0 saddr=0x0 daddr=0x1000\n  CONFIG_GM "
      "slot=1 kind=f16 unit=16\n  MOVE_GM2SIMD slot=1 saddr=0x1000\n"
      "  CONFIG_GM slot=1 kind=i32 unit=8\n  MOVE_GM2SIMD slot=1 saddr=0x1020\n  MOVE_GM2SIMD slot=1 saddr=0x1080\n";
  RawCard card(text);
  card.put(Memory::GM, 0, 0, halves(16), ElemKind::F16);
  card.put(Memory::GM, 0, 32, std::vector<int32_t>(24, 5), ElemKind::I32);
  card.expectRun();
}
