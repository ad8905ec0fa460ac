//===- KernelBench.cpp - percent of the multiply-add peak of each kernel -===//
//
// kernel_bench [LEVEL] [FILTER] [SECONDS] [TUNING]: for every kernel whose name
// contains FILTER, GFLOP/s and percent of the peak measured in the same
// moments. One thread. TUNING overrides the blocking, e.g.
// "rows=6,vectors=4,kBlock=256".
//
//===----------------------------------------------------------------------===//

#include "KernelBench.h"

#include "targets/cpu/product/Gemm.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::bench;
using mlir::Value;

Tensor dmxc::cpu::bench::randomF32(Shape shape, uint64_t seed) {
  Tensor tensor(DType::F32, std::move(shape));
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.as<float>()[i] = (static_cast<int>(rng() % 17) - 8) / 8.0f;
  return tensor;
}

BenchKernel dmxc::cpu::bench::peakKernel(const IsaLevel &isa) {
  BenchKernel bench;
  bench.name = "peak";
  int chains = isa.vectorRegisters >= 32 ? 24 : 12;
  int64_t lanes = isa.lanes(32);
  bench.kernel = test::makeKernel("peak", isa, 1, 0, [&](CpuBuilder &b) {
    auto f32 = b.getF32Type();
    Value x = b.load(f32, b.buffer(0), b.idx(0), lanes);
    llvm::SmallVector<Value> init;
    for (int i = 0; i < chains; ++i)
      init.push_back(b.load(f32, b.buffer(0), b.idx(i), lanes));
    auto sums = b.forLoop(b.begin(), b.end(), b.idx(1), init, [&](Value, mlir::ValueRange acc) {
      llvm::SmallVector<Value> next;
      for (Value value : acc)
        next.push_back(b.fma(value, x, x));
      return next;
    });
    for (int i = 0; i < chains; ++i)
      b.store(sums[i], b.buffer(0), b.idx(i * lanes));
  });
  bench.buffers = {randomF32({4096}, 1)};
  bench.work = 20000;
  bench.flops = 2.0 * bench.work * chains * lanes;
  return bench;
}

BenchKernel dmxc::cpu::bench::gemmKernel(const IsaLevel &isa, int64_t m, int64_t n, int64_t k,
                                         const std::string &tuning) {
  BenchKernel bench;
  bench.name = "gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  auto specFor = [&](mlir::Builder &b) {
    GemmKernel spec;
    spec.m = m, spec.n = n, spec.k = k;
    spec.aType = spec.bType = spec.accType = b.getF32Type();
    spec.apartA = !sharesSets(4 * k);
    return spec;
  };
  mlir::MLIRContext context;
  mlir::Builder types(&context);
  GemmKernel shape = specFor(types);
  GemmTiles tiles = chooseGemmTiles(shape, isa);
  override(tuning, "rows", tiles.rows);
  override(tuning, "vectors", tiles.vectors);
  override(tuning, "kBlock", tiles.kBlock);
  override(tuning, "unroll", tiles.unroll);
  override(tuning, "tilesPerBlock", tiles.tilesPerBlock);
  override(tuning, "prefetch", tiles.prefetch);
  override(tuning, "packA", tiles.packA);
  bench.kernel = test::makeKernel("gemm", isa, 3, 0, [&](CpuBuilder &b) {
    GemmCallbacks callbacks;
    callbacks.store = [&](Value, Value row, Value col, Value value, Value mask) {
      Value to = b.add(b.mulC(row, n), col);
      mask ? b.maskedStore(value, b.buffer(2), to, mask) : b.store(value, b.buffer(2), to);
    };
    GemmMatrix a{b.buffer(0), b.idx(k), b.idx(1), {}}, right{b.buffer(1), {}, {}, {}};
    emitGemm(b, specFor(b), tiles, a, right, callbacks);
  });
  int64_t panels = (n + 15) / 16 * 16;
  bench.buffers = {randomF32({m, k}, 1), randomF32({panels, k}, 2), randomF32({m, n}, 3)};
  bench.work = *gemmWorkItems(shape, tiles).known();
  bench.scratchBytes = gemmScratchBytes(shape, tiles);
  bench.flops = 2.0 * m * n * k;
  char text[128];
  snprintf(text, sizeof text, " [%ldx%ld kb %ld tpb %ld]", (long)tiles.rows, (long)tiles.columns(), (long)tiles.kBlock,
           (long)tiles.tilesPerBlock);
  bench.name += text;
  return bench;
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

