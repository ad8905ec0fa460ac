//===- Report.cpp - what a run of the array cost --------------------------===//
#include "Report.h"

#include <algorithm>

namespace dmxrt::aie {

Figures figuresOf(const Array &array, const hw::KernelCode &kernel, uint64_t modelMacs) {
  Figures out;
  out.kernel = kernel.name;
  out.usefulMacs = modelMacs;
  for (const hw::Argument &argument : kernel.arguments)
    (argument.output ? out.hostOut : out.hostIn) += argument.kept() ? 0 : argument.hostBytes();
  out.clocks = array.now;
  out.controlWords = array.controlWords;
  out.configurationWords = array.configurationWords;
  out.readBytes = array.readBytes();
  out.writtenBytes = array.writtenBytes();
  for (const Core &core : array.allCores()) {
    ++out.cores;
    out.bf16Macs += core.bf16Macs;
    out.i32Macs += core.i32Macs;
    out.i8Macs += core.i8Macs;
    out.instructions += core.instructions;
    out.busy.emplace_back(array.nameOf(core.thread.number), core.busy);
  }
  for (const Channel &channel : array.allChannels())
    if (channel.busy)
      out.busy.emplace_back(array.nameOf(channel.thread.number), channel.busy);
  for (const Path &path : array.allPaths())
    out.linkWords.emplace_back(cat(array.nameOf(array.allChannels()[path.source].thread.number), " to ",
                                   array.nameOf(array.allChannels()[path.sink].thread.number)),
                               path.moved);
  return out;
}

/// Clocks in which all cores could do the multiplications.
static double macClocks(const hw::Machine &machine, const Figures &figures) {
  return (static_cast<double>(figures.bf16Macs) / static_cast<double>(machine.bf16Macs) +
          static_cast<double>(figures.i8Macs) / static_cast<double>(machine.i8Macs) +
          static_cast<double>(figures.i32Macs) / static_cast<double>(machine.i32Macs)) /
         static_cast<double>(std::max<uint64_t>(figures.cores, 1));
}

std::string_view boundOf(const hw::Machine &machine, const Figures &figures) {
  auto compute = static_cast<uint64_t>(macClocks(machine, figures));
  uint64_t stream = 0;
  for (const auto &[name, words] : figures.linkWords)
    stream = std::max(stream, words);
  uint64_t ddr = (figures.readBytes[0] + figures.writtenBytes[0]) / static_cast<uint64_t>(machine.ddrBytesPerClock);
  uint64_t control = figures.controlWords * static_cast<uint64_t>(machine.controlClocks);
  uint64_t most = std::max({compute, stream, ddr, control});
  return most == compute ? "compute" : most == stream ? "stream" : most == ddr ? "DDR" : "control";
}

void write(sim::ReportWriter &out, const hw::Machine &machine, const Figures &figures) {
  out.kernel(figures.kernel, figures.hostIn, figures.hostOut, figures.hostSeconds);
  double clocks = static_cast<double>(std::max<uint64_t>(figures.clocks, 1));
  uint64_t done = figures.bf16Macs + figures.i32Macs + figures.i8Macs;
  const sim::Count units[] = {{"cores", figures.cores},
                              {"model_macs", figures.usefulMacs},
                              {"padding_macs", done - std::min(figures.usefulMacs, done)},
                              {"configuration_words", figures.configurationWords},
                              {"control_words", figures.controlWords}},
                   macs[] = {{"bf16", figures.bf16Macs}, {"i32", figures.i32Macs}, {"i8", figures.i8Macs}};
  auto work = static_cast<double>(done), useful = static_cast<double>(figures.usefulMacs),
       least = macClocks(machine, figures);
  // Of the whole array, of which a program may use a part.
  double all = static_cast<double>(machine.columns * machine.coreRows()),
         used = static_cast<double>(std::max<uint64_t>(figures.cores, 1));
  double peak = all * (least > 0 ? work / least / used : static_cast<double>(machine.bf16Macs));
  const sim::Share shares[] = {{"mac_peak_share", least / clocks}, {"useful_peak_share", useful / peak / clocks}};
  std::vector<sim::Share> busy;
  for (const auto &[name, time] : figures.busy)
    busy.push_back({name, static_cast<double>(time) / clocks});
  std::vector<sim::Count> links;
  for (const auto &[name, words] : figures.linkWords)
    links.push_back({name, 4 * words});
  out.program("main", {figures.clocks,
                       static_cast<double>(figures.clocks) / machine.clockHz,
                       units,
                       boundOf(machine, figures),
                       shares,
                       {figures.readBytes, figures.writtenBytes, links, macs, 0, figures.instructions},
                       busy,
                       {},
                       2 * peak * machine.clockHz,
                       2 * work});
  double rate = static_cast<double>(machine.ddrBytesPerClock) * machine.clockHz;
  out.roof({"DDR", 1, rate, rate, rate, true});
}

} // namespace dmxrt::aie
