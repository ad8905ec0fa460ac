//===- ImageDiff.cpp - what differs between two images --------------------===//

#include "ImageDiff.h"
#include "Assembler.h"

#include <algorithm>
#include <cstdio>

namespace dmx::corsair {
namespace {

std::string hex(uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

/// Without the indentation and the last line's end.
std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

class Differ {
public:
  Differ(const Image &a, const Image &b) : a(a), b(b) {}
  std::vector<ImageDifference> run();

private:
  const Image &a, &b;
  std::vector<ImageDifference> found;

  void add(const char *what, const std::string &name, const std::string &left, const std::string &right) {
    if (left != right)
      found.push_back({what, name, left, right});
  }
  void machines();
  void codes(const char *what, const std::vector<Code> &left, const std::vector<Code> &right);
  void code(const char *what, const Code &left, const Code &right);
  void kernels();
  void kernel(const Kernel &left, const Kernel &right);
  void arguments(const Kernel &left, const Kernel &right);
  void program(const std::string &name, const Program &left, const Program &right);
};

void Differ::machines() {
  auto text = [](const Machine &machine) { return machine.name + ", fingerprint " + hex(machine.fingerprint()); };
  add("machine", "name", text(a.machine), text(b.machine));
  if (found.empty() && a.machine.source != b.machine.source)
    add("machine", "description", "this text", "the same figures in another text");
}

void Differ::code(const char *what, const Code &left, const Code &right) {
  size_t count = std::max(left.instructions.size(), right.instructions.size()), differing = 0, first = 0;
  auto line = [](const Code &code, size_t at, const Image &image) {
    return at < code.instructions.size() ? textOf(code.instructions[at], &image).line() : std::string("(ended)");
  };
  for (size_t i = 0; i < count; ++i)
    if (line(left, i, a) != line(right, i, b) && ++differing == 1)
      first = i;
  if (!differing)
    return;
  add(what, left.name + " at " + std::to_string(first), line(left, first, a), line(right, first, b));
  auto size = [](const Code &code) { return std::to_string(code.instructions.size()) + " instructions"; };
  add(what, left.name, size(left), size(right));
}

/// Things with names, in the order of the first list and then what only the second has.
template <typename T, typename Same, typename Describe>
void byName(const std::vector<T> &left, const std::vector<T> &right, Same same, Describe describe) {
  auto find = [](const std::vector<T> &list, const std::string &name) {
    return std::find_if(list.begin(), list.end(), [&](const T &item) { return item.name == name; });
  };
  for (const T &item : left)
    if (auto other = find(right, item.name); other != right.end())
      same(item, *other);
    else
      describe(item, true);
  for (const T &item : right)
    if (find(left, item.name) == left.end())
      describe(item, false);
}

void Differ::codes(const char *what, const std::vector<Code> &left, const std::vector<Code> &right) {
  byName(
      left, right, [&](const Code &x, const Code &y) { code(what, x, y); },
      [&](const Code &only, bool inFirst) {
        std::string size = std::to_string(only.instructions.size()) + " instructions";
        add(what, only.name, inFirst ? size : "", inFirst ? "" : size);
      });
}

/// By position: that is how a dispatch's buffers reach them.
void Differ::arguments(const Kernel &left, const Kernel &right) {
  auto text = [](const Kernel &kernel, size_t i) {
    return i < kernel.arguments.size() ? trimmed(print(kernel.arguments[i])) : std::string();
  };
  for (size_t i = 0; i < std::max(left.arguments.size(), right.arguments.size()); ++i)
    add("kernel", left.name + " argument " + std::to_string(i), text(left, i), text(right, i));
}

void Differ::program(const std::string &name, const Program &left, const Program &right) {
  auto text = [](const Program &program, uint32_t quad, const Image &image) {
    for (const Launch &launch : program.launches)
      if (launch.quad == quad)
        return trimmed(print(launch, image));
    return std::string();
  };
  for (uint32_t quad = 0; quad < static_cast<uint32_t>(std::max(a.machine.quadCount(), b.machine.quadCount())); ++quad)
    add("kernel", name + " on quad " + std::to_string(quad), text(left, quad, a), text(right, quad, b));
}

void Differ::kernel(const Kernel &left, const Kernel &right) {
  for (int i = 0; i < kMemories; ++i)
    add("kernel", left.name + " footprint " + std::string(nameOf(static_cast<Memory>(i))), hex(left.footprint.bytes[i]),
        hex(right.footprint.bytes[i]));
  add("kernel", left.name + " repeated MACs", std::to_string(left.repeatedMacs), std::to_string(right.repeatedMacs));
  arguments(left, right);
  auto dims = [](const Kernel &kernel) {
    std::string text;
    for (uint32_t reg : kernel.dimRegisters)
      text += (text.empty() ? "" : ", ") + (reg == kNoRegister ? "none" : "R" + std::to_string(reg));
    return text;
  };
  add("kernel", left.name + " dims", dims(left), dims(right));
  program(left.name + " init", left.init, right.init);
  program(left.name + " main", left.main, right.main);
}

void Differ::kernels() {
  byName(
      a.kernels, b.kernels, [&](const Kernel &x, const Kernel &y) { kernel(x, y); },
      [&](const Kernel &only, bool inFirst) {
        std::string size = std::to_string(only.arguments.size()) + " arguments, " +
                           std::to_string(only.main.launches.size()) + " quads";
        add("kernel", only.name, inFirst ? size : "", inFirst ? "" : size);
      });
}

std::vector<ImageDifference> Differ::run() {
  machines();
  codes("function", a.functions, b.functions);
  codes("stream", a.streams, b.streams);
  kernels();
  if (found.empty() && write(a) != write(b))
    add("image", "order of its parts", "reads the same", "in another order");
  return std::move(found);
}

} // namespace

std::vector<ImageDifference> diff(const Image &a, const Image &b) { return Differ(a, b).run(); }

} // namespace dmx::corsair
