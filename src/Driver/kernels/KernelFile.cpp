//===- KernelFile.cpp - kernels that a file declares ----------------------===//
#include "dmxc/Driver/KernelFile.h"
#include "KernelJson.h"

#include "../options/OptionValues.h"

#include "dmxc/Driver/Registry.h"
#include "dmxc/Support/DataFile.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"
#include "dmxc/Target/TargetHelp.h"

#include "llvm/Support/Path.h"

#include <algorithm>

namespace dmxc::driver {

using dmir::KernelBody;
using dmir::KernelDecl;
using dmir::KernelTensor;
using dmir::MicroDecl;

namespace {

constexpr const char *kNameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

std::string readName(const KernelJson &json) {
  std::string name = json.text("name");
  if (name.find_first_not_of(kNameLetters) != std::string::npos)
    json.fail("a kernel's name has letters, digits, '_' and '.' alone, not '" + name + "'");
  return name;
}

/// A file below the kernel file's own folder: who sends a kernel file sends what it names.
struct NamedFile {
  std::string real, sha256;
};

NamedFile readNamed(const KernelJson &json, const char *key, const std::string &file, std::vector<std::string> &files) {
  std::string given = json.text(key);
  Result<DataFile> found = findDataFile(given, {folderOf(file)});
  if (!found)
    throw ioError(json.place() + ": '" + key + "': " + found.error().message);
  if (!found->isBelow)
    json.fail("the " + std::string(key) + " '" + given + "' lies in '" + folderOf(found->real) +
              "'; a kernel file may name files below its own folder alone");
  Result<std::shared_ptr<const MappedFile>> bytes = MappedFile::open(found->path);
  if (!bytes)
    throw ioError(json.place() + ": " + bytes.error().message);
  if (std::find(files.begin(), files.end(), found->path) == files.end())
    files.push_back(found->path);
  return {found->real, Sha256::hexOf((*bytes)->bytes())};
}

/// The leading comment, without its slashes, or semicolons of assembly.
std::string commentOf(llvm::StringRef text) {
  std::string comment;
  while (text.consume_front("//") || text.consume_front(";")) {
    auto [line, rest] = text.split('\n');
    comment += line.str() + "\n";
    text = rest;
  }
  return comment;
}

/// What declarations in front of code leave out: bodies are that code.
void completeBeside(nlohmann::json &text, const std::string &file) {
  if (!text.is_object() || !text.contains("kernels") || !text["kernels"].is_array())
    return;
  for (nlohmann::json &kernel : text["kernels"]) {
    if (!kernel.is_object())
      continue;
    if (kernel.contains("bodies") && kernel["bodies"].is_array())
      for (nlohmann::json &body : kernel["bodies"])
        if (body.is_object() && !body.contains("object"))
          body["object"] = llvm::sys::path::filename(file).str();
  }
}

/// What all bodies have: whose code it is, which file, and what in it.
KernelBody readCode(const KernelJson &json, const std::string &file, std::vector<std::string> &files) {
  KernelBody body;
  body.target = json.text("target");
  body.symbol = json.text("symbol");
  if (json.has("features"))
    body.features = json.texts("features");
  NamedFile object = readNamed(json, "object", file, files);
  body.file = object.real;
  body.sha256 = object.sha256;
  return body;
}

/// {"kind": "micro", ...}
MicroDecl readMicro(const KernelJson &json, const std::string &file, std::vector<std::string> &files) {
  json.onlyKeys({"kind", "name", "op", "types", "tile", "prefer", "bodies"});
  MicroDecl decl;
  decl.file = file;
  decl.name = readName(json);
  if (std::string op = json.text("op"); op != "matmul")
    json.fail("'op' of a micro-kernel is \"matmul\", not \"" + op + "\"");
  if (json.texts("types") != std::vector<std::string>(3, "f32"))
    json.fail("'types' of a micro-kernel, of A, B and C, are [\"f32\", \"f32\", \"f32\"]");
  std::vector<int64_t> tile = json.integers("tile");
  if (tile.size() != 2)
    json.fail("'tile' is [rows, columns], for example [6, 16]");
  decl.rows = tile[0], decl.columns = tile[1];
  decl.prefer = json.flagOr("prefer", false);
  for (const KernelJson &body : json.list("bodies", 1)) {
    body.onlyKeys({"target", "features", "object", "symbol"});
    decl.bodies.push_back(readCode(body, file, files));
    decl.bodies.back().abi = "micro";
  }
  return decl;
}

/// The declaration of one kernel. What is wrong is thrown as an Error, and stays in this file.
class DeclReader {
public:
  DeclReader(const std::string &file, std::vector<std::string> &files) : file(file), files(files) {}

