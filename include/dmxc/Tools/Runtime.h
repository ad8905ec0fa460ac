//===- Runtime.h - the runtime's C API for tools ----------------*- C++ -*-===//
#pragma once

#include "dmx/dmx.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::tools {

/// An extent of an input or output: fixed (empty name) or symbolic.
struct IoDim {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
};

struct IoTensor {
  std::string name;
  DType dtype = DType::F32;
  std::vector<IoDim> dims;
  /// "f32 batchx3x224x224"
  std::string str() const;
};

/// A zeroed tensor. Where there is no memory for it the error says how much `what` ("input 'x'") needs.
Result<Tensor> newTensor(DType type, const Shape &shape, const std::string &what);

/// A task's figures, copied from dmx_task_info.
struct TaskFigures {
  std::string name, kernel;
  std::vector<std::string> nodes;
  int64_t work = -1, flops = -1, bytes = -1;
  uint32_t slices = 0;
  uint64_t calls = 0, totalNs = 0, busyNs = 0;
};

/// How a bundle is opened.
struct OpenSettings {
  bool copyBundle = false;              ///< into private memory instead of mapping the file
  bool requireContracts = false;        ///< refuse code that does not say what its kernels rely on
  bool noUserCode = false;              ///< refuse a bundle with code that a user wrote
  std::vector<std::string> trustedKeys; ///< files of public keys (Keys.h); none: whoever signed it or not
  std::string signatureFile;            ///< a detached signature; empty: the one in the bundle
};

/// Opens a bundle with the runtime; `bundle` is to be closed by dmx_bundle_close. Failures of the runtime keep its
/// sentence; the kind follows its status (file: IO, bad bundle: Model, untrusted: Mismatch, bad argument: Usage).
Status openBundle(const std::string &path, const OpenSettings &settings, dmx_bundle *&bundle);

/// The error of a call of the runtime.
Error runtimeError(dmx_status status, const dmx_error &error);

struct StateRows {
  int64_t length = 0, capacity = 0;
};

struct SessionSettings : OpenSettings {
  std::string entryPoint;                 ///< empty: the first
  uint32_t threads = 0;                   ///< 0: all the CPUs allowed
  std::string isa;                        ///< empty: the best
  std::vector<std::string> deviceOptions; ///< "key=value"
};

/// An open bundle and one session over it; a machine that is not there is simulated. Tensors that are bound are kept
/// alive. One caller at a time. Failures are those of openBundle.
class ModelSession {
public:
  static Result<std::unique_ptr<ModelSession>> open(const std::string &bundle, const SessionSettings &settings);
  ~ModelSession();
  ModelSession(const ModelSession &) = delete;
  ModelSession &operator=(const ModelSession &) = delete;

  const std::vector<IoTensor> &inputs() const { return inputList; }
  const std::vector<IoTensor> &outputs() const { return outputList; }

  Status bindInput(size_t index, const Tensor &tensor);
  /// Binds memory of the caller's, which lives as long as it is bound; or leaves an output to the session.
  Status bind(dmx_io io, size_t index, const dmx_tensor_view &view);
  Status unbind(dmx_io io, size_t index);
  /// The shape of an output for the inputs bound now; nothing where only a run tells.
  Result<std::optional<Shape>> outputShape(size_t index);
  /// An output of the last run, wherever it lies.
  Result<dmx_tensor_view> outputView(size_t index);
  /// Allocates and binds every output for the inputs bound now; those whose shape depends on the data are left to the
  /// session, and copied from there by `run`.
  Status allocateOutputs();
  const Tensor &output(size_t index) const { return outputTensors[index]; }
  /// A run again is the same run: where states have lengths, one from the start.
  Status run();
  /// A run behind the rows that states with a length have.
  Status runOn();
  /// Sets the states back to zero.
  Status resetState();
  /// Of states with a length: rows that are there. Nothing where there are none.
  std::optional<StateRows> stateRows();
  /// Forgets the rows from `length` on, of all states with a length.
  Status truncateState(int64_t length);
  /// What the model's file says under a key; "" where it says nothing.
  std::string metadata(const std::string &key) const;

  /// Room for `capacity` events; 0 turns profiling off.
  Status profile(uint32_t capacity);
  Result<std::vector<dmx_profile_event>> takeEvents(uint64_t &dropped);
  Result<dmx_session_info> info();
  Result<std::vector<TaskFigures>> tasks();

  /// Milliseconds that opening the bundle and making the session took.
  double loadMs() const { return loadTime; }
  double sessionMs() const { return sessionTime; }

private:
  ModelSession() = default;
  Status readSignature(dmx_io io, std::vector<IoTensor> &list);
  Status fetchOutput(size_t index);

  dmx_bundle *bundle = nullptr;
  dmx_session *session = nullptr;
  std::string entryPoint;
  std::vector<IoTensor> inputList, outputList;
  std::vector<Tensor> inputTensors, outputTensors;
  std::vector<size_t> lateOutputs; ///< those left to the session
  double loadTime = 0, sessionTime = 0;
};

/// What the runtime says of each code object of a bundle: "yes", "no", or "unknown target"; nothing when it refuses the
/// bundle or the object, which other checks tell.
std::vector<std::string> contractsOf(const std::string &bundle);

/// Where a session's target has several machines, says on stderr which one it runs on: "runs on cuda sm_90a: simulator,
/// because ...".
Status noteMachine(ModelSession &session);

/// Milliseconds of a monotonic clock.
double nowMs();

} // namespace dmxc::tools
