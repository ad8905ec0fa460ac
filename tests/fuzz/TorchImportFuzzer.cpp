//===- TorchImportFuzzer.cpp - hostile PyTorch programs -------------------===//
//
// The import of what the reader lets through. An input that begins with a brace is the JSON of a program: an archive is
// made around it, with bytes for the parameters, buffers and constants that it names. Any other is torch-dialect text.
//
//===----------------------------------------------------------------------===//
#include "ArchiveBuilder.h"
#include "Engine.h"
#include "Folder.h"
#include "ImportPromises.h"
#include "TextMutator.h"

#ifdef DMXC_WITH_ONNX
#include "frontends/onnx/OnnxFrontend.h"
#endif
#include "frontends/torch/Program.h"
#include "frontends/torch/TorchFrontend.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

using Json = nlohmann::json;
using dmxfuzz::Random;

namespace {

/// Bytes that each of a program's tensors has at most.
constexpr int64_t kMaxBytes = 1 << 14;

/// Small integers; as floats they are tiny.
std::string bytesOf(int64_t elements, int64_t width) {
  std::string bytes(elements * width, '\0');
  for (int64_t i = 0; i < elements; ++i)
    bytes[i * width] = static_cast<char>(i % 3);
  return bytes;
}

struct Stored {
  Json table = Json::object();
  torchtest::Records records;
};

/// The tensor as the table of weights has it; not there where the program says nothing sensible of it.
void store(const std::string &name, const Json &meta, Stored &stored) {
  std::optional<dmxc::DType> type = dmxc::torchfe::dtypeOfSchema(meta.at("dtype").get<int64_t>());
  int64_t width = type ? (dmxc::dtypeBits(*type) + 7) / 8 : 8, elements = 1;
  Json strides = Json::array();
  for (size_t i = meta.at("sizes").size(); i-- > 0;) {
    int64_t size = meta.at("sizes")[i].at("as_int").get<int64_t>();
    if (size < 0 || size > kMaxBytes || elements * size * width > kMaxBytes)
      return;
    strides.insert(strides.begin(), Json::object({{"as_int", std::max<int64_t>(elements, 1)}}));
    elements *= size;
  }
  Json seen = meta;
  seen["strides"] = strides;
  seen["storage_offset"] = Json::object({{"as_int", 0}});
  std::string file = "weight_" + std::to_string(stored.records.size());
  stored.table[name] =
      Json::object({{"path_name", file}, {"is_param", true}, {"use_pickle", false}, {"tensor_meta", seen}});
  stored.records.push_back({file, bytesOf(elements, width)});
}

/// What the signature names; parts of it that are damaged are left out.
Stored storedOf(const Json &program) {
  Stored stored;
  try {
    const Json &module = program.at("graph_module");
    for (const Json &spec : module.at("signature").at("input_specs"))
      for (auto [key, value] : {std::pair("parameter", "parameter_name"), std::pair("buffer", "buffer_name"),
                                std::pair("tensor_constant", "tensor_constant_name")})
        if (spec.contains(key))
          store(spec.at(key).at(value).get<std::string>(),
                module.at("graph").at("tensor_values").at(spec.at(key).at("arg").at("name").get<std::string>()),
                stored);
  } catch (const Json::exception &) {
    return stored; // what is not a program has the weights found so far
  }
  return stored;
}

std::string archiveOf(const std::string &text) {
  torchtest::Records records{{"archive_format", "pt2"}, {"archive_version", "0"}, {"models/model.json", text}};
  Json program = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  Stored stored = program.is_discarded() ? Stored() : storedOf(program);
  std::string table = Json::object({{"config", stored.table}}).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const char *folder : {"weights", "constants"}) {
    std::string prefix = std::string("data/") + folder + "/";
    records.push_back({prefix + "model_" + folder + "_config.json", table});
    for (const auto &[name, bytes] : stored.records)
      records.push_back({prefix + name, bytes});
  }
  return torchtest::makeArchive(records);
}

//===--- Other programs -----------------------------------------------------------===//

/// Pointers to the parts of a program that a mutation may touch.
void collect(Json &value, std::vector<Json *> &parts) {
  if (value.is_primitive() && !value.is_null())
    parts.push_back(&value);
  for (Json &item : value)
    if (value.is_structured()) {
      if (item.is_array())
        parts.push_back(&item);
      collect(item, parts);
    }
}

/// Strings that stand for something else than a value.
const std::vector<std::string> kWords = {"Symbol('s0')",
                                         "Add(Symbol('s0'), Integer(-1))",
                                         "Mul(Integer(3), Symbol('u1'))",
                                         "FloorDiv(Symbol('s0'), Symbol('s1'))",
                                         "Infinity",
                                         "NaN",
                                         "reflect",
                                         "mean",
                                         "none",
                                         "bicubic",
                                         "_operator.floordiv",
                                         "_operator.mod",
                                         "_operator.getitem",
                                         "torch.ops.higher_order.wrap_with_set_grad_enabled",
                                         "torch.ops.aten.copy_.default",
                                         "torch.ops.aten.sym_size.int",
                                         "torch.ops.aten.item.default"};

