//===- Answer.cpp - what was generated, and how fast ----------------------===//
#include "Answer.h"

#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>

namespace dmxc::tools {

using Json = nlohmann::ordered_json;

void Pace::add(const Pace &other) {
  tokens += other.tokens;
  runs += other.runs;
  cacheBytes += other.cacheBytes;
  ms += other.ms;
}

namespace {

const char *nameOf(Ending ending) {
  switch (ending) {
  case Ending::Stop:
    return "stop";
  case Ending::Length:
    return "length";
  case Ending::Context:
    return "context";
  case Ending::Interrupted:
    return "interrupted";
  }
  return "";
}

/// All weights once a run, and the caches as they were read and written.
double gigabytesPerSecond(const GenerateReport &report, const Pace &pace) {
  const double bytes = static_cast<double>(report.info.constant_bytes * pace.runs + pace.cacheBytes);
  return pace.ms > 0 ? bytes / 1e6 / pace.ms : 0;
}

Pace total(const GenerateReport &report, Pace Answer::*part) {
  Pace sum;
  for (const Answer &answer : report.answers)
    sum.add(answer.*part);
  return sum;
}

Json paceJson(const GenerateReport &report, const Pace &pace) {
  return {{"tokens", pace.tokens},
          {"runs", pace.runs},
          {"ms", pace.ms},
          {"tokens_per_s", pace.perSecond()},
          {"gb_per_s", gigabytesPerSecond(report, pace)}};
}

void printPace(const char *name, const GenerateReport &report, const Pace &pace, std::ostream &out) {
  out << name << std::setw(7) << pace.tokens << " tokens in " << pace.runs << (pace.runs == 1 ? " run, " : " runs, ")
      << std::fixed << std::setprecision(1) << pace.perSecond() << " tokens/s, " << gigabytesPerSecond(report, pace)
      << " GB/s";
  if (pace.runs)
    out << " (caches " << static_cast<double>(pace.cacheBytes) / 1e6 / static_cast<double>(pace.runs) << " MB a run)";
  out << "\n";
}

} // namespace

void printFigures(const GenerateReport &report, std::ostream &out) {
  out << "weights " << std::fixed << std::setprecision(1) << static_cast<double>(report.info.constant_bytes) / 1e6
      << " MB, " << report.info.threads << (report.info.threads == 1 ? " thread" : " threads") << " on "
      << report.info.target << " " << report.info.isa << "\n";
  printPace("prefill", report, total(report, &Answer::prefill), out);
  printPace("decode ", report, total(report, &Answer::decode), out);
}

std::string jsonOf(const GenerateReport &report) {
  Json answers = Json::array();
  for (const Answer &answer : report.answers) {
    Json row = {{"prompt", answer.prompt}, {"ids", answer.ids}, {"ending", nameOf(answer.ending)}};
    if (report.isSampled)
      row["seed"] = answer.seed;
    row["prefill"] = paceJson(report, answer.prefill);
    row["decode"] = paceJson(report, answer.decode);
    answers.push_back(std::move(row));
  }
  Json root = {{"bundle", report.bundle},
               {"target", report.info.target},
               {"isa", report.info.isa},
               {"threads", report.info.threads},
               {"load_ms", report.loadMs},
               {"session_ms", report.sessionMs},
               {"constant_bytes", report.info.constant_bytes},
               {"prefill", paceJson(report, total(report, &Answer::prefill))},
               {"decode", paceJson(report, total(report, &Answer::decode))},
               {"answers", std::move(answers)}};
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace dmxc::tools
