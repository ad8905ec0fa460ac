//===- Schedule.cpp - a possible order of a program -----------------------===//

#include "Schedule.h"

#include <algorithm>
#include <deque>
#include <map>

namespace dmx::corsair {
namespace {

/// More than any program has that people look at.
constexpr uint64_t kMostExecuted = 4'000'000;

bool ordersQueues(Opcode opcode) {
  switch (opcode) {
  case Opcode::Signal:
  case Opcode::Wait:
  case Opcode::SignalRemote:
  case Opcode::WaitRemote:
  case Opcode::Barrier:
  case Opcode::Send:
  case Opcode::Recv:
    return true;
  default:
    return false;
  }
}

/// Instructions of engines; the others take no step.
bool takesStep(const Instruction &in) { return in.info().group >= Group::Move; }

/// What is known of a stream before it runs.
struct Layout {
  std::vector<uint32_t> match; ///< LOOP: its ENDLOOP
  std::vector<bool> plain;     ///< LOOP: nothing in it orders queues
};

Layout layoutOf(const Code &code) {
  Layout out{std::vector<uint32_t>(code.instructions.size()), std::vector<bool>(code.instructions.size(), true)};
  std::vector<uint32_t> open;
  for (uint32_t i = 0; i < code.instructions.size(); ++i) {
    Opcode opcode = code.instructions[i].opcode;
    if (opcode == Opcode::Loop) {
      open.push_back(i);
    } else if (opcode == Opcode::EndLoop) {
      out.match[open.back()] = i;
      open.pop_back();
    } else if (ordersQueues(opcode)) {
      for (uint32_t loop : open)
        out.plain[loop] = false;
    }
  }
  return out;
}

struct Queue {
  struct Frame {
    uint32_t begin;
    int64_t trips, counter;
  };
  uint32_t launch = 0, number = 0;
  const Code *code = nullptr;
  const Layout *layout = nullptr;
  uint32_t position = 0, time = 0; ///< steps done so far
  std::vector<Frame> frames;
  bool arrived = false; ///< at the barrier it stands at
  bool done = false;
};

/// Runs the control instructions of all queues.
class Runner {
public:
  Runner(const Image &image, const Kernel &kernel, const Program &program);
  std::optional<Schedule> run();

private:
  /// How many became available at which step, oldest first.
  using Tokens = std::deque<std::pair<uint32_t, uint64_t>>;
  struct Meeting {
    std::vector<Queue *> arrived;
    uint32_t time = 0;
  };

  const Image &image;
  const Program &program;
  std::map<uint32_t, Layout> layouts;
  std::vector<Queue> queues;
  std::vector<std::array<int64_t, kRegisters>> registers; ///< by launch
  Schedule schedule;
  std::map<std::array<uint32_t, 3>, Tokens> tokens; ///< sender, receiver, token; local ones have one quad twice
  std::map<std::array<uint32_t, 2>, Tokens> mail;   ///< sender, receiver: at most one
  std::map<std::array<uint32_t, 3>, Meeting> meetings;
  uint64_t executed = 0;

