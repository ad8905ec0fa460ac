//===- BundleBuilder.cpp - bundles made by tests --------------------------===//

#include "BundleBuilder.h"
#include "runtime/bundle/Sha256.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace dmxtest {
namespace {

std::span<const std::byte> bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

template <typename T> void put(std::string &out, T value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof value);
}

/// Version needed to sizes: what local and central records have in common.
void putCommon(std::string &out, const std::string &bytes) {
  put<uint16_t>(out, 45);
  put<uint16_t>(out, 0); // flags
  put<uint16_t>(out, 0); // stored
  put<uint16_t>(out, 0);
  put<uint16_t>(out, 0x0021);
  put<uint32_t>(out, dmxrt::crc32(bytesOf(bytes)));
  put<uint32_t>(out, 0xFFFFFFFF);
  put<uint32_t>(out, 0xFFFFFFFF);
}

void putLocal(std::string &out, const std::string &name, const std::string &bytes) {
  size_t alignment = name.starts_with("weights/") ? 4096 : 64;
  size_t end = out.size() + 30 + name.size() + 20 + 4;
  size_t padding = (alignment - end % alignment) % alignment;
  put<uint32_t>(out, 0x04034b50);
  putCommon(out, bytes);
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, static_cast<uint16_t>(24 + padding));
  out += name;
  put<uint16_t>(out, 1);
  put<uint16_t>(out, 16);
  put<uint64_t>(out, bytes.size());
  put<uint64_t>(out, bytes.size());
  put<uint16_t>(out, 0x4D44);
  put<uint16_t>(out, static_cast<uint16_t>(padding));
  out.append(padding, '\0');
  out += bytes;
}

void putCentral(std::string &out, const std::string &name, const std::string &bytes, uint64_t offset) {
  put<uint32_t>(out, 0x02014b50);
  put<uint16_t>(out, 0x032D);
  putCommon(out, bytes);
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, 28);
  put<uint16_t>(out, 0);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, 0x81A40000);
  put<uint32_t>(out, 0xFFFFFFFF);
  out += name;
  put<uint16_t>(out, 1);
  put<uint16_t>(out, 24);
  put<uint64_t>(out, bytes.size());
  put<uint64_t>(out, bytes.size());
  put<uint64_t>(out, offset);
}

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::abort();
  }
  return text.str();
}

} // namespace

std::string storedZip(const std::vector<std::pair<std::string, std::string>> &entries, const std::string &comment) {
  std::string out, central;
  for (const auto &[name, bytes] : entries) {
    uint64_t offset = out.size();
    putLocal(out, name, bytes);
    putCentral(central, name, bytes, offset);
  }
  uint64_t start = out.size();
  out += central;
  put<uint32_t>(out, 0x06064b50);
  put<uint64_t>(out, 44);
  put<uint16_t>(out, 0x032D);
  put<uint16_t>(out, 45);
  put<uint64_t>(out, 0);
  put<uint64_t>(out, entries.size());
  put<uint64_t>(out, entries.size());
  put<uint64_t>(out, central.size());
  put<uint64_t>(out, start);
  put<uint32_t>(out, 0x07064b50);
  put<uint32_t>(out, 0);
  put<uint64_t>(out, start + central.size());
  put<uint32_t>(out, 1);
  put<uint32_t>(out, 0x06054b50);
  put<uint32_t>(out, 0);
  put<uint32_t>(out, 0xFFFFFFFF); // both counts
  put<uint32_t>(out, 0xFFFFFFFF);
  put<uint32_t>(out, 0xFFFFFFFF);
  put<uint16_t>(out, static_cast<uint16_t>(comment.size()));
  return out + comment;
}

