//===- Model.cpp - a version of a model: its bundle and its settings ------===//
#include "Model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace dmxrt::triton {
namespace {

struct TypeRow {
  dmx_dtype type;
  TRITONSERVER_DataType server;
  const char *config;
};
constexpr TypeRow kTypes[] = {
    {DMX_DTYPE_BOOL, TRITONSERVER_TYPE_BOOL, "TYPE_BOOL"},    {DMX_DTYPE_I8, TRITONSERVER_TYPE_INT8, "TYPE_INT8"},
    {DMX_DTYPE_I16, TRITONSERVER_TYPE_INT16, "TYPE_INT16"},   {DMX_DTYPE_I32, TRITONSERVER_TYPE_INT32, "TYPE_INT32"},
    {DMX_DTYPE_I64, TRITONSERVER_TYPE_INT64, "TYPE_INT64"},   {DMX_DTYPE_U8, TRITONSERVER_TYPE_UINT8, "TYPE_UINT8"},
    {DMX_DTYPE_U16, TRITONSERVER_TYPE_UINT16, "TYPE_UINT16"}, {DMX_DTYPE_U32, TRITONSERVER_TYPE_UINT32, "TYPE_UINT32"},
    {DMX_DTYPE_U64, TRITONSERVER_TYPE_UINT64, "TYPE_UINT64"}, {DMX_DTYPE_F16, TRITONSERVER_TYPE_FP16, "TYPE_FP16"},
    {DMX_DTYPE_BF16, TRITONSERVER_TYPE_BF16, "TYPE_BF16"},    {DMX_DTYPE_F32, TRITONSERVER_TYPE_FP32, "TYPE_FP32"},
    {DMX_DTYPE_F64, TRITONSERVER_TYPE_FP64, "TYPE_FP64"}};

const TypeRow &rowOf(const Tensor &tensor) {
  for (const TypeRow &row : kTypes)
    if (row.type == tensor.type)
      return row;
  const char *name = dmx_dtype_name(tensor.type);
  throw Failure(TRITONSERVER_ERROR_UNSUPPORTED, "'" + tensor.name + "' is " + (name ? name : "of an unknown type") +
                                                    ", which the server has no type for; cast it in the model");
}

/// A key as dmx-sign writes it: "dmx-public-key 1", then "key" and 64 digits of base 16.
std::vector<unsigned char> readKey(const std::string &file) {
  std::ifstream stream(file);
  std::string magic, version, word, text;
  if (!stream)
    throw Failure(TRITONSERVER_ERROR_NOT_FOUND, "the trusted key '" + file + "' cannot be read");
  stream >> magic >> version >> word >> text;
  std::vector<unsigned char> key;
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  for (size_t i = 0; i + 1 < text.size() && digit(text[i]) >= 0 && digit(text[i + 1]) >= 0; i += 2)
    key.push_back(static_cast<unsigned char>(digit(text[i]) * 16 + digit(text[i + 1])));
  if (magic != "dmx-public-key" || version != "1" || word != "key" || key.size() != DMX_PUBLIC_KEY_BYTES ||
      text.size() != 2 * DMX_PUBLIC_KEY_BYTES)
    refuse("'" + file + "' is not a public key as 'dmx-sign keygen' writes it");
  return key;
}

const char *orNull(const std::string &text) { return text.empty() ? nullptr : text.c_str(); }

/// A symbol by itself: of "2 * n" not every number of rows is one.
bool isSymbol(const char *name) {
  std::string text = name ? name : "";
  return !text.empty() &&
         std::none_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '(' || c == '*'; });
}

} // namespace

std::string Tensor::describe() const {
  const char *name = dmx_dtype_name(type);
  std::string text = std::string(name ? name : "?") + "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? " x " : "") + (dims[i].name ? std::string(dims[i].name) : std::to_string(dims[i].min));
  return text + "]";
}

TRITONSERVER_DataType serverType(const Tensor &tensor) { return rowOf(tensor).server; }
std::string configType(const Tensor &tensor) { return rowOf(tensor).config; }

void Model::open(const std::string &path) {
  std::vector<unsigned char> keys;
  for (const std::string &file : options.trustedKeys) {
    std::vector<unsigned char> key = readKey(file);
    keys.insert(keys.end(), key.begin(), key.end());
  }
  dmx_bundle_options how = DMX_BUNDLE_OPTIONS_INIT;
  how.flags = options.copy ? DMX_BUNDLE_COPY : 0;
  how.trusted_keys = keys.empty() ? nullptr : keys.data();
  how.trusted_key_count = static_cast<uint32_t>(options.trustedKeys.size());
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *opened = nullptr;
  check(dmx_bundle_open_with(path.c_str(), &how, &opened, &error), error);
  bundle.reset(opened);
}

