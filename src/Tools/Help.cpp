//===- Help.cpp - --help, in lines that fit -------------------------------===//
#include "HelpRows.h"

#include "dmx/dmx.h"
#include "dmxc/Tools/CommandLine.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dmxc::tools {

namespace {

/// Where the text of an option begins.
constexpr size_t kColumn = 28;
/// Narrower terminals get lines of the least width, wider ones none that eyes lose.
constexpr size_t kLeastWidth = 40, kMostWidth = 120, kUsualWidth = 80;
constexpr const char *const kForms[] = {"man", "bash", "zsh", "fish"};

/// Pieces of at most `width`, cut behind a '|' or ',' where there is one, for words that no line has room for.
std::vector<std::string> pieces(std::string word, size_t width) {
  std::vector<std::string> out;
  while (word.size() > width) {
    size_t cut = word.find_last_of("|,/=", width - 1);
    cut = cut == std::string::npos || cut == 0 ? width : cut + 1;
    out.push_back(word.substr(0, cut));
    word.erase(0, cut);
  }
  out.push_back(word);
  return out;
}

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (end > at)
      words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// Lines of at most a width; `line` is begun, further ones are set in by `indent`. `broken` ends a line that goes on.
class Filler {
public:
  Filler(size_t width, size_t indent, std::string begun = "", const char *broken = "")
      : width(width - std::strlen(broken)), indent(indent), broken(broken), line(std::move(begun)) {
    if (line.empty())
      line.assign(indent, ' ');
  }

  void add(std::string_view text) {
    for (const std::string &word : wordsOf(text))
      for (const std::string &piece : pieces(word, width - indent))
        addWord(piece);
  }
  std::string end() {
    if (line.find_first_not_of(' ') != std::string::npos)
      out += line + "\n";
    return out;
  }

private:
  void addWord(const std::string &word) {
    bool begun = line.find_first_not_of(' ') != std::string::npos;
    size_t gap = begun && line.back() != ' ' ? 1 : 0;
    if (begun && line.size() + gap + word.size() > width) {
      out += line + broken + "\n";
      line.assign(indent, ' ');
      gap = 0;
    }
    line.append(gap, ' ').append(word);
  }

  size_t width, indent;
  const char *broken;
  std::string line, out;
};

std::string filled(std::string_view text, size_t width, size_t indent) {
  Filler filler(width, indent);
  filler.add(text);
  return filler.end();
}

/// "  name   what": what stands in its column, or below a name that reaches into it.
std::string explained(const std::string &name, const std::string &what, size_t column, size_t width) {
  column = std::min(column, width / 2);
  Filler head(width, 6, "  ");
  head.add(name);
  std::string text = head.end();
  if (what.empty())
    return text;
  if (text.size() + 1 > column) // the line's end is no column: two spaces are between
    return text + filled(what, width, column);
  text.pop_back();
  text.resize(column, ' ');
  Filler body(width, column, text);
  body.add(what);
  return body.end();
}

/// Commands, to be pasted: a line that goes on ends with a backslash. What they do is beside them where all fits.
std::string examplesText(const std::vector<Explained> &examples, size_t width) {
  auto fits = [&](const Explained &e, size_t column) {
    return e.name.size() + 4 <= column && column + e.what.size() <= width;
  };
  size_t column = 0;
  for (const Explained &example : examples)
    if (size_t own = example.name.size() + 4; fits(example, own))
      column = std::max(column, own);
  std::string text;
  for (const Explained &example : examples) {
    Filler command(width, 6, "  ", " \\");
    command.add(example.name);
    std::string lines = command.end();
    if (!example.what.empty() && fits(example, column)) {
      lines.pop_back();
      lines.resize(column, ' ');
      text += lines + example.what + "\n";
    } else {
      text += lines + (example.what.empty() ? "" : filled(example.what, width, 6));
    }
  }
  return text;
}

std::string paragraphs(const std::string &text, size_t width) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("\n\n", at), text.size());
    out += (out.empty() ? "" : "\n") + filled(std::string_view(text).substr(at, end - at), width, 0);
    at = end + 2;
  }
  return out;
}

