//===- Device.h - what the runtime needs from a device ----------*- C++ -*-===//
//
// One object of this interface serves one session: it owns the session's
// threads or engines. A device under runtime/devices/<name>/ implements it;
// the session knows no other way to load code, get memory or run tasks.
//
// A session has a device for each target of its graph. They share the session's
// buffers, which are host memory, and take turns: the task list is cut into
// segments of consecutive tasks of one device, which run in order.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dmxrt {

class ContractTable;
struct DeviceTask;
struct TargetCode;

/// A session's choices, in the form every device gets them.
struct DeviceOptions {
  uint32_t threads = 0; // 0: the device's default
  std::string isa;      // for selectCode of the devices that have such code; empty: the best
  const dmx_allocator *allocator = nullptr;
  const dmx_executor *executor = nullptr;
  bool simulates = false;            // a machine that is not there, where settings do not say otherwise
  std::vector<std::string> settings; // "target.key=value", or "key=value" for all devices that know the key
};

/// A setting that devices of a target know.
struct SettingSpec {
  std::string_view key;    // "pin"
  std::string_view values; // what it may be, for people: "0|1"
  uint64_t max = 0;        // the largest number; 0: a text, one of "a|b" or any that is not empty
};

/// A setting that was found to be one that the device knows.
struct Setting {
  std::string_view key;
  std::string text;
  uint64_t number = 0;
};

/// Loaded code; immutable, shared by sessions, freed with the last of them.
class CodeImage {
public:
  virtual ~CodeImage() = default;
  /// Handle of a kernel for DeviceTask::kernel, or null.
  virtual const void *findKernel(std::string_view name) const = 0;
  /// What its kernels rely on; null where the code says nothing, or its device checks every access by itself.
  virtual const ContractTable *contracts() const { return nullptr; }
  /// What the device asks of a task of one of its kernels beyond that.
  virtual Status checkTask(const DeviceTask &) const { return {}; }
};

/// What a buffer of a task lies in, for devices with memory of their own.
struct BufferHome {
  enum Kind : uint8_t {
    Arena,    // memory of the session
    State,    // likewise; of one device's tasks, and it stays from run to run
    Constant, // bytes of the bundle, which nobody writes
    Border,   // a tensor that the graph gets or gives; where it lies may change from run to run
  };
  Kind kind = Border;
  bool isShared = true; // of an arena's buffer: whether tasks of other devices, or what is no device's, use it too
  const void *block = nullptr; // names what it lies in while the session lives: the arena; the state; the constant's
                               // first byte, the same in all sessions; a tensor of the border
  uint64_t blockBytes = 0;     // needed for the shapes prepared
  uint64_t offset = 0;         // in that
};

/// Tasks begin..end of a list, the last one excluded: a part that one device runs.
struct Segment {
  uint32_t begin = 0, end = 0;
};

/// One task with every number known. All pointers stay valid and in place until
/// the next `prepare`; the pointers *in* `buffers` may change between runs.
struct DeviceTask {
  const void *kernel = nullptr; // null: a copy from buffers[0] to buffers[1]
  void *const *buffers = nullptr;
  const int64_t *dims = nullptr;
  int64_t work = 0; // items of a dispatch; bytes of a copy
  int64_t grain = 1;
  uint64_t scratch = 0;                  // bytes a thread
  uint64_t srcOffset = 0, dstOffset = 0; // of a copy
  std::span<const uint32_t> deps;        // earlier tasks this one waits for
  double costNs = 0;                     // estimated single-thread time, for placing only
  uint64_t operations = 0;               // that the model asks for, for reports; 0: nobody said
  std::span<const uint64_t> bufferBytes; // of each of `buffers`
  std::span<const BufferHome> homes;     // likewise; none where all devices run on the host
  uint32_t dimCount = 0;                 // of `dims`
  int64_t *results = nullptr;            // where the kernel stores the values it returns
  uint32_t written = 0;                  // how many of `buffers`, the last ones, the kernel writes
  bool updates = false;                  // whether it may read those before it does: there is a state among them
};

/// The clock of TaskSlice.
inline uint64_t nowNs() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

/// What one thread did for one task in a run.
struct TaskSlice {
  uint32_t task = 0, thread = 0; // the task's number in the list
  uint64_t startNs = 0, endNs = 0;
};

/// What a device reports that found a fault itself; the outcome's detail says which.
inline constexpr int32_t kDeviceFault = 1000;

/// How a run ended.
struct RunOutcome {
  int32_t code = 0;   // 0, what the kernel returned (dmx_kernel.h), or kDeviceFault
  uint32_t task = 0;  // the task that returned it; of several the first in the list
  std::string detail; // what the device knows of it beyond the code; may be empty
};

class Device {
public:
  virtual ~Device() = default;

  /// Which of a bundle's code objects this device runs best, of those of level `isa` when that is not
  /// empty; an error names what is missing and the remedy.
  virtual Result<const TargetCode *> selectCode(std::span<const TargetCode> codes, std::string_view isa) const = 0;
  /// A level that this device would run faster than all that the bundle has; null when there is none.
  virtual const char *betterLevel(std::span<const TargetCode>) const { return nullptr; }
  virtual Result<std::shared_ptr<const CodeImage>> loadCode(std::span<const std::byte> bytes) = 0;

