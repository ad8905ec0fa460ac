//===- UserCalls.cpp - functions of users, as cores call them -------------===//
//
// A function gets copies of what a call has, each beside pages that nobody may touch: what it reads or writes outside
// of them is found, by the byte.
//
//===----------------------------------------------------------------------===//
#include "Array.h"

#include "runtime/devices/common/guard/GuardMemory.h"
#include "runtime/devices/common/guard/GuardedCall.h"

#include <cstring>

namespace dmxrt::aie {

struct UserCall {
  hw::UserFunctionPtr function;
  std::vector<void *> buffers; ///< the copies
  const int64_t *dims;
  int64_t begin, end;
};

static int32_t runUser(const void *given) {
  auto call = *static_cast<const UserCall *>(given);
  return call.function(call.buffers.data(), call.dims, call.begin, call.end, nullptr);
}

/// "the kernel 'acme.argmax' writes byte 64 of 'y', a result of 64 bytes"
static std::string strayText(const hw::UserFunction &function, std::string_view verb, int64_t byte,
                             const hw::UserFunction::Buffer &buffer) {
  return cat("the kernel '", function.kernel, "' ", verb, " byte ", byte, " of '", buffer.name, "', ",
             buffer.written ? "a result of " : "which it may only read, of ", buffer.bytes, " bytes");
}

/// What is wrong with a call on copies; "" where nothing is.
static std::string callOnCopies(const hw::UserFunction &function, const UserCall &call,
                                const std::vector<GuardedBytes> &copies) {
  GuardFault fault;
  std::optional<int32_t> returned = callGuarded(runUser, &call, fault);
  const char *verb = fault.write ? "writes" : "reads";
  for (size_t i = 0; i < copies.size() && !returned; ++i)
    if (fault.address && copies[i].covers(fault.address))
      return strayText(function, verb,
                       static_cast<int64_t>(fault.address - reinterpret_cast<uintptr_t>(copies[i].data())),
                       function.buffers[i]);
  if (!returned)
    return cat("the kernel '", function.kernel, "' ", verb, " what is none of its operands and results");
  for (size_t i = 0; i < copies.size(); ++i)
    if (std::optional<int64_t> byte = copies[i].strayWrite())
      return strayText(function, "wrote", *byte, function.buffers[i]);
  return *returned ? cat("the kernel '", function.kernel, "' returned ", *returned) : std::string();
}

/// The bytes of a core's memory that a buffer of a call is; null, and a fault, where it is none.
std::byte *Array::userBytes(Core &core, const hw::UserFunction &function, size_t number, bool isKept) {
  const hw::UserFunction::Buffer &buffer = function.buffers[number];
  const int64_t address = core.arguments.addresses[number];
  if (address % machine.accessBytes) {
    fail("misaligned", cat("core ", hw::textOf(core.tile), ", instruction ", core.at, ": ", function.kernel, " takes '",
                           buffer.name, "' at ", address, ", which is no multiple of ", machine.accessBytes));
    return nullptr;
  }
  std::byte *bytes = nullptr;
  if (!buffer.written || isKept)
    bytes = access(core, address, buffer.bytes, false);
  if (buffer.written && (bytes || !isKept))
    bytes = access(core, address, buffer.bytes, true);
  return bytes;
}

bool Array::callUser(Core &core, uint32_t number) {
  const hw::UserFunction &function = image.functions[number];
  const std::string where = cat("core ", hw::textOf(core.tile), ", instruction ", core.at, ": ");
  const auto &scalars = core.arguments.scalars;
  UserCall call{users[function.object]->find(function.symbol),
                {},
                scalars.data(),
                scalars[function.dims],
                scalars[function.dims + 1]};
  if (!call.function) {
    fail("kernel-failed", cat(where, "the system gives no pages to run the kernel '", function.kernel, "'"));
    return false;
  }
  std::vector<std::byte *> there;
  std::vector<GuardedBytes> copies;
  for (size_t i = 0; i < function.buffers.size(); ++i) {
    const hw::UserFunction::Buffer &buffer = function.buffers[i];
    const bool isKept = call.begin != 0;
    if (!there.emplace_back(userBytes(core, function, i, isKept)))
      return false;
    const GuardPattern pattern = buffer.written ? GuardPattern::Result : GuardPattern::Input;
    copies.emplace_back(buffer.bytes, static_cast<uint64_t>(machine.accessBytes), GuardSide::End, pattern);
    if (!buffer.written || isKept)
      std::memcpy(copies[i].data(), there[i], buffer.bytes);
    if (!buffer.written)
      copies[i].makeReadOnly();
    call.buffers.push_back(copies[i].data());
  }
  if (std::string wrong = callOnCopies(function, call, copies); !wrong.empty()) {
    fail(wrong.find("' returned ") == std::string::npos ? "core-bounds" : "kernel-failed", where + wrong);
    return false;
  }
  for (size_t i = 0; i < copies.size(); ++i)
    if (function.buffers[i].written)
      std::memcpy(there[i], copies[i].data(), function.buffers[i].bytes);
  const uint64_t clocks = uint64_t(function.clocks) + static_cast<uint64_t>(machine.callClocks);
  mark(core.thread, now, now + clocks, function.kernel);
  core.freeAt = now + clocks + skew(kCoreSkew);
  core.busy += clocks;
  return true;
}

} // namespace dmxrt::aie
