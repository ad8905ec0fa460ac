//===- runtime_faults.cpp - every call of the runtime fails once ----------===//
//
// dmx-runtime-faults [--stride N] [--threads N] BUNDLE...      with libdmx-faults.so preloaded
//
// Opens, verifies, makes a session, binds, runs, runs asynchronously and closes, once for each call of each kind that
// the shim can let fail. Each failure must be a status with a sentence, the same step must work when it is repeated
// without the fault, outputs must be those of a run without faults, and nothing may be left: memory, mappings,
// descriptors. Exit 1 and a line for each violation.
//
//===----------------------------------------------------------------------===//
#include "dmx/dmx.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <vector>

namespace {

struct Shim {
  int (*arm)(const char *);
  long (*count)(const char *), (*live)(), (*mapped)();
  template <typename Fn> static void find(Fn &fn, const char *name) {
    fn = reinterpret_cast<Fn>(dlsym(RTLD_DEFAULT, name));
    if (!fn) {
      std::fprintf(stderr, "%s is missing: preload the shim\n", name);
      std::exit(2);
    }
  }
  Shim() {
    find(arm, "dmx_fault_arm");
    find(count, "dmx_fault_count");
    find(live, "dmx_fault_live");
    find(mapped, "dmx_fault_mapped");
  }
} shim;

struct Input {
  dmx_dtype dtype;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};

/// What a pass over the API found.
struct Outcome {
  int failures = 0;            // steps that failed
  long calls = 0;              // of the kind that is counted, in a pass without a failure
  const char *wrong = nullptr; // what must not be
  char detail[600] = "";
};

class Scenario {
public:
  Scenario(const char *path, uint32_t threads, bool copy) : path(path), threads(threads), copy(copy) {
    const char *trouble = prepare();
    if (trouble) {
      std::fprintf(stderr, "%s: %s: %s\n", path, trouble, error.message);
      std::exit(2);
    }
  }

  /// All steps under what is armed now. Nothing of the test's own is allocated here.
  Outcome pass(const char *kind = "alloc") {
    outcome = Outcome();
    dmx_bundle *bundle = nullptr;
    dmx_session *session = nullptr;
    dmx_bundle_options bundleOptions = DMX_BUNDLE_OPTIONS_INIT;
    bundleOptions.flags = copy ? DMX_BUNDLE_COPY : 0;
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.threads = threads;
    step("open", [&] { return dmx_bundle_open_with(path, &bundleOptions, &bundle, &error); });
    step("verify", [&] { return dmx_bundle_verify(bundle, &error); });
    step("create", [&] { return dmx_session_create(bundle, nullptr, &options, &session, &error); });
    for (uint32_t i = 0; session && i < inputs.size(); ++i) {
      Input &input = inputs[i];
      dmx_tensor_view view{input.dtype, static_cast<uint32_t>(input.dims.size()), input.dims.data(),
                           input.bytes.data()};
      step("bind", [&] { return dmx_session_bind(session, DMX_INPUT, i, &view, &error); });
    }
    step("run", [&] { return dmx_session_run(session, &error); });
    checkOutputs(session);
    step("async", [&] {
      dmx_status status = dmx_session_run_async(session, &error);
      return status ? status : dmx_session_wait(session, &error);
    });
    checkOutputs(session);
    dmx_session_destroy(session);
    dmx_bundle_close(bundle);
    outcome.calls = shim.count(kind);
    shim.arm(nullptr);
    return outcome;
  }

private:
  template <typename Body> void step(const char *name, Body body) {
    if (outcome.wrong)
      return;
    error.message[0] = 0;
    if (body() == DMX_OK)
      return;
    ++outcome.failures;
    if (error.status != DMX_STATUS_OUT_OF_MEMORY && error.status != DMX_STATUS_IO)
      note(name, "is neither out of memory nor I/O");
    else if (!error.message[0])
      note(name, "has no sentence");
    shim.arm(nullptr);
    if (!outcome.wrong && body() != DMX_OK)
      note(name, "fails again without the fault");
  }
  void note(const char *step, const char *what) {
    outcome.wrong = what;
    std::snprintf(outcome.detail, sizeof outcome.detail, "%s (status %d): %s", step, error.status, error.message);
  }

  void checkOutputs(dmx_session *session) {
    for (uint32_t i = 0; !outcome.wrong && i < outputCount; ++i) {
      dmx_tensor_view view{};
      if (dmx_session_output(session, i, &view, &error) != DMX_OK) {
        note("output", "cannot be read");
        return;
      }
      size_t size = static_cast<size_t>(dmx_tensor_bytes(view.dtype, view.rank, view.dims));
      if (expected.size() <= i)
        expected.emplace_back(static_cast<char *>(view.data), static_cast<char *>(view.data) + size);
      else if (expected[i].size() != size || std::memcmp(expected[i].data(), view.data, size) != 0)
        note("output", "differs from the run without faults");
    }
  }

