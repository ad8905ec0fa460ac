//===- Report.cpp - what runs of a device cost, as JSON -------------------===//
#include "Report.h"

namespace dmxrt::sim {

ReportWriter::ReportWriter(std::string_view machine, std::span<const std::string_view> memories, double clockHz,
                           uint64_t count)
    : memories(memories) {
  out.add("{\"machine\": ");
  out.quoted(machine);
  out.add(", \"clock_hz\": %s, \"runs\": %llu", fixed(clockHz, 1).c_str(), ull(count));
}

void ReportWriter::back(Level to) {
  while (level > to)
    switch (level) {
    case Tasks:
    case Roofs:
      out.text += level == Tasks ? "]}" : "}}, \"tasks\": []}";
      level = Kernel;
      break;
    case Kernel:
      out.text += "}";
      level = Runs;
      break;
    default:
      out.text += "]";
      level = File;
    }
}

void ReportWriter::runs(const char *which) {
  back(File);
  out.add(",\n  \"%s\": [", which);
  level = Runs;
  kernels = 0;
}

void ReportWriter::kernel(std::string_view name, uint64_t hostBytesIn, uint64_t hostBytesOut, double hostSeconds) {
  back(Runs);
  out.add("%s\n    {\"kernel\": ", kernels++ ? "," : "");
  out.quoted(name);
  out.add(", \"host_bytes_in\": %llu, \"host_bytes_out\": %llu, \"host_link_seconds\": %s", ull(hostBytesIn),
          ull(hostBytesOut), num(hostSeconds).c_str());
  level = Kernel;
}

void ReportWriter::add(std::span<const Count> figures) {
  for (const Count &figure : figures) {
    comma();
    out.add("\"%.*s\": %llu", static_cast<int>(figure.name.size()), figure.name.data(), ull(figure.number));
  }
}

void ReportWriter::add(std::span<const Share> figures) {
  for (const Share &figure : figures) {
    comma();
    out.add("\"%.*s\": %s", static_cast<int>(figure.name.size()), figure.name.data(), num(figure.number).c_str());
  }
}

void ReportWriter::bytes(const char *key, std::span<const uint64_t> numbers) {
  out.add("\"%s\": {", key);
  items = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Count one{memories[i], numbers[i]};
    add({&one, 1});
  }
  out.text += "}, ";
}

void ReportWriter::work(const Work &work) {
  bytes("read_bytes", work.readBytes);
  bytes("written_bytes", work.writtenBytes);
  for (bool links : {true, false}) {
    out.add("\"%s\": {", links ? "link_bytes" : "macs");
    items = 0;
    add(links ? work.linkBytes : work.macs);
    out.text += "}, ";
  }
  out.add("\"simd_ops\": %llu, \"instructions\": %llu", ull(work.simdOps), ull(work.instructions));
  if (work.saturated)
    out.add(", \"saturated\": %llu", ull(work.saturated));
}

void ReportWriter::program(const char *which, const RunFigures &run) {
  back(Kernel);
  out.add(",\n     \"%s\": {\"clocks\": %llu, \"seconds\": %s", which, ull(run.clocks), num(run.seconds).c_str());
  items = 1;
  add(run.units);
  out.add(", \"bound\": \"%.*s\"", static_cast<int>(run.bound.size()), run.bound.data());
  add(run.shares);
  out.text += ", ";
  work(run.work);
  for (bool busy : {true, false}) {
    if (!busy && run.energy.empty())
      continue;
    out.add(", \"%s\": {", busy ? "utilisation" : "energy_joules");
    items = 0;
    add(busy ? run.utilisation : run.energy);
    out.text += "}";
  }
  out.add(", \"roofline\": {\"peak_ops_per_second\": %s, \"ops\": %s, \"memories\": {", num(run.peakOps).c_str(),
          num(run.ops).c_str());
  level = Roofs;
  items = 0;
}

void ReportWriter::roof(const Roof &roof) {
  comma();
  out.add("\"%.*s\": {\"units\": %llu, \"bytes_per_second\": %s, \"read_bytes_per_second\": %s, "
          "\"write_bytes_per_second\": %s, \"one_port\": %s}",
          static_cast<int>(roof.memory.size()), roof.memory.data(), ull(roof.units), num(roof.bytesPerSecond).c_str(),
          num(roof.readPerSecond).c_str(), num(roof.writtenPerSecond).c_str(), roof.onePort ? "true" : "false");
}

void ReportWriter::task(std::string_view name, uint64_t first, uint64_t last, std::string_view bound, const Work &of) {
  out.add("%s\n        {\"name\": ", level == Tasks ? "," : "}}, \"tasks\": [");
  level = Tasks;
  out.quoted(name);
  out.add(", \"first_clock\": %llu, \"last_clock\": %llu, \"bound\": \"%.*s\", ", ull(first), ull(last),
          static_cast<int>(bound.size()), bound.data());
  work(of);
  out.text += "}";
}

bool ReportWriter::save(const std::string &path) {
  back(File);
  out.text += "}\n";
  return out.save(path);
}

} // namespace dmxrt::sim
