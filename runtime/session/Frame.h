//===- Frame.h - a graph's execution state ----------------------*- C++ -*-===//
//
// A session has a frame for the graph of its entry point and one for each graph that
// a task of a frame owns: bindings, dims, layout, memory and plans. A frame runs stage
// by stage; what a stage needs is made when the dims it depends on have new values.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Profile.h"
#include "Strides.h"
#include "runtime/bundle/Bundle.h"
#include "runtime/bundle/Contract.h"
#include "runtime/bundle/Layout.h"
#include "runtime/devices/Device.h"

#include <memory>
#include <vector>

namespace dmxrt {

/// A device and what it knows.
struct Unit {
  std::unique_ptr<Device> device;
  const TargetCode *target = nullptr;            // null, like `code`, when all its tasks are copies
  std::shared_ptr<const CodeImage> code, common; // common: null unless the target's code has such
  uint32_t programs = 0;                         // one for each stage of each frame that has tasks for it

  /// The code that has a kernel; null when none has.
  const CodeImage *imageOf(std::string_view kernel) const {
    for (const CodeImage *image : {code.get(), common.get()})
      if (image && image->findKernel(kernel))
        return image;
    return nullptr;
  }
};

/// Whether a session only lays runs out (Rehearsal.cpp), and at which end of their bounds are the values that only a
/// real run tells.
enum class Rehearsal : uint8_t { No, Least, Most };

/// What the frames of a session share.
struct Machinery {
  std::shared_ptr<const Bundle> bundle;
  std::span<const std::string> targets; // of `units`
  std::vector<Unit> units;
  Device *sharing = nullptr; // its memory is what devices share: arenas
  Profile profile;
  uint32_t taskCount = 0; // of all frames made
  Rehearsal rehearsal = Rehearsal::No;
};

struct Memory {
  void *data = nullptr;
  uint64_t size = 0;
};

/// A tensor that a graph reads or writes. `own` is memory of the session that it may lie in.
struct TensorPlace {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides; // in elements; of outputs alone
  std::byte *data = nullptr;
  uint64_t bytes = 0;
  Memory own;
};

class Frame {
public:
  /// `path` goes before the names of tasks, "loop1/"; empty for an entry point's graph, which has a `signature`.
  static Result<std::unique_ptr<Frame>> create(Machinery &machinery, const Graph &graph, std::string path,
                                               const Signature *signature);
  ~Frame();

  struct Binding {
    bool bound = false;
    std::vector<int64_t> dims, strides; // strides in elements
    std::byte *data = nullptr;
    uint64_t bytes = 0;      // from the first element to behind the last one
    bool isStrided = false;  // bound with strides
    std::byte *at = nullptr; // of an input: where tasks read it, `data` or a dense copy in `own`
    Memory own;
  };
  const Binding &binding(dmx_io io, uint32_t index) const { return bindings[io][index]; }
  /// Tensors of the right dtype and rank; without strides, dense ones.
  void bind(dmx_io io, uint32_t index, std::span<const int64_t> dims, std::byte *data, uint64_t bytes,
            std::span<const int64_t> strides = {});
  void unbind(dmx_io io, uint32_t index);

  /// Computes the dims that the inputs' shapes give and checks all bound inputs against them.
  Status evaluateInputs();
  std::span<const int64_t> dimValues() const { return dims; }
  /// Whether nothing changed since the last `settle`.
  bool isReady() const { return !inputsChanged && !lengthsChanged && stages[0].settled == version; }
  /// Lays the first stage out for the inputs bound now.
  Status prepareFirst();
  /// Also gives its outputs their places.
  Status arrange();
  /// Brings its operands up to date as well; then the frame can run.
  void settle() { patchPointers(0); }
  Status execute();
  /// Whether an output and the input whose rows it begins with are bound to one place.
  bool isInPlace(uint32_t output) const;
  /// Before and after `execute`: what tasks do not take as it lies.
  void gather();
  void scatter();
  /// All of these, inside of a run.
  Status call();
  /// Instead of `execute`, in a rehearsal.
  Status rehearse(bool &reached);

  /// Of the last execution, or of the bindings so far as the shape is known.
  const TensorPlace &output(uint32_t index) const { return outputs[index]; }
  /// Swaps an output's memory for another, so that it stays as it is when the frame runs again.
  void exchangeOutput(uint32_t index, TensorPlace &place);