std::vector<std::pair<std::string, std::string>> TestBundle::finish() const {
  std::vector<std::pair<std::string, std::string>> entries{
      {"manifest.json", ""}, {"graph.json", graphText.empty() ? graph.dump() : graphText}};
  for (std::string_view group : {"weights/", "code/", "debug/", "tests/"})
    for (const auto &[name, bytes] : files)
      if (name.starts_with(group))
        entries.emplace_back(name, bytes);
  Json full = manifest;
  if (!full.contains("entries")) {
    full["entries"] = Json::array();
    for (size_t i = 1; i < entries.size(); ++i)
      full["entries"].push_back({{"name", entries[i].first},
                                 {"size", entries[i].second.size()},
                                 {"sha256", dmxrt::sha256Hex(bytesOf(entries[i].second))}});
  }
  entries[0].second = manifestText.empty() ? full.dump() : manifestText;
  if (!signature.empty())
    entries.emplace_back("manifest.sig", signature);
  return entries;
}

std::string TestBundle::zip() const {
  auto entries = finish();
  return storedZip(entries, "dmx-manifest-sha256:" + dmxrt::sha256Hex(bytesOf(entries[0].second)));
}

std::string TestBundle::manifestSha256() const { return dmxrt::sha256Hex(bytesOf(finish()[0].second)); }

void TestBundle::writeDirectory(const std::string &path) const {
  for (const auto &[name, bytes] : finish()) {
    std::filesystem::path file = std::filesystem::path(path) / name;
    std::filesystem::create_directories(file.parent_path());
    writeFile(file, bytes);
    if (name == "manifest.json")
      writeFile(path + "/manifest.sha256", dmxrt::sha256Hex(bytesOf(bytes)) + "\n");
  }
}

ModelBuilder::ModelBuilder() {
  graph = {{"name", "main"},
           {"dims", Json::array()},
           {"arenas", {{{"size", 0}, {"lower_bound", 0}, {"align", 64}}}},
           {"buffers", Json::array()},
           {"queues", {{{"name", "cpu"}, {"target", "cpu"}}}},
           {"tasks", Json::array()}};
}

void ModelBuilder::dim(const std::string &name, int64_t min, int64_t max, uint32_t input, uint32_t axis) {
  graph["dims"].push_back({{"name", name}, {"min", min}, {"max", max}, {"input", input}, {"axis", axis}});
  dims.push_back({{"name", name}, {"min", min}, {"max", max}});
}

void ModelBuilder::computedDim(const std::string &name, Json expr) {
  graph["dims"].push_back({{"name", name}, {"expr", std::move(expr)}});
}

void ModelBuilder::returnedDim(const std::string &name, int task, int result, Json min, Json max) {
  graph["dims"].push_back({{"name", name}, {"task", task}, {"result", result}, {"min", min}, {"max", max}});
}

void ModelBuilder::extentDim(const std::string &name, int task, int output, int axis, Json min, Json max) {
  graph["dims"].push_back(
      {{"name", name}, {"task", task}, {"output", output}, {"axis", axis}, {"min", min}, {"max", max}});
}

void ModelBuilder::constraint(const std::string &relation, Json lhs, Json rhs, const std::string &text) {
  graph["constraints"].push_back({{"rel", relation}, {"lhs", lhs}, {"rhs", rhs}, {"text", text}});
}

int ModelBuilder::addTask(Json task) {
  graph["tasks"].push_back(std::move(task));
  return static_cast<int>(graph["tasks"].size()) - 1;
}

int ModelBuilder::branch(int condition, const std::string &then, const std::string &otherwise, std::vector<int> inputs,
                         int outputCount, std::vector<int> deps) {
  return addTask({{"kind", "if"},
                  {"queue", 0},
                  {"name", "if_" + std::to_string(graph["tasks"].size())},
                  {"nodes", {"If"}},
                  {"cond", condition},
                  {"then", then},
                  {"else", otherwise},
                  {"inputs", inputs},
                  {"outputs", outputCount},
                  {"deps", deps}});
}

int ModelBuilder::loop(const std::string &body, std::vector<int> carried, std::vector<int> captured,
                       std::vector<int> deps, Json more) {
  Json task = {{"kind", "loop"},     {"queue", 0},   {"name", "loop_" + std::to_string(graph["tasks"].size())},
               {"nodes", {"Loop"}},  {"body", body}, {"carried", carried},
               {"inputs", captured}, {"deps", deps}};
  task.update(more);
  return addTask(std::move(task));
}