std::string optionsText(const std::vector<HelpRow> &rows, size_t width) {
  std::string text, group;
  for (const HelpRow &row : rows) {
    if (row.positional)
      continue;
    if (row.group != group)
      text += "\n" + row.group + ":\n";
    group = row.group;
    std::string name;
    for (const std::string &spelling : row.names)
      name += (name.empty() ? "" : ",") + spelling;
    text += explained(name + (row.value.empty() ? "" : " " + shownValue(row)), row.help, kColumn, width);
  }
  return text;
}

/// All rows of one group side by side, groups in the order of their first.
void sortByGroup(std::vector<HelpRow> &rows) {
  std::vector<std::string> groups;
  for (const HelpRow &row : rows)
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end())
      groups.push_back(row.group);
  auto place = [&](const HelpRow &row) { return std::find(groups.begin(), groups.end(), row.group) - groups.begin(); };
  std::stable_sort(rows.begin(), rows.end(), [&](const HelpRow &a, const HelpRow &b) { return place(a) < place(b); });
}

/// app.help() by a page.
class PageFormatter : public CLI::FormatterBase {
public:
  explicit PageFormatter(HelpPage page) : page(std::move(page)) {}
  std::string make_help(const CLI::App *app, std::string, CLI::AppFormatMode) const override {
    size_t width = helpWidth();
    std::string text = filled(app->get_description(), width, 0) + "\nUsage:\n";
    for (const std::string &line : page.usage) {
      Filler usage(width, 6, "  ");
      usage.add(app->get_name() + " " + line);
      text += usage.end();
    }
    text += "\nExamples:\n" + examplesText(page.examples, width);
    if (!page.more.empty())
      text += "\n" + paragraphs(page.more, width);
    text += optionsText(helpRows(*app, page), width);
    return text + "\n" + filled("Exit codes: " + page.exitCodes, width, 0);
  }

  HelpPage page;
};

const HelpPage &pageOf(const CLI::App &app) { return static_cast<const PageFormatter &>(*app.get_formatter()).page; }

std::vector<std::string> topicNames(const HelpPage &page) {
  std::vector<std::string> names;
  for (const HelpTopic &topic : page.topics)
    names.push_back(topic.name);
  return names;
}

std::string topicText(const HelpTopic &topic, size_t width) {
  std::string text = filled(topic.title, width, 0) + "\n" + paragraphs(topic.text, width);
  for (const Explained &row : topic.rows)
    text += "\n" + explained(row.name, row.what, 18, width);
  if (!topic.examples.empty())
    text += "\nExamples:\n" + examplesText(topic.examples, width);
  return text;
}

Result<std::string> textFor(const CLI::App &app, const std::string &what) {
  const HelpPage &page = pageOf(app);
  HelpSubject subject{app.get_name(), app.get_description(), dmx_version_string(), page, helpRows(app, page)};
  if (what.empty())
    return app.help();
  if (what == "man")
    return manPage(subject);
  if (what == "bash")
    return bashCompletion(subject);
  if (what == "zsh")
    return zshCompletion(subject);
  if (what == "fish")
    return fishCompletion(subject);
  for (const HelpTopic &topic : page.topics)
    if (topic.name == what)
      return topicText(topic, helpWidth());
  std::vector<std::string> known = topicNames(page);
  known.insert(known.end(), std::begin(kForms), std::end(kForms));
  std::string list;
  for (const std::string &name : known)
    list += (list.empty() ? "" : ", ") + name;
  return usageError("--help has no topic '" + what + "'" + didYouMean(what, known) + "; it has " + list);
}

} // namespace