  KernelDecl read(const KernelJson &json) {
    json.onlyKeys({"kind", "name", "match", "operands", "results", "attributes", "dims", "scalars", "work", "grain",
                   "scratch", "effects", "reference", "bodies"});
    decl.file = file;
    decl.name = readName(json);
    if (json.has("effects") && json.text("effects") != "none")
      json.fail("'effects' may be \"none\" alone: kernels give results and change nothing else");
    if (json.has("match"))
      readMatch(json.at("match"));
    else // nodes of ONNX name it
      decl.onnx = KernelDecl::Onnx{"dmx.kernels", decl.name};
    readAttributes(json);
    for (const KernelJson &operand : json.list("operands", 1))
      readOperand(operand);
    NamedDims named(json, knownNames());
    for (size_t i = 0; i < decl.operands.size(); ++i)
      for (Dim &dim : decl.operands[i].shape)
        dim = named.resolve(dim, json.list("operands", 1)[i]);
    for (const KernelJson &result : json.list("results", 1))
      decl.results.push_back(readResult(result, named));
    readCounts(json, named);
    if (json.has("reference"))
      readReference(json.at("reference"));
    for (const KernelJson &body : json.list("bodies", 0))
      decl.bodies.push_back(readBody(body, named));
    return std::move(decl);
  }

private:
  void readMatch(const KernelJson &match) {
    match.onlyKeys({"onnx", "torch", "dmir"});
    if (match.has("onnx")) {
      KernelJson onnx = match.at("onnx");
      onnx.onlyKeys({"domain", "op", "since"});
      decl.onnx = KernelDecl::Onnx{onnx.textOr("domain", ""), onnx.text("op"), onnx.integerOr("since", 1)};
      if (decl.onnx->domain == "ai.onnx")
        decl.onnx->domain.clear();
    }
    decl.torch = match.textOr("torch", "");
    size_t colons = decl.torch.find("::");
    if (match.has("torch") && (colons == std::string::npos || colons == 0 || colons + 2 == decl.torch.size()))
      match.fail("'torch' is a library and an operator, as \"acme::argmax\", not \"" + decl.torch + "\"");
    if (match.has("dmir")) {
      KernelJson op = match.at("dmir");
      op.onlyKeys({"op", "attrs"});
      decl.op =
          KernelDecl::Op{op.text("op"), op.has("attrs") ? op.at("attrs").values() : decltype(decl.op->attributes)()};
    }
    if (!decl.onnx && decl.torch.empty() && !decl.op)
      match.fail("it matches nothing; give \"onnx\", \"torch\" or \"dmir\"");
  }

  void readAttributes(const KernelJson &json) {
    for (const KernelJson &attribute : json.list("attributes", 0)) {
      attribute.onlyKeys({"name", "default"});
      decl.attributes.emplace_back(newName(attribute), attribute.has("default")
                                                           ? std::optional(attribute.integerOr("default", 0))
                                                           : std::nullopt);
    }
  }

  /// Operands, results and attributes share names with dims nowhere.
  std::string newName(const KernelJson &json) {
    std::string name = json.text("name");
    if (!names.insert(name).second)
      json.fail("the name '" + name + "' stands twice");
    return name;
  }

  static DType typeOf(const KernelJson &json, const std::string &name) {
    std::optional<DType> type = dtypeFromName(name);
    if (!type)
      json.fail("there is no element type '" + name + "'");
    return *type;
  }

  void readOperand(const KernelJson &json) {
    json.onlyKeys({"name", "dtype", "shape"});
    KernelTensor tensor{newName(json), {}, "", json.dims("shape")};
    std::string list = json.text("dtype");
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = std::min(list.find('|', begin), list.size());
      tensor.types.push_back(typeOf(json, list.substr(begin, end - begin)));
      begin = end + 1;
    }
    decl.operands.push_back(std::move(tensor));
  }

  /// Names that dims may mention: an axis that is a name alone, and the attributes.
  std::set<std::string> knownNames() const {
    std::set<std::string> known;
    for (const KernelTensor &operand : decl.operands)
      for (Dim dim : operand.shape)
        if (std::optional<std::string> name = dim.symbolName())
          known.insert(*name);
    for (const auto &attribute : decl.attributes)
      known.insert(attribute.first);
    return known;
  }

  KernelTensor readResult(const KernelJson &json, NamedDims &named) {
    json.onlyKeys({"name", "dtype", "shape"});
    KernelTensor tensor{newName(json), {}, "", json.dims("shape")};
    std::string type = json.text("dtype");
    if (std::any_of(decl.operands.begin(), decl.operands.end(), [&](const auto &o) { return o.name == type; }))
      tensor.like = type;
    else
      tensor.types = {typeOf(json, type)};
    for (Dim &dim : tensor.shape)
      dim = named.resolve(dim, json);
    return tensor;
  }

  void readCounts(const KernelJson &json, NamedDims &named) {
    for (const KernelJson &scalar : json.list("scalars", 0)) {
      scalar.onlyKeys({"name", "value"});
      decl.scalars.push_back(named.resolve(scalar.dim("value", 0), scalar));
    }
    decl.work = named.resolve(json.dim("work", 1), json);
    decl.grain = named.resolve(json.dim("grain", 1), json);
    decl.scratch = named.resolve(json.dim("scratch", 0), json);
  }

