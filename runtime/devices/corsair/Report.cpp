//===- Report.cpp - what a run of the card cost ---------------------------===//

#include "Report.h"

#include "runtime/devices/common/Report.h"
#include "runtime/devices/common/Trace.h"

#include <algorithm>

namespace dmxrt::corsair {
namespace {

using sim::fixed;
using sim::ull;
using Writer = sim::TextWriter;

uint64_t longest(const Usage &usage, Engine engine) {
  const auto &slices = usage.busy[static_cast<int>(engine)];
  return *std::max_element(slices.begin(), slices.end());
}

Usage totalOf(const RunResult &run) {
  Usage total;
  for (const QuadResult &quad : run.quads)
    total.add(quad.usage);
  return total;
}

/// Clocks that one core's array needs for these MACs: 64 x 64 of them take the row clocks of their class.
double arrayClocks(const Usage &usage, const isa::Machine &machine) {
  return static_cast<double>(usage.macs8) * machine.rowClocks8 / 4096 +
         static_cast<double>(usage.macs16) * machine.rowClocks16 / 4096 +
         static_cast<double>(usage.macs4) * machine.rowClocks4 / 8192;
}

uint64_t repeatedOf(const KernelRun &run) {
  const isa::Kernel *kernel = run.image ? run.image->findKernel(run.kernel) : nullptr;
  return kernel ? kernel->repeatedMacs : 0;
}

std::array<std::string_view, isa::kMemories> memoryNames() {
  std::array<std::string_view, isa::kMemories> names;
  for (int i = 0; i < isa::kMemories; ++i)
    names[i] = isa::nameOf(static_cast<Memory>(i));
  return names;
}

/// A usage's figures by name, for as long as it lives.
struct NamedUsage {
  explicit NamedUsage(const Usage &usage)
      : links{{"noc", usage.nocBytes}, {"d2d", usage.d2dBytes}},
        macs{{"int16", usage.macs16}, {"int8", usage.macs8}, {"int4", usage.macs4}},
        work{usage.readBytes, usage.writtenBytes, links, macs, usage.simdOps, usage.instructions, usage.saturated} {}
  NamedUsage(const NamedUsage &) = delete;
  sim::Count links[2], macs[3];
  sim::Work work;
};

/// Share of the run's time that an engine's busiest instance works, averaged over quads.
double utilisation(const Usage &usage, Engine engine, uint64_t clocks, size_t quads) {
  return clocks && quads
             ? static_cast<double>(longest(usage, engine)) / static_cast<double>(clocks) / static_cast<double>(quads)
             : 0;
}

/// What the units in use could do at most: the arrays with the run's mix of operands. Operations are two a MAC.
struct Arrays {
  uint64_t slices = 0;
  double peakOps = 0, ops = 0;
};
Arrays arraysOf(const isa::Machine &machine, const RunResult &run, const Usage &total) {
  Arrays out;
  uint64_t arrays = 0;
  for (const QuadResult &quad : run.quads)
    for (int slice = 0; slice < machine.slices; ++slice) {
      arrays += quad.usage.busy[static_cast<int>(Engine::Dimc)][slice] != 0;
      ++out.slices;
    }
  double macs = static_cast<double>(total.macs16 + total.macs8 + total.macs4);
  double clocksOfMacs = arrayClocks(total, machine),
         cores = static_cast<double>((arrays ? arrays : out.slices) * machine.cores);
  double perClock = macs > 0 ? macs / clocksOfMacs : 4096 / machine.rowClocks8;
  out.peakOps = 2 * perClock * cores * machine.clockHz;
  out.ops = 2 * macs;
  return out;
}

/// Each memory with its mix of reads and writes.
void writeRoofs(sim::ReportWriter &out, const isa::Machine &machine, const RunResult &run, const Usage &total,
                uint64_t slices) {
  for (int i = 0; i < isa::kMemories; ++i) {
    const isa::MemoryInfo &info = machine.memories[i];
    auto read = static_cast<double>(total.readBytes[i]), written = static_cast<double>(total.writtenBytes[i]);
    bool onePort = info.scope == isa::MemoryInfo::Scope::Chiplet; // reads and writes share the port
    double clocks = onePort ? (read + written) / info.read : std::max(read / info.read, written / info.write);
    if (clocks <= 0)
      continue;
    using Scope = isa::MemoryInfo::Scope;
    uint64_t units = info.scope == Scope::Chiplet ? static_cast<uint64_t>(run.chiplets)
                     : info.scope == Scope::Quad  ? run.quads.size()
                     : info.scope == Scope::Slice ? slices
                                                  : slices * static_cast<uint64_t>(machine.cores);
    double perSecond = static_cast<double>(units) * machine.clockHz;
    out.roof({isa::nameOf(static_cast<Memory>(i)), units, (read + written) / clocks * perSecond, info.read * perSecond,
              info.write * perSecond, onePort});
  }
}

void writeRun(sim::ReportWriter &out, const char *which, const isa::Machine &machine, const KernelRun &kernel,
              const RunResult &run) {
  Usage total = totalOf(run);
  NamedUsage usage(total);
  Arrays arrays = arraysOf(machine, run, total);
  const MacShares macs = macShares(kernel, run, machine);
  const sim::Count units[] = {{"quads", run.quads.size()},
                              {"chiplets", static_cast<uint64_t>(run.chiplets)},
                              {"model_macs", macs.model},
                              {"repeated_macs", macs.repeated},
                              {"padding_macs", macs.padding}};
  const sim::Share peak[] = {{"dimc_peak_fraction", peakFraction(run, machine)}, {"useful_peak_share", macs.peak}};
  sim::Share busy[kEngines];
  for (int i = 0; i < kEngines; ++i)
    busy[i] = {nameOf(static_cast<Engine>(i)),
               utilisation(total, static_cast<Engine>(i), run.clocks, run.quads.size())};
  Energy energy = energyOf(total, machine, run.chiplets, run.clocks);
  sim::Share joules[isa::kMemories + 5];
  for (int i = 0; i < isa::kMemories; ++i)
    joules[i] = {isa::nameOf(static_cast<Memory>(i)), energy.memories[i] * 1e-12};
  const sim::Share rest[] = {{"links", energy.links * 1e-12},
                             {"macs", energy.macs * 1e-12},
                             {"simd", energy.simd * 1e-12},
                             {"static", energy.leakage * 1e-12},
                             {"total", energy.total() * 1e-12}};
  std::copy(std::begin(rest), std::end(rest), joules + isa::kMemories);
  out.program(which, {run.clocks, static_cast<double>(run.clocks) / machine.clockHz, units,
                      nameOf(boundOf(total, run.clocks, run.quads.size())), peak, usage.work, busy, joules,
                      arrays.peakOps, arrays.ops});
  writeRoofs(out, machine, run, total, arrays.slices);
  for (const auto &[mark, part] : run.marks)
    out.task(mark == kNoMark ? std::string_view() : std::string_view(kernel.image->marks[mark]), part.first, part.last,
             nameOf(boundOf(part, part.last > part.first ? part.last - part.first : 0, run.quads.size())),
             NamedUsage(part).work);
}

void writeRuns(sim::ReportWriter &out, const char *which, const isa::Machine &machine,
               const std::vector<KernelRun> &runs) {
  out.runs(which);
  for (const KernelRun &run : runs) {
    out.kernel(run.kernel, run.hostIn, run.hostOut,
               static_cast<double>(run.hostIn + run.hostOut) / (machine.pcie.bytesPerClock * machine.clockHz));
    if (run.init)
      writeRun(out, "init", machine, run, *run.init);
    writeRun(out, "main", machine, run, run.main);
  }
}

void textOf(Writer &out, const isa::Machine &machine, const char *title, const KernelRun &kernel,
            const RunResult &run) {
  Usage total = totalOf(run);
  Energy energy = energyOf(total, machine, run.chiplets, run.clocks);
  out.add("%s of '%s': %llu clocks, %s us, %zu quads; bound by %s; DIMC at %s %% of peak, %s %% useful; %s uJ\n", title,
          kernel.kernel.c_str(), ull(run.clocks),
          fixed(static_cast<double>(run.clocks) / machine.clockHz * 1e6, 3).c_str(), run.quads.size(),
          std::string(nameOf(boundOf(total, run.clocks, run.quads.size()))).c_str(),
          fixed(100 * peakFraction(run, machine), 1).c_str(),
          fixed(100 * macShares(kernel, run, machine).peak, 1).c_str(), fixed(energy.total() * 1e-6, 3).c_str());
  out.add("  %-8s %14s %14s %12s\n", "memory", "bytes read", "bytes written", "energy uJ");
  for (int i = 0; i < isa::kMemories; ++i)
    if (total.readBytes[i] || total.writtenBytes[i])
      out.add("  %-8s %14llu %14llu %12s\n", std::string(isa::nameOf(static_cast<Memory>(i))).c_str(),
              ull(total.readBytes[i]), ull(total.writtenBytes[i]), fixed(energy.memories[i] * 1e-6, 3).c_str());
  out.add("  %-14s %8s\n", "engine", "busy");
  for (int i = 0; i < kEngines; ++i)
    if (longest(total, static_cast<Engine>(i)))
      out.add("  %-14s %7s%%\n", std::string(nameOf(static_cast<Engine>(i))).c_str(),
              fixed(100 * utilisation(total, static_cast<Engine>(i), run.clocks, run.quads.size()), 1).c_str());
  for (const auto &[mark, usage] : run.marks)
    if (mark != kNoMark && usage.last > usage.first)
      out.add("  task %-40.40s %10llu clocks, %s\n", kernel.image->marks[mark].c_str(), ull(usage.last - usage.first),
              std::string(nameOf(boundOf(usage, usage.last - usage.first, run.quads.size()))).c_str());
}

} // namespace

std::string_view nameOf(Bound bound) {
  constexpr std::string_view kNames[] = {"compute", "SRAM", "DDR", "SIMD", "reshape", "control"};
  return kNames[static_cast<int>(bound)];
}

Bound boundOf(const Usage &usage, uint64_t clocks, size_t quads) {
  struct Candidate {
    Bound bound;
    uint64_t busy;
  };
  auto busy = [&](Engine engine) { return longest(usage, engine); };
  uint64_t ddr = busy(Engine::DdrIn) + busy(Engine::DdrOut);
  uint64_t sram = std::max({busy(Engine::ToIb), busy(Engine::ToWb), busy(Engine::FromOb), busy(Engine::OtherDma)});
  const Candidate candidates[] = {{Bound::Compute, busy(Engine::Dimc)},
                                  {Bound::Sram, sram},
                                  {Bound::Ddr, ddr},
                                  {Bound::Simd, busy(Engine::Simd)},
                                  {Bound::Reshape, busy(Engine::Dre)}};
  const Candidate *best = std::max_element(std::begin(candidates), std::end(candidates),
                                           [](const Candidate &a, const Candidate &b) { return a.busy < b.busy; });
  return 2 * best->busy < clocks * quads ? Bound::Control : best->bound;
}

MacShares macShares(const KernelRun &kernel, const RunResult &run, const isa::Machine &machine) {
  const Usage total = totalOf(run);
  const uint64_t done = total.macs16 + total.macs8 + total.macs4;
  MacShares out;
  if (!done || (kernel.init && &run == &*kernel.init)) // which makes constants: the model asks for nothing
    return out;
  out.model = std::min(kernel.modelMacs, done);
  out.repeated = std::min(repeatedOf(kernel), done - out.model);
  out.padding = done - out.model - out.repeated;
  const auto cores = static_cast<double>(run.quads.size()) * machine.slices * machine.cores;
  out.peak = static_cast<double>(out.model) / static_cast<double>(done) * arrayClocks(total, machine) / cores /
             static_cast<double>(std::max<uint64_t>(run.clocks, 1));
  return out;
}

double peakFraction(const RunResult &run, const isa::Machine &machine) {
  double done = 0;
  int slices = 0;
  for (const QuadResult &quad : run.quads) {
    done += arrayClocks(quad.usage, machine);
    for (uint64_t busy : quad.usage.busy[static_cast<int>(Engine::Dimc)])
      slices += busy != 0;
  }
  double all = static_cast<double>(run.clocks) * slices * machine.cores;
  return all > 0 ? done / all : 0;
}

std::string saturationText(const std::vector<KernelRun> &run) {
  std::vector<std::pair<std::string, uint64_t>> found; // nodes in the order of the run
  auto add = [&](const std::string &what, uint64_t count) {
    auto known = std::find_if(found.begin(), found.end(), [&](const auto &entry) { return entry.first == what; });
    if (known == found.end())
      found.emplace_back(what, count);
    else
      known->second += count;
  };
  for (const KernelRun &kernel : run) {
    if (kernel.saturatedInputs)
      add("what the host gives", kernel.saturatedInputs);
    for (const auto &[mark, usage] : kernel.main.marks)
      if (usage.saturated)
        add(mark == kNoMark ? "a task" : "node '" + kernel.image->marks[mark] + "'", usage.saturated);
  }
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(found.size(), kMost); ++i)
    text +=
        cat(i ? ", " : "", found[i].first, " saturated ", found[i].second, found[i].second == 1 ? " value" : " values");
  if (found.size() > kMost)
    text += cat(" and ", found.size() - kMost, " more nodes");
  return text;
}

