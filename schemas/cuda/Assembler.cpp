//===- Assembler.cpp - what NVIDIA's assembler says of kernels ----------------===//
#include "Assembler.h"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace dmx::cuda {
namespace {

/// A file with a text, gone with the object.
class TemporaryFile {
public:
  explicit TemporaryFile(std::string_view text) {
    std::error_code none;
    std::string form = (std::filesystem::temp_directory_path(none) / "dmx-ptx-XXXXXX").string();
    descriptor = mkostemp(form.data(), O_CLOEXEC);
    if (descriptor < 0)
      return;
    path = form;
    while (!text.empty()) {
      ssize_t written = write(descriptor, text.data(), text.size());
      if (written <= 0)
        return;
      text.remove_prefix(static_cast<size_t>(written));
    }
    isWhole = true;
  }
  ~TemporaryFile() {
    if (descriptor >= 0)
      close(descriptor);
    if (!path.empty())
      unlink(path.c_str());
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  int descriptor = -1;
  std::string path;
  bool isWhole = false;
};

/// What ptxas says of a file; "" where it cannot be run.
std::string assemble(const std::string &path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return {};
  std::string words[] = {"ptxas", "-arch=sm_90a", "-v", path, "-o", "/dev/null"};
  char *arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                       words[4].data(), words[5].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int failed = posix_spawnp(&child, "ptxas", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string said;
  char room[4096];
  for (ssize_t got = 0; !failed && (got = read(ends[0], room, sizeof room)) > 0;)
    said.append(room, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  if (failed || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return {};
  return said;
}

} // namespace

std::string resourcesOf(std::string_view code, const std::string &kernel) {
  TemporaryFile file(code);
  if (!file.isWhole)
    return {};
  // "... Compiling entry function 'k' for 'sm_90a'", lines of it, "ptxas info    : Used 32 registers, ..."
  std::string said = assemble(file.path);
  size_t at = said.find("entry function '" + kernel + "'"), used = said.find("Used ", std::min(at, said.size()));
  if (at == said.npos || used == said.npos)
    return {};
  return said.substr(used, said.find('\n', used) - used);
}

} // namespace dmx::cuda
