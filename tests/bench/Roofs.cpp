//===- Roofs.cpp - what this machine can do at most -----------------------===//
//
// roof_bench [THREADS] [SECONDS]: prints, as JSON, the multiply-add peak of f32
// (GFLOP/s, independent chains in registers) and the read bandwidth (GB/s) of
// buffers of several sizes, each the best of several short trials with all
// threads at it. compare_peers.py measures the tasks of bundles against it.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <immintrin.h>
#include <memory>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 4096;
/// Keeps results of loops that are run for their time alone; what chains start with, which are one where that is known.
volatile float sink;

// Enough chains to hide the latency of four cycles on two units; as many as there are registers besides the operands.
__attribute__((target("avx512f"))) double fmaAvx512() {
  constexpr int kChains = 24;
  __m512 sums[kChains], x = _mm512_set1_ps(0.5f);
  for (__m512 &sum : sums)
    sum = _mm512_set1_ps(sink);
  for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 24
    for (int c = 0; c < kChains; ++c)
      sums[c] = _mm512_fmadd_ps(sums[c], x, x);
  for (__m512 &sum : sums)
    sink = _mm512_reduce_add_ps(sum);
  return 2.0 * kSteps * kChains * 16;
}

__attribute__((target("avx2,fma"))) double fmaAvx2() {
  constexpr int kChains = 12;
  __m256 sums[kChains], x = _mm256_set1_ps(0.5f);
  for (__m256 &sum : sums)
    sum = _mm256_set1_ps(sink);
  for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c)
      sums[c] = _mm256_fmadd_ps(sums[c], x, x);
  for (__m256 &sum : sums)
    sink = _mm256_cvtss_f32(sum);
  return 2.0 * kSteps * kChains * 8;
}

double mulAddSse() {
  constexpr int kChains = 12;
  __m128 sums[kChains], x = _mm_set1_ps(0.5f);
  for (__m128 &sum : sums)
    sum = _mm_set1_ps(sink);
  for (int i = 0; i < kSteps; ++i)
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c)
      sums[c] = _mm_add_ps(_mm_mul_ps(sums[c], x), x);
  for (__m128 &sum : sums)
    sink = _mm_cvtss_f32(sum);
  return 2.0 * kSteps * kChains * 4;
}

__attribute__((target("avx512f"))) void readAvx512(const float *data, size_t count) {
  __m512 sums[8] = {};
  for (size_t i = 0; i < count; i += 128)
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c)
      sums[c] = _mm512_add_ps(sums[c], _mm512_load_ps(data + i + 16 * c));
  for (__m512 &sum : sums)
    sink = _mm512_reduce_add_ps(sum);
}

__attribute__((target("avx"))) void readAvx(const float *data, size_t count) {
  __m256 sums[8] = {};
  for (size_t i = 0; i < count; i += 64)
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c)
      sums[c] = _mm256_add_ps(sums[c], _mm256_load_ps(data + i + 8 * c));
  for (__m256 &sum : sums)
    sink = _mm256_cvtss_f32(sum);
}

void readSse(const float *data, size_t count) {
  __m128 sums[8] = {};
  for (size_t i = 0; i < count; i += 32)
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c)
      sums[c] = _mm_add_ps(sums[c], _mm_load_ps(data + i + 4 * c));
  for (__m128 &sum : sums)
    sink = _mm_cvtss_f32(sum);
}

/// The best rate of `threads` threads that all do `work` (which says how much it did) in trials of `seconds`.
double best(int threads, double seconds, const std::function<double(int)> &work) {
  constexpr int kTrials = 5;
  double rate = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::barrier start(threads);
    std::atomic<double> sum = 0;
    auto body = [&](int thread) {
      work(thread); // warm
      start.arrive_and_wait();
      auto begin = Clock::now();
      double done = 0, passed = 0;
      do {
        done += work(thread);
        passed = std::chrono::duration<double>(Clock::now() - begin).count();
      } while (passed < seconds);
      sum += done / passed;
    };
    std::vector<std::jthread> others;
    for (int thread = 1; thread < threads; ++thread)
      others.emplace_back(body, thread);
    body(0);
    others.clear();
    rate = std::max(rate, sum.load());
  }
  return rate;
}

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  double seconds = argc > 2 ? std::atof(argv[2]) : 0.05;
  if (threads < 1 || threads > 1024 || !(seconds > 0)) {
    std::fprintf(stderr, "usage: roof_bench [THREADS] [SECONDS]\n");
    return 2;
  }
  bool wide = __builtin_cpu_supports("avx512f"), fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  auto peak = wide ? fmaAvx512 : fma ? fmaAvx2 : mulAddSse;
  auto read = wide ? readAvx512 : __builtin_cpu_supports("avx") ? readAvx : readSse;
  std::printf("{\"threads\": %d, \"gflops\": %.1f, \"read_gbs\": {", threads,
              best(threads, seconds, [&](int) { return peak(); }) / 1e9);
  const char *separator = "";
  for (size_t kib = 16; kib <= 512 * 1024; kib *= 4) {
    // Each thread reads a part of its own, as kernels do.
    size_t part = std::max<size_t>(kib * 1024 / threads / 512, 1) * 512;
    std::unique_ptr<float, decltype(&std::free)> data(static_cast<float *>(std::aligned_alloc(64, part * threads)),
                                                      std::free);
    if (!data)
      break;
    std::fill_n(data.get(), part * threads / sizeof(float), 1.0f);
    double rate = best(threads, seconds, [&](int thread) {
      read(data.get() + thread * (part / sizeof(float)), part / sizeof(float));
      return static_cast<double>(part);
    });
    std::printf("%s\"%zu\": %.1f", separator, kib * 1024, rate / 1e9);
    separator = ", ";
  }
  std::printf("}}\n");
}
