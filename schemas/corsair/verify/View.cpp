//===- View.cpp - code objects for people and tools -----------------------===//

#include "View.h"
#include "../MemoryMap.h"
#include "../text/Assembler.h"
#include "../text/ImageDiff.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <set>

namespace dmx::corsair {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json &json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::optional<Image> readImage(std::span<const std::byte> code, std::string &error) {
  return read({reinterpret_cast<const uint8_t *>(code.data()), code.size()}, error);
}

template <typename Visit> void eachLaunch(const Kernel &kernel, Visit visit) {
  for (const Program *program : {&kernel.init, &kernel.main})
    for (const Launch &launch : program->launches)
      visit(launch);
}

/// Numbers of the streams a kernel launches, ascending.
std::set<uint32_t> streamsOf(const Kernel &kernel) {
  std::set<uint32_t> used;
  eachLaunch(kernel, [&](const Launch &launch) { used.insert(launch.streams.begin(), launch.streams.end()); });
  used.erase(kNoStream);
  return used;
}

/// Values that a field has in these streams: functions called, marks set.
std::set<int64_t> valuesOf(const Image &image, const std::set<uint32_t> &streams, Opcode opcode) {
  std::set<int64_t> used;
  for (uint32_t stream : streams)
    for (const Instruction &in : image.streams[stream].instructions)
      if (in.opcode == opcode)
        used.insert(in.operands[0].base);
  return used;
}

/// "0-3,8"
std::string rangesText(const std::vector<uint32_t> &numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
      ++last;
    text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
    text += last > i ? "-" + std::to_string(numbers[last]) : "";
    i = last + 1;
  }
  return text;
}

// --- counts -------------------------------------------------------------------

using Counts = std::array<uint64_t, static_cast<int>(Group::CpuCode) + 1>;

void count(const Code &code, Counts &counts) {
  for (const Instruction &in : code.instructions)
    ++counts[static_cast<int>(in.info().group)];
}

Json countsJson(const Counts &counts) {
  Json json = Json::object();
  for (size_t i = 0; i < counts.size(); ++i)
    json[std::string(nameOf(static_cast<Group>(i)))] = counts[i];
  return json;
}

Json footprintJson(const Footprint &footprint) {
  Json json = Json::object();
  for (int i = 0; i < kMemories; ++i)
    json[std::string(nameOf(static_cast<Memory>(i)))] = footprint.bytes[i];
  return json;
}

// --- parts --------------------------------------------------------------------

Json machineJson(const Machine &machine, bool full) {
  char fingerprint[16];
  std::snprintf(fingerprint, sizeof fingerprint, "0x%08x", machine.fingerprint());
  Json json = {{"name", machine.name}, {"fingerprint", fingerprint}, {"clock_hz", machine.clockHz}};
  if (full)
    json["description"] = machine.source;
  return json;
}

Json memoriesJson(const Image &image) {
  constexpr const char *kScopes[] = {"chiplet", "quad", "slice", "core"};
  Json list = Json::array();
  for (int i = 0; i < kMemories; ++i) {
    const MemoryInfo &info = image.machine.memories[i];
    uint64_t used = 0;
    for (const Kernel &kernel : image.kernels)
      used = std::max(used, kernel.footprint.bytes[i]);
    list.push_back({{"memory", std::string(nameOf(static_cast<Memory>(i)))},
                    {"per", kScopes[static_cast<int>(info.scope)]},
                    {"units", image.machine.unitCount(static_cast<Memory>(i))},
                    {"capacity", info.size},
                    {"footprint", used}});
  }
  return list;
}

Json argumentJson(const Argument &argument) {
  Json json = {{"name", argument.name},
               {"role", std::string(nameOf(argument.role))},
               {"type", std::string(nameOf(argument.type))},
               {"shape", argument.shape},
               {"form", std::string(nameOf(argument.form))}};
  if (!argument.perm.empty())
    json["perm"] = std::vector<int>(argument.perm.begin(), argument.perm.end());
  if (argument.role == Role::Scalar)
    json["reg"] = argument.reg;
  json["pieces"] = Json::array();
  for (const Piece &piece : argument.pieces)
    json["pieces"].push_back({{"memory", std::string(nameOf(piece.memory))},
                              {"unit", piece.unit},
                              {"address", piece.address},
                              {"bytes", spanOf(argument, piece)},
                              {"begin", piece.begin},
                              {"extent", piece.extent},
                              {"strides", piece.strides}});
  return json;
}

Json programJson(const Program &program, const Image &image) {
  Json list = Json::array();
  for (const Launch &launch : program.launches) {
    Json streams = Json::object(), registers = Json::object();
    for (size_t queue = 0; queue < launch.streams.size(); ++queue)
      if (launch.streams[queue] != kNoStream)
        streams["q" + std::to_string(queue)] = image.streams[launch.streams[queue]].name;
    for (size_t i = 0; i < launch.registers.size(); ++i)
      if (launch.registers[i])
        registers["R" + std::to_string(i)] = launch.registers[i];
    list.push_back({{"quad", launch.quad}, {"streams", std::move(streams)}, {"registers", std::move(registers)}});
  }
  return list;
}

