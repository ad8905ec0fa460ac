//===- InspectReport.cpp - what devices wrote of runs ---------------------===//
//
// A report (device option <target>.report) has, for the first and the last run of
// a session, the figures of every kernel; a trace (<target>.trace, or dmx-run
// --profile) has intervals. Both are told apart by what is in them.
//
//===----------------------------------------------------------------------===//
#include "Html.h"
#include "InspectCode.h"
#include "InspectHtml.h"

#include "dmxc/Support/MappedFile.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace dmxc::tools {

using namespace bundle;
using namespace html;

namespace {

/// With a prefix of the SI: "2.40 T".
std::string si(double value) {
  const char *prefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  for (; value >= 1000 && prefix < 6; ++prefix)
    value /= 1000;
  return number(value) + " " + prefixes[prefix];
}

std::string percent(double share) { return number(100 * share) + " %"; }

double sumOf(const Json &object, const char *key) {
  double sum = 0;
  for (const Json &part : partOf(object, key))
    sum += part.is_number() ? part.get<double>() : 0;
  return sum;
}

// --- utilisation --------------------------------------------------------------

/// A bar an engine: its share of the run's time.
std::string utilisationBars(const Json &run) {
  constexpr double left = 110, width = 500, row = 16;
  std::string shapes;
  double y = 0;
  for (const auto &engine : partOf(run, "utilisation").items()) {
    double share = engine.value().is_number() ? engine.value().get<double>() : 0;
    std::string title = engine.key() + ": busy for " + percent(share) + " of the run";
    shapes += text(left - 6, y + 12, "end", engine.key()) + rect(left, y + 2, width, row - 4, "limit", "", title) +
              rect(left, y + 2, width * std::clamp(share, 0.0, 1.0), row - 4, "", colourOf(engine.key()), title) +
              text(left + width + 6, y + 12, "start", percent(share));
    y += row;
  }
  return shapes.empty() ? "" : svg(left + width + 80, y, shapes);
}

// --- roofline -----------------------------------------------------------------

/// Work and traffic of a run or of a task in it.
struct Point {
  std::string name;
  double ops = 0, bytes = 0, seconds = 0;
  double intensity() const { return ops / bytes; }
};

/// Operations a second over operations a byte, both logarithmic, for one memory.
class Roofline {
public:
  Roofline(std::string memory, double peak, double bandwidth)
      : memory(std::move(memory)), peak(peak), bandwidth(bandwidth) {}
  void add(Point point) {
    if (point.ops > 0 && point.bytes > 0 && point.seconds > 0)
      points.push_back(std::move(point));
  }
  std::string run() const;

private:
  static constexpr double kLeft = 80, kWidth = 520, kHeight = 220, kFoot = 16;
  static constexpr size_t kMostNames = 8; ///< more would cover each other
  std::string memory;
  double peak, bandwidth;
  std::vector<Point> points;
};

std::string Roofline::run() const {
  if (points.empty() || peak <= 0 || bandwidth <= 0)
    return "";
  double ridge = peak / bandwidth, low = ridge / 100, high = ridge * 100, floor = peak / 100;
  for (const Point &point : points) {
    low = std::min(low, point.intensity() / 2);
    high = std::max(high, point.intensity() * 2);
    floor = std::min(floor, point.ops / point.seconds / 2);
  }
  auto x = [&](double intensity) { return kLeft + kWidth * std::log(intensity / low) / std::log(high / low); };
  auto y = [&](double rate) { return 12 + (kHeight - 12) * (1 - std::log(rate / floor) / std::log(peak / floor)); };
  double start = std::max(low, floor / bandwidth);
  std::string shapes = "<polyline points=\"" + number(x(start)) + "," + number(y(start * bandwidth)) + " " +
                       number(x(ridge)) + "," + number(y(peak)) + " " + number(kLeft + kWidth) + "," + number(y(peak)) +
                       "\"/>\n";
  shapes +=
      text(kLeft - 4, y(peak) + 4, "end", si(peak) + "op/s") + text(kLeft - 4, kHeight, "end", si(floor) + "op/s");
  shapes += text(x(ridge), kHeight + kFoot - 4, "middle", number(ridge) + " op/B");
  for (const Point &point : points) {
    double rate = point.ops / point.seconds, roof = std::min(peak, point.intensity() * bandwidth);
    double px = x(point.intensity()), py = y(rate);
    shapes += rect(px - 4, py - 4, 8, 8, "", colourOf(point.name),
                   point.name + ": " + si(rate) + "op/s at " + number(point.intensity()) + " op/B of " + memory + ", " +
                       percent(rate / roof) + " of the roof");
    bool right = px < kLeft + kWidth / 2;
    if (points.size() <= kMostNames)
      shapes += text(right ? px + 7 : px - 7, py + 4, right ? "start" : "end", fitting(point.name, 150));
  }
  return heading(4, "roofline over " + memory + ": " + si(bandwidth) + "B/s, ridge at " + number(ridge) + " op/B") +
         svg(kLeft + kWidth + 10, kHeight + kFoot, shapes);
}

/// Bytes count as what the roof is made of: a memory that reads faster than it writes passes more bytes a second of a
/// task that reads more.
Point pointOf(const Json &run, const std::string &name, const std::string &memory, const Json &figures,
              double seconds) {
  double read = numberOf(partOf(run, "read_bytes"), memory.c_str());
  double written = numberOf(partOf(run, "written_bytes"), memory.c_str());
  double reading = read / std::max(numberOf(figures, "read_bytes_per_second"), 1.0);
  double writing = written / std::max(numberOf(figures, "write_bytes_per_second"), 1.0);
  double needed = partOf(figures, "one_port") == Json(true) ? reading + writing : std::max(reading, writing);
  return {name, 2 * sumOf(run, "macs"), needed * numberOf(figures, "bytes_per_second"), seconds};
}

double secondsOf(const Json &task, double clockHz) {
  return (numberOf(task, "last_clock") - numberOf(task, "first_clock")) / std::max(clockHz, 1.0);
}

std::string rooflines(const Json &run, double clockHz) {
  const Json &roofline = partOf(run, "roofline");
  std::string html;
  for (const auto &[name, figures] : partOf(roofline, "memories").items()) {
    Roofline chart(name, numberOf(roofline, "peak_ops_per_second"), numberOf(figures, "bytes_per_second"));
    chart.add(pointOf(run, "all", name, figures, numberOf(run, "seconds")));
    for (const Json &task : partOf(run, "tasks"))
      chart.add(pointOf(task, textOf(task, "name"), name, figures, secondsOf(task, clockHz)));
    html += chart.run();
  }
  return html;
}

// --- a run --------------------------------------------------------------------

Table traffic(const Json &run) {
  Table table{"traffic and energy", {"part", "bytes read", "bytes written", "joules"}, {}};
  const Json &energy = partOf(run, "energy_joules");
  std::set<std::string> memories;
  for (const auto &memory : partOf(run, "read_bytes").items()) {
    memories.insert(memory.key());
    table.add({memory.key(), memory.value(), partOf(partOf(run, "written_bytes"), memory.key().c_str()),
               partOf(energy, memory.key().c_str())});
  }
  for (const auto &part : energy.items())
    if (!memories.count(part.key()))
      table.add({part.key(), "", "", part.value()});
  return table;
}

Table tasksOf(const Json &run, double clockHz) {
  Table table{"tasks", {"task", "first clock", "last clock", "us", "bound by", "MACs", "lane operations"}, {}};
  for (const Json &task : partOf(run, "tasks"))
    if (!textOf(task, "name").empty())
      table.add({textOf(task, "name"), partOf(task, "first_clock"), partOf(task, "last_clock"),
                 number(1e6 * secondsOf(task, clockHz)), textOf(task, "bound"), sumOf(task, "macs"),
                 partOf(task, "simd_ops")});
  return table;
}

/// Operations that were done, of those that the units in use could have done; where a device tells them apart, what
/// filled up its tiles.
std::string shareOfPeak(const Json &run) {
  const Json &roofline = partOf(run, "roofline");
  double most = numberOf(roofline, "peak_ops_per_second") * numberOf(run, "seconds"),
         filling = numberOf(run, "padded_peak_share");
  if (most <= 0)
    return "";
  return percent(numberOf(roofline, "ops") / most) + " of peak" +
         (filling > 0 ? ", " + percent(filling) + " padding" : "");
}

/// What else a device counts of a run.
Table figuresOf(const Json &run) {
  Table table{"figures", {"figure", "value"}, {}};
  const std::set<std::string_view> elsewhere{"clocks", "seconds"};
  for (const auto &[name, value] : run.items())
    if (value.is_number() && !elsewhere.count(name))
      table.add({name, value.is_number_float() ? Json(number(value.get<double>())) : value});
  return table;
}

/// Without what only fills whole blocks; of devices that tell.
std::string usefulOf(const Json &run) {
  if (!partOf(run, "useful_peak_share").is_number())
    return "";
  const double padding = numberOf(run, "padding_macs"), repeated = numberOf(run, "repeated_macs"),
               done = std::max(numberOf(run, "model_macs") + padding + repeated, 1.0);
  return percent(numberOf(run, "useful_peak_share")) + " of peak; " + percent(padding / done) +
         " of its MACs are padding" + (repeated > 0 ? ", " + percent(repeated / done) + " done before by another" : "");
}

std::string runSection(const std::string &title, const Json &run, double clockHz) {
  std::string body =
      utilisationBars(run) + rooflines(run, clockHz) + tableHtml(traffic(run), 4) + tableHtml(figuresOf(run), 4);
  if (Table tasks = tasksOf(run, clockHz); !tasks.rows.empty())
    body += tableHtml(tasks, 4);
  return heading(3, title) + body;
}

std::string reportSection(const std::string &file, const Json &report) {
  double clockHz = numberOf(report, "clock_hz");
  std::string html = heading(2, "report " + file + ": " + textOf(report, "machine") + ", run " +
                                    std::to_string(wholeOf(report, "runs")) + " of the session");
  Table table{"programs",
              {"program", "clocks", "us", "bound by", "MAC array", "useful", "joules", "host bytes in",
               "host bytes out", "host us"},
              {}};
  std::string sections;
  auto add = [&](const Json &kernel, const char *program) {
    const Json &run = partOf(kernel, program);
    if (!run.is_object())
      return;
    std::string name = std::string(program) + " of '" + textOf(kernel, "kernel") + "'";
    table.add({name, partOf(run, "clocks"), number(1e6 * numberOf(run, "seconds")), textOf(run, "bound"),
               shareOfPeak(run), usefulOf(run), numberOf(partOf(run, "energy_joules"), "total"),
               partOf(kernel, "host_bytes_in"), partOf(kernel, "host_bytes_out"),
               number(1e6 * numberOf(kernel, "host_link_seconds"))});
    sections += runSection(name, run, clockHz);
  };
  for (const Json &kernel : partOf(report, "first"))
    add(kernel, "init");
  for (const Json &kernel : partOf(report, "last"))
    add(kernel, "main");
  return html + tableHtml(table, 3) + sections;
}

// --- files --------------------------------------------------------------------

Error unreadable(const std::string &file, const std::string &why) {
  return ioError("cannot read '" + file + "': " + why);
}

/// Names of all kernels that a file speaks of.
std::set<std::string> kernelsOf(const Json &json) {
  std::set<std::string> names;
  for (const char *run : {"first", "last"})
    for (const Json &kernel : partOf(json, run))
      names.insert(textOf(kernel, "kernel"));
  for (const Json &event : partOf(json, "traceEvents"))
    names.insert(textOf(partOf(event, "args"), "kernel"));
  names.erase("");
  return names;
}

/// A file of another bundle would tell about other code.
Status checkKernels(const Bundle &bundle, const std::string &file, const Json &json) {
  std::set<std::string> known;
  for (const GraphDesc &graph : bundle.graphs().graphs)
    for (const TaskDesc &task : graph.tasks)
      known.insert(task.kernel);
  for (const std::string &name : kernelsOf(json))
    if (!known.count(name))
      return usageError("--report " + file + ": it is of kernel '" + name + "', which '" + bundle.path() +
                        "' does not have");
  return Status::ok();
}

} // namespace

Result<std::string> reportSections(const Bundle &bundle, const std::vector<std::string> &files) {
  std::string html;
  for (const std::string &file : files) {
    auto mapped = MappedFile::open(file);
    if (!mapped)
      return mapped.takeError();
    std::span<const std::byte> bytes = (*mapped)->bytes();
    std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    if (!jsonDepthIsBounded(text))
      return unreadable(file, "its brackets are nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded())
      return unreadable(file, "it is not JSON");
    if (partOf(json, "kind") == "dmxc tune" && partOf(json, "regions").is_array()) {
      html += heading(2, "what tuning found: " + file) + tuningSection(json);
      continue;
    }
    bool isTrace = partOf(json, "traceEvents").is_array();
    if (!isTrace && !partOf(json, "last").is_array())
      return unreadable(file, "it is neither a report nor a trace of a device");
    if (Status done = checkKernels(bundle, file, json); !done)
      return done.takeError();
    html += isTrace ? heading(2, "timeline of " + file) + timelineSection(json) : reportSection(file, json);
  }
  return html;
}

} // namespace dmxc::tools
