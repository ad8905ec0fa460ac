//===- Generate.cpp - what dmx-generate does ------------------------------===//
#include "dmxc/Tools/Generate.h"

#include "Answer.h"
#include "Guess.h"
#include "Interrupt.h"
#include "Prompts.h"
#include "Sampler.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Tools/CommandLine.h"

#include <algorithm>
#include <cmath>
#include <iostream>

namespace dmxc::tools {

namespace {

/// One execution of the tool.
class Generator {
public:
  Generator(const GenerateOptions &options, std::ostream &out)
      : options(options), out(out), isSilent(options.benchmark || options.jsonFile == "-") {}
  Status execute();

private:
  Status checkOptions() const;
  Status answerAll();
  Result<Answer> answer(std::vector<int64_t> prompt, uint64_t seed);
  Status start(Answer &answer);
  Status goOn(Answer &answer, Sampler &sampler);
  Result<bool> take(Answer &answer, int64_t id);
  Result<int64_t> choose(const Answer &answer, Sampler &sampler, int64_t back);
  Result<bool> step(Answer &answer, Sampler &sampler);
  Pace sinceLast(uint64_t tokens);
  Status report();
  void say(int64_t id, bool isFirst);

  const GenerateOptions &options;
  std::ostream &out;
  const bool isSilent; ///< no ids on stdout
  std::unique_ptr<Decoder> decoder;
  std::vector<int64_t> stopIds;
  Pace last; ///< the decoder's sums when they were last asked for
  GenerateReport figures;
};

Status Generator::checkOptions() const {
  for (auto [value, flag] : {std::pair(options.sampling.temperature, "--temperature"),
                             {options.sampling.topP, "--top-p"},
                             {options.sampling.repetitionPenalty, "--repetition-penalty"}})
    if (std::isnan(value)) // which ranges let through
      return usageError(std::string(flag) + " is no number");
  if (options.lookup && (options.sampling.temperature > 0 || options.sampling.repetitionPenalty != 1))
    return usageError("--lookup checks guesses against the best token: leave --temperature and --repetition-penalty "
                      "away");
  if (!options.sampling.temperature && (options.sampling.topK || options.sampling.topP < 1))
    return usageError("--top-k and --top-p choose among several tokens, and without --temperature the best one is "
                      "taken; give --temperature 1");
  if (options.ignoreStops && !options.stopIds.empty())
    return usageError("--stop and --ignore-stop contradict each other");
  return Status::ok();
}

Status Generator::execute() {
  if (Status done = checkOptions(); !done)
    return done;
  auto opened = Decoder::open(options);
  if (!opened)
    return opened.takeError();
  decoder = std::move(*opened);
  if (!options.quiet)
    if (Status done = noteMachine(decoder->session()); !done)
      return done;
  if (options.lookup && !decoder->checksGuesses())
    return usageError("--lookup: this bundle takes one token in a run, or cannot forget single ones; leave it away");
  if (decoder->recomputes() && !options.quiet)
    std::cerr << "dmx-generate: note: the bundle has no caches: each token computes all those before it again\n";
  if (!options.ignoreStops)
    stopIds = options.stopIds.empty() ? decoder->facts().stopIds : options.stopIds;
  Status done = answerAll();
  if (!done && figures.answers.empty())
    return done;
  Status reported = report(); // what was said until then, too
  return done ? reported : done;
}

Status Generator::answerAll() {
  const int64_t known = decoder->facts().vocabulary;
  Prompts prompts(options, known ? std::min(known, decoder->vocabulary()) : decoder->vocabulary());
  if (Status done = prompts.open(); !done)
    return done;
  const uint64_t seed = options.sampling.seed.value_or(std::random_device()());
  for (uint64_t i = 0; !InterruptWatch::caught() && out; ++i) {
    auto prompt = prompts.next();
    if (!prompt)
      return prompt.takeError();
    if (!*prompt)
      break;
    auto given = answer(std::move(**prompt), seed + i);
    if (!given)
      return given.takeError();
    figures.answers.push_back(std::move(*given));
  }
  return Status::ok();
}

Result<Answer> Generator::answer(std::vector<int64_t> prompt, uint64_t seed) {
  Answer answer;
  answer.prompt = std::move(prompt);
  answer.seed = seed;
  if (static_cast<int64_t>(answer.prompt.size()) > decoder->room())
    return usageError("the prompt has " + std::to_string(answer.prompt.size()) + " tokens, and this bundle takes " +
                      std::to_string(decoder->room()) +
                      " in all; give a shorter one, or compile the model for more (dmxc --dim)");
  if (Status done = start(answer); !done)
    return done.takeError();
  Sampler sampler(options.sampling, seed);
  Status done = goOn(answer, sampler);
  if (!isSilent)
    out << '\n' << std::flush;
  if (!done)
    return done.takeError();
  return answer;
}

/// What the decoder did since the last call.
Pace Generator::sinceLast(uint64_t tokens) {
  Pace now{0, decoder->runs(), decoder->cacheBytes(), decoder->milliseconds()};
  Pace since{tokens, now.runs - last.runs, now.cacheBytes - last.cacheBytes, now.ms - last.ms};
  last = now;
  return since;
}

Status Generator::start(Answer &answer) {
  if (Status done = decoder->truncate(0); !done)
    return done;
  if (Status done = decoder->append(answer.prompt, [] { return InterruptWatch::caught() != 0; }); !done)
    return done;
  answer.prefill = sinceLast(static_cast<uint64_t>(decoder->length()));
  return Status::ok();
}

Result<int64_t> Generator::choose(const Answer &answer, Sampler &sampler, int64_t back) {
  auto logits = decoder->logits(back);
  if (!logits)
    return logits.takeError();
  std::vector<int64_t> seen;
  if (options.sampling.repetitionPenalty != 1) {
    seen = answer.prompt;
    seen.insert(seen.end(), answer.ids.begin(), answer.ids.end());
  }
  if (std::optional<int64_t> id = sampler.next(*logits, seen))
    return *id;
  return modelError("after " + std::to_string(decoder->length()) +
                    " tokens no logit is a number: the model's weights or its numbers (dmxc --numerics) overflow");
}

void Generator::say(int64_t id, bool isFirst) {
  if (!isSilent)
    out << (isFirst ? "" : " ") << id << std::flush;
}

/// Takes a token that was chosen; false where it is the last.
Result<bool> Generator::take(Answer &answer, int64_t id) {
  if (std::find(stopIds.begin(), stopIds.end(), id) != stopIds.end()) {
    answer.ending = Ending::Stop;
    return false;
  }
  say(id, answer.ids.empty());
  answer.ids.push_back(id);
  answer.ending = Ending::Length;
  return static_cast<int64_t>(answer.ids.size()) < options.maxTokens && out;
}

/// The token behind those that are computed, and guesses that it confirms; false at the end.
Result<bool> Generator::step(Answer &answer, Sampler &sampler) {
  // Of the last run the first token was chosen before, what is behind it is guessed.
  std::vector<int64_t> guesses;
  if (options.lookup && !answer.ids.empty())
    guesses = guessed(answer.prompt, answer.ids, std::min(options.lookup, decoder->mostInOneRun() - 1));
  const int64_t left = decoder->room() - decoder->length();
  if (!answer.ids.empty()) {
    if (left < 1) {
      answer.ending = Ending::Context;
      return false;
    }
    guesses.resize(std::min<size_t>(guesses.size(), static_cast<size_t>(left - 1)));
    std::vector<int64_t> next = {answer.ids.back()};
    next.insert(next.end(), guesses.begin(), guesses.end());
    if (Status done = decoder->append(next); !done)
      return done.takeError();
  }
  const int64_t count = static_cast<int64_t>(guesses.size());
  for (int64_t i = 0; i <= count; ++i) {
    auto id = choose(answer, sampler, count - i);
    if (!id)
      return id.takeError();
    auto more = take(answer, *id);
    if (!more || !*more)
      return more;
    if (i == count || guesses[static_cast<size_t>(i)] == *id)
      continue;
    if (Status done = decoder->truncate(decoder->length() - (count - i)); !done)
      return done.takeError();
    break;
  }
  return true;
}

Status Generator::goOn(Answer &answer, Sampler &sampler) {
  bool more = options.maxTokens > 0;
  while (more && !InterruptWatch::caught()) {
    auto went = step(answer, sampler);
    if (!went)
      return went.takeError();
    more = *went;
  }
  if (more)
    answer.ending = Ending::Interrupted;
  answer.decode = sinceLast(std::max<uint64_t>(answer.ids.size(), 1) - 1);
  return Status::ok();
}

Status Generator::report() {
  auto info = decoder->session().info();
  if (!info)
    return info.takeError();
  figures.bundle = options.bundle;
  figures.info = *info;
  figures.loadMs = decoder->session().loadMs();
  figures.sessionMs = decoder->session().sessionMs();
  figures.isSampled = options.sampling.temperature > 0;
  if (options.benchmark)
    printFigures(figures, out);
  if (options.jsonFile == "-")
    out << jsonOf(figures);
  else if (!options.jsonFile.empty())
    return writeFile(options.jsonFile, jsonOf(figures));
  return Status::ok();
}

} // namespace

Result<int> generate(const GenerateOptions &options, std::ostream &out) {
  InterruptWatch watch;
  Status done = Generator(options, out).execute();
  if (!done)
    return done.takeError();
  return InterruptWatch::caught();
}

} // namespace dmxc::tools
