//===- Progress.cpp - what a tool does, said while it does it -------------===//
#include "dmxc/Tools/Progress.h"

#include "dmxc/Support/Visible.h"
#include "dmxc/Support/WorkCount.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <sys/ioctl.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace dmxc::tools {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kPause = 1900ms; ///< between lines; what a busy machine adds must not make it three seconds
constexpr auto kRedraw = 200ms; ///< on a terminal

std::mutex stderrMutex; ///< of what is written to stderr while a Progress lives
bool lineShown = false; ///< on a terminal

void put(std::string_view text) {
  while (!text.empty()) {
    ssize_t size = write(STDERR_FILENO, text.data(), text.size());
    if (size <= 0)
      return; // a full or closed stderr is no reason to stop
    text.remove_prefix(static_cast<size_t>(size));
  }
}

void clearLine() {
  if (lineShown)
    put("\r\033[K");
  lineShown = false;
}

/// Columns of the terminal; 80 where it does not say.
size_t terminalWidth() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/// Without what moves a cursor, and at most so many bytes, which are never fewer than columns.
std::string fitting(const std::string &line, size_t most) {
  std::string text = visible(line);
  if (text.size() > most) {
    while (most && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) // inside of a character
      --most;
    text.resize(most);
  }
  return text;
}

/// "3 of 40 kernels", "1.2 of 2.0 GiB"; "" where nothing is counted.
std::string countText(const WorkCount &work) {
  if (work.unit.empty())
    return "";
  if (work.unit != "bytes")
    return std::to_string(work.done) + " of " + std::to_string(work.total) + " " + work.unit;
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB"};
  double done = static_cast<double>(work.done), total = static_cast<double>(work.total);
  size_t unit = 0;
  for (; total >= 10240 && unit < 3; ++unit) {
    done /= 1024;
    total /= 1024;
  }
  char text[80];
  std::snprintf(text, sizeof text, "%.0f of %.0f %s", done, total, units[unit]);
  return text;
}

} // namespace

std::unique_lock<std::mutex> holdProgress() {
  std::unique_lock lock(stderrMutex);
  clearLine();
  return lock;
}

ProgressForm progressFormOfStderr() {
  const char *term = std::getenv("TERM");
  bool terminal = isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
  return terminal ? ProgressForm::Terminal : ProgressForm::Delayed;
}

struct Progress::Writer {
  Writer(ProgressForm form, size_t steps) : form(form), steps(steps), thread([this] { run(); }) {}
  ~Writer() {
    {
      std::lock_guard lock(stderrMutex);
      clearLine();
      ends = true;
    }
    wake.notify_all();
    thread.join();
  }

  void run() {
    std::unique_lock lock(stderrMutex);
    auto next = start + kPause;
    while (!ends) {
      if (form == ProgressForm::Terminal) {
        wake.wait_for(lock, kRedraw, [&] { return ends; });
        if (!ends && Clock::now() - start > 300ms) // what is done at once needs no line
          trySay([&] { draw(); });
      } else if (!wake.wait_until(lock, next, [&] { return ends; })) {
        trySay([&] { sayLine(); });
        next = Clock::now() + kPause;
      }
    }
  }

  /// A lack of memory is for whoever does the work to say.
  template <typename Say> static void trySay(Say say) {
    try {
      say();
    } catch (const std::bad_alloc &) {
      return;
    }
  }

  std::string line() const {
    if (name.empty())
      return "";
    WorkCount work = currentWork();
    std::string text = steps ? "[" + std::to_string(number) + "/" + std::to_string(steps) + "] " : "";
    text += name;
    std::string count = countText(work), what = work.running.empty() ? (count.empty() ? summary : "") : work.running;
    for (const std::string &part : {count, what})
      if (!part.empty())
        text += (text.size() > name.size() && &part == &what && !count.empty() ? ", " : ": ") + part;
    return text + " (" +
           std::to_string(std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count()) + " s)";
  }

  void sayLine() {
    std::string text = fitting(line(), 400);
    if (text.empty() || text == last)
      return;
    last = text;
    said = true;
    put(text + "\n");
  }

  void draw() {
    std::string text = fitting(line(), terminalWidth() - 1);
    if (text.empty())
      return;
    put((lineShown ? "\r\033[K" : "\r") + text);
    lineShown = said = true;
  }

  /// The count of what just ended, where it was shown on its way.
  void sayEnd() {
    if (!said || currentWork().unit.empty())
      return;
    noteWork("");
    form == ProgressForm::Terminal ? draw() : sayLine();
  }

  const ProgressForm form;
  const size_t steps;
  const Clock::time_point start = Clock::now();
  size_t number = 0;
  std::string name, summary, last;
  bool said = false, ends = false;
  std::condition_variable wake;
  std::thread thread; // last: it reads the others
};

Progress::Progress(ProgressForm form, size_t steps) {
  beginWork();
  if (form == ProgressForm::None)
    return;
  try {
    writer = std::make_unique<Writer>(form, steps);
  } catch (const std::system_error &) {
    writer = nullptr; // no thread to be had; what is to be done may need none
  }
}

Progress::~Progress() = default;

void Progress::step(const std::string &name, const std::string &summary) {
  if (!writer) {
    beginWork();
    return;
  }
  std::lock_guard lock(stderrMutex);
  writer->sayEnd();
  beginWork();
  ++writer->number;
  writer->name = name;
  writer->summary = summary;
  if (writer->form == ProgressForm::Plain)
    put("[" + std::to_string(writer->number) + "/" + std::to_string(writer->steps) + "] " + name + ": " +
        fitting(summary, 300) + "\n");
}

void Progress::finish() {
  if (!writer)
    return;
  {
    std::lock_guard lock(stderrMutex);
    writer->sayEnd();
  }
  writer.reset();
}

} // namespace dmxc::tools
