//===- CudaBundle.h - bundles for GPUs, made by tests -----------*- C++ -*-===//
#pragma once

#include "../RuntimeTest.h"
#include "FakeCuda.h"

namespace dmxtest {

/// The driver that is not there, as it was when the test began.
FakeCuda &fakeCuda();

/// Kernels written by hand, of f32 tensors of n elements, n their first dim:
///   plus     y = a + b
///   collect  total += x; y = total; total is a state
///   strict   y = x; an element below 0 is DMX_KERNEL_INVALID_ARGUMENT
///   count    returns x[0] as an integer
///   shift    y = x by way of each thread's scratch of 8 bytes
///   tiles    y = x by tensor maps, of n rows of 128 elements; a block a row
std::string cudaKernels();

/// The bundle that `builder` makes, with its code, for the GPU alone, or with queue 1 for it.
TestBundle cudaBundle(const ModelBuilder &builder, bool mixed = false);

struct CudaSession {
  SessionPtr session;
  dmx_error error = DMX_ERROR_INIT;
  dmx_status status = DMX_OK;

  /// On the driver that is not there, unless `options` say otherwise.
  CudaSession(const dmx_bundle *bundle, std::vector<std::string> options = {"cuda.sim=off"});
  dmx_session *get() const { return session.get(); }
  std::string machine() const;
  dmx_status run() { return dmx_session_run(session.get(), &error); }
};

} // namespace dmxtest
