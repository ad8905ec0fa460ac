//===- HelpFormats.cpp - man pages and completion of shells ---------------===//
#include "HelpRows.h"

#include <algorithm>

namespace dmxc::tools {

namespace {

std::string joined(const std::vector<std::string> &words, const char *between) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : between) + word;
  return text;
}

//===--- roff -----------------------------------------------------------------===//

/// Text that roff takes as it is.
std::string roff(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool starts = out.empty() || out.back() == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if ((c == '.' || c == '\'') && starts)
      out += std::string("\\&") + c;
    else
      out += c;
  }
  return out;
}

std::string bold(const std::string &text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(const std::string &text) { return "\\fI" + roff(text) + "\\fR"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// A list of terms and what they are.
std::string terms(const std::vector<Explained> &rows) {
  std::string text;
  for (const Explained &row : rows)
    text += ".TP\n" + bold(row.name) + "\n" + roff(row.what) + "\n";
  return text;
}

std::string manParagraphs(const std::string &text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("\n\n", at), text.size());
    out += (out.empty() ? "" : ".PP\n") + roff(text.substr(at, end - at)) + "\n";
    at = end + 2;
  }
  return out;
}

std::string manOptions(const HelpSubject &subject) {
  std::string text = ".SH OPTIONS\n", group;
  for (const HelpRow &row : subject.rows) {
    if (row.positional)
      continue;
    if (row.group != group)
      text += ".SS " + roff(row.group) + "\n";
    group = row.group;
    std::string names;
    for (const std::string &name : row.names)
      names += (names.empty() ? "" : ", ") + bold(name);
    text += ".TP\n" + names + (row.value.empty() ? "" : " " + italic(row.value)) + "\n" + roff(row.help) +
            (row.given.empty() ? "" : " (default " + roff(row.given) + ")") + "\n";
  }
  return text;
}

std::string manPositionals(const HelpSubject &subject) {
  std::vector<Explained> rows;
  for (const HelpRow &row : subject.rows)
    if (row.positional)
      rows.push_back({upper(row.names.front()), row.help});
  return terms(rows);
}

//===--- shells ---------------------------------------------------------------===//

