//===- main.cpp - compiles, runs and compares ONNX test cases -------------===//
//
// Every case runs in a child process of its own: a crash or a hang is counted and named, and the others go on. What
// the options mean is in `help` below.
//
//===----------------------------------------------------------------------===//
#include "Case.h"
#include "Tolerances.h"
#include "tests/Sample.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fnmatch.h>
#include <fstream>
#include <iostream>
#include <map>
#include <signal.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace dmxc::conformance;

namespace {

/// Cases of the ONNX 1.12 package whose own data is wrong; later releases of
/// ONNX have repaired them. Left out by
/// --without-1.12-defects, and said so.
constexpr std::pair<const char *, const char *> defects112[] = {
    {"test_cast_FLOAT_to_BFLOAT16", "the expected values are truncated to bf16; Cast rounds to nearest even"},
    {"test_castlike_BFLOAT16_to_FLOAT", "'like' has rank 1 in the data and rank 2 in the model"},
    {"test_castlike_BFLOAT16_to_FLOAT_expanded", "'like' has rank 1 in the data and rank 2 in the model"},
    {"test_castlike_FLOAT_to_BFLOAT16", "'like' has rank 1 in the data and rank 2 in the model"},
    {"test_castlike_FLOAT_to_BFLOAT16_expanded", "'like' has rank 1 in the data and rank 2 in the model"},
};

struct Settings {
  bool withoutDefects = false;
  std::string folder, csv, only;
  std::map<std::string, Tolerance> tolerances; ///< by case, where they are not `check`'s
  std::map<std::string, double> minPass;       ///< percent by class; "" is all cases
  bool allPass = false;
  unsigned jobs = 1, timeout = 120, sample = 1;
  CheckOptions check;
};

struct Running {
  size_t index;
  int pipe;
  std::chrono::steady_clock::time_point deadline;
  std::string text;
};

/// "outcome\nnode\nreason" through a pipe.
void writeVerdict(int fd, const Verdict &verdict) {
  std::string reason = verdict.reason, node = verdict.node;
  for (std::string *text : {&reason, &node})
    for (char &c : *text)
      if (c == '\n')
        c = ' ';
  std::string text = std::string(outcomeName(verdict.outcome)) + "\n" + node + "\n" + reason.substr(0, 2000) + "\n";
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    _exit(3);
}

Verdict readVerdict(const std::string &text, int status) {
  std::istringstream lines(text);
  std::string outcome, node, reason;
  std::getline(lines, outcome);
  std::getline(lines, node);
  std::getline(lines, reason);
  if (WIFSIGNALED(status))
    return {Outcome::Crash, "",
            std::string(WTERMSIG(status) == SIGKILL ? "timeout or killed" : strsignal(WTERMSIG(status)))};
  for (Outcome known : {Outcome::Pass, Outcome::Refused, Outcome::Wrong, Outcome::Crash})
    if (outcome == outcomeName(known))
      return {known, node, reason};
  return {Outcome::Crash, "", "the case ended without a verdict, exit code " + std::to_string(WEXITSTATUS(status))};
}

class Runner {
public:
  Runner(const Settings &settings, std::vector<Case> cases)
      : settings(settings), cases(std::move(cases)), verdicts(this->cases.size()) {}

  void run() {
    size_t next = 0;
    while (next < cases.size() || !running.empty()) {
      while (next < cases.size() && running.size() < settings.jobs)
        start(next++);
      collect();
    }
  }

  const std::vector<Verdict> &results() const { return verdicts; }

private:
  void start(size_t index) {
    int ends[2];
    if (pipe(ends) != 0) {
      std::perror("pipe");
      std::exit(1);
    }
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      CheckOptions check = settings.check;
      if (auto own = settings.tolerances.find(cases[index].name); own != settings.tolerances.end()) {
        check.rtol = own->second.rtol;
        check.atol = own->second.atol;
      }
      writeVerdict(ends[1], checkCase(cases[index], check));
      _exit(0);
    }
    close(ends[1]);
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(settings.timeout);
    running[child] = {index, ends[0], deadline, ""};
  }