Json mapJson(const KernelMap &map) {
  Json ranges = Json::array(), unknown = Json::object();
  for (const MapRange &range : map.ranges) {
    Json json = {{"memory", std::string(nameOf(range.memory))},
                 {"units", rangesText(range.units)},
                 {"begin", range.bytes.begin},
                 {"end", range.bytes.end},
                 {"kind", std::string(nameOf(range.kind))},
                 {"name", range.name},
                 {"first", range.first},
                 {"last", range.last}};
    if (range.argument >= 0)
      json["argument"] = range.argument;
    ranges.push_back(std::move(json));
  }
  for (int i = 0; i < kMemories; ++i)
    if (map.unknown[i])
      unknown[std::string(nameOf(static_cast<Memory>(i)))] = map.unknown[i];
  return {{"phases", {{{"name", "init"}, {"steps", map.initSteps}}, {{"name", "main"}, {"steps", map.mainSteps}}}},
          {"ordered", map.ordered},
          {"ranges", std::move(ranges)},
          {"unknown", std::move(unknown)}};
}

Json kernelJson(const Kernel &kernel, const Image &image, bool full) {
  std::set<uint32_t> streams = streamsOf(kernel), quads;
  eachLaunch(kernel, [&](const Launch &launch) { quads.insert(launch.quad); });
  Counts counts{};
  Json names = Json::array();
  for (uint32_t stream : streams) {
    count(image.streams[stream], counts);
    names.push_back(image.streams[stream].name);
  }
  for (int64_t function : valuesOf(image, streams, Opcode::ExecCpu))
    count(image.functions[function], counts);
  Json json = {{"name", kernel.name},
               {"runs_on", "quads " + rangesText({quads.begin(), quads.end()})},
               {"streams", std::move(names)},
               {"instructions", countsJson(counts)},
               {"footprint", footprintJson(kernel.footprint)}};
  if (!full)
    return json;
  json["arguments"] = Json::array();
  for (const Argument &argument : kernel.arguments)
    json["arguments"].push_back(argumentJson(argument));
  json["dims"] = Json::array();
  for (uint32_t reg : kernel.dimRegisters)
    json["dims"].push_back(reg == kNoRegister ? Json() : Json("R" + std::to_string(reg)));
  json["init"] = programJson(kernel.init, image);
  json["main"] = programJson(kernel.main, image);
  json["map"] = mapJson(memoryMap(image, kernel));
  return json;
}

Json codesJson(const std::vector<Code> &codes, const Image &image) {
  Json list = Json::array();
  for (const Code &code : codes) {
    Counts counts{};
    count(code, counts);
    Json lines = Json::array();
    for (const Instruction &in : code.instructions) {
      InstructionText text = textOf(in, &image);
      Json fields = Json::object();
      for (const auto &[name, value] : text.fields)
        fields[name] = value;
      lines.push_back({{"op", text.mnemonic}, {"fields", std::move(fields)}});
    }
    list.push_back({{"name", code.name}, {"instructions", countsJson(counts)}, {"code", std::move(lines)}});
  }
  return list;
}

} // namespace

Image imageOf(const Image &image, std::string_view name) {
  Image out;
  out.machine = image.machine;
  const Kernel *kernel = image.findKernel(name);
  if (!kernel)
    return out;
  std::set<uint32_t> streams = streamsOf(*kernel);
  std::set<int64_t> functions = valuesOf(image, streams, Opcode::ExecCpu),
                    marks = valuesOf(image, streams, Opcode::Mark);
  // What is left keeps its order; numbers become places in it.
  auto place = [](const auto &used, auto number) { return std::distance(used.begin(), used.find(number)); };
  for (int64_t mark : marks)
    out.marks.push_back(image.marks[mark]);
  for (int64_t function : functions)
    out.functions.push_back(image.functions[function]);
  for (uint32_t stream : streams) {
    out.streams.push_back(image.streams[stream]);
    for (Instruction &in : out.streams.back().instructions)
      if (in.opcode == Opcode::ExecCpu || in.opcode == Opcode::Mark)
        in.operands[0].base = place(in.opcode == Opcode::Mark ? marks : functions, in.operands[0].base);
  }
  out.kernels.push_back(*kernel);
  for (Program *program : {&out.kernels[0].init, &out.kernels[0].main})
    for (Launch &launch : program->launches)
      for (uint32_t &stream : launch.streams)
        if (stream != kNoStream)
          stream = static_cast<uint32_t>(place(streams, stream));
  return out;
}

std::optional<std::string> describeCode(std::span<const std::byte> code, std::string_view kernel, bool full,
                                        std::string &error) {
  std::optional<Image> image = readImage(code, error);
  if (!image)
    return std::nullopt;
  if (!kernel.empty())
    image = imageOf(*image, kernel);
  Json root = {
      {"machine", machineJson(image->machine, full)}, {"memories", memoriesJson(*image)}, {"kernels", Json::array()}};
  for (const Kernel &one : image->kernels)
    root["kernels"].push_back(kernelJson(one, *image, full));
  if (full) {
    root["streams"] = codesJson(image->streams, *image);
    root["functions"] = codesJson(image->functions, *image);
    root["marks"] = image->marks;
  }
  return dumped(root);
}

std::optional<std::string> printCode(std::span<const std::byte> code, std::string_view kernel, std::string &error) {
  std::optional<Image> image = readImage(code, error);
  if (!image)
    return std::nullopt;
  return disassemble(kernel.empty() ? *image : imageOf(*image, kernel));
}

std::optional<std::string> compareCode(std::span<const std::byte> a, std::span<const std::byte> b, std::string &error) {
  std::optional<Image> left = readImage(a, error), right = left ? readImage(b, error) : std::nullopt;
  if (!left || !right)
    return std::nullopt;
  Json list = Json::array();
  for (const ImageDifference &one : diff(*left, *right))
    list.push_back({{"what", one.what}, {"name", one.name}, {"a", one.a}, {"b", one.b}});
  return dumped(list);
}

} // namespace dmx::corsair