  void resetState();
  /// After a run that succeeded: lengths become what they are after it.
  void advanceLengths();
  /// The dim that is the length of this name, of the first one where it is null.
  Result<uint32_t> findLength(const char *name) const;
  int64_t lengthOf(uint32_t dim) const { return lengths[dim]; }
  int64_t roomOf(uint32_t dim) const { return graph.dims[dim].max; }
  /// The greatest length; 0 where there are none.
  int64_t longest() const;
  /// Leaves no more than `length` rows of the states with a length, all of them where that is kNone.
  void truncate(uint32_t dim, int64_t length);
  /// Whether these may be the lengths, by dim.
  bool mayHave(std::span<const int64_t> given) const;
  /// An error where a state is kept by a device that gives it to nobody.
  Status checkStatesOnHost() const;
  /// Takes the states and lengths of a frame of the same graph.
  void copyStates(const Frame &other);
  /// Bytes of all states, of those with a length the rows that are there (with `given` lengths).
  uint64_t stateBytes(std::span<const int64_t> given) const;
  std::byte *saveStates(std::byte *out) const;
  const std::byte *loadStates(const std::byte *in, std::span<const int64_t> given);
  /// By dim; 0 for those that are no lengths.
  std::span<const int64_t> lengthValues() const { return lengths; }
  void setProfiling(bool on);
  void info(dmx_session_info &out) const;
  /// Of one of the frame's own tasks.
  void taskInfo(uint32_t task, dmx_task_info &out) const;
  /// This frame and all below it, in the order of their tasks' numbers.
  void listFrames(std::vector<Frame *> &list);
  uint32_t firstTask() const { return taskBase; }
  std::string tensorName(dmx_io io, uint32_t index) const;

private:
  /// A part of a run: a segment of a device, or a task that runs other graphs.
  struct Turn {
    Device *device = nullptr;
    uint32_t program = 0;
    uint32_t segment = 0;
    uint32_t control = kNone;
  };
  struct Stage {
    uint32_t begin = 0, end = 0;                // tasks
    std::vector<uint32_t> rows;                 // its dims
    std::vector<uint32_t> outputs, results;     // of the graph; result buffers
    std::vector<std::vector<Segment>> segments; // by Graph::targets
    std::vector<uint32_t> programs;             // by Graph::targets
    std::vector<Turn> turns;
    uint32_t firstSlot = 0, endSlot = 0; // in boundSlots
    bool prepared = false;               // layout and plans fit preparedDims, and the stages before are prepared
    std::vector<int64_t> preparedDims;   // values of `rows`
    uint64_t placed = 0, settled = 0;    // the `version` that outputs and operands were made for
  };
  /// A task operand that lies in a tensor of the border, to be rewritten when that moves.
  struct Slot {
    uint32_t position, buffer;
  };
  /// What a task that runs other graphs has.
  struct Control {
    std::unique_ptr<Frame> frames[2]; // then and else, or the body
    std::vector<TensorPlace> results; // what result buffers stand for
    int64_t iterations = 0;
    int64_t iteration = 0; // the body's first two inputs
    uint8_t condition = 0;
  };

  Frame(Machinery &machinery, const Graph &graph, std::string path, const Signature *signature);
  Status load();
  void findRead();
  Status findKernels();
  Status findContract(size_t task, const CodeImage &image);
  Status checkContracts(const Stage &stage) const;
  Status layOutStage(uint32_t index);
  Status makeControls();
  void makeStages();
  void cutSegments(Stage &stage);
  Status allocateState();

  Unit &unitOf(uint32_t target) const { return machinery.units[unitIndex[target]]; }
  Device &deviceOf(const Task &task) const { return *unitOf(task.device).device; }
  Device &deviceOfState(size_t buffer) const {
    uint32_t target = graph.buffers[buffer].device;
    return target == kNone ? *machinery.sharing : *unitOf(target).device;
  }