  void readReference(const KernelJson &json) {
    json.onlyKeys({"file", "functions"});
    NamedFile text = readNamed(json, "file", file, files);
    json.list("functions", 1);
    decl.reference = dmir::KernelReference{text.real, text.sha256, json.texts("functions")};
  }

  /// What says how a machine runs a body is for bodies of targets that know it.
  static void checkMachineKeys(const KernelJson &json) {
    const std::string target = json.text("target");
    const std::vector<std::string> names = targetNames();
    if (std::find(names.begin(), names.end(), target) == names.end()) // refused elsewhere
      return;
    const std::vector<std::string> &own = helpOf(target).bodyKeys;
    auto has = [](const std::vector<std::string> &keys, const std::string &key) {
      return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    for (const char *key : {"launch", "cycles", "l1", "library"}) {
      if (!json.has(key) || has(own, key))
        continue;
      std::vector<std::string> others;
      std::copy_if(names.begin(), names.end(), std::back_inserter(others),
                   [&](const std::string &name) { return has(helpOf(name).bodyKeys, key); });
      json.fail("'" + std::string(key) + "' says nothing of a body for " + target +
                (others.empty() ? "" : "; it is for bodies for " + joined(others)) + ": leave it out");
    }
    for (const char *key : {"l1", "library"})
      if (json.has(key) && !json.has("cycles"))
        json.fail("'" + std::string(key) + "' is for cores, whose bodies have 'cycles': what a call takes");
  }

  KernelBody readBody(const KernelJson &json, NamedDims &named) {
    json.onlyKeys({"target", "features", "types", "object", "symbol", "abi", "launch", "cycles", "l1", "library"});
    checkMachineKeys(json);
    KernelBody body = readCode(json, file, files);
    body.abi = json.textOr("abi", "plain");
    if (body.abi != "plain" && body.abi != "args")
      json.fail("'abi' is \"plain\" or \"args\", not \"" + body.abi + "\"");
    if (json.has("launch"))
      body.launch = readLaunch(json.at("launch"), decl, named);
    if (json.has("cycles"))
      body.core = readCore(json, decl, named);
    if (json.has("types"))
      for (const auto &[name, value] : json.at("types").values()) {
        const std::string *text = std::get_if<std::string>(&value);
        if (std::none_of(decl.operands.begin(), decl.operands.end(), [&](const auto &o) { return o.name == name; }) ||
            !text)
          json.fail("'types' has an operand's name and its type, and '" + name + "' is no operand or has none");
        body.types[name] = typeOf(json, *text);
      }
    return body;
  }

  const std::string &file;
  std::vector<std::string> &files;
  KernelDecl decl;
  std::set<std::string> names;
};

} // namespace

bool beginsWithKernels(llvm::StringRef head) {
  return (head.consume_front("//") || head.consume_front(";")) && (head = head.ltrim()).consume_front("{") &&
         head.ltrim().starts_with("\"kernels\"");
}

Status readKernelFile(const std::string &path, dmir::KernelSet &kernels, std::vector<std::string> &files) {
  Result<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped)
    return ioError("--kernels: " + mapped.error().message);
  files.push_back(path);
  std::span<const std::byte> bytes = (*mapped)->bytes();
  try {
    llvm::StringRef whole(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    const bool isCode = beginsWithKernels(whole);
    nlohmann::json text = parseKernelJson(path, isCode ? commentOf(whole) : whole.str());
    if (isCode)
      completeBeside(text, path);
    KernelJson root(text, path);
    root.onlyKeys({"kernels"});
    for (const KernelJson &kernel : root.list("kernels", 1)) {
      const std::string kind = kernel.textOr("kind", "operator");
      if (kind != "operator" && kind != "micro")
        kernel.fail("'kind' is \"operator\" or \"micro\", not \"" + kind + "\"");
      Status added = kind == "micro" ? kernels.add(readMicro(kernel, path, files))
                                     : kernels.add(DeclReader(path, files).read(kernel));
      if (!added)
        return added;
    }
  } catch (Error &error) {
    return std::move(error);
  }
  return Status::ok();
}

Status applyUses(const std::map<std::string, std::string> &uses, dmir::KernelSet &kernels) {
  using Use = dmir::MicroDecl::Use;
  for (const auto &[name, use] : uses) {
    dmir::MicroDecl *decl = kernels.findMicro(name);
    if (!decl) {
      std::vector<std::string> names;
      for (const dmir::MicroDecl &known : kernels.micros())
        names.push_back(known.name);
      return usageError("--ukernels: the kernel files have no micro-kernel '" + name + "'; they have " +
                        (names.empty() ? "none" : joined(names)) + didYouMean(name, names));
    }
    decl->use = use == "on" ? Use::On : use == "off" ? Use::Off : Use::Auto;
  }
  return Status::ok();
}

} // namespace dmxc::driver
