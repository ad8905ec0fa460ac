//===- Backend.cpp - the functions that Triton calls ----------------------===//
//
// libtriton_dmx.so: bundles behind Triton's HTTP and gRPC. A model is REPOSITORY/NAME/VERSION/model.bundle.
//
//===----------------------------------------------------------------------===//
#include "Instance.h"

#include <nlohmann/json.hpp>

using namespace dmxrt::triton;

namespace {

/// The first version of Triton's interface with all that is called here (cancellation, correlation ids of texts).
constexpr uint32_t kNeededMajor = 1, kNeededMinor = 15;

/// The server's state of an object as ours; null before it has one.
template <typename Object, typename Get, typename From> Object *stateOf(Get get, From *from) {
  void *state = nullptr;
  check(get(from, &state));
  return static_cast<Object *>(state);
}

nlohmann::json configOf(TRITONBACKEND_Model *model) {
  TRITONSERVER_Message *message = nullptr;
  check(TRITONBACKEND_ModelConfig(model, 1, &message));
  const char *text = nullptr;
  size_t size = 0;
  TRITONSERVER_Error *error = TRITONSERVER_MessageSerializeToJson(message, &text, &size);
  std::string copy = error ? "" : std::string(text, size);
  TRITONSERVER_MessageDelete(message);
  check(error);
  return nlohmann::json::parse(copy);
}

void setConfig(TRITONBACKEND_Model *model, const nlohmann::json &config) {
  const std::string text = config.dump();
  TRITONSERVER_Message *message = nullptr;
  check(TRITONSERVER_MessageNewFromSerializedJson(&message, text.data(), text.size()));
  TRITONSERVER_Error *error = TRITONBACKEND_ModelSetConfig(model, 1, message);
  TRITONSERVER_MessageDelete(message);
  check(error);
}

std::string bundleOf(TRITONBACKEND_Model *model, const nlohmann::json &config) {
  TRITONBACKEND_ArtifactType kind = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char *folder = nullptr;
  uint64_t version = 0;
  check(TRITONBACKEND_ModelRepository(model, &kind, &folder));
  check(TRITONBACKEND_ModelVersion(model, &version));
  std::string file = config.value("default_model_filename", "");
  return std::string(folder) + "/" + std::to_string(version) + "/" + (file.empty() ? "model.bundle" : file);
}

} // namespace

#define DMX_EXPORT __attribute__((visibility("default")))

extern "C" {

DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *) {
  return guarded([&] {
    uint32_t major = 0, minor = 0;
    check(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != kNeededMajor || minor < kNeededMinor)
      throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "the server's backend interface is " + std::to_string(major) + "." +
                                                        std::to_string(minor) + ", dmx needs " +
                                                        std::to_string(kNeededMajor) + "." +
                                                        std::to_string(kNeededMinor) + " or a later one of it");
    log(TRITONSERVER_LOG_INFO, std::string("dmx backend: libdmxrt ") + dmx_version_string());
  });
}

DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *handle) {
  return guarded([&] {
    bool complete = false;
    check(TRITONBACKEND_ModelAutoCompleteConfig(handle, &complete));
    nlohmann::json config = configOf(handle);
    auto model = std::make_unique<Model>(bundleOf(handle, config), config, complete);
    if (complete)
      setConfig(handle, config);
    check(TRITONBACKEND_ModelSetState(handle, model.get()));
    static_cast<void>(model.release()); // the server's now
  });
}

DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *handle) {
  return guarded([&] { delete stateOf<Model>(TRITONBACKEND_ModelState, handle); });
}

DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *handle) {
  return guarded([&] {
    TRITONBACKEND_Model *of = nullptr;
    check(TRITONBACKEND_ModelInstanceModel(handle, &of));
    auto instance = std::make_unique<Instance>(*stateOf<Model>(TRITONBACKEND_ModelState, of), handle);
    check(TRITONBACKEND_ModelInstanceSetState(handle, instance.get()));
    static_cast<void>(instance.release());
  });
}

DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *handle) {
  return guarded([&] { delete stateOf<Instance>(TRITONBACKEND_ModelInstanceState, handle); });
}

/// Requests are ours from here on: they are answered and given back whatever happens, so that no error is returned.
DMX_EXPORT TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *handle,
                                                                  TRITONBACKEND_Request **requests,
                                                                  const uint32_t count) {
  if (TRITONSERVER_Error *error =
          guarded([&] { stateOf<Instance>(TRITONBACKEND_ModelInstanceState, handle)->execute({requests, count}); })) {
    log(TRITONSERVER_LOG_ERROR, std::string("dmx backend: ") + TRITONSERVER_ErrorMessage(error));
    TRITONSERVER_ErrorDelete(error);
  }
  return nullptr;
}

} // extern "C"