  const char *prepare() {
    dmx_bundle *bundle = nullptr;
    if (dmx_bundle_open(path, &bundle, &error) != DMX_OK)
      return "cannot be opened";
    for (uint32_t i = 0; i < dmx_bundle_tensor_count(bundle, nullptr, DMX_INPUT); ++i) {
      dmx_tensor_info info{};
      info.struct_size = sizeof info;
      if (dmx_bundle_tensor_info(bundle, nullptr, DMX_INPUT, i, &info, &error) != DMX_OK)
        return "has no tensor info";
      Input input{info.dtype, {}, {}};
      for (uint32_t axis = 0; axis < info.rank; ++axis)
        input.dims.push_back(info.dims[axis].name ? std::max<int64_t>(info.dims[axis].min, 2) : info.dims[axis].min);
      int64_t size = dmx_tensor_bytes(input.dtype, info.rank, input.dims.data());
      input.bytes.resize(static_cast<size_t>(size));
      if (input.dtype == DMX_DTYPE_F32)
        for (size_t at = 0; at + 4 <= input.bytes.size(); at += 4) {
          float value = static_cast<float>(at * 2654435761u % 1000) / 500 - 1;
          std::memcpy(&input.bytes[at], &value, 4);
        }
      inputs.push_back(std::move(input));
    }
    outputCount = dmx_bundle_tensor_count(bundle, nullptr, DMX_OUTPUT);
    dmx_bundle_close(bundle);
    if (pass().failures || pass().failures || outcome.wrong)
      return outcome.wrong ? outcome.wrong : "fails without a fault";
    return nullptr;
  }

  const char *path;
  uint32_t threads, outputCount = 0;
  bool copy;
  dmx_error error = DMX_ERROR_INIT;
  std::vector<Input> inputs;
  std::vector<std::vector<char>> expected;
  Outcome outcome;
};

int openDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

/// All faults of one kind; returns the number of violations.
int tryKind(Scenario &scenario, const char *path, const char *kind, const char *form, long stride) {
  shim.arm(nullptr);
  long before = shim.live();
  scenario.pass();
  long live = shim.live(), mapped = shim.mapped();
  bool keeps = live != before; // then it is the C library that does
  long calls = scenario.pass(kind).calls;
  long failed = 0, good = 0;
  int violations = 0;
  for (long k = 1; k <= calls; k += stride) {
    char fault[64];
    std::snprintf(fault, sizeof fault, "%s:%ld%s", kind, k, form);
    int descriptors = openDescriptors();
    shim.arm(fault);
    Outcome outcome = scenario.pass();
    const char *left = shim.live() != live                ? "memory"
                       : shim.mapped() != mapped          ? "a mapping"
                       : openDescriptors() != descriptors ? "a descriptor"
                                                          : nullptr;
    (outcome.failures ? failed : good)++;
    if (outcome.wrong || left) {
      ++violations;
      std::printf("%s: %s: %s%s%s\n", path, fault, outcome.wrong ? outcome.wrong : left,
                  outcome.wrong ? ": " : " is left", outcome.detail);
      live = shim.live();
      mapped = shim.mapped();
    }
  }
  std::printf("%s: %s%s: %ld faults that were errors, %ld that did not matter, %d violations%s\n", path, kind, form,
              failed, good, violations, keeps ? " (the C library keeps some memory)" : "");
  return violations;
}

} // namespace

int main(int argc, char **argv) {
  long stride = 1, threads = 1;
  int violations = 0;
  setvbuf(stdout, nullptr, _IOLBF, 1 << 12);
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if ((argument == "--stride" || argument == "--threads") && i + 1 < argc) {
      (argument == "--stride" ? stride : threads) = std::atol(argv[++i]);
      continue;
    }
    for (bool copy : {false, true}) {
      Scenario scenario(argv[i], static_cast<uint32_t>(threads), copy);
      for (const char *kind : {"alloc", "open", "read", "map", "stat", "thread"})
        for (const char *form : {"", "+"})
          violations += tryKind(scenario, argv[i], kind, form, std::strcmp(kind, "alloc") == 0 ? stride : 1);
      for (const char *form : {":short", ":end", ":EINTR"})
        violations += tryKind(scenario, argv[i], "read", form, 1);
    }
  }
  return violations ? 1 : 0;
}