int ModelBuilder::arenaOf(Json size, const std::string &dtype, Json shape) {
  graph["arenas"].push_back({{"size", size}, {"lower_bound", size}, {"align", 64}});
  return addBuffer({{"kind", "arena"},
                    {"arena", graph["arenas"].size() - 1},
                    {"offset", 0},
                    {"size", size},
                    {"dtype", dtype},
                    {"shape", shape}});
}

int ModelBuilder::result(int task, int output, const std::string &dtype, Json shape) {
  return addBuffer({{"kind", "result"}, {"task", task}, {"output", output}, {"dtype", dtype}, {"shape", shape}});
}

Json ModelBuilder::graphNamed(const std::string &name) const {
  Json named = graph;
  named["name"] = name;
  return named;
}

int ModelBuilder::addBuffer(Json buffer) {
  graph["buffers"].push_back(std::move(buffer));
  return static_cast<int>(graph["buffers"].size()) - 1;
}

int ModelBuilder::input(const std::string &name, const std::string &dtype, Json shape) {
  inputs.push_back({{"name", name}, {"dtype", dtype}, {"shape", shape}});
  return addBuffer({{"kind", "input"}, {"index", inputs.size() - 1}, {"dtype", dtype}, {"shape", shape}});
}

int ModelBuilder::output(const std::string &name, const std::string &dtype, Json shape) {
  outputs.push_back({{"name", name}, {"dtype", dtype}, {"shape", shape}});
  return addBuffer({{"kind", "output"}, {"index", outputs.size() - 1}, {"dtype", dtype}, {"shape", shape}});
}

int ModelBuilder::constant(const std::string &bytes, const std::string &dtype, Json shape) {
  size_t offset = 4096 + weights.size();
  auto append = [&](const std::string &name, const std::string &content) {
    size_t begin = weights.size();
    weights += content;
    tensors[name] = {{"dtype", "U8"}, {"shape", {content.size()}}, {"data_offsets", {begin, weights.size()}}};
  };
  append("c" + std::to_string(offset), bytes);
  if (size_t gap = (64 - weights.size() % 64) % 64)
    append("__pad" + std::to_string(offset) + "__", std::string(gap, '\0'));
  return addBuffer({{"kind", "const"},
                    {"entry", "weights/model.safetensors"},
                    {"tensor", "c" + std::to_string(offset)},
                    {"offset", offset},
                    {"size", bytes.size()},
                    {"dtype", dtype},
                    {"shape", shape}});
}

int ModelBuilder::arena(int64_t size, const std::string &dtype, Json shape) {
  int64_t offset = arenaEnd;
  arenaEnd += (size + 63) / 64 * 64;
  graph["arenas"][0]["size"] = arenaEnd;
  graph["arenas"][0]["lower_bound"] = arenaEnd;
  return addBuffer(
      {{"kind", "arena"}, {"arena", 0}, {"offset", offset}, {"size", size}, {"dtype", dtype}, {"shape", shape}});
}

int ModelBuilder::alias(int of, Json offset, Json size, const std::string &dtype, Json shape) {
  return addBuffer(
      {{"kind", "alias"}, {"of", of}, {"offset", offset}, {"size", size}, {"dtype", dtype}, {"shape", shape}});
}

int ModelBuilder::state(int64_t size, const std::string &dtype, Json shape) {
  return addBuffer({{"kind", "state"}, {"size", size}, {"dtype", dtype}, {"shape", shape}});
}

int ModelBuilder::dispatch(const std::string &kernel, std::vector<int> buffers, int outputCount, Json work,
                           std::vector<int> deps, Json more) {
  Json task = {{"kind", "dispatch"},
               {"queue", 0},
               {"kernel", kernel},
               {"name", kernel + "_" + std::to_string(graph["tasks"].size())},
               {"nodes", Json::array({"node_" + kernel})},
               {"buffers", buffers},
               {"outputs", outputCount},
               {"dims", Json::array()},
               {"work", work},
               {"grain", 1},
               {"scratch", 0},
               {"flops", 10},
               {"bytes", 20},
               {"deps", deps}};
  task.update(more);
  graph["tasks"].push_back(std::move(task));
  return static_cast<int>(graph["tasks"].size()) - 1;
}

