//===- TextOutput.cpp - text files that are never half written ------------===//
#include "TextOutput.h"

#include "dmxc/Support/OutputFile.h"

#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace dmxc::driver {

Status writeText(const std::string &path, std::string_view text) {
  if (path != "-")
    return writeFile(path, text, Durability::Disk);
  ByteFile output(Descriptor(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)), "standard output", /*isStream=*/true);
  if (Status done = output.write(text); !done)
    return done;
  return output.close(/*durable=*/false);
}

Status makeFolder(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path))
    return ioError("cannot make the folder '" + path + "': " + (error ? error.message() : "something else is there"));
  return Status::ok();
}

static std::string makeQuoted(const std::string &path) {
  std::string text;
  for (char c : path) {
    if (c == ' ' || c == '#')
      text += '\\';
    else if (c == '$')
      text += '$';
    text += c;
  }
  return text;
}

std::string dependencyRule(const std::string &target, const std::vector<std::string> &inputs) {
  std::string text = makeQuoted(target) + ":";
  for (const std::string &input : inputs)
    text += " \\\n  " + makeQuoted(input);
  text += "\n";
  for (const std::string &input : inputs)
    text += "\n" + makeQuoted(input) + ":\n";
  return text;
}

} // namespace dmxc::driver
