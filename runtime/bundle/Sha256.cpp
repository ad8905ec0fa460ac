//===- Sha256.cpp - SHA-256 and CRC-32 ------------------------------------===//

#include "Sha256.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace dmxrt {
namespace {

constexpr uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t bigEndian(const std::byte *data) {
  uint32_t word;
  std::memcpy(&word, data, 4);
  return __builtin_bswap32(word);
}

/// Portable compression of `count` blocks of 64 bytes.
void blocksPortable(uint32_t *state, const std::byte *data, size_t count) {
  for (; count; --count, data += 64) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = bigEndian(data + 4 * i);
    for (int i = 16; i < 64; ++i) {
      uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    std::memcpy(v, state, sizeof v);
    // Eight rounds a turn, in which the variables change names instead of places.
    for (int i = 0; i < 64; i += 8)
      for (int j = 0; j < 8; ++j) {
        auto at = [&](int k) -> uint32_t & { return v[(k - j) & 7]; };
        uint32_t a = at(0), e = at(4);
        uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        uint32_t t1 = at(7) + s1 + ((e & at(5)) ^ (~e & at(6))) + kRound[i + j] + w[i + j];
        uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        at(3) += t1;
        at(7) = t1 + s0 + ((a & at(1)) ^ (a & at(2)) ^ (at(1) & at(2)));
      }
    for (int i = 0; i < 8; ++i)
      state[i] += v[i];
  }
}

#if defined(__x86_64__)
/// The SHA extensions and SSE4.1, whose registers every operating system of this processor keeps.
bool hasShaInstructions() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1) && __get_cpuid(1, &a, &b, &c, &d) && (c >> 19 & 1);
}

/// The same with the SHA extensions; four rounds a step, message schedule in
/// four rotating registers.
__attribute__((target("sha,sse4.1"))) void blocksNative(uint32_t *state, const std::byte *data, size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  // The instructions want the state as {A,B,E,F} and {C,D,G,H}.
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(state)), 0xB1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i *>(state + 4)), 0x1B);
  __m128i abef = _mm_alignr_epi8(low, high, 8);
  __m128i cdgh = _mm_blend_epi16(high, low, 0xF0);
  for (; count; --count, data += 64) {
    const __m128i abefIn = abef, cdghIn = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data + 16 * i)), swap);
#pragma GCC unroll 16 // else the four are memory, which takes a quarter more time
    for (int i = 0; i < 16; ++i) {
      __m128i sum = _mm_add_epi32(w[i & 3], _mm_load_si128(reinterpret_cast<const __m128i *>(kRound + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      // w[i+4] = msg2(msg1(w[i], w[i+1]) + words 9..12 after w[i], w[i+3])
      __m128i next = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
      next = _mm_add_epi32(next, _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4));
      w[i & 3] = _mm_sha256msg2_epu32(next, w[(i + 3) & 3]);
    }
    abef = _mm_add_epi32(abef, abefIn);
    cdgh = _mm_add_epi32(cdgh, cdghIn);
  }
  __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i *>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
#endif

void blocks(uint32_t *state, const std::byte *data, size_t count) {
#if defined(__x86_64__)
  static const bool native = hasShaInstructions(); // asked once: a hypervisor answers in microseconds
  if (native)
    return blocksNative(state, data, count);
#endif
  blocksPortable(state, data, count);
}

/// Slicing-by-8 tables: a byte-wise CRC would take longer than the SHA-256. Made when they are needed, which is rare:
/// they would be 8 KiB of the library.
auto crcTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    tables[0][i] = crc;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t t = 1; t < 8; ++t)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xFF];
  return tables;
}

} // namespace

static std::string hashWith(void (*blocks)(uint32_t *, const std::byte *, size_t), std::span<const std::byte> bytes) {
  uint32_t state[8];
  std::memcpy(state, kInitial, sizeof state);
  blocks(state, bytes.data(), bytes.size() / 64);

  // The tail: rest, 0x80, zeros, bit length, in one or two blocks.
  std::byte tail[128] = {};
  size_t rest = bytes.size() % 64;
  if (rest)
    std::memcpy(tail, bytes.data() + (bytes.size() - rest), rest);
  tail[rest] = std::byte{0x80};
  size_t tailBlocks = rest < 56 ? 1 : 2;
  uint64_t bits = __builtin_bswap64(uint64_t(bytes.size()) * 8);
  std::memcpy(tail + tailBlocks * 64 - 8, &bits, 8);
  blocks(state, tail, tailBlocks);

  std::string hex;
  for (uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4)
      hex += "0123456789abcdef"[word >> shift & 15];
  return hex;
}

std::string sha256Hex(std::span<const std::byte> bytes) { return hashWith(blocks, bytes); }
std::string sha256HexPortable(std::span<const std::byte> bytes) { return hashWith(blocksPortable, bytes); }

uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t crc = ~0u;
  const std::byte *data = bytes.data();
  size_t size = bytes.size();
  static const auto t = crcTables();
  for (; size >= 8; size -= 8, data += 8) {
    uint32_t a, b;
    std::memcpy(&a, data, 4);
    std::memcpy(&b, data + 4, 4);
    a ^= crc;
    crc = t[7][a & 0xFF] ^ t[6][a >> 8 & 0xFF] ^ t[5][a >> 16 & 0xFF] ^ t[4][a >> 24] ^ t[3][b & 0xFF] ^
          t[2][b >> 8 & 0xFF] ^ t[1][b >> 16 & 0xFF] ^ t[0][b >> 24];
  }
  for (; size; --size, ++data)
    crc = crc >> 8 ^ t[0][(crc ^ uint32_t(*data)) & 0xFF];
  return ~crc;
}

} // namespace dmxrt