  /// Waits for one child to end; verdicts are short enough for the pipe's
  /// buffer, so nobody blocks.
  void collect() {
    int status = 0;
    pid_t child = waitpid(-1, &status, WNOHANG);
    if (child <= 0) {
      for (auto &[pid, state] : running)
        if (std::chrono::steady_clock::now() > state.deadline)
          kill(pid, SIGKILL);
      usleep(2000);
      return;
    }
    auto found = running.find(child);
    if (found == running.end())
      return;
    char buffer[4096];
    for (ssize_t size; (size = read(found->second.pipe, buffer, sizeof buffer)) > 0;)
      found->second.text.append(buffer, size);
    close(found->second.pipe);
    size_t index = found->second.index;
    verdicts[index] = readVerdict(found->second.text, status);
    running.erase(found);
    if (verdicts[index].outcome == Outcome::Wrong || verdicts[index].outcome == Outcome::Crash)
      if (!settings.check.perturb)
        std::cout << outcomeName(verdicts[index].outcome) << " " << cases[index].name << ": " << verdicts[index].reason
                  << std::endl;
    if (++done % 100 == 0)
      std::cout << done << " of " << cases.size() << " cases" << std::endl;
  }

  const Settings &settings;
  std::vector<Case> cases;
  std::vector<Verdict> verdicts;
  std::map<pid_t, Running> running;
  size_t done = 0;
};

bool matchesOnly(const std::string &only, const std::string &name) {
  if (only.empty())
    return true;
  std::istringstream globs(only);
  for (std::string glob; std::getline(globs, glob, ',');)
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0)
      return true;
  return false;
}