  Result<int64_t> givenDim(const Dim &dim) const;
  Result<int64_t> inputDim(const Dim &dim) const;
  Result<int64_t> lengthDim(const Dim &dim);
  Result<int64_t> roomDim(const Dim &dim) const;
  /// Parts of a state's memory that hold its rows: `count` of `bytes`, each `stride` behind the last.
  struct Rows {
    uint64_t count = 1, bytes = 0, stride = 0;
  };
  Rows rowsOf(size_t buffer, std::span<const int64_t> given) const;
  /// Visits the runs of bytes of all states that are there: visit(state, data, offset in it, bytes).
  template <typename Visit> void forEachRun(Visit visit) const;
  Result<int64_t> returnedDim(const Dim &dim) const;
  Status evaluateInputDims();
  Status checkInputs();
  bool fits(const Stage &stage) const;
  Status bringUp(uint32_t index);
  Status enterStage(uint32_t index);
  Status prepare(uint32_t index);
  Status growArenas(uint32_t stage);
  Status grow(Memory &memory, uint64_t needed, uint64_t keep = 0);
  void release(Memory &memory);
  void placeBuffers(uint32_t stage);
  void makeOperands();
  void findShared();
  uint32_t baseOf(uint32_t buffer) const {
    const Buffer &own = graph.buffers[buffer];
    return own.kind == BufferKind::Alias ? own.parent : buffer;
  }
  BufferHome homeOf(uint32_t buffer) const;
  DeviceTask makeTask(uint32_t index);
  Status placeOutputs(uint32_t index);
  Status placeInputs();
  Status layOutOutput(uint32_t output);
  bool liesAsWritten(uint32_t output) const;
  Status checkResults(uint32_t index);
  void patchPointers(uint32_t index);
  std::byte *dataOf(uint32_t buffer) const;
  bool isMovable(uint32_t buffer) const;

  Status runTurn(const Turn &turn);
  Status runControl(uint32_t task);
  Status runIf(const Task &task, Control &control);
  Status runLoop(const Task &task, Control &control);
  Status iterate(const Task &task, Control &control);
  Status stack(const Task &task, Control &control);
  Status endLoop(const Task &task, Control &control);
  void emptyScan(Frame &body, uint32_t output, TensorPlace &place);
  Status bindBuffer(Frame &frame, uint32_t input, uint32_t buffer);
  uint32_t bindIteration(Control &control);
  /// In a rehearsal, what only a real run tells.
  static constexpr int64_t kUnknownExtent = -1;
  int64_t rehearsedValue(int64_t lower, int64_t upper) const;
  Status rehearseControl(uint32_t task);
  Status rehearsePart(const Task &task, Control &control, Frame &frame, bool &reached);
  static void takeRehearsed(const Frame &frame, uint32_t output, bool reached, std::vector<int64_t> &shape);
  Error taskError(const RunOutcome &outcome) const;

  Machinery &machinery;
  const Graph &graph;
  const std::string path;
  const Signature *signature;
  std::vector<uint32_t> unitIndex;   // by Graph::targets
  std::vector<const void *> kernels; // per task
  struct TaskContract {
    const ContractTable *table = nullptr;     // null where its code has none
    const KernelContract *contract = nullptr; // of `table`, likewise
  };
  std::vector<TaskContract> contracts;            // per task
  std::vector<std::string> taskNames;             // with the path
  std::vector<std::unique_ptr<Control>> controls; // per task; null for others
  uint32_t taskBase = 0;
  std::vector<Stage> stages;

  std::vector<Binding> bindings[2]; // by dmx_io
  std::vector<TensorPlace> outputs;
  bool inputsChanged = true;                 // shapes of inputs since evaluateInputs, or room of outputs
  bool hasRooms = false;                     // whether dims say for how many rows outputs have room
  std::vector<bool> isRead;                  // by input: whether tasks read it
  uint64_t copiedBytes = 0;                  // of the last run, by gather and scatter
  uint64_t version = 1;                      // of bindings and memory of the border
  std::vector<int64_t> dims;                 // values of the graph's
  std::vector<int64_t> lengths, nextLengths; // by dim: of those that are lengths, now and after the run laid out
  bool lengthsChanged = false;               // since evaluateInputs
  Layout layout;
  std::vector<Memory> arenas, states; // states: per buffer
  uint64_t constantBytes = 0;

  std::vector<std::byte *> bufferData;  // per buffer
  std::vector<uint32_t> firstOperand;   // per task
  std::vector<void *> operands;         // of all tasks
  std::vector<uint64_t> operandBytes;   // their sizes
  std::vector<BufferHome> operandHomes; // none where all devices run on the host
  std::vector<bool> isShared;           // per buffer, as BufferHome has it; likewise
  std::vector<Slot> boundSlots;
  std::vector<uint32_t> firstResult; // per task
  std::vector<int64_t> results;      // values that tasks return
  std::vector<DeviceTask> tasks;
  std::vector<int64_t> shapeRoom; // scratch
  std::vector<TaskSlice> slices;  // of the execution that goes on
};

} // namespace dmxrt
