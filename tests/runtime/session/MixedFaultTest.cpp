//===- MixedFaultTest.cpp - a session that runs out of memory -------------===//

#include "../AllocationCount.h"
#include "MixedBundle.h"

using namespace dmxtest;

namespace {

/// Everything a user does with a bundle for the CPU and a card, once. Each step that fails must say so, and must
/// succeed when it is repeated.
class Pass {
public:
  explicit Pass(AlignedBytes &bytes) : bytes(bytes) { std::reverse(model.index.begin(), model.index.end()); }
  ~Pass() {
    failingAllocation = 0;
    dmx_session_destroy(session);
    dmx_bundle_close(bundle);
  }

  /// False when the fault came, as it should, in one of the steps.
  bool run(int64_t fault) {
    failingAllocation = fault;
    step("open", [&] { return dmx_bundle_open_memory(bytes.get(), bytes.size(), &bundle, &error); });
    step("verify", [&] { return dmx_bundle_verify(bundle, &error); });
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.threads = 1;
    step("create", [&] { return dmx_session_create(bundle, nullptr, &options, &session, &error); });
    const int64_t wide[] = {64}, narrow[] = {4}, n[] = {3};
    float u[] = {1, 2, 3};
    const dmx_tensor_view views[] = {{DMX_DTYPE_F32, 1, wide, model.x.data()},
                                     {DMX_DTYPE_I64, 1, wide, model.index.data()},
                                     {DMX_DTYPE_I64, 1, narrow, model.at.data()},
                                     {DMX_DTYPE_F32, 1, n, u}};
    for (uint32_t i = 0; i < 4; ++i)
      step("bind", [&] { return dmx_session_bind(session, DMX_INPUT, i, &views[i], &error); });
    step("run", [&] { return dmx_session_run(session, &error); });
    expectResults();
    step("async", [&] {
      dmx_status status = dmx_session_run_async(session, &error);
      return status ? status : dmx_session_wait(session, &error);
    });
    expectResults();
    return failed == 0;
  }

private:
  /// A failed run may leave the state anywhere between its values before and after; it starts anew then.
  template <typename Body> void step(const char *name, Body body) {
    error.message[0] = 0;
    if (body() == DMX_OK)
      return;
    failingAllocation = 0;
    ++failed;
    EXPECT_EQ(error.status, DMX_STATUS_OUT_OF_MEMORY) << name << ": " << error.message;
    EXPECT_STRNE(error.message, "") << name;
    if (session) {
      ASSERT_EQ(dmx_session_reset_state(session, nullptr), DMX_OK);
      model.total.assign(64, 0);
    }
    ASSERT_EQ(body(), DMX_OK) << name << " again: " << error.message;
  }

  void expectResults() {
    const int64_t left = failingAllocation.exchange(0);
    model.run();
    EXPECT_EQ(takeOutput<float>(session, 0), model.y);
    EXPECT_EQ(takeOutput<float>(session, 1), model.p);
    failingAllocation = left;
  }

  AlignedBytes &bytes;
  MixedModel model;
  dmx_bundle *bundle = nullptr;
  dmx_session *session = nullptr;
  dmx_error error = DMX_ERROR_INIT;
  int failed = 0;
};

} // namespace

TEST(MixedFault, EveryAllocationMayFail) {
  if (!canCountAllocations)
    GTEST_SKIP() << "a sanitizer has the allocation functions";
  AlignedBytes bytes(mixedBundle().zip());
  ASSERT_TRUE(Pass(bytes).run(0));
  int64_t k = 1;
  for (; !Pass(bytes).run(k) && !HasFailure(); ++k) {
  }
  EXPECT_GT(k, 500) << "the faults went through all steps";
}
