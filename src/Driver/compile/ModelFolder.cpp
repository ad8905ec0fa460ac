//===- ModelFolder.cpp - a folder with a model, as people have them -------===//
#include "ModelFolder.h"

#include "dmxc/Support/MappedFile.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace dmxc::driver {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

/// A member of objects in objects; null where one is not there.
const Json &memberOf(const Json &root, std::initializer_list<const char *> path) {
  static const Json none;
  const Json *at = &root;
  for (const char *key : path) {
    if (!at->is_object() || !at->contains(key))
      return none;
    at = &(*at)[key];
  }
  return *at;
}

std::string textOf(const Json &value) { return value.is_string() ? value.get<std::string>() : ""; }

int64_t numberOf(const Json &value) {
  return value.is_number_integer() ? std::max<int64_t>(value.get<int64_t>(), 0) : 0;
}

/// A token id or several.
std::vector<int64_t> idsOf(const Json &value) {
  std::vector<int64_t> ids;
  for (const Json &id : value.is_array() ? value : Json::array({value}))
    if (id.is_number_integer() && id.get<int64_t>() >= 0)
      ids.push_back(id.get<int64_t>());
  return ids;
}

class FolderReader {
public:
  explicit FolderReader(const std::string &folder) : folder(folder) {}

  Result<ModelFolder> read() {
    for (const char *name : {"genai_config.json", "config.json", "generation_config.json"})
      if (Status done = readJson(name); !done)
        return done.takeError();
    const Json &genai = json["genai_config.json"];
    std::string named = textOf(memberOf(genai, {"model", "decoder", "filename"}));
    if (fs::path at(named); at.is_absolute() || llvm::is_contained(at, ".."))
      return modelError("'" + folder + "/genai_config.json' names a file outside of its folder, '" + named +
                        "'; give the model's file");
    Result<std::string> model = named.empty() ? onlyModel() : Result<std::string>((fs::path(folder) / named).string());
    if (!model)
      return model.takeError();
    found.model = *model;
    auto config = std::make_shared<DecoderConfig>();
    if (genai.is_object() ? takeGenai(genai, *config) : takeTransformers(*config))
      found.decoder = config;
    return found;
  }

private:
  Status readJson(const char *name) {
    const std::string path = (fs::path(folder) / name).string();
    std::error_code code;
    if (!fs::exists(path, code))
      return Status::ok();
    auto file = MappedFile::open(path);
    if (!file)
      return file.takeError();
    auto bytes = (*file)->bytes();
    Json value = Json::parse(reinterpret_cast<const char *>(bytes.data()),
                             reinterpret_cast<const char *>(bytes.data()) + bytes.size(), nullptr,
                             /*allow_exceptions=*/false);
    if (!value.is_object())
      return modelError("'" + path +
                        "' is no JSON object; give the model's file instead of its folder to leave it out");
    found.configurations.push_back(path);
    json[name] = std::move(value);
    return Status::ok();
  }

  /// The model of the folder, or of its folder `onnx`; of several optimum's one for both kinds of steps.
  Result<std::string> onlyModel() const {
    std::vector<fs::path> models;
    for (const char *place : {"", "onnx"}) {
      std::error_code code;
      for (const fs::directory_entry &entry : fs::directory_iterator(fs::path(folder) / place, code))
        if (entry.path().extension() == ".onnx" || entry.path().extension() == ".pt2")
          models.push_back(entry.path());
      if (!models.empty())
        break;
    }
    std::sort(models.begin(), models.end());
    if (models.size() == 1)
      return models.front().string();
    for (const char *name : {"decoder_model_merged.onnx", "model.onnx"})
      for (const fs::path &model : models)
        if (model.filename() == name)
          return model.string();
    if (models.empty())
      return ioError("the folder '" + folder +
                     "' has no model (.onnx, .pt2); what has weights of a framework alone is exported first, for "
                     "example: optimum-cli export onnx --model " +
                     folder + " OUT");
    std::string names;
    for (const fs::path &model : models)
      names += (names.empty() ? "'" : ", '") + model.string() + "'";
    return usageError("the folder '" + folder + "' has several models: " + names + "; give one of them");
  }

  /// What genai's builder calls "past_key_values.%d.key".
  static std::string patternOf(std::string text) {
    if (size_t number = text.find("%d"); number != std::string::npos)
      text.replace(number, 2, "*");
    return text;
  }

  static bool takeGenai(const Json &genai, DecoderConfig &config) {
    const Json &model = memberOf(genai, {"model"}), &inputs = memberOf(model, {"decoder", "inputs"}),
               &outputs = memberOf(model, {"decoder", "outputs"});
    config.names.ids = textOf(memberOf(inputs, {"input_ids"}));
    config.names.mask = textOf(memberOf(inputs, {"attention_mask"}));
    config.names.positions = textOf(memberOf(inputs, {"position_ids"}));
    config.names.logits = textOf(memberOf(outputs, {"logits"}));
    for (auto [past, present] : {std::pair("past_key_names", "present_key_names"),
                                 {"past_value_names", "present_value_names"},
                                 {"past_names", "present_names"}}) {
      std::string input = patternOf(textOf(memberOf(inputs, {past})));
      std::string output = patternOf(textOf(memberOf(outputs, {present})));
      if (!input.empty() && !output.empty())
        config.names.caches.emplace_back(input, output);
    }
    config.eos = idsOf(memberOf(model, {"eos_token_id"}));
    config.bos = idsOf(memberOf(model, {"bos_token_id"}));
    config.context = numberOf(memberOf(model, {"context_length"}));
    config.vocabulary = numberOf(memberOf(model, {"vocab_size"}));
    return memberOf(model, {"decoder"}).is_object();
  }

  bool takeTransformers(DecoderConfig &config) const {
    auto own = json.find("config.json");
    if (own == json.end())
      return false;
    bool isDecoder = false;
    for (const Json &name : memberOf(own->second, {"architectures"}))
      isDecoder |= textOf(name).ends_with("ForCausalLM") || textOf(name).ends_with("LMHeadModel");
    const Json &inner = memberOf(own->second, {"text_config"});
    const Json &text = inner.is_object() ? inner : own->second;
    config.eos = idsOf(memberOf(text, {"eos_token_id"}));
    config.bos = idsOf(memberOf(text, {"bos_token_id"}));
    config.vocabulary = numberOf(memberOf(text, {"vocab_size"}));
    for (const char *key : {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"})
      if (!config.context)
        config.context = numberOf(memberOf(text, {key}));
    // What answers are ended by in use, which is often more than the one of the architecture.
    if (auto use = json.find("generation_config.json"); use != json.end())
      if (std::vector<int64_t> ids = idsOf(memberOf(use->second, {"eos_token_id"})); !ids.empty())
        config.eos = ids;
    return isDecoder;
  }

  const std::string &folder;
  std::map<std::string, Json> json;
  ModelFolder found;
};

} // namespace

Result<ModelFolder> readModelFolder(const std::string &folder) { return FolderReader(folder).read(); }

Status resolveFolder(Options &options) {
  std::error_code code;
  if (!options.from.empty() || !fs::is_directory(options.model, code))
    return Status::ok();
  auto found = readModelFolder(options.model);
  if (!found)
    return found.takeError();
  fs::path named = fs::path(options.model).lexically_normal();
  options.folder = named.has_filename() ? named.filename().string() : named.parent_path().filename().string();
  options.model = found->model;
  options.configurations = found->configurations;
  options.decoder = found->decoder;
  return Status::ok();
}

} // namespace dmxc::driver