void changePart(Json &part, const std::vector<std::string> &names, Random &random) {
  if (part.is_boolean()) {
    part = !part.get<bool>();
  } else if (part.is_number()) {
    int64_t number = dmxfuzz::oddNumber(random);
    part = part.is_number_float() ? Json(static_cast<double>(number) / 2) : Json(number);
  } else if (part.is_string()) {
    bool word = names.empty() || random() % 8 == 0;
    part = word ? kWords[random() % kWords.size()] : names[random() % names.size()];
  } else if (part.is_array() && !part.empty()) {
    size_t at = random() % part.size();
    if (random() % 2)
      part.erase(at);
    else
      part.insert(part.begin() + random() % part.size(), Json(part[at]));
  }
}

/// Nodes in another order, fewer, more, or with another operator.
void changeNodes(Json &nodes, Random &random) {
  size_t at = random() % nodes.size(), other = random() % nodes.size();
  switch (random() % 4) {
  case 0:
    nodes.erase(at);
    break;
  case 1:
    std::swap(nodes[at], nodes[other]);
    break;
  case 2:
    nodes.insert(nodes.begin() + other, Json(nodes[at]));
    break;
  default:
    nodes[at]["target"] = Json(nodes[other].value("target", "torch.ops.aten.relu.default"));
  }
}

void change(Json &program, Random &random) {
  Json &graph = program["graph_module"]["graph"];
  if (graph["nodes"].is_array() && !graph["nodes"].empty() && random() % 8 == 0)
    return changeNodes(graph["nodes"], random);
  std::vector<std::string> names;
  for (auto item : graph["tensor_values"].items())
    names.push_back(item.key());
  std::vector<Json *> parts;
  if (random() % 6 == 0) {
    collect(program, parts);
  } else {
    for (Json &node : graph["nodes"])
      collect(node["inputs"], parts);
    for (Json &meta : graph["tensor_values"])
      for (const char *key : {"sizes", "dtype"})
        collect(meta[key], parts);
  }
  if (!parts.empty())
    changePart(*parts[random() % parts.size()], names, random);
}

std::optional<std::string> changedProgram(const std::string &text, Random &random) {
  Json program = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!program.is_object())
    return std::nullopt;
  try {
    for (unsigned changes = 1 + random() % 3; changes; --changes)
      change(program, random);
    return program.dump();
  } catch (const Json::exception &) { // some part has another form by now
    return std::nullopt;
  }
}

//===--- Other text ---------------------------------------------------------------===//

/// Where the words of torch-dialect text begin and end.
std::vector<std::pair<size_t, size_t>> wordsOf(const std::string &text) {
  auto inWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_.%!@#-", c); };
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
    while (i < text.size() && text[i] && inWord(text[i]))
      ++i;
    if (i > start)
      words.push_back({start, i - start});
    else
      ++i;
  }
  return words;
}

std::string changedText(std::string text, Random &random) {
  static const std::vector<std::string> words = {
      "!torch.vtensor<[2,?],f32>", "!torch.list<int>",         "!torch.int", "none", "true", "-1",
      "9223372036854775807",       "dense<1> : tensor<2xi64>", "()",         "{",    "}",    "loc(\"x\")"};
  for (unsigned changes = 1 + random() % 3; changes; --changes) {
    auto found = wordsOf(text);
    if (found.empty() || random() % 4 == 0) {
      dmxfuzz::changeText(text, 0, words, random);
      continue;
    }
    auto [at, size] = found[random() % found.size()];
    std::string word = text.substr(at, size), other = word;
    bool number = word.find_first_not_of("-0123456789") == std::string::npos;
    if (number && random() % 2)
      other = std::to_string(dmxfuzz::oddNumber(random));
    else // another word of the same kind
      for (int tries = 0; tries < 8; ++tries)
        if (auto [from, length] = found[random() % found.size()]; text[from] == word[0] && length != 0)
          other = text.substr(from, length);
    text.replace(at, size, other);
  }
  return text;
}

/// The front end whose operators torch-dialect text may name, in builds that have it.
const dmxc::Frontend *onnxOrNull() {
#ifdef DMXC_WITH_ONNX
  return &dmxc::onnxFrontend();
#else
  return nullptr;
#endif
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const dmxfuzz::Folder folder;
  std::string text(reinterpret_cast<const char *>(data), size);
  std::string path =
      text.starts_with("{") ? folder.write("model.pt2", archiveOf(text)) : folder.write("model.mlir", text);
  dmxfuzz::importAndCheck(dmxc::torchFrontend(), path, onnxOrNull());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  Random random(seed);
  if (random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, capacity);
  std::string text(reinterpret_cast<char *>(data), size);
  std::optional<std::string> changed =
      text.starts_with("{") ? changedProgram(text, random) : std::optional(changedText(text, random));
  if (!changed || changed->size() > capacity)
    return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data, changed->data(), changed->size());
  return changed->size();
}
