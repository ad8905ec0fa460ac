//===- AbacusDevice.cpp - the abacus, simulated ---------------------------===//
#include "runtime/devices/common/QueueDevice.h"

#include "schemas/abacus/Machine.h"

#include <cstring>

namespace dmxrt {
const DeviceKind &abacusDevice();
} // namespace dmxrt

using namespace dmxrt;
using namespace dmx::abacus;

namespace {

/// The one engine: c = a * b, or c += a * b, of tiles of f32.
class Multiplier final : public sim::Engines {
public:
  std::optional<sim::EngineWork> run(size_t, sim::EngineTask &on) const override {
    float a[kTile][kTile], b[kTile][kTile], c[kTile][kTile] = {};
    if (!fetch(on, 0, a) || !fetch(on, 1, b) || (on.number() && !fetch(on, 2, c)))
      return std::nullopt;
    for (int64_t i = 0; i < kTile; ++i)
      for (int64_t k = 0; k < kTile; ++k)
        for (int64_t j = 0; j < kTile; ++j)
          c[i][j] += a[i][k] * b[k][j];
    std::byte *to = on.bytes(2, kTileBytes, /*write=*/true);
    if (!to)
      return std::nullopt;
    std::memcpy(to, c, kTileBytes);
    return sim::EngineWork{kTileClocks, kTileMacs};
  }

private:
  static bool fetch(sim::EngineTask &on, size_t place, float (&tile)[kTile][kTile]) {
    const std::byte *from = on.bytes(place, kTileBytes, /*write=*/false);
    if (from)
      std::memcpy(tile, from, kTileBytes);
    return from;
  }
};

Result<std::unique_ptr<Device>> create(const DeviceOptions &options, std::span<const Setting> settings) {
  static const Multiplier multiplier;
  return sim::createQueueDevice(abacusDevice(), kMachine, multiplier, options, settings);
}

Result<std::shared_ptr<const CodeImage>> load(std::span<const std::byte> bytes) {
  return sim::loadQueues(kMachine, bytes);
}

/// A kernel's arguments are declared in the code, and every access is checked.
Status check(std::span<const std::byte> bytes, int32_t &contracts) {
  contracts = 1;
  auto loaded = load(bytes);
  return loaded ? Status() : Status(loaded.takeError());
}

} // namespace

const DeviceKind &dmxrt::abacusDevice() {
  static constexpr DeviceKind kind{"abacus", /*runsOnHost=*/false, sim::kQueueSettings, create, check, load};
  return kind;
}