std::string quoted(const std::string &text) {
  std::string out = "\"";
  for (char c : text)
    out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

void writeCsv(const std::string &path, const std::vector<Case> &cases, const std::vector<Verdict> &verdicts) {
  std::ofstream csv(path);
  csv << "case,op,result,node,reason\n";
  for (size_t i = 0; i < cases.size(); ++i)
    csv << cases[i].name << "," << opOf(cases[i]) << "," << outcomeName(verdicts[i].outcome) << ","
        << quoted(verdicts[i].node) << "," << quoted(verdicts[i].reason) << "\n";
  if (!csv.flush())
    std::cerr << "cannot write " << path << "\n";
}

using Counts = std::map<Outcome, size_t>;

void printRow(const std::string &name, Counts &counts) {
  std::printf("%-28s %6zu %8zu %6zu %6zu\n", name.c_str(), counts[Outcome::Pass], counts[Outcome::Refused],
              counts[Outcome::Wrong], counts[Outcome::Crash]);
}

Counts printTable(const std::vector<Case> &cases, const std::vector<Verdict> &verdicts) {
  std::map<std::string, Counts> byOp;
  Counts total;
  for (size_t i = 0; i < cases.size(); ++i) {
    ++byOp[opOf(cases[i])][verdicts[i].outcome];
    ++total[verdicts[i].outcome];
  }
  std::printf("%-28s %6s %8s %6s %6s\n", "op", "pass", "refused", "wrong", "crash");
  for (auto &[op, counts] : byOp)
    printRow(op, counts);
  printRow("total", total);
  return total;
}

/// What a sample may lack of the percentage that is asked of all cases: three standard deviations of its share.
double slack(const Settings &settings, double percent, size_t count) {
  if (settings.sample == 1 || count == 0)
    return 0;
  return 3 * std::sqrt(percent * (100 - percent) / static_cast<double>(count));
}

/// Prints what passes of each class and of all; whether that is as much as is asked for.
bool judgeShares(const Settings &settings, const std::vector<Case> &cases, const std::vector<Verdict> &verdicts) {
  struct Share {
    size_t pass = 0, count = 0;
  };
  std::map<std::string, Share> shares;
  for (auto [name, percent] : settings.minPass) // a class without a case fails
    shares[name];
  for (size_t i = 0; i < cases.size(); ++i) {
    auto known = settings.tolerances.find(cases[i].name);
    for (const std::string &name : {std::string(), known == settings.tolerances.end() ? "" : known->second.group}) {
      Share &share = shares[name];
      ++share.count;
      share.pass += verdicts[i].outcome == Outcome::Pass;
      if (known == settings.tolerances.end() || known->second.group.empty())
        break;
    }
  }
  bool good = true;
  for (auto [name, share] : shares) {
    double percent = share.count ? 100.0 * share.pass / share.count : 0;
    auto bar = settings.minPass.find(name);
    bool enough = bar == settings.minPass.end() || percent >= bar->second - slack(settings, bar->second, share.count);
    std::printf("%zu of %zu %s%scases pass (%.1f %%)%s\n", share.pass, share.count, name.c_str(),
                name.empty() ? "" : " ", percent, enough ? "" : ": TOO FEW");
    good &= enough;
  }
  return good;
}

int judge(const Settings &settings, Counts total, const std::vector<Case> &cases,
          const std::vector<Verdict> &verdicts) {
  bool enough = judgeShares(settings, cases, verdicts);
  if (settings.check.perturb) {
    bool good = total[Outcome::Pass] == 0 && total[Outcome::Crash] == 0 && total[Outcome::Wrong] > 0;
    std::printf("negative control: changed expectations were %s\n", good ? "all found" : "MISSED");
    return good ? 0 : 1;
  }
  bool good = total[Outcome::Wrong] + total[Outcome::Crash] == 0 && enough && !cases.empty();
  for (const Verdict &verdict : verdicts)
    if (settings.allPass && verdict.outcome == Outcome::Refused) {
      std::printf("refused: node '%s': %s\n", verdict.node.c_str(), verdict.reason.c_str());
      good = false;
    }
  return good ? 0 : 1;
}

constexpr const char *help =
    R"(usage: conformance FOLDER [options]

Compiles, runs and compares every ONNX case (a folder with model.onnx and data sets) below FOLDER. Exit 0 when nothing
is wrong or crashed and enough cases pass; 77 (skipped) when FOLDER is not there; 2 for wrong usage; else 1.

  --only GLOB,..            cases whose names match
  --transform KIND          changes each model first; the expected outputs stay
      dynamic               every dim that inputs, outputs and value_info declare has neither number nor name
      dynamic-named         each of them has a name of its own
      constant              every input is a constant with its value in data set 0 (the only set that is compared)
  --dims open               dims that a model leaves open stay open: one bundle for all its data sets (default: data, where
                            the compiler refuses them, each set's shapes fix them)
  --rtol R --atol A         how near results must come (1e-3, 1e-7)
  --tolerances CSV          those of single cases, in columns case, rtol and atol, and their class
  --min-pass [CLASS=]PCT    at least so many percent must pass, of all cases or of one class; repeatable
  --all-pass                a refused case is a failure too
  --guard                   every data set also with each operand beside inaccessible pages (cpu.guard=end and start, 1 and
                            2 threads), to find kernels that leave them
  --levels LEVEL,..         compile for these levels of x86-64; of those that this machine has, --guard runs each
  --target TARGET           another target than the CPU, on which every op must run, else the case is refused
  --perturb                 negative control: expectations are changed, and no case may pass
  --without-1.12-defects    leaves out the cases of ONNX 1.12 whose data is known to be wrong
  --csv FILE                writes case, op, result, node and reason
  --sample N                one of N cases, others in each run (tests/Sample.h); DMXC_LONG=1: all
  --jobs N --timeout S      cases at a time (1), seconds a case (120)
  --scratch DIR             where bundles and changed models are written
)";

int usage() {
  std::cerr << help;
  return 2;
}

/// "PCT" or "CLASS=PCT".
void setMinPass(Settings &settings, const std::string &value) {
  size_t equals = value.find('=');
  bool ofClass = equals != std::string::npos;
  settings.minPass[ofClass ? value.substr(0, equals) : ""] = std::stod(ofClass ? value.substr(equals + 1) : value);
}

/// Of a list, and says which are left out.
std::vector<std::string> runnableLevels(const std::string &list) {
  std::vector<std::string> levels;
  std::istringstream names(list);
  for (std::string name; std::getline(names, name, ',');) {
    bool runs = name == "x86-64-v4" ? __builtin_cpu_supports("x86-64-v4") : __builtin_cpu_supports("x86-64-v3");
    if (runs || name == "x86-64-v2")
      levels.push_back(name);
    else
      std::cout << "left out: " << name << ": this machine does not run it\n";
  }
  return levels;
}

bool parse(int argc, char **argv, Settings &settings) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--without-1.12-defects") {
      settings.withoutDefects = true;
      continue;
    }
    if (argument == "--perturb" || argument == "--all-pass") {
      (argument == "--perturb" ? settings.check.perturb : settings.allPass) = true;
      continue;
    }
    if (argument == "--guard") {
      settings.check.guard = true;
      continue;
    }
    if (argument.rfind("--", 0) != 0) {
      settings.folder = argument;
      continue;
    }
    if (i + 1 == argc)
      return false;
    std::string value = argv[++i];
    if (argument == "--only")
      settings.only = value;
    else if (argument == "--levels")
      settings.check.levels = runnableLevels(value);
    else if (argument == "--target")
      settings.check.target = value;
    else if (argument == "--csv")
      settings.csv = value;
    else if (argument == "--transform") {
      if (!transformFromName(value, settings.check.transform))
        return false;
    } else if (argument == "--dims") {
      if (value != "open" && value != "data")
        return false;
      settings.check.dims = value == "open" ? OpenDims::Open : OpenDims::Fixed;
    } else if (argument == "--tolerances")
      settings.tolerances = readTolerances(value);
    else if (argument == "--scratch")
      settings.check.scratch = value;
    else if (argument == "--min-pass")
      setMinPass(settings, value);
    else if (argument == "--rtol")
      settings.check.rtol = std::stod(value);
    else if (argument == "--atol")
      settings.check.atol = std::stod(value);
    else if (argument == "--sample")
      settings.sample = std::stoul(value);
    else if (argument == "--jobs")
      settings.jobs = std::stoul(value);
    else if (argument == "--timeout")
      settings.timeout = std::stoul(value);
    else
      return false;
  }
  return !settings.folder.empty() && settings.jobs > 0 && settings.sample > 0;
}