std::vector<Tensor> Model::read(dmx_io io) const {
  std::vector<Tensor> tensors;
  dmx_error error = DMX_ERROR_INIT;
  const char *entry = orNull(options.entryPoint);
  for (uint32_t i = 0, count = dmx_bundle_tensor_count(bundle.get(), entry, io); i < count; ++i) {
    dmx_tensor_info info = {};
    info.struct_size = sizeof info;
    check(dmx_bundle_tensor_info(bundle.get(), entry, io, i, &info, &error), error);
    tensors.push_back({info.name, info.dtype, {info.dims, info.dims + info.rank}});
    serverType(tensors.back());
  }
  return tensors;
}

/// All inputs have one open first axis. Those of outputs may be expressions of it, which no text compares: what a run
/// gives is looked at.
bool Model::sharesBatch() const {
  const char *name = inputTensors.empty() || !inputTensors[0].rank() ? nullptr : inputTensors[0].dims[0].name;
  auto has = [&](const Tensor &tensor) {
    return tensor.rank() && tensor.dims[0].name && std::string(tensor.dims[0].name) == name &&
           tensor.dims[0].min <= 1 && tensor.dims[0].max > 1;
  };
  auto isOpen = [](const Tensor &tensor) { return tensor.rank() && tensor.dims[0].min != tensor.dims[0].max; };
  return isSymbol(name) && std::all_of(inputTensors.begin(), inputTensors.end(), has) &&
         std::all_of(outputTensors.begin(), outputTensors.end(), isOpen);
}

Model::Model(const std::string &path, nlohmann::json &config, bool complete) : options(settingsOf(config)) {
  open(path);
  inputTensors = read(DMX_INPUT);
  outputTensors = read(DMX_OUTPUT);
  if (inputTensors.empty() && outputTensors.empty())
    refuse("the bundle has no entry point '" + options.entryPoint + "'");
  dmx_error error = DMX_ERROR_INIT;
  dmx_session_info info = {};
  info.struct_size = sizeof info;
  const Session trial = makeSession();
  check(dmx_session_get_info(trial.get(), &info, &error), error);
  state = info.state_bytes != 0;
  batch = config.value("max_batch_size", int64_t(0));
  const bool shares = !state && sharesBatch();
  if (batch > 0 && (!shares || batch > inputTensors[0].dims[0].max))
    refuse("max_batch_size is " + std::to_string(batch) + ", but " +
           (state    ? "the model keeps a state, and serves a sequence at a time"
            : shares ? "the bundle takes at most " + std::to_string(inputTensors[0].dims[0].max) + " rows"
                     : "the inputs and outputs of the bundle do not share an open first axis, as '" +
                           (inputTensors.empty() ? outputTensors : inputTensors)[0].name + "' " +
                           (inputTensors.empty() ? outputTensors : inputTensors)[0].describe() + " shows"));
  if (complete) {
    // A row of one number is a vector to clients of a batch, since the server has no row without dims.
    auto hasRow = [](const Tensor &tensor) { return tensor.rank() > 1; };
    const bool plain = std::all_of(inputTensors.begin(), inputTensors.end(), hasRow) &&
                       std::all_of(outputTensors.begin(), outputTensors.end(), hasRow);
    if (batch == 0 && shares && options.batching != "off" &&
        (options.batching == "on" || (plain && rowsAreIndependent(*this, trial.get()))))
      batch = std::min<int64_t>(inputTensors[0].dims[0].max, 64);
    completeConfig(*this, batch, config);
  }
  checkConfig(*this, config);
}

Session Model::makeSession() const {
  std::vector<const char *> texts;
  for (const std::string &text : options.deviceOptions)
    texts.push_back(text.c_str());
  dmx_session_options how = DMX_SESSION_OPTIONS_INIT;
  how.threads = options.threads;
  how.isa = orNull(options.isa);
  how.device_options = texts.data();
  how.device_option_count = static_cast<uint32_t>(texts.size());
  how.flags = options.simulate ? DMX_SESSION_SIMULATE : 0;
  dmx_error error = DMX_ERROR_INIT;
  dmx_session *session = nullptr;
  check(dmx_session_create(bundle.get(), orNull(options.entryPoint), &how, &session, &error), error);
  return Session(session);
}

} // namespace dmxrt::triton