static double secondsOf(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

/// Seconds of one call, averaged over about a millisecond.
static double timeOnce(BenchKernel &bench, void *scratch, int repeats) {
  std::vector<void *> pointers;
  for (Tensor &tensor : bench.buffers)
    pointers.push_back(tensor.mutableData());
  int64_t kept;
  dmx_kernel_args args = {pointers.data(), nullptr, 0, bench.work, scratch, nullptr, &kept};
  // Processor time of this thread: other people's programs may run in between.
  double start = secondsOf(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < repeats; ++i) {
    kept = -1; // as in a new run
    bench.kernel.fn(&args);
  }
  return (secondsOf(CLOCK_THREAD_CPUTIME_ID) - start) / repeats;
}

void dmxc::cpu::bench::report(BenchKernel &kernel, BenchKernel &peak, double seconds) {
  if (!kernel.kernel.fn || !peak.kernel.fn) {
    printf("%-60s %s\n", kernel.name.c_str(), kernel.kernel.error.c_str());
    return;
  }
  void *scratch = aligned_alloc(64, kernel.scratchBytes + 64);
  double first = timeOnce(kernel, scratch, 1);
  int repeats = std::clamp(static_cast<int>(1e-3 / first), 1, 1000);
  double best = first, bestPeak = 1;
  for (double end = secondsOf(CLOCK_MONOTONIC) + seconds; secondsOf(CLOCK_MONOTONIC) < end;) {
    best = std::min(best, timeOnce(kernel, scratch, repeats));
    bestPeak = std::min(bestPeak, timeOnce(peak, nullptr, 1));
  }
  free(scratch);
  double rate = kernel.flops / best * 1e-9, most = peak.flops / bestPeak * 1e-9;
  printf("%-60s %8.1f GFLOP/s  %5.1f %% of %.1f\n", kernel.name.c_str(), rate, 100 * rate / most, most);
  fflush(stdout);
}

int main(int argc, char **argv) {
  std::string level = argc > 1 ? argv[1] : "x86-64-v3", filter = argc > 2 ? argv[2] : "";
  double seconds = argc > 3 ? atof(argv[3]) : 0.5;
  std::string tuning = argc > 4 ? argv[4] : "";
  auto isa = IsaLevel::byName(level);
  if (!isa || !isa->runsHere()) {
    fprintf(stderr, "kernel_bench: '%s' is unknown or does not run on this machine\n", level.c_str());
    return 2;
  }
  BenchKernel peak = peakKernel(*isa);
  auto run = [&](const std::string &name, auto make) {
    if (name.find(filter) == std::string::npos)
      return;
    BenchKernel kernel = make();
    report(kernel, peak, seconds);
  };
  for (auto [m, n, k] : {std::array<int64_t, 3>{1024, 1024, 1024},
                         {512, 512, 512},
                         {128, 768, 3072},
                         {128, 3072, 768},
                         {196, 768, 768},
                         {127, 1000, 509},
                         {64, 64, 64},
                         {1, 512, 512},
                         {1, 4096, 4096}})
    run("gemm " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
        [&] { return gemmKernel(*isa, m, n, k, tuning); });
  for (const ConvShape &shape : {ConvShape{"conv stem 224 3->64 7x7/2", 224, 3, 64, 7, 2},
                                 {"conv 56 64->64 3x3", 56, 64, 64, 3, 1},
                                 {"conv 28 128->128 3x3", 28, 128, 128, 3, 1},
                                 {"conv 14 256->256 3x3", 14, 256, 256, 3, 1},
                                 {"conv 7 512->512 3x3", 7, 512, 512, 3, 1},
                                 {"conv 56 128->128 3x3/2", 56, 128, 128, 3, 2},
                                 {"conv 56 64->256 1x1", 56, 64, 256, 1, 1},
                                 {"conv 56 256->64 1x1", 56, 256, 64, 1, 1},
                                 {"conv 28 512->128 1x1", 28, 512, 128, 1, 1},
                                 {"conv 14 1024->256 1x1", 14, 1024, 256, 1, 1},
                                 {"conv 7 2048->512 1x1", 7, 2048, 512, 1, 1},
                                 {"conv 56 256->512 1x1/2", 56, 256, 512, 1, 2},
                                 {"conv 56 depthwise 144 3x3", 56, 144, 144, 3, 1, 144},
                                 {"conv 14 576 depthwise 3x3", 14, 576, 576, 3, 1, 576},
                                 {"conv 28 256 32 groups 3x3", 28, 256, 256, 3, 1, 32}})
    run(shape.name, [&] { return convKernel(*isa, shape, tuning); });
  return 0;
}