/// Those of a folder that the options name.
std::vector<Case> chosenCases(Settings &settings) {
  std::vector<Case> cases;
  for (Case &found : findCases(settings.folder))
    if (matchesOnly(settings.only, found.name))
      cases.push_back(std::move(found));
  if (settings.withoutDefects)
    for (auto [name, reason] : defects112)
      if (std::erase_if(cases, [name = name](const Case &c) { return c.name == name; }))
        std::cout << "left out: " << name << ": " << reason << "\n";
  if (settings.sample > 1) {
    dmxc::sampling::Sample sample(settings.sample);
    std::erase_if(cases, [&](const Case &c) { return !sample.takes(c.name); });
    settings.sample = sample.whole() ? 1 : settings.sample;
  }
  return cases;
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  settings.check.scratch = std::filesystem::temp_directory_path();
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::cout << help;
    return 0;
  }
  if (!parse(argc, argv, settings))
    return usage();
  if (!std::filesystem::is_directory(settings.folder)) {
    std::cout << "SKIPPED: " << settings.folder << " is not there\n";
    return 77;
  }
  std::filesystem::create_directories(settings.check.scratch);
  std::vector<Case> cases = chosenCases(settings);
  Runner runner(settings, cases);
  runner.run();
  Counts total = printTable(cases, runner.results());
  if (!settings.csv.empty())
    writeCsv(settings.csv, cases, runner.results());
  return judge(settings, total, cases, runner.results());
}
