//===- Config.cpp - a model's configuration and its bundle ----------------===//
#include "Model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace dmxrt::triton {
namespace {

using nlohmann::json;

constexpr const char *kParameters =
    "threads, isa, entry_point, device_options, simulate, copy, trusted_key, batching, max_sequences";

std::vector<std::string> wordsOf(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

int64_t numberOf(const std::string &name, const std::string &text, int64_t most) {
  size_t end = 0;
  int64_t number = -1;
  try {
    number = std::stoll(text, &end);
  } catch (const std::exception &) {
    end = 0;
  }
  if (end != text.size() || text.empty() || number < 0 || number > most)
    refuse("the parameter '" + name + "' is '" + text + "', not a number of 0 to " + std::to_string(most));
  return number;
}

bool flagOf(const std::string &name, const std::string &text) {
  if (text == "true" || text == "1")
    return true;
  if (text != "false" && text != "0")
    refuse("the parameter '" + name + "' is '" + text + "', not true or false");
  return false;
}

/// The dims of a configuration; those of 64 bits may be texts.
std::vector<int64_t> dimsOf(const json &list) {
  std::vector<int64_t> dims;
  for (const json &dim : list)
    dims.push_back(dim.is_string() ? std::stoll(dim.get<std::string>()) : dim.get<int64_t>());
  return dims;
}

/// What the server is told of a tensor: without the batch, -1 where open. A scalar is a vector of one element there.
std::vector<int64_t> configDims(const Tensor &tensor, bool batched) {
  std::vector<int64_t> dims;
  for (size_t i = batched; i < tensor.dims.size(); ++i)
    dims.push_back(tensor.dims[i].min == tensor.dims[i].max ? tensor.dims[i].min : -1);
  return dims;
}

json describe(const Tensor &tensor, bool batched) {
  std::vector<int64_t> dims = configDims(tensor, batched);
  json row = {{"name", tensor.name}, {"data_type", configType(tensor)}, {"dims", dims}};
  if (dims.empty()) {
    row["dims"] = {1};
    if (batched)
      row["reshape"] = {{"shape", json::array()}};
  }
  return row;
}

/// Refuses rows that are not the bundle's tensors. A configuration may leave a dim open that the bundle fixes.
void compare(const char *kind, const std::vector<Tensor> &tensors, const json &rows, bool batched) {
  for (const json &row : rows) {
    const std::string name = row.value("name", "");
    auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor &each) { return each.name == name; });
    if (found == tensors.end()) {
      std::string names;
      for (const Tensor &tensor : tensors)
        names += (names.empty() ? "'" : ", '") + tensor.name + "'";
      refuse(std::string("the configuration has the ") + kind + " '" + name + "', the bundle has " + names);
    }
    if (row.value("data_type", "") != configType(*found))
      refuse(std::string("the ") + kind + " '" + name + "' is " + row.value("data_type", "") +
             " by the configuration, and " + configType(*found) + " by the bundle");
    const bool reshaped = row.contains("reshape");
    std::vector<int64_t> said =
        dimsOf(reshaped ? row["reshape"].value("shape", json::array()) : row.value("dims", json::array()));
    std::vector<int64_t> own = configDims(*found, batched);
    if (own.empty() && !batched && said == std::vector<int64_t>{1})
      said.clear();
    bool fits = said.size() == own.size();
    for (size_t i = 0; fits && i < own.size(); ++i)
      fits = said[i] == own[i] || own[i] == -1 || said[i] == -1;
    if (!fits)
      refuse(std::string("the ") + kind + " '" + name + "' has the dims " + json(said).dump() +
             " by the configuration" + (batched ? " behind the batch" : "") + ", and is " + found->describe() +
             " by the bundle");
  }
  if (rows.size() != tensors.size())
    refuse("the configuration has " + std::to_string(rows.size()) + " " + kind + "s, the bundle " +
           std::to_string(tensors.size()));
}

} // namespace

Settings settingsOf(const json &config) {
  Settings settings;
  const json parameters = config.value("parameters", json::object());
  for (const auto &[name, value] : parameters.items()) {
    const std::string text = value.value("string_value", "");
    if (name == "threads")
      settings.threads = static_cast<uint32_t>(numberOf(name, text, 1024));
    else if (name == "isa")
      settings.isa = text;
    else if (name == "entry_point")
      settings.entryPoint = text;
    else if (name == "device_options")
      settings.deviceOptions = wordsOf(text);
    else if (name == "trusted_key")
      settings.trustedKeys = wordsOf(text);
    else if (name == "simulate")
      settings.simulate = flagOf(name, text);
    else if (name == "copy")
      settings.copy = flagOf(name, text);
    else if (name == "max_sequences")
      settings.maxSequences = std::max<int64_t>(1, numberOf(name, text, 65536));
    else if (name == "batching" && (text == "auto" || text == "on" || text == "off"))
      settings.batching = text;
    else if (name == "batching")
      refuse("the parameter 'batching' is '" + text + "', not auto, on or off");
    else
      refuse("the parameter '" + name + "' is unknown; there are " + kParameters);
  }
  return settings;
}

void completeConfig(const Model &model, int64_t batch, json &config) {
  auto fill = [&](const char *key, const std::vector<Tensor> &tensors) {
    json rows = json::array();
    for (const Tensor &tensor : tensors)
      rows.push_back(describe(tensor, batch > 0));
    if (config.value(key, json::array()).empty())
      config[key] = rows;
  };
  fill("input", model.inputs());
  fill("output", model.outputs());
  config["max_batch_size"] = batch;
  const bool scheduled = config.contains("dynamic_batching") || config.contains("sequence_batching") ||
                         config.contains("ensemble_scheduling");
  if (batch > 0 && !scheduled && model.settings().batching != "off")
    config["dynamic_batching"] = json::object();
  if (model.hasState() && !scheduled)
    config["sequence_batching"] = {{"oldest", {{"max_candidate_sequences", model.settings().maxSequences}}},
                                   {"max_sequence_idle_microseconds", 60'000'000}};
  if (config.value("instance_group", json::array()).empty())
    config["instance_group"] = json::array({{{"kind", "KIND_CPU"}, {"count", 1}}});
}

void checkConfig(const Model &model, const json &config) {
  compare("input", model.inputs(), config.value("input", json::array()), model.maxBatch() > 0);
  compare("output", model.outputs(), config.value("output", json::array()), model.maxBatch() > 0);
  if (model.hasState() && !config.contains("sequence_batching"))
    refuse("the model keeps a state between runs, which needs sequence_batching: requests of one correlation id go to "
           "one session");
}

} // namespace dmxrt::triton
