//===- Program.cpp - an exported program as its JSON has it ---------------===//
#include "Program.h"
#include "reader/JsonReader.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dmxc::torchfe {
namespace {

constexpr int64_t kSchemaMajor = 8;
/// Graphs inside graphs.
constexpr int kMaxGraphDepth = 16;

SymInt symInt(const Cursor &at) {
  auto [tag, value] = at.unionValue();
  if (tag == "as_int")
    return {value.integer(), ""};
  if (tag != "as_expr")
    at.fail("has the unknown tag '" + tag + "' of a size");
  std::string expression = value["expr_str"].text();
  if (expression.empty())
    at.fail("has an empty expression for a size");
  return {0, expression};
}

std::vector<SymInt> symInts(const Cursor &at) {
  std::vector<SymInt> list;
  for (const Cursor &item : at.items())
    list.push_back(symInt(item));
  return list;
}

TensorMeta tensorMeta(const Cursor &at) {
  TensorMeta meta;
  meta.dtype = at["dtype"].integer();
  meta.sizes = symInts(at["sizes"]);
  meta.strides = symInts(at["strides"]);
  if (Cursor offset = at["storage_offset"])
    meta.offset = offset.isObject() ? symInt(offset) : SymInt{offset.integer(), ""};
  if (Cursor layout = at["layout"])
    meta.layout = layout.integer();
  return meta;
}

Element nameElement(const Cursor &at) { return {Element::Kind::Name, at["name"].text()}; }
Element intElement(const Cursor &at) { return {Element::Kind::Int, "", at.integer()}; }
Element boolElement(const Cursor &at) { return {Element::Kind::Bool, "", at.boolean()}; }
Element textElement(const Cursor &at) { return {Element::Kind::Text, at.text()}; }
Element floatElement(const Cursor &at) { return {Element::Kind::Float, "", 0, at.number()}; }

/// {as_tensor: {name}} or {as_none: true}.
Element optionalElement(const Cursor &at) {
  auto [tag, value] = at.unionValue();
  if (tag == "as_none")
    return {};
  if (tag != "as_tensor")
    at.fail("has the unknown tag '" + tag + "' of an optional tensor");
  return nameElement(value);
}

/// {as_name: ..} or a literal by its own tag.
Element symbolicElement(const Cursor &at) {
  auto [tag, value] = at.unionValue();
  if (tag == "as_name")
    return {Element::Kind::Name, value.text()};
  if (tag == "as_int")
    return intElement(value);
  if (tag == "as_float")
    return floatElement(value);
  if (tag == "as_bool")
    return boolElement(value);
  at.fail("has the unknown tag '" + tag + "' of a symbolic number");
}

Graph graphOf(const Cursor &at, int depth);

struct Tag {
  const char *name;
  Argument::Kind kind;
  bool list;
  Element (*read)(const Cursor &);
};

const Tag kTags[] = {
    {"as_tensor", Argument::Kind::Tensor, false, nameElement},
    {"as_tensors", Argument::Kind::Tensor, true, nameElement},
    {"as_optional_tensor", Argument::Kind::Tensor, false, optionalElement},
    {"as_optional_tensors", Argument::Kind::Tensor, true, optionalElement},
    {"as_int", Argument::Kind::Int, false, intElement},
    {"as_ints", Argument::Kind::Int, true, intElement},
    {"as_float", Argument::Kind::Float, false, floatElement},
    {"as_floats", Argument::Kind::Float, true, floatElement},
    {"as_bool", Argument::Kind::Bool, false, boolElement},
    {"as_bools", Argument::Kind::Bool, true, boolElement},
    {"as_string", Argument::Kind::String, false, textElement},
    {"as_strings", Argument::Kind::String, true, textElement},
    {"as_sym_int", Argument::Kind::Int, false, symbolicElement},
    {"as_sym_ints", Argument::Kind::Int, true, symbolicElement},
    {"as_sym_float", Argument::Kind::Float, false, symbolicElement},
    {"as_sym_floats", Argument::Kind::Float, true, symbolicElement},
    {"as_sym_bool", Argument::Kind::Bool, false, symbolicElement},
    {"as_sym_bools", Argument::Kind::Bool, true, symbolicElement},
    {"as_scalar_type", Argument::Kind::Type, false, intElement},
};
const char *const kIgnoredTags[] = {"as_memory_format", "as_layout", "as_device"};
const char *const kRefusedTags[] = {"as_custom_obj", "as_complex",     "as_operator",          "as_nested_tensors",
                                    "as_int_lists",  "as_float_lists", "as_string_to_argument"};

Argument argumentOf(const Cursor &at, int depth) {
  auto [tag, value] = at.unionValue();
  Argument argument;
  argument.tag = tag;
  for (const Tag &known : kTags) {
    if (tag != known.name)
      continue;
    argument.kind = known.kind;
    argument.list = known.list;
    if (known.list)
      for (const Cursor &item : value.items())
        argument.elements.push_back(known.read(item));
    else
      argument.elements.push_back(known.read(value));
    bool none = known.kind == Argument::Kind::Tensor && !known.list && argument.elements[0].kind == Element::Kind::None;
    if (none)
      argument.kind = Argument::Kind::None;
    return argument;
  }
  auto isOneOf = [&](const auto &tags) { return std::find(std::begin(tags), std::end(tags), tag) != std::end(tags); };
  if (tag == "as_graph") {
    argument.kind = Argument::Kind::Graph;
    argument.graph = std::make_shared<Graph>(graphOf(value["graph"], depth + 1));
  } else if (isOneOf(kIgnoredTags)) {
    argument.kind = Argument::Kind::Ignored;
  } else if (isOneOf(kRefusedTags)) {
    argument.kind = Argument::Kind::Refused;
    if (tag == "as_operator")
      argument.elements.push_back(textElement(value));
  } else if (tag != "as_none") {
    at.fail("has the unknown tag '" + tag + "' of an argument");
  }
  return argument;
}

std::vector<Argument> argumentsOf(const Cursor &at, int depth) {
  std::vector<Argument> list;
  for (const Cursor &item : at.items())
    list.push_back(argumentOf(item, depth));
  return list;
}

/// The path of the innermost module: "h.0.attn" of "key,path,type;key,path,type".
std::string innermostModule(const std::string &stack) {
  size_t last = stack.rfind(';');
  std::string entry = last == std::string::npos ? stack : stack.substr(last + 1);
  size_t comma = entry.find(',');
  if (comma == std::string::npos)
    return "";
  size_t end = entry.find(',', comma + 1);
  return entry.substr(comma + 1, end == std::string::npos ? end : end - comma - 1);
}

Node nodeOf(const Cursor &at, int depth) {
  Node node;
  node.target = at["target"].text();
  for (const Cursor &input : at["inputs"].items()) {
    Cursor name = input["name"];
    node.inputs.push_back({name ? name.text() : "", argumentOf(input["arg"], depth)});
  }
  node.outputs = argumentsOf(at["outputs"], depth);
  if (Cursor name = at["name"])
    node.name = name.text();
  if (Cursor metadata = at["metadata"]) {
    if (Cursor trace = metadata["stack_trace"]; trace && trace.isText())
      node.stackTrace = trace.text();
    if (Cursor stack = metadata["nn_module_stack"]; stack && stack.isText())
      node.module = innermostModule(stack.text());
  }
  return node;
}

Graph graphOf(const Cursor &at, int depth) {
  if (depth > kMaxGraphDepth)
    at.fail("is a graph nested deeper than " + std::to_string(kMaxGraphDepth) + " levels");
  Graph graph;
  graph.inputs = argumentsOf(at["inputs"], depth);
  graph.outputs = argumentsOf(at["outputs"], depth);
  for (const Cursor &node : at["nodes"].items())
    graph.nodes.push_back(nodeOf(node, depth));
  for (const auto &[name, meta] : at["tensor_values"].members())
    graph.tensors.emplace(name, tensorMeta(meta));
  return graph;
}

//===--- Signature ----------------------------------------------------------------===//

Argument tensorNamed(const Cursor &at) {
  Argument argument;
  argument.kind = Argument::Kind::Tensor;
  argument.elements.push_back(nameElement(at));
  return argument;
}

InputSpec inputSpec(const Cursor &at) {
  auto [tag, value] = at.unionValue();
  if (tag == "user_input")
    return {InputSpec::Kind::User, argumentOf(value["arg"], 0), ""};
  if (tag == "parameter")
    return {InputSpec::Kind::Parameter, tensorNamed(value["arg"]), value["parameter_name"].text()};
  if (tag == "buffer") {
    Cursor persistent = value["persistent"];
    return {InputSpec::Kind::Buffer, tensorNamed(value["arg"]), value["buffer_name"].text(),
            !persistent || persistent.boolean()};
  }
  if (tag == "tensor_constant")
    return {InputSpec::Kind::Constant, tensorNamed(value["arg"]), value["tensor_constant_name"].text()};
  if (tag == "constant_input")
    return {InputSpec::Kind::Literal, {}, value["name"].text()};
  if (tag == "token")
    return {InputSpec::Kind::Token, tensorNamed(value["arg"]), ""};
  if (tag == "custom_obj")
    at.fail("is an input of kind 'custom_obj', which has no tensor meaning");
  at.fail("has the unknown tag '" + tag + "' of an input");
}

OutputSpec outputSpec(const Cursor &at) {
  auto [tag, value] = at.unionValue();
  using Kind = OutputSpec::Kind;
  if (tag == "user_output")
    return {Kind::User, argumentOf(value["arg"], 0), ""};
  if (tag == "loss_output")
    return {Kind::Loss, tensorNamed(value["arg"]), ""};
  const std::tuple<const char *, Kind, const char *> named[] = {
      {"buffer_mutation", Kind::BufferMutation, "buffer_name"},
      {"parameter_mutation", Kind::ParameterMutation, "parameter_name"},
      {"user_input_mutation", Kind::InputMutation, "user_input_name"},
      {"gradient_to_parameter", Kind::ParameterGradient, "parameter_name"},
      {"gradient_to_user_input", Kind::InputGradient, "user_input_name"}};
  for (const auto &[name, kind, field] : named)
    if (tag == name)
      return {kind, tensorNamed(value["arg"]), value[field].text()};
  if (tag == "token")
    return {Kind::Token, tensorNamed(value["arg"]), ""};
  at.fail("has the unknown tag '" + tag + "' of an output");
}

/// The names of `count` children by a node's context: that is a list of them, or has one among other things, as a
/// cache's is [[names], [what cannot be written]]. Nothing where none fits: the children go by their positions.
std::vector<std::string> keysOf(const Json &context, size_t count) {
  auto namesAll = [&](const Json &list) {
    auto isName = [](const Json &key) { return key.is_string() || key.is_number_integer(); };
    return list.is_array() && list.size() == count && std::all_of(list.begin(), list.end(), isName);
  };
  std::vector<std::string> keys;
  if (namesAll(context)) {
    for (const Json &key : context)
      keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
    return keys;
  }
  for (const Json &part : context)
    if (namesAll(part))
      return keysOf(part, count);
  return keys;
}

/// Labels of a pytree's leaves: dict keys and positions joined by dots. False where the spec has an unknown form.
bool collectLabels(const Json &spec, const std::string &prefix, int depth, std::vector<std::string> &labels) {
  if (depth > 32 || !spec.is_object() || !spec.contains("type") || !spec.contains("children_spec") ||
      !spec["children_spec"].is_array())
    return false;
  if (spec["type"].is_null()) {
    labels.push_back(prefix);
    return true;
  }
  const Json &children = spec["children_spec"];
  std::vector<std::string> keys;
  if (spec.contains("context") && spec["context"].is_string()) {
    const std::string &text = spec["context"].get_ref<const std::string &>();
    if (jsonDepthIsBounded(text))
      keys = keysOf(Json::parse(text, nullptr, /*allow_exceptions=*/false), children.size());
  }
  for (size_t i = 0; i < children.size(); ++i) {
    std::string label = keys.empty() ? std::to_string(i) : keys[i];
    if (!collectLabels(children[i], prefix.empty() ? label : prefix + "." + label, depth + 1, labels))
      return false;
  }
  return true;
}

/// The labels of the results from the top module's tree of outputs; none where it cannot be read.
std::vector<std::string> outputLabels(const Cursor &module) {
  Cursor calls = module["module_call_graph"];
  if (!calls || !calls.isArray())
    return {};
  for (const Cursor &call : calls.items()) {
    Cursor fqn = call["fqn"], signature = call["signature"];
    if (!fqn || !fqn.isText() || !fqn.text().empty() || !signature)
      continue;
    Cursor spec = signature["out_spec"];
    if (!spec || !spec.isText() || !jsonDepthIsBounded(spec.text()))
      return {};
    Json tree = Json::parse(spec.text(), nullptr, /*allow_exceptions=*/false);
    std::vector<std::string> labels;
    if (tree.is_array() && tree.size() == 2 && collectLabels(tree[1], "", 0, labels))
      return labels;
    return {};
  }
  return {};
}

//===--- The program --------------------------------------------------------------===//

void checkVersion(const Cursor &root) {
  Cursor version = root["schema_version"];
  int64_t major = !version ? 0 : version.isObject() ? version["major"].integer() : version.integer();
  if (major != kSchemaMajor)
    root.fail("is of schema version " + std::to_string(major) + "; version " + std::to_string(kSchemaMajor) +
              " can be read: save the program again with torch 2.6 or a later one of that schema");
}

std::string nameOfArgument(const Argument &argument) {
  bool named = argument.elements.size() == 1 && argument.elements[0].kind == Element::Kind::Name;
  return named ? argument.elements[0].text : "";
}

void checkSignature(const Cursor &root, const Program &program) {
  const Graph &graph = program.graph;
  if (program.inputs.size() != graph.inputs.size())
    root.fail("has a signature of " + std::to_string(program.inputs.size()) + " inputs for a graph with " +
              std::to_string(graph.inputs.size()));
  if (program.outputs.size() != graph.outputs.size())
    root.fail("has a signature of " + std::to_string(program.outputs.size()) + " outputs for a graph with " +
              std::to_string(graph.outputs.size()));
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (program.inputs[i].kind != InputSpec::Kind::Literal &&
        nameOfArgument(program.inputs[i].argument) != nameOfArgument(graph.inputs[i]))
      root.fail("names input " + std::to_string(i) + " '" + nameOfArgument(program.inputs[i].argument) +
                "' in the signature and '" + nameOfArgument(graph.inputs[i]) + "' in the graph");
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (nameOfArgument(program.outputs[i].argument) != nameOfArgument(graph.outputs[i]))
      root.fail("names output " + std::to_string(i) + " '" + nameOfArgument(program.outputs[i].argument) +
                "' in the signature and '" + nameOfArgument(graph.outputs[i]) + "' in the graph");
}

Range rangeOf(const Cursor &at) {
  Range range;
  if (Cursor min = at["min_val"])
    range.min = min.integer();
  if (Cursor max = at["max_val"])
    range.max = max.integer();
  return range;
}

Program programOf(const Cursor &root) {
  checkVersion(root);
  Program program;
  Cursor module = root["graph_module"];
  program.graph = graphOf(module["graph"], 0);
  Cursor signature = module["signature"];
  for (const Cursor &spec : signature["input_specs"].items())
    program.inputs.push_back(inputSpec(spec));
  for (const Cursor &spec : signature["output_specs"].items())
    program.outputs.push_back(outputSpec(spec));
  program.outputLabels = outputLabels(module);
  if (Cursor ranges = root["range_constraints"])
    for (const auto &[symbol, range] : ranges.members())
      program.ranges.emplace(symbol, rangeOf(range));
  if (Cursor version = root["torch_version"]; version && version.isText())
    program.torchVersion = version.text();
  checkSignature(root, program);
  return program;
}

} // namespace

