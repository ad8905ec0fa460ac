//===- View.cpp - programs of queues for people and tools -----------------===//
#include "View.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace dmx::queues {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::span<const std::byte>;

std::vector<Program> kernelsOf(Bytes code, const Machine &machine, std::string_view name, std::string &error) {
  error.clear();
  std::vector<Program> all = read(code, machine, error);
  std::erase_if(all, [&](const Program &kernel) { return !name.empty() && kernel[0].name != name; });
  return all;
}

/// Of a buffer: "input", "output" or "temporary".
std::string kindOf(const Program &kernel, int64_t buffer) {
  for (const Line &line : kernel)
    if (line.word == Word::Argument && line.n[1] == buffer)
      return line.n[0] ? "output" : "input";
  return "temporary";
}

Json describeKernel(const Program &kernel, const Machine &machine) {
  Json counts = Json::object(), footprint = Json::object(), queues = Json::array(), ranges = Json::array();
  for (Word word : {Word::Wait, Word::Signal, Word::Copy, Word::Put, Word::Get, Word::Engine})
    counts[std::string(wordOf(word))] = std::ranges::count(kernel, word, &Line::word);
  for (const Memory &memory : machine.memories)
    footprint[std::string(memory.name)] = 0;
  for (const Line &line : kernel) {
    if (line.word == Word::Queue)
      queues.push_back("queue " + std::to_string(queues.size()));
    if (line.word != Word::Buffer)
      continue;
    std::string memory(machine.memories[line.n[0]].name);
    int64_t begin = line.place[0].base, end = begin + line.n[1];
    footprint[memory] = std::max(footprint[memory].get<int64_t>(), end);
    ranges.push_back({{"memory", memory},
                      {"units", "0"},
                      {"begin", begin},
                      {"end", end},
                      {"kind", kindOf(kernel, static_cast<int64_t>(ranges.size()))},
                      {"name", line.name},
                      {"first", 0},
                      {"last", kernel.size() - 1}});
  }
  Json map = {{"phases", {{{"name", "main"}, {"steps", kernel.size()}}}}, {"ordered", false}, {"ranges", ranges}};
  return {{"name", kernel[0].name}, {"runs_on", machine.name}, {"streams", queues},
          {"instructions", counts}, {"footprint", footprint},  {"map", map}};
}

} // namespace

std::optional<std::string> describe(Bytes code, const Machine &machine, std::string_view name, std::string &error) {
  Json kernels = Json::array(), memories = Json::array();
  for (const Program &kernel : kernelsOf(code, machine, name, error))
    kernels.push_back(describeKernel(kernel, machine));
  for (const Memory &memory : machine.memories) {
    int64_t used = 0;
    for (const Json &kernel : kernels)
      used = std::max(used, kernel["footprint"][std::string(memory.name)].get<int64_t>());
    memories.push_back(
        {{"memory", memory.name}, {"per", "machine"}, {"units", 1}, {"capacity", memory.size}, {"footprint", used}});
  }
  if (!error.empty())
    return std::nullopt;
  Json all = {{"machine", {{"name", machine.name}}}, {"memories", memories}, {"kernels", kernels}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> print(Bytes code, const Machine &machine, std::string_view name, std::string &error) {
  std::string text;
  for (const Program &kernel : kernelsOf(code, machine, name, error))
    for (const Line &line : kernel)
      text += textOf(line, machine) + "\n";
  return error.empty() ? std::optional(text) : std::nullopt;
}

std::optional<std::string> compare(Bytes a, Bytes b, const Machine &machine, std::string &error) {
  std::optional<std::string> left = print(a, machine, "", error), right = print(b, machine, "", error);
  if (!left || !right)
    return std::nullopt;
  Json all = Json::array();
  if (*left != *right)
    all.push_back({{"what", "program"}, {"name", "all kernels"}, {"a", *left}, {"b", *right}});
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace dmx::queues
