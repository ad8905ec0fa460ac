//===- OptionValues.cpp - the texts that options take ---------------------===//
#include "OptionValues.h"

#include "dmxc/Driver/Registry.h"
#include "dmxc/Support/MappedFile.h"

#include "llvm/Support/Path.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <unistd.h>

namespace dmxc::driver {

std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string didYouMean(const std::string &text, const std::vector<std::string> &names) {
  std::string near = nearestName(text, names);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

std::string exampleOf(const std::string &target, const TargetHelp::Example &example) {
  return target + (example.levels.empty() ? "" : ":" + example.levels);
}

std::string exampleOf(const std::string &target) {
  for (const TargetHelp::Example &example : helpOf(target).examples)
    if (!example.levels.empty())
      return exampleOf(target, example);
  return target + ":LEVEL";
}

static std::optional<int64_t> parseInteger(std::string_view text) {
  int64_t value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

static std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

std::string targetOf(const std::string &name) {
  if (!findTarget(name))
    for (const std::string &target : targetNames())
      if (llvm::is_contained(helpOf(target).aliases, name))
        return target;
  return name;
}

/// Replaces what users call a target by its name.
static Status readTarget(std::string &name) {
  name = targetOf(name);
  if (findTarget(name))
    return Status::ok();
  return usageError("unknown target '" + name + "'; this build has: " + joined(targetNames()) +
                    didYouMean(name, targetNames()));
}

static std::string anyTarget() { return targetNames().empty() ? "TARGET" : targetNames().front(); }

Result<TargetChoice> parseTarget(const std::string &text) {
  size_t colon = text.find(':');
  TargetChoice choice{text.substr(0, colon), {}};
  if (Status known = readTarget(choice.name); !known)
    return known.takeError();
  if (colon != std::string::npos)
    for (std::string &level : split(text.substr(colon + 1), '+')) {
      if (level.empty())
        return usageError("--target " + text + ": a level is empty; expected for example " + exampleOf(choice.name));
      choice.levels.push_back(std::move(level));
    }
  return choice;
}

/// Splits at the last '=': names of tensors and nodes may hold one, values
/// never do.
static bool splitAssignment(const std::string &text, std::string &name, std::string &value) {
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return false;
  name = text.substr(0, equals);
  value = text.substr(equals + 1);
  return true;
}

Result<std::pair<std::string, std::optional<std::vector<int64_t>>>> parseShape(const std::string &text) {
  std::string name, value;
  Error bad = usageError("--shape " + text +
                         ": expected NAME=DIMxDIM.. with non-negative dims, "
                         "for example x=1x3x224x224 (or x=scalar; x=none for an optional without a value or an empty "
                         "sequence)");
  if (!splitAssignment(text, name, value))
    return bad;
  using Shape = std::optional<std::vector<int64_t>>;
  if (value == "none")
    return std::pair(name, Shape());
  std::vector<int64_t> dims;
  if (value != "scalar")
    for (const std::string &part : split(value, 'x')) {
      std::optional<int64_t> dim = parseInteger(part);
      if (!dim || *dim < 0)
        return bad;
      dims.push_back(*dim);
    }
  return std::pair(name, Shape(std::move(dims)));
}

Result<std::pair<std::string, DimBounds>> parseDim(const std::string &text) {
  std::string name, value;
  Error bad = usageError("--dim " + text +
                         ": expected NAME=SIZE or NAME=MIN..MAX, for example "
                         "batch=8 or seq=1..512");
  if (!splitAssignment(text, name, value))
    return bad;
  size_t dots = value.find("..");
  std::optional<int64_t> low = parseInteger(value.substr(0, dots));
  std::optional<int64_t> high = dots == std::string::npos ? low : parseInteger(value.substr(dots + 2));
  if (!low || !high || *low < 0)
    return bad;
  if (*high < *low)
    return usageError("--dim " + text + ": the lower bound is above the upper one");
  return std::pair(name, DimBounds{*low, *high});
}

Result<std::pair<std::string, std::string>> parseState(const std::string &text) {
  std::pair<std::string, std::string> state;
  if (!splitAssignment(text, state.first, state.second))
    return usageError("--state " + text + ": expected INPUT=OUTPUT, for example past=present; none stands alone");
  return state;
}

Result<std::pair<std::string, std::string>> parseUkernel(const std::string &text) {
  std::pair<std::string, std::string> use;
  if (!splitAssignment(text, use.first, use.second) || !llvm::is_contained({"on", "off", "auto"}, use.second))
    return usageError("--ukernels " + text + ": expected NAME=on, NAME=off or NAME=auto, for example acme.sgemm=on");
  return use;
}

Result<PlaceRule> parsePlace(const std::string &text) {
  PlaceRule rule;
  if (!splitAssignment(text, rule.glob, rule.target))
    return usageError("--place " + text + ": expected GLOB=TARGET, for example 'encoder/*=" + anyTarget() + "'");
  if (Status known = readTarget(rule.target); !known)
    return known.takeError();
  return rule;
}

Result<RequireTarget> parseRequire(const std::string &text) {
  size_t colon = text.find(':');
  RequireTarget require{text.substr(0, colon), 100};
  if (Status known = readTarget(require.target); !known)
    return known.takeError();
  if (colon != std::string::npos) {
    std::string number = text.substr(colon + 1);
    if (!number.empty() && number.back() == '%')
      number.pop_back();
    char *end = nullptr;
    require.percent = std::strtod(number.c_str(), &end);
    if (number.empty() || *end || !(require.percent >= 0 && require.percent <= 100))
      return usageError("--require-target " + text +
                        ": expected TARGET[:PERCENT] with a percentage from 0 "
                        "to 100, for example " +
                        require.target + ":95");
  }
  return require;
}

Result<std::pair<int64_t, int64_t>> parseTile(const std::string &text) {
  std::pair<int64_t, int64_t> tile;
  auto [rows, columns] = llvm::StringRef(text).split('x');
  constexpr int64_t most = 1 << 20;
  bool good = !rows.getAsInteger(10, tile.first) && !columns.getAsInteger(10, tile.second);
  if (!good || tile.first < 1 || tile.second < 1 || tile.first > most || tile.second > most)
    return usageError("--sparsity-tile " + text +
                      ": expected ROWSxCOLUMNS, numbers from 1 to 1048576, for example 64x128");
  return tile;
}

//===----------------------------------------------------------------------===//
// Commands that dmxc does not have
//===----------------------------------------------------------------------===//

/// What to type for `dmxc COMMAND MODEL`; "" where the command is none of these.
static std::string instead(llvm::StringRef command, const std::string &model) {
  bool compiled = llvm::StringRef(model).ends_with(".bundle");
  std::string bundle = shellWord(compiled ? model : llvm::sys::path::stem(model).str() + ".bundle");
  std::string compile = "dmxc " + shellWord(model) + " -o " + bundle;
  std::string first = compiled ? "" : compile + " && ";
  if (llvm::is_contained({"run", "exec", "infer", "predict"}, command))
    return "bundles are run by dmx-run: " + first + "dmx-run " + bundle + " --random-inputs 1";
  if (llvm::is_contained({"bench", "benchmark", "profile"}, command))
    return "bundles are measured by dmx-run: " + first + "dmx-run " + bundle + " --random-inputs 1 --benchmark";
  if (llvm::is_contained({"inspect", "show", "info", "list"}, command))
    return "dmx-inspect shows what is in a bundle: " + first + "dmx-inspect " + bundle;
  if (command == "compare")
    return "dmx-compare does that: dmx-compare " + shellWord(model) + " --inputs DIR";
  if (llvm::is_contained({"compile", "build", "convert", "export"}, command))
    return "dmxc compiles the model that it is given: " + compile;
  return command == "help" ? "type: dmxc --help" : command == "version" ? "type: dmxc --version" : "";
}

Status checkFirstArgument(const std::vector<std::string> &arguments) {
  if (arguments.empty() || access(arguments.front().c_str(), F_OK) == 0) // a model of that name
    return Status::ok();
  bool hasModel = arguments.size() > 1 && !arguments[1].empty() && arguments[1][0] != '-';
  std::string text = instead(arguments.front(), hasModel ? arguments[1] : "model.onnx");
  return text.empty() ? Status::ok() : usageError("there is no command '" + arguments.front() + "'; " + text);
}

//===----------------------------------------------------------------------===//
// Response files
//===----------------------------------------------------------------------===//

static Status tokenize(const std::string &path, const std::string &text, std::vector<std::string> &tokens) {
  std::string token;
  bool inToken = false, lineStart = true;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (!quote && lineStart && c == '#') {
      while (i < text.size() && text[i] != '\n')
        ++i;
      continue;
    }
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      token += text[++i];
      inToken = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        token += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inToken = true;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      if (inToken)
        tokens.push_back(std::move(token));
      token.clear();
      inToken = false;
    } else {
      token += c;
      inToken = true;
    }
    lineStart = c == '\n' || (lineStart && std::isspace(static_cast<unsigned char>(c)));
  }
  if (quote)
    return usageError("response file '" + path + "': a " + std::string(1, quote) + " quote is not closed");
  if (inToken)
    tokens.push_back(std::move(token));
  return Status::ok();
}

static Status expandInto(const std::vector<std::string> &arguments, std::vector<std::string> &stack,
                         std::vector<std::string> &out) {
  for (const std::string &argument : arguments) {
    if (argument.size() < 2 || argument[0] != '@') {
      out.push_back(argument);
      continue;
    }
    std::string path = argument.substr(1);
    if (std::find(stack.begin(), stack.end(), path) != stack.end())
      return usageError("response file '" + path + "' includes itself");
    auto file = MappedFile::open(path);
    if (!file)
      return ioError("response file: " + file.error().message);
    std::string text(reinterpret_cast<const char *>((*file)->bytes().data()), (*file)->bytes().size());
    std::vector<std::string> tokens;
    if (Status done = tokenize(path, text, tokens); !done)
      return done;
    stack.push_back(path);
    if (Status done = expandInto(tokens, stack, out); !done)
      return done;
    stack.pop_back();
  }
  return Status::ok();
}

Result<std::vector<std::string>> expandResponseFiles(const std::vector<std::string> &arguments) {
  std::vector<std::string> out, stack;
  if (Status done = expandInto(arguments, stack, out); !done)
    return done.takeError();
  return out;
}

Status convertKnobs(const std::vector<std::string> &texts, Options &options) {
  for (const std::string &text : texts) {
    size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
      return usageError("--set '" + text + "': expected NAME=VALUE, for example --set tile=8");
    std::string name = text.substr(0, equals);
    for (const auto &[before, value] : options.knobs)
      if (before == name)
        return usageError("the parameter '" + name + "' is set twice: --set " + name + "=" + value + ", --set " + text);
    options.knobs.emplace_back(name, text.substr(equals + 1));
  }
  if (!options.knobs.empty() && options.schedules.empty())
    return usageError("--set is for parameters of scripts; give one with --schedule");
  for (auto [given, flag] :
       {std::pair(!options.schedulePaths.empty(), "--schedule-path"), {!options.scheduleLog.empty(), "--schedule-log"}})
    if (given && options.schedules.empty())
      return usageError(std::string(flag) + " is for scripts; give one with --schedule");
  return Status::ok();
}

} // namespace dmxc::driver