int ModelBuilder::copy(int src, int dst, Json size, std::vector<int> deps, Json more) {
  Json task = {{"kind", "copy"},  {"queue", 0},   {"name", "copy_" + std::to_string(graph["tasks"].size())},
               {"src", src},      {"dst", dst},   {"src_offset", 0},
               {"dst_offset", 0}, {"size", size}, {"deps", deps}};
  task.update(more);
  graph["tasks"].push_back(std::move(task));
  return static_cast<int>(graph["tasks"].size()) - 1;
}

TestBundle ModelBuilder::finish() const {
  TestBundle bundle;
  bundle.graph["graphs"] = Json::array({graph});
  bundle.manifest = {
      {"format", {{"major", 1}, {"minor", 0}}},
      {"min_runtime", "0.1.0"},
      {"producer", {{"name", "test"}, {"version", "0.1.0"}}},
      {"model", {{"name", "test"}, {"sha256", ""}, {"source", "onnx"}, {"metadata", Json::object()}}},
      {"options", Json::object()},
      {"targets",
       {{{"target", "cpu"}, {"arch", "x86-64"}, {"entry", "code/cpu/x86-64/kernels.so"}, {"features", {"sse2"}}}}},
      {"entry_points", {{{"name", "main"}, {"inputs", inputs}, {"outputs", outputs}, {"dims", dims}}}},
      {"placement", Json::object()},
      {"required", Json::array()}};
  bundle.files["code/cpu/x86-64/kernels.so"] = kernelObject();
  if (!weights.empty()) {
    std::string header = tensors.dump();
    header.resize(4096 - 8, ' ');
    std::string file;
    put<uint64_t>(file, header.size());
    bundle.files["weights/model.safetensors"] = file + header + weights;
  }
  return bundle;
}

const std::string &kernelObject(const std::string &variant) {
  static std::map<std::string, std::string> cache;
  auto it = cache.find(variant);
  if (it == cache.end())
    it = cache.emplace(variant, readFile(std::string(DMX_TEST_KERNEL_DIR "/kernels") + variant + ".so")).first;
  return it->second;
}

TestBundle addModel(int64_t n) {
  ModelBuilder model;
  int a = model.input("a", "f32", {n}), b = model.input("b", "f32", {n}), y = model.output("y", "f32", {n});
  model.dispatch("add", {a, b, y}, 1, n);
  return model.finish();
}

TestBundle batchModel() {
  ModelBuilder model;
  model.dim("batch", 1, 64, 0, 0);
  model.computedDim("elements", {"mul", "batch", 4});
  int x = model.input("x", "f32", {"batch", 4});
  float one[256];
  std::fill(std::begin(one), std::end(one), 1.0f);
  int c = model.constant(std::string(reinterpret_cast<char *>(one), sizeof one), "f32", {256});
  int y = model.output("y", "f32", {"batch", 4});
  int sum = model.arena(1024, "f32", {"elements"});
  int add = model.dispatch("add", {x, c, sum}, 1, "elements");
  model.dispatch("scale", {sum, y}, 1, "elements", {add}, {{"dims", {"batch"}}});
  return model.finish();
}

ModelBuilder nonzeroBuilder() {
  ModelBuilder builder;
  builder.dim("m", 0, 1000, 0, 0);
  builder.returnedDim("n", 0, 0, 0, "m");
  Json bytes = {"mul", "n", 8};
  int x = builder.input("x", "f32", {"m"});
  int room = builder.arenaOf({"mul", "m", 8}, "i64", {"m"}), part = builder.alias(room, 0, bytes, "i64", {"n"});
  int doubled = builder.arenaOf({"add", bytes, 64}, "i64", {"n"});
  int y = builder.output("y", "i64", {"n"});
  builder.dispatch("nonzero", {x, room}, 1, 1, {}, {{"dims", {"m"}}, {"results", 1}});
  builder.dispatch("add_i64", {part, part, doubled}, 1, "n", {0}, {{"dims", {1}}});
  builder.copy(doubled, y, bytes, {1});
  return builder;
}

void writeFile(const std::string &path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    std::abort();
  }
}

} // namespace dmxtest
