//===- Session.h - one caller's run of an entry point -----------*- C++ -*-===//
#pragma once

#include "Frame.h"
#include "runtime/Futex.h"
#include "runtime/bundle/Bundle.h"

#include <atomic>
#include <memory>
#include <pthread.h>
#include <vector>

namespace dmxrt {

/// Holds what one run needs: the devices with their threads, and the entry point's frame. Not thread-safe; the C
/// API lets one caller at a time in by means of `state`.
class Session {
public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Bundle> bundle, const Signature &signature,
                                                 const DeviceOptions &options);
  /// Lays out what a run with inputs of these shapes (their data is not looked at) would, with each of the bundle's
  /// code objects, and checks all that can be before a kernel starts. Computes nothing and needs no memory for tensors.
  static Status rehearse(const std::shared_ptr<const Bundle> &bundle, const Signature &signature,
                         std::span<const dmx_tensor_view> inputs);
  ~Session();

  /// Whether (io, index) exists; the functions below rely on it.
  Status checkTensor(dmx_io io, uint32_t index) const;
  /// Strides are those of the view's axes, in elements; null: it is dense.
  Status bind(dmx_io io, uint32_t index, const dmx_tensor_view &view, const int64_t *strides = nullptr);
  void unbind(dmx_io io, uint32_t index);
  /// Shape into `dims` (of `capacity`) for the inputs bound now.
  Status shape(dmx_io io, uint32_t index, int64_t *dims, uint32_t capacity, uint32_t &rank);
  /// What the last run gave.
  Status output(uint32_t index, dmx_tensor_view &view) const;
  Status run();
  Status startAsync();
  Status finishAsync();
  void resetState();
  /// `length` rows of the states that have this length, of `capacity`; null names the first.
  Status stateLength(const char *name, int64_t &length, int64_t &capacity) const;
  Status truncateStates(const char *name, int64_t length);
  Status copyStates(const Session &from);
  /// Bytes that are needed into `size`; written where `data` has as many.
  Status saveStates(std::byte *data, size_t &size) const;
  Status loadStates(std::span<const std::byte> saved);
  void info(dmx_session_info &out) const;
  Status taskInfo(uint32_t task, dmx_task_info &out) const;
  Status profile(uint32_t capacity);
  void takeEvents(dmx_profile_event *events, uint32_t capacity, uint32_t &count, uint64_t &dropped) {
    machinery.profile.take(events, capacity, count, dropped);
  }

  /// What the session is doing; only one caller gets past Idle.
  enum State : uint32_t { Idle, InCall, InFlight };
  std::atomic<uint32_t> state{Idle};

private:
  struct Range {
    const std::byte *begin, *end;
    dmx_io io;
    uint32_t index;
  };

  Session(std::shared_ptr<const Bundle> bundle, const Signature &signature)
      : signature(signature), graph(bundle->graph(signature.graph)) {
    machinery.bundle = std::move(bundle);
  }
  Status load(std::vector<std::unique_ptr<Device>> devices, std::string_view isa);
  Status checkStatesOnHost() const;
  Status rehearse(std::span<const dmx_tensor_view> inputs, size_t variant);
  Status useDevices(std::vector<std::unique_ptr<Device>> devices, std::string_view isa);
  Status loadCode(std::string_view isa);
  Status loadImage(const std::string &entry, Device &device, std::shared_ptr<const CodeImage> &image) const;
  void noteCode(const Graph &part, std::vector<bool> &needed) const;
  Error noSuchLevel(std::string_view isa) const;
  void countPrograms();
  void describeDevices();
  bool isLate(dmx_io io, uint32_t index) const;
  Status runShape(uint32_t index, std::vector<int64_t> &shape) const;
  Status makeReady();
  Status checkOverlaps();
  bool isOldCache(dmx_io io, uint32_t index) const;
  Status execute();
  static void *asyncMain(void *session);

  const Signature::Tensor &tensor(dmx_io io, uint32_t index) const {
    return io == DMX_INPUT ? signature.inputs[index] : signature.outputs[index];
  }
  size_t tensorCount(dmx_io io) const { return io == DMX_INPUT ? signature.inputs.size() : signature.outputs.size(); }
  std::string tensorName(dmx_io io, uint32_t index) const {
    return cat(io == DMX_INPUT ? "input '" : "output '", tensor(io, index).name, "'");
  }

  const Signature &signature;
  const Graph &graph;
  Machinery machinery;                                       // units by Graph::targets
  std::unique_ptr<Frame> frame;                              // of `graph`; freed before the devices
  std::vector<Frame *> frames;                               // all, by their tasks' numbers
  std::string targetText, isaText, machineText, remarksText; // for `info`
  const char *betterIsa = "";
  bool outputsValid = false; // the last run was good, and its shapes are those of the inputs bound now
  std::vector<Range> ranges; // scratch of checkOverlaps

  pthread_t asyncThread{};
  bool asyncStarted = false, asyncStop = false;
  uint32_t asyncRuns = 0;
  Gate asyncGo, asyncDone;
  Status asyncStatus;
};

} // namespace dmxrt
