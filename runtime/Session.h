//===- Session.h - one caller's run of an entry point -----------*- C++ -*-===//
#pragma once

#include "Bundle.h"
#include "Futex.h"
#include "Layout.h"
#include "devices/Device.h"

#include <atomic>
#include <memory>
#include <pthread.h>
#include <vector>

namespace dmxrt {

/// Holds what one run needs: bindings, arenas, the devices with their threads. Not thread-safe; the C
/// API lets one caller at a time in by means of `state`.
class Session {
public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Bundle> bundle, const Signature &signature,
                                                 const DeviceOptions &options);
  ~Session();

  /// Whether (io, index) exists; the functions below rely on it.
  Status checkTensor(dmx_io io, uint32_t index) const;
  Status bind(dmx_io io, uint32_t index, const dmx_tensor_view &view);
  /// Shape into `dims` (of `capacity`) for the inputs bound now.
  Status shape(dmx_io io, uint32_t index, int64_t *dims, uint32_t capacity, uint32_t &rank);
  Status run();
  Status startAsync();
  Status finishAsync();
  void resetState();
  void info(dmx_session_info &out) const;
  Status taskInfo(uint32_t task, dmx_task_info &out) const;
  Status profile(uint32_t capacity);
  void takeEvents(dmx_profile_event *events, uint32_t capacity, uint32_t &count, uint64_t &dropped);

  /// What the session is doing; only one caller gets past Idle.
  enum State : uint32_t { Idle, InCall, InFlight };
  std::atomic<uint32_t> state{Idle};

private:
  /// A device and what it does of the graph.
  struct Unit {
    std::unique_ptr<Device> device;
    const TargetCode *target = nullptr; // null, like `code`, when all its tasks are copies
    std::shared_ptr<const CodeImage> code;
    std::vector<Segment> segments;
  };
  /// A segment of a device; a run is all turns in order.
  struct Turn {
    Device *device;
    uint32_t segment;
  };
  struct Binding {
    bool bound = false;
    std::vector<int64_t> dims;
    std::byte *data = nullptr;
    uint64_t bytes = 0;
  };
  struct Memory {
    void *data = nullptr;
    uint64_t size = 0;
  };
  /// A task operand that lies in a bound tensor, to be rewritten after a bind.
  struct Slot {
    uint32_t position, buffer;
  };
  struct Range {
    const std::byte *begin, *end;
    dmx_io io;
    uint32_t index;
  };
  struct TaskFigures {
    uint64_t calls = 0, totalNs = 0, busyNs = 0;
  };

  Session(std::shared_ptr<const Bundle> bundle, const Signature &signature)
      : bundle(std::move(bundle)), signature(signature), graph(this->bundle->graph(signature.graph)) {}
  Status load(const DeviceOptions &options);
  Status loadDevices(const DeviceOptions &options);
  Status loadCode(std::string_view isa);
  Error noSuchLevel(std::string_view isa) const;
  void cutSegments();
  void describeDevices();
  Device &deviceOf(const Task &task) const { return *units[task.device].device; }
  Device &deviceOfState(size_t buffer) const {
    uint32_t unit = graph.buffers[buffer].device;
    return unit == kNone ? *sharing : *units[unit].device;
  }
  Status allocateState();
  Status evaluateInputs();
  Status prepare();
  Status growArenas();
  void placeBuffers();
  void makeTasks();
  Status makeReady();
  Status checkOverlaps();
  void patchPointers();
  Status execute();
  Error taskError(const RunOutcome &outcome) const;
  void recordSlices();
  static void *asyncMain(void *session);

  const Signature::Tensor &tensor(dmx_io io, uint32_t index) const {
    return io == DMX_INPUT ? signature.inputs[index] : signature.outputs[index];
  }
  std::string tensorName(dmx_io io, uint32_t index) const;

  std::shared_ptr<const Bundle> bundle;
  const Signature &signature;
  const Graph &graph;
  std::vector<Unit> units; // by Graph::targets
  std::vector<Turn> turns;
  Device *sharing = nullptr;         // its memory is what devices share: arenas
  std::string targetText, isaText;   // for `info`
  std::vector<const void *> kernels; // per task

  std::vector<Binding> bindings[2];  // by dmx_io
  bool inputsChanged = true;         // shapes of inputs since evaluateInputs
  bool pointersChanged = true;       // since patchPointers
  bool prepared = false;             // layout and plans fit `dims`
  std::vector<int64_t> dims;         // of the graph, for the bound inputs
  std::vector<int64_t> preparedDims; // those that layout and plans were made for
  Layout layout;
  std::vector<Memory> arenas, states; // states: per buffer
  uint64_t constantBytes = 0;

  std::vector<std::byte *> bufferData; // per buffer
  std::vector<void *> operands;        // of all tasks
  std::vector<uint64_t> operandBytes;  // their sizes
  std::vector<Slot> boundSlots;
  std::vector<DeviceTask> tasks;
  std::vector<Range> ranges;      // scratch of checkOverlaps
  std::vector<int64_t> shapeRoom; // scratch of makeReady

  bool profiling = false;
  uint64_t profiledRuns = 0, droppedEvents = 0;
  std::vector<dmx_profile_event> events; // capacity reserved by profile()
  uint32_t eventCapacity = 0;
  std::vector<TaskSlice> slices; // capacity reserved while preparing
  std::vector<TaskFigures> figures;
  std::vector<std::pair<uint64_t, uint64_t>> spans; // of the tasks in the last run

  pthread_t asyncThread{};
  bool asyncStarted = false, asyncStop = false;
  uint32_t asyncRuns = 0;
  Gate asyncGo, asyncDone;
  Status asyncStatus;
};

} // namespace dmxrt
