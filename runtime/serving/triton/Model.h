//===- Model.h - a version of a model: its bundle and its settings -*- C++ -*-===//
#pragma once

#include "Server.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <vector>

namespace dmxrt::triton {

/// An input or output of the bundle.
struct Tensor {
  std::string name;
  dmx_dtype type;
  std::vector<dmx_dim> dims; ///< names live as long as the bundle

  uint32_t rank() const { return static_cast<uint32_t>(dims.size()); }
  /// "f32[batch x 3]".
  std::string describe() const;
};

/// The server's type; fails for types of less than a byte and others that it has no name for.
TRITONSERVER_DataType serverType(const Tensor &tensor);
/// "TYPE_FP32".
std::string configType(const Tensor &tensor);

/// What the configuration's `parameters` say. Unknown ones are refused.
struct Settings {
  uint32_t threads = 1; ///< an instance; 0: as many as the process may use
  std::string isa, entryPoint, batching = "auto";
  std::vector<std::string> deviceOptions, trustedKeys;
  bool simulate = false, copy = false;
  int64_t maxSequences = 16;
};

struct CloseBundle {
  void operator()(dmx_bundle *bundle) const { dmx_bundle_close(bundle); }
};
struct DestroySession {
  void operator()(dmx_session *session) const { dmx_session_destroy(session); }
};
using Session = std::unique_ptr<dmx_session, DestroySession>;

/// One version of a model. Immutable after it is made, and used by all of its instances at once.
class Model {
public:
  /// Opens `path`; completes `config` (the server's JSON) where it is silent and `complete` is set, and refuses one
  /// that disagrees with the bundle.
  Model(const std::string &path, nlohmann::json &config, bool complete);

  Session makeSession() const;

  const std::vector<Tensor> &inputs() const { return inputTensors; }
  const std::vector<Tensor> &outputs() const { return outputTensors; }
  /// Most rows of a run; 0: the first axis is no batch, a run is one request.
  int64_t maxBatch() const { return batch; }
  /// Whether sessions keep something between runs.
  bool hasState() const { return state; }
  const Settings &settings() const { return options; }

private:
  void open(const std::string &path);
  std::vector<Tensor> read(dmx_io io) const;
  bool sharesBatch() const;

  std::unique_ptr<dmx_bundle, CloseBundle> bundle;
  Settings options;
  std::vector<Tensor> inputTensors, outputTensors;
  int64_t batch = 0;
  bool state = false;
};

/// Whether two rows that are run together give what each gives alone: joining requests of a model that mixes its rows,
/// as a recurrence over them does, would give clients each other's answers. Runs the model three times.
bool rowsAreIndependent(const Model &model, dmx_session *session);

/// The parameters of a configuration. config.cpp has what follows too.
Settings settingsOf(const nlohmann::json &config);
/// Fills what the configuration does not say.
void completeConfig(const Model &model, int64_t batch, nlohmann::json &config);
/// Refuses one that disagrees, with both sides.
void checkConfig(const Model &model, const nlohmann::json &config);

} // namespace dmxrt::triton