/// Within single quotes of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text)
    out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string functionName(const std::string &program) {
  std::string name = "_" + program;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string bashOffer(const HelpValue &value) {
  switch (value.kind) {
  case HelpValue::Files:
    return "compgen -f -- \"$word\"";
  case HelpValue::Folders:
    return "compgen -d -- \"$word\"";
  case HelpValue::Words:
    return "compgen -W " + quoted(joined(value.words, " ")) + " -- \"$word\"";
  default:
    return ":";
  }
}

/// A text in the brackets of an _arguments of zsh.
std::string zshText(std::string_view text) {
  std::string out;
  for (char c : text)
    out += (c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + std::string(1, c);
  return out;
}

std::string zshAction(const HelpRow &row, const HelpValue &value) {
  std::string head = std::string(row.optionalValue ? "::" : ":") + zshText(row.value) + ":";
  switch (value.kind) {
  case HelpValue::None:
    return "";
  case HelpValue::Files:
    return head + "_files";
  case HelpValue::Folders:
    return head + "_files -/";
  case HelpValue::Words:
    return head + "(" + joined(value.words, " ") + ")";
  case HelpValue::Any:
    return head + " ";
  }
  return "";
}

std::string fishValue(const HelpRow &row, const HelpValue &value) {
  switch (value.kind) {
  case HelpValue::None:
    return "";
  case HelpValue::Files:
    return " -r -F";
  case HelpValue::Folders:
    return " -x -a '(__fish_complete_directories)'";
  case HelpValue::Words:
    return (row.optionalValue ? " -f -a " : " -x -a ") + quoted(joined(value.words, " "));
  case HelpValue::Any:
    return " -x";
  }
  return "";
}

std::vector<std::string> namesOf(const std::vector<Explained> &rows) {
  std::vector<std::string> names;
  for (const Explained &row : rows)
    names.push_back(row.name);
  return names;
}

} // namespace

std::string manPage(const HelpSubject &subject) {
  const HelpPage &page = subject.page;
  std::string name = subject.program;
  std::string sentence = subject.description.substr(0, subject.description.find(". "));
  if (!sentence.empty() && sentence.back() == '.')
    sentence.pop_back();
  std::string text = ".TH " + upper(roff(name)) + " 1 \"\" \"dmxc " + subject.version + "\" \"User Commands\"\n";
  text += ".SH NAME\n" + roff(name) + " \\- " + roff(sentence) + "\n.SH SYNOPSIS\n";
  for (const std::string &line : page.usage)
    text += std::string(&line == &page.usage.front() ? "" : ".br\n") + bold(name) + " " + roff(line) + "\n";
  text += ".SH DESCRIPTION\n" + roff(subject.description) + "\n" +
          (page.more.empty() ? "" : ".PP\n" + manParagraphs(page.more)) + manPositionals(subject) +
          terms(page.commands) + manOptions(subject);
  for (const HelpTopic &topic : page.topics) {
    text += ".SH " + upper(topic.name) + "\n" + roff(topic.title) + "\n.PP\n" + manParagraphs(topic.text) +
            terms(topic.rows);
    if (!topic.examples.empty())
      text += ".PP\nExamples:\n" + terms(topic.examples);
  }
  text += ".SH EXAMPLES\n" + terms(page.examples) + ".SH EXIT STATUS\n" + roff(page.exitCodes) + "\n.SH SEE ALSO\n";
  std::string others;
  for (const char *other : {"dmxc", "dmx-run", "dmx-generate", "dmx-inspect", "dmx-sign", "dmx-compare"})
    if (name != other)
      others += (others.empty() ? "" : ", ") + bold(other) + "(1)";
  return text + others + "\n";
}

std::string bashCompletion(const HelpSubject &subject) {
  std::string function = functionName(subject.program), flags, values;
  HelpValue first{HelpValue::Files, {}};
  for (const HelpRow &row : subject.rows) {
    if (row.positional)
      continue;
    flags += (flags.empty() ? "" : " ") + joined(row.names, " ");
    if (!row.value.empty())
      values += "  " + joined(row.names, "|") + ") mapfile -t COMPREPLY < <(" +
                bashOffer(helpValue(row, subject.page)) + "); return ;;\n";
  }
  std::string commands = subject.page.commands.empty()
                             ? ""
                             : "  [ \"$COMP_CWORD\" = 1 ] && COMPREPLY+=($(compgen -W " +
                                   quoted(joined(namesOf(subject.page.commands), " ")) + " -- \"$word\"))\n";
  return "# Completion of " + subject.program + " for bash; " + subject.program + " --help=bash writes it.\n" +
         function +
         "() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  # readline takes --option=value for three words\n"
         "  if [ \"$word\" = = ]; then word=\"\"\n"
         "  elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  case $before in\n" +
         values +
         "  esac\n"
         "  if [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W " +
         quoted(flags) +
         " -- \"$word\")\n    return\n  fi\n"
         "  mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n" +
         commands + "}\ncomplete -o filenames -F " + function + " " + subject.program + "\n";
}

std::string zshCompletion(const HelpSubject &subject) {
  std::string text = "#compdef " + subject.program + "\n# " + subject.program + " --help=zsh writes it.\n_arguments";
  for (const HelpRow &row : subject.rows) {
    std::string action = zshAction(row, helpValue(row, subject.page));
    if (row.positional)
      continue;
    for (const std::string &name : row.names) {
      bool takes = !row.value.empty() && !row.optionalValue;
      // A value may follow --name after '=' or a space, and -n at once.
      std::string spec = name + (!takes ? "" : name.rfind("--", 0) == 0 ? "=" : "+") + "[" + zshText(row.help) + "]";
      std::string others = row.repeatable ? "*" : "(" + joined(row.names, " ") + ")";
      text += " \\\n  " + quoted(others + spec + action);
    }
  }
  if (!subject.page.commands.empty())
    text += " \\\n  " + quoted("1:command or file:{_alternative 'commands:command:(" +
                               joined(namesOf(subject.page.commands), " ") + ")' 'files:file:_files'}");
  return text + " \\\n  '*:file:_files'\n";
}

std::string fishCompletion(const HelpSubject &subject) {
  std::string text =
      "# Completion of " + subject.program + " for fish; " + subject.program + " --help=fish writes it.\n";
  std::string complete = "complete -c " + subject.program;
  for (const Explained &command : subject.page.commands)
    text += complete + " -n __fish_is_first_arg -a " + quoted(command.name) + " -d " + quoted(command.what) + "\n";
  for (const HelpRow &row : subject.rows) {
    if (row.positional)
      continue;
    text += complete;
    for (const std::string &name : row.names) {
      bool twoDashes = name.rfind("--", 0) == 0;
      text += twoDashes ? " -l " + name.substr(2) : (name.size() == 2 ? " -s " : " -o ") + name.substr(1);
    }
    text += fishValue(row, helpValue(row, subject.page)) + " -d " + quoted(row.help) + "\n";
  }
  return text;
}

} // namespace dmxc::tools