  uint32_t quadOf(const Queue &queue) const { return program.launches[queue.launch].quad; }
  int64_t value(const Queue &queue, const Operand &operand) const;
  int64_t value(const Queue &queue, const Instruction &in, std::string_view field) const {
    return value(queue, in.operands[static_cast<size_t>(in.info().field(field))]);
  }
  void signal(const Queue &queue, uint32_t from, uint32_t to, const Instruction &in);
  bool wait(Queue &queue, uint32_t from, uint32_t to, const Instruction &in);
  bool meet(Queue &queue, const Instruction &in);
  bool exchange(Queue &queue, const Instruction &in);
  bool order(Queue &queue, const Instruction &in);
  void enterLoop(Queue &queue, const Instruction &in);
  bool step(Queue &queue);
};

Runner::Runner(const Image &image, const Kernel &kernel, const Program &program) : image(image), program(program) {
  for (uint32_t i = 0; i < program.launches.size(); ++i) {
    const Launch &launch = program.launches[i];
    registers.emplace_back();
    for (int reg = 0; reg < kRegisters; ++reg) // what the host sets: taken as one trip
      registers.back()[reg] = fixedRegister(image, kernel, launch, reg).value_or(1);
    schedule.of.emplace_back();
    for (uint32_t number = 0; number < 4; ++number) {
      uint32_t stream = launch.streams[number];
      if (stream == kNoStream)
        continue;
      const Code &code = image.streams[stream];
      auto [layout, fresh] = layouts.try_emplace(stream);
      if (fresh)
        layout->second = layoutOf(code);
      schedule.of.back()[number].resize(code.instructions.size());
      Queue queue;
      queue.launch = i;
      queue.number = number;
      queue.code = &code;
      queue.layout = &layout->second;
      queues.push_back(std::move(queue));
    }
  }
}

int64_t Runner::value(const Queue &queue, const Operand &operand) const {
  // Wraps instead of overflowing: such a program has no sense anyway.
  auto sum = static_cast<uint64_t>(operand.base);
  for (const Term &term : operand.terms) {
    int64_t source = quadOf(queue);
    if (term.source < kTermRegister)
      source = term.source < queue.frames.size() ? queue.frames[term.source].counter : 0;
    else if (term.source < kTermQuad)
      source = registers[queue.launch][term.source - kTermRegister];
    sum += static_cast<uint64_t>(term.scale) * static_cast<uint64_t>(source);
  }
  return static_cast<int64_t>(sum);
}

void Runner::signal(const Queue &queue, uint32_t from, uint32_t to, const Instruction &in) {
  Tokens &have = tokens[{from, to, static_cast<uint32_t>(in.get("id"))}];
  have.push_back({queue.time, static_cast<uint64_t>(in.get("n"))});
}

bool Runner::wait(Queue &queue, uint32_t from, uint32_t to, const Instruction &in) {
  Tokens &have = tokens[{from, to, static_cast<uint32_t>(in.get("id"))}];
  auto wanted = static_cast<uint64_t>(in.get("n")), there = uint64_t(0);
  for (size_t i = 0; i < have.size() && there < wanted; ++i)
    there += have[i].second;
  if (there < wanted)
    return false;
  while (wanted) {
    auto &[time, count] = have.front();
    uint64_t taken = std::min(wanted, count);
    queue.time = std::max(queue.time, time);
    wanted -= taken;
    count -= taken;
    if (!count)
      have.pop_front();
  }
  return true;
}

bool Runner::meet(Queue &queue, const Instruction &in) {
  if (queue.arrived) // the last to come clears this
    return false;
  auto scope = static_cast<Scope>(in.get("scope"));
  auto quads = static_cast<uint32_t>(image.machine.quads);
  auto domainOf = [&](const Queue &one) {
    return scope == Scope::Card ? 0 : scope == Scope::Chiplet ? quadOf(one) / quads : quadOf(one);
  };
  uint32_t domain = domainOf(queue);
  std::array<uint32_t, 3> key{static_cast<uint32_t>(scope), domain, static_cast<uint32_t>(in.get("id"))};
  Meeting &meeting = meetings[key];
  queue.arrived = true;
  meeting.arrived.push_back(&queue);
  meeting.time = std::max(meeting.time, queue.time);
  auto expected = std::count_if(queues.begin(), queues.end(), [&](const Queue &one) {
    return domainOf(one) == domain && (in.get("queues") >> one.number & 1);
  });
  if (static_cast<ptrdiff_t>(meeting.arrived.size()) < expected)
    return false;
  for (Queue *one : meeting.arrived) {
    one->time = meeting.time;
    one->arrived = false;
    one->position += one != &queue; // this one's caller goes on
  }
  meetings.erase(key);
  return true;
}

bool Runner::exchange(Queue &queue, const Instruction &in) {
  auto other = static_cast<uint32_t>(value(queue, in, "quad"));
  bool sends = in.opcode == Opcode::Send;
  Tokens &box = mail[sends ? std::array{quadOf(queue), other} : std::array{other, quadOf(queue)}];
  if (box.empty() != sends)
    return false;
  if (sends) {
    box.push_back({queue.time, 1});
  } else {
    queue.time = std::max(queue.time, box.front().first);
    box.pop_front();
  }
  return true;
}

/// False while the queue must wait.
bool Runner::order(Queue &queue, const Instruction &in) {
  uint32_t own = quadOf(queue);
  switch (in.opcode) {
  case Opcode::Signal:
    signal(queue, own, own, in);
    return true;
  case Opcode::Wait:
    return wait(queue, own, own, in);
  case Opcode::SignalRemote: {
    int64_t mask = value(queue, in, "quads");
    // Its own quad has local tokens for itself: the place of remote ones is beside them.
    for (uint32_t peer = 0; peer < 32; ++peer)
      if (mask >> peer & 1)
        signal(queue, own + 64, peer, in);
    return true;
  }
  case Opcode::WaitRemote:
    return wait(queue, static_cast<uint32_t>(value(queue, in, "quad")) + 64, own, in);
  case Opcode::Barrier:
    return meet(queue, in);
  default:
    return exchange(queue, in);
  }
}

void Runner::enterLoop(Queue &queue, const Instruction &in) {
  uint32_t end = queue.layout->match[queue.position];
  int64_t trips = value(queue, in.operands[0]);
  if (trips <= 0) {
    queue.position = end + 1;
    return;
  }
  if (!queue.layout->plain[queue.position]) {
    queue.frames.push_back({queue.position + 1, trips, 0});
    ++queue.position;
    return;
  }
  // Its instructions run again and again: each takes all of the loop's steps.
  uint32_t steps = 0;
  for (uint32_t i = queue.position; i < end; ++i)
    steps += takesStep(queue.code->instructions[i]);
  for (uint32_t i = queue.position; i <= end; ++i)
    schedule.of[queue.launch][queue.number][i].add(queue.time, queue.time + std::max(steps, 1u) - 1);
  executed += end - queue.position;
  queue.time += steps;
  queue.position = end + 1;
}

/// Executes an instruction; false when it has to wait for others.
bool Runner::step(Queue &queue) {
  const Instruction &in = queue.code->instructions[queue.position];
  ++executed;
  if (ordersQueues(in.opcode)) {
    if (!order(queue, in))
      return false;
    ++queue.position;
    return true;
  }
  if (in.opcode == Opcode::Loop) {
    enterLoop(queue, in);
    return true;
  }
  if (in.opcode == Opcode::EndLoop) {
    Queue::Frame &frame = queue.frames.back();
    if (++frame.counter < frame.trips) {
      queue.position = frame.begin;
    } else {
      queue.frames.pop_back();
      ++queue.position;
    }
    return true;
  }
  schedule.of[queue.launch][queue.number][queue.position].add(queue.time, queue.time);
  queue.time += takesStep(in);
  queue.done = in.opcode == Opcode::Halt;
  ++queue.position;
  return true;
}

std::optional<Schedule> Runner::run() {
  for (bool progress = true; progress;) {
    progress = false;
    for (Queue &queue : queues)
      while (!queue.done && executed < kMostExecuted && step(queue))
        progress = true;
  }
  for (const Queue &queue : queues) {
    if (!queue.done)
      return std::nullopt;
    schedule.steps = std::max(schedule.steps, queue.time);
  }
  return std::move(schedule);
}

bool writesRegister(const Image &image, const Instruction &in, int number) {
  if (in.opcode == Opcode::Recv)
    return number >= in.get("reg") && number < in.get("reg") + in.get("n");
  if (in.opcode != Opcode::ExecCpu)
    return false;
  const Code &function = image.functions[in.get("fn")];
  return std::any_of(function.instructions.begin(), function.instructions.end(), [&](const Instruction &line) {
    int field = line.opcode == Opcode::CpuSt ? -1 : line.info().field("rd");
    return field >= 0 && line.operands[field].base == number;
  });
}

} // namespace

std::optional<int64_t> fixedRegister(const Image &image, const Kernel &kernel, const Launch &launch, int number) {
  auto is = [&](uint32_t reg) { return reg == static_cast<uint32_t>(number); };
  if (std::any_of(kernel.dimRegisters.begin(), kernel.dimRegisters.end(), is))
    return std::nullopt;
  for (const Argument &argument : kernel.arguments)
    if (argument.role == Role::Scalar && is(argument.reg))
      return std::nullopt;
  for (uint32_t stream : launch.streams)
    if (stream != kNoStream)
      for (const Instruction &in : image.streams[stream].instructions)
        if (writesRegister(image, in, number))
          return std::nullopt;
  return launch.registers[number];
}

std::optional<Schedule> scheduleOf(const Image &image, const Kernel &kernel, const Program &program) {
  return Runner(image, kernel, program).run();
}

} // namespace dmx::corsair