  /// Memory for arenas and state, 64-byte aligned, contents undefined. `size` > 0.
  virtual Result<void *> allocate(uint64_t size) = 0;
  virtual void release(void *memory, uint64_t size) = 0;
  /// Moves bytes between host and device memory (the same thing on a CPU).
  virtual void copy(void *destination, const void *source, uint64_t size) = 0;
  /// Sets memory from `allocate` to zeros; a device that keeps states elsewhere clears them too.
  virtual void clear(void *memory, uint64_t size) { std::memset(memory, 0, size); }

  /// A device keeps several plans, "programs": one for each stage of each graph that has tasks for it. The functions
  /// below, down to takeSlices, are about the one selected last, at first number 0. `count` > 0; before any `prepare`.
  virtual void setProgramCount(uint32_t count) = 0;
  virtual void selectProgram(uint32_t program) = 0;

  /// Around all that the session runs of its programs for one call of the user; a run that fails does not end.
  virtual void startRun() {}
  virtual Status endRun() { return {}; }

  /// Plans what the device does of a task list in all following runs; allocates what that needs. Its
  /// `segments` ascend and do not overlap; the tasks between them are those of other devices. What a
  /// task waits for before its segment is done when the segment starts. Both lists stay in place.
  virtual Status prepare(std::span<const DeviceTask> tasks, std::span<const Segment> segments) = 0;
  /// Starts a segment; no allocation, no lock. A program's segments are started in order from 0, each after the fence
  /// of the one before; it may end before the last one.
  virtual void enqueue(uint32_t segment) = 0;
  /// Waits for it. A CPU does its share of the work in here.
  virtual RunOutcome fence() = 0;

  /// What it is, for people, where that is not the host: "NVIDIA H100 PCIe"; "" where there is nothing to say.
  virtual const char *machine() const { return ""; }
  /// What the numbers of the last run suffered, for people: "node 'a' saturated 12 values"; "" where there is nothing
  /// to say.
  virtual const char *remarks() const { return ""; }
  virtual uint32_t threads() const = 0;
  virtual uint64_t scratchBytes() const = 0;
  /// How many slices the plan gives a task of the device.
  virtual uint32_t sliceCount(uint32_t task) const = 0;
  /// Whether runs record times.
  virtual void setProfiling(bool on) = 0;
  /// Appends the slices of the segment that was fenced last to `out`, which has room (`prepare`
  /// and the caller see to that: one slice a task and thread at most).
  virtual void takeSlices(std::vector<TaskSlice> &out) const = 0;
};

/// What the runtime knows of a target: its device, and what reads its code. In devices/<name>/ there is one, given by
///   const DeviceKind &<name>Device();
struct DeviceKind {
  std::string_view target;
  /// Its kernels run on the processor of the host. One such device does the copies and has the memory that all share.
  bool runsOnHost = false;
  std::span<const SettingSpec> settings;
  Result<std::unique_ptr<Device>> (*create)(const DeviceOptions &, std::span<const Setting>);
  /// See checkCode below.
  Status (*checkCode)(std::span<const std::byte>, int32_t &contracts);
  /// Loads a code object so that none of it can run.
  Result<std::shared_ptr<const CodeImage>> (*inspect)(std::span<const std::byte>);
  /// Device::selectCode without a device; null: each code object is the only one for some part of a model.
  Result<const TargetCode *> (*select)(std::span<const TargetCode>, std::string_view isa) = nullptr;
};

/// The devices that are linked, the host's first; others may be opened (DeviceLibrary.h). Generated
/// (tools/cmake/DmxcRegistry.cmake).
std::span<const DeviceKind *const> deviceKinds();
/// Whether the target's device is the host itself; that one is always linked.
bool runsOnHost(std::string_view target);
/// The target whose device that is.
std::string_view hostTarget();

/// The devices of targets named in a graph's queues, in this order. Each gets the settings that are for it; one that
/// is for none of them is an error that names those they know.
Result<std::vector<std::unique_ptr<Device>>> createDevices(std::span<const std::string> targets,
                                                           const DeviceOptions &options);
/// Stand-ins for them that run nothing and need none of the machine that the code is for. Of several code objects for a
/// target each takes number `variant`, of fewer the last.
Result<std::vector<std::unique_ptr<Device>>> createRehearsalDevices(std::span<const std::string> targets,
                                                                    size_t variant);

/// Checks a code object's form without running any of it. Tells in `contracts` whether all its kernels say what they
/// rely on: 1, 0, or -1 for targets that this runtime has no device for, which are not looked at.
Status checkCode(std::string_view target, std::span<const std::byte> bytes, int32_t &contracts);

/// Entries of code that sessions take only where they ask for it by name: levels beside the best one for this machine.
std::vector<std::string_view> codeForRequests(std::span<const TargetCode> codes);

} // namespace dmxrt
