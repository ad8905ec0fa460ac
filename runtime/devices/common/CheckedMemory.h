//===- CheckedMemory.h - bytes, and what is known of them -------*- C++ -*-===//
#pragma once

#include "Shadow.h"

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace dmxrt::sim {

/// A memory of one kind of bytes that checks each access: it is inside, what is read was written, and threads that
/// touch the same bytes are in some order.
class CheckedMemory {
public:
  /// `threads` names one for messages: "'load' of queue 2".
  CheckedMemory(std::string_view name, int64_t size, std::function<std::string(uint16_t)> threads);
  /// Those bytes, which stay where they are; null, with why in `fault`, when the access is wrong.
  std::byte *access(int64_t address, int64_t count, bool write, const Actor &actor, std::string &fault);

  uint64_t readBytes = 0, writtenBytes = 0; ///< by threads that are not the host

private:
  std::string_view name;
  int64_t size;
  std::function<std::string(uint16_t)> threads;
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> bytes; ///< pages that nobody touches cost nothing
  Shadow shadow;
};

} // namespace dmxrt::sim