Result<Program> readProgram(std::string_view text, const std::string &where) {
  return readJson<Program>(text, where, programOf);
}

Result<std::map<std::string, PayloadConfig>> readPayloadConfig(std::string_view text, const std::string &where) {
  return readJson<std::map<std::string, PayloadConfig>>(text, where, [](const Cursor &root) {
    std::map<std::string, PayloadConfig> table;
    for (const auto &[name, entry] : root["config"].members()) {
      PayloadConfig config;
      config.file = entry["path_name"].text();
      if (Cursor pickled = entry["use_pickle"])
        config.pickled = pickled.boolean();
      if (Cursor meta = entry["tensor_meta"])
        config.meta = tensorMeta(meta);
      else if (!config.pickled)
        entry.fail("has no tensor_meta");
      table.emplace(name, std::move(config));
    }
    return table;
  });
}

//===--- Element types --------------------------------------------------------------===//

std::optional<DType> dtypeOfC10(int64_t type) {
  switch (type) {
  case 0:
    return DType::U8;
  case 1:
    return DType::I8;
  case 2:
    return DType::I16;
  case 3:
    return DType::I32;
  case 4:
    return DType::I64;
  case 5:
    return DType::F16;
  case 6:
    return DType::F32;
  case 7:
    return DType::F64;
  case 11:
    return DType::Bool;
  case 15:
    return DType::BF16;
  case 23:
    return DType::F8E5M2;
  case 24:
    return DType::F8E4M3FN;
  case 25:
    return DType::F8E5M2FNUZ;
  case 26:
    return DType::F8E4M3FNUZ;
  case 27:
    return DType::U16;
  case 28:
    return DType::U32;
  case 29:
    return DType::U64;
  default:
    return std::nullopt;
  }
}

std::optional<DType> dtypeOfSchema(int64_t type) {
  if (type >= 1 && type <= 12) // c10's numbers and one
    return dtypeOfC10(type - 1);
  switch (type) {
  case 13:
    return DType::BF16;
  case 28:
    return DType::U16;
  case 29:
    return DType::F8E4M3FN;
  case 30:
    return DType::F8E5M2;
  case 31:
    return DType::F8E4M3FNUZ;
  case 32:
    return DType::F8E5M2FNUZ;
  case 34:
    return DType::U32;
  case 35:
    return DType::U64;
  default:
    return std::nullopt;
  }
}

std::optional<DType> dtypeOfComplexParts(int64_t type) {
  constexpr DType parts[] = {DType::F16, DType::F32, DType::F64};
  return type >= 9 && type <= 11 ? std::optional(parts[type - 9]) : std::nullopt;
}

std::string schemaTypeName(int64_t type) {
  if (std::optional<DType> known = dtypeOfSchema(type))
    return std::string(dtypeName(*known));
  switch (type) {
  case 9:
    return "complex32";
  case 10:
    return "complex64";
  case 11:
    return "complex128";
  default:
    return "type " + std::to_string(type);
  }
}

} // namespace dmxc::torchfe