size_t helpWidth() {
  size_t columns = 0;
  if (const char *given = std::getenv("COLUMNS"))
    std::from_chars(given, given + std::strlen(given), columns);
  winsize size{};
  if (columns == 0 && isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    columns = size.ws_col;
  return columns == 0 ? kUsualWidth : std::clamp(columns, kLeastWidth, kMostWidth);
}

std::string shownValue(const HelpRow &row) {
  return row.value + (row.given.empty() ? "" : " (default " + row.given + ")");
}

std::vector<HelpRow> helpRows(const CLI::App &app, const HelpPage &page) {
  std::vector<HelpRow> rows;
  for (const CLI::Option *option : app.get_options()) {
    HelpRow row;
    row.positional = option->get_positional();
    for (const std::string &name : option->get_snames())
      row.names.push_back("-" + name);
    for (const std::string &name : option->get_lnames())
      row.names.push_back((page.singleDash.count(name) ? "-" : "--") + name);
    if (row.positional)
      row.names = {option->get_name()};
    if (option->get_expected_max() != 0 && option->get_type_size() != 0) {
      std::string type = option->get_type_name(); // with the names of validators behind a colon
      size_t end = type.find(':');
      while (end != std::string::npos && end > 0 && type[end - 1] == '[') // the colon of NAME[:LEVEL] is its own
        end = type.find(':', end + 1);
      row.value = type.substr(0, end);
      row.given = option->get_default_str();
    }
    row.help = option->get_description();
    row.group = option->get_group();
    row.repeatable = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    if (option == app.get_help_ptr() && !page.topics.empty()) {
      row.value = "[TOPIC]";
      row.optionalValue = true;
    }
    rows.push_back(row);
  }
  sortByGroup(rows);
  return rows;
}

HelpValue helpValue(const HelpRow &row, const HelpPage &page) {
  for (const std::string &name : row.names)
    if (auto found = page.values.find(name); found != page.values.end())
      return {HelpValue::Words, found->second};
  if (row.value.empty())
    return {};
  auto has = [&](const char *word) { return row.value.find(word) != std::string::npos; };
  if (row.value.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos && has("|")) {
    HelpValue value{HelpValue::Words, {}};
    for (size_t at = 0; at <= row.value.size();) {
      size_t end = std::min(row.value.find('|', at), row.value.size());
      value.words.push_back(row.value.substr(at, end - at));
      at = end + 1;
    }
    return value;
  }
  if (row.value == "DIR")
    return {HelpValue::Folders, {}};
  if (row.positional || (!has("=") && (has("FILE") || has("PATH") || has("KEY") || has("OUT") || has("BUNDLE"))))
    return {HelpValue::Files, {}};
  return {HelpValue::Any, {}};
}

void setHelp(CLI::App &app, HelpPage page, const std::string &group) {
  std::string text = "Print this text", topics;
  for (const HelpTopic &topic : page.topics)
    topics += (topics.empty() ? "" : ", ") + topic.name;
  if (!topics.empty())
    text += ", or more of a TOPIC: " + topics;
  text += "; with =man, =bash, =zsh or =fish the man page or a shell's completion";
  if (!topics.empty())
    page.values["--help"] = topicNames(page);
  app.formatter(std::make_shared<PageFormatter>(std::move(page)));
  app.set_help_flag(""); // options are listed in the order in which they were added
  app.set_help_flag("-h,--help", text)->group(group);
}

Result<std::optional<std::string>> helpAskedFor(const CLI::App &app, const std::vector<std::string> &arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    std::string what;
    if (arguments[i].rfind("--help=", 0) == 0) {
      what = arguments[i].substr(std::strlen("--help="));
    } else if (arguments[i] != "-h" && arguments[i] != "--help") {
      continue;
    } else if (!pageOf(app).topics.empty() && i + 1 < arguments.size() && arguments[i + 1].rfind('-', 0) != 0) {
      what = arguments[i + 1];
    }
    Result<std::string> text = textFor(app, what);
    if (!text)
      return text.takeError();
    return std::optional<std::string>(std::move(*text));
  }
  return std::optional<std::string>();
}

} // namespace dmxc::tools