bool writeReport(const std::string &path, const isa::Machine &machine, const std::vector<KernelRun> &first,
                 const std::vector<KernelRun> &last, uint64_t runs) {
  const auto names = memoryNames();
  sim::ReportWriter json(machine.name, names, machine.clockHz, runs);
  writeRuns(json, "first", machine, first);
  writeRuns(json, "last", machine, last);
  Writer text;
  text.add("machine %s at %s GHz, run %llu of the session\n", machine.name.c_str(),
           fixed(machine.clockHz * 1e-9, 4).c_str(), ull(runs));
  for (const KernelRun &run : first)
    if (run.init)
      textOf(text, machine, "init", run, *run.init);
  for (const KernelRun &run : last)
    textOf(text, machine, "main", run, run.main);
  return json.save(path) && text.save(path + ".txt");
}

bool writeTrace(const std::string &path, const isa::Machine &machine, const std::vector<KernelRun> &runs) {
  sim::Trace trace;
  double offset = 0, microseconds = 1e6 / machine.clockHz;
  for (const KernelRun &run : runs) {
    for (const QuadResult &quad : run.main.quads)
      for (const TraceEvent &event : quad.trace) {
        uint32_t row = static_cast<uint32_t>(event.engine) * kMaxSlices + event.instance;
        trace.process(quad.quad, cat("quad ", quad.quad));
        trace.row(quad.quad, row, cat(nameOf(event.engine), " ", uint32_t(event.instance)));
        const isa::Code &code = run.image->streams[event.stream];
        const char *instruction = code.instructions[event.position].info().name;
        trace.begin(quad.quad, row, (offset + static_cast<double>(event.start)) * microseconds,
                    static_cast<double>(event.end - event.start) * microseconds,
                    event.mark == kNoMark ? std::string_view(instruction)
                                          : std::string_view(run.image->marks[event.mark]));
        trace.argument("kernel", run.kernel);
        trace.argument("stream", code.name);
        trace.argument("at", event.position);
        trace.argument("instruction", std::string_view(instruction));
        trace.finish();
      }
    offset += static_cast<double>(run.main.clocks);
  }
  return trace.save(path);
}

} // namespace dmxrt::corsair
