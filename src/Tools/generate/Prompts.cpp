//===- Prompts.cpp - token ids to begin with ------------------------------===//
#include "Prompts.h"
#include "Facts.h"
#include "Interrupt.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <random>
#include <unistd.h>

namespace dmxc::tools {

Status Prompts::open() {
  if (options.prompts.empty() && options.promptsFile.empty() && !options.randomPrompt)
    return usageError("no prompt was given; use --prompt IDS, --prompts FILE or --random-prompt N");
  if (options.promptsFile.empty())
    return Status::ok();
  const bool isStdin = options.promptsFile == "-";
  file = Descriptor(isStdin ? dup(STDIN_FILENO) : ::open(options.promptsFile.c_str(), O_RDONLY | O_CLOEXEC));
  if (file)
    return Status::ok();
  return ioError("cannot read '" + options.promptsFile + "': " + std::strerror(errno));
}

Result<std::vector<int64_t>> Prompts::checked(const std::string &text, const std::string &what) const {
  auto ids = idsOf(text, what);
  if (!ids)
    return ids;
  if (ids->empty())
    return usageError(what + ": there is no token id; a prompt has at least one, the model's first (bos) where it has "
                             "nothing to say");
  for (int64_t id : *ids)
    if (id < 0 || id >= vocabulary)
      return usageError(what + ": the token id " + std::to_string(id) + " is outside of the vocabulary, 0 to " +
                        std::to_string(vocabulary - 1) + "; the prompt is of another model's tokenizer");
  return ids;
}

Result<std::optional<std::string>> Prompts::nextLine() {
  for (;;) {
    if (size_t end = buffer.find('\n'); end != std::string::npos || (atEnd && !buffer.empty())) {
      std::string line = buffer.substr(0, end);
      buffer.erase(0, end == std::string::npos ? end : end + 1);
      return std::optional(line);
    }
    if (atEnd || InterruptWatch::caught())
      return std::optional<std::string>();
    char bytes[4096];
    ssize_t count = read(file.get(), bytes, sizeof bytes);
    if (count < 0 && errno != EINTR)
      return ioError("cannot read '" + options.promptsFile + "': " + std::strerror(errno));
    atEnd = count == 0;
    buffer.append(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  }
}

Result<std::optional<std::vector<int64_t>>> Prompts::next() {
  using Ids = std::optional<std::vector<int64_t>>;
  auto some = [](Result<std::vector<int64_t>> ids) -> Result<Ids> {
    return ids ? Result<Ids>(Ids(std::move(*ids))) : Result<Ids>(ids.takeError());
  };
  if (given < options.prompts.size())
    return some(checked(options.prompts[given++], "--prompt"));
  if (options.randomPrompt && !wasRandom) {
    wasRandom = true;
    std::mt19937_64 random(options.sampling.seed.value_or(0));
    std::vector<int64_t> ids(static_cast<size_t>(options.randomPrompt));
    for (int64_t &id : ids)
      id = static_cast<int64_t>(random() % static_cast<uint64_t>(vocabulary));
    return Ids(std::move(ids));
  }
  if (!file)
    return Ids();
  for (;;) {
    auto line = nextLine();
    if (!line)
      return line.takeError();
    if (!*line)
      return Ids();
    ++lines;
    if ((*line)->find_first_not_of(" \t\r") != std::string::npos)
      return some(checked(**line, options.promptsFile + ":" + std::to_string(lines)));
  }
}

} // namespace dmxc::tools
