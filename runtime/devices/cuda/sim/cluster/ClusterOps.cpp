//===- ClusterOps.cpp - what the blocks of a cluster tell each other ----------===//

#include "Cluster.h"
#include "runtime/devices/cuda/sim/Decoder.h"
#include "runtime/devices/cuda/sim/Lanes.h"

#include "schemas/cuda/Limits.h"

namespace dmxrt::cuda {
namespace {

enum : uint32_t { Relaxed = 1 };

uint32_t firstOf(const Warp &w) { return static_cast<uint32_t>(std::countr_zero(w.active)); }

/// mapa: where an address of the block's own shared memory is in that of another block. Of a block that is none it
/// gives an address at which nothing is: compilers map addresses before they know whether they want them.
bool mapAddress(Warp &w, const Op &op) {
  auto &to = w.slots[op.result[0]], &address = w.slots[op.source[0]], &rank = w.slots[op.source[1]];
  for (uint32_t left = w.active; left; left &= left - 1) {
    auto lane = static_cast<uint32_t>(std::countr_zero(left));
    uint64_t number = rank[lane] & UINT32_MAX, own = address[lane] + static_cast<uint64_t>(op.offset);
    bool isThere = number < w.block->launch.program->cluster && own < kWindowBytes;
    to[lane] = isThere ? Cluster::windowOf(number) + own : Cluster::windowOf(dmx::cuda::kMostCluster);
  }
  return wrote(w, op.result[0]);
}

bool arriveAtCluster(Warp &w, const Op &op) {
  w.block->idle += 8; // what each warp knows is joined
  std::string problem = w.block->cluster->arrive(w, !(op.immediate & Relaxed));
  return problem.empty() || w.fail(firstOf(w), std::move(problem));
}

bool awaitCluster(Warp &w, const Op &) {
  Cluster &cluster = *w.block->cluster;
  if (!cluster.hasArrived(w))
    return w.fail(firstOf(w), "bar-count: it waits at the cluster's barrier, and did not arrive there");
  if (cluster.hasEnded(w))
    cluster.join(w, /*takes=*/true);
  else
    w.wait = {Wait::Cluster, 0, 0};
  return true;
}

bool needsCluster(Decoder &d) {
  d.talk();
  return d.made().cluster > 1 || d.refuse("the kernel has no .reqnctapercluster of several blocks");
}

} // namespace

bool decodeCluster(Decoder &d, std::string_view root, Op &op) {
  if (root == "mapa") {
    if (!d.take("shared::cluster"))
      return false;
    PtxType t = d.takeType();
    op.step = mapAddress;
    return t.bits >= 32 && d.hasOperands(3) && needsCluster(d) && d.result(op, 0, t) && d.source(op, 1, t) &&
           d.source(op, 2, {'u', 32});
  }
  if (root != "barrier" || !d.take("cluster"))
    return false;
  bool arrives = d.take("arrive");
  if (!arrives && !d.take("wait"))
    return false;
  op.immediate = arrives && d.take("relaxed") ? Relaxed : 0;
  d.take(arrives ? "release" : "acquire");
  op.meeting = Op::Whole;
  op.step = arrives ? arriveAtCluster : awaitCluster;
  return d.take("aligned") && d.hasOperands(0) && needsCluster(d);
}

} // namespace dmxrt::cuda
