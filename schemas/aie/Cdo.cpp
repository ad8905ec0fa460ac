//===- Cdo.cpp - words of a CDO -------------------------------------------===//
#include "Cdo.h"

#include <numeric>

namespace dmx::aie {
namespace {

using Kind = CdoCommand::Kind;
constexpr uint32_t kIdent = 0x004F4443, kVersion = 0x200, kHeaderWords = 5;
/// Of the length in a command's word; then the length is a word of its own.
constexpr size_t kLongLength = 255;

uint32_t checksum(std::span<const uint32_t> words) { return ~std::accumulate(words.begin(), words.end(), uint32_t(0)); }

std::vector<uint32_t> payloadOf(const CdoCommand &command) {
  if (command.kind == Kind::NoOp)
    return command.data;
  std::vector<uint32_t> words = {static_cast<uint32_t>(command.address >> 32), static_cast<uint32_t>(command.address)};
  switch (command.kind) {
  case Kind::Write:
    words.push_back(command.value);
    break;
  case Kind::MaskWrite:
    words.insert(words.end(), {command.mask, command.value});
    break;
  case Kind::Poll:
    words.insert(words.end(), {command.mask, command.value, command.timeout});
    break;
  default:
    words.insert(words.end(), command.data.begin(), command.data.end());
  }
  return words;
}

/// False where the command does not have so many words.
bool read(std::span<const uint32_t> payload, CdoCommand &command) {
  if (command.kind == Kind::NoOp) {
    command.data.assign(payload.begin(), payload.end());
    return true;
  }
  if (payload.size() < 3)
    return false;
  command.address = uint64_t(payload[0]) << 32 | payload[1];
  switch (command.kind) {
  case Kind::Write:
    command.value = payload[2];
    return payload.size() == 3;
  case Kind::MaskWrite:
  case Kind::Poll:
    if (payload.size() != (command.kind == Kind::Poll ? 5u : 4u))
      return false;
    command.mask = payload[2];
    command.value = payload[3];
    command.timeout = command.kind == Kind::Poll ? payload[4] : 0;
    return true;
  default:
    command.data.assign(payload.begin() + 2, payload.end());
    return true;
  }
}

bool known(uint32_t id) {
  for (Kind kind : {Kind::NoOp, Kind::Write, Kind::MaskWrite, Kind::BlockWrite, Kind::Poll})
    if (id == static_cast<uint32_t>(kind))
      return true;
  return false;
}

} // namespace

std::vector<uint32_t> encodeCdo(std::span<const CdoCommand> commands) {
  std::vector<uint32_t> words = {kHeaderWords - 1, kIdent, kVersion, 0, 0};
  for (const CdoCommand &command : commands) {
    std::vector<uint32_t> payload = payloadOf(command);
    bool isLong = payload.size() >= kLongLength;
    words.push_back(static_cast<uint32_t>(isLong ? kLongLength : payload.size()) << 16 |
                    static_cast<uint32_t>(command.kind));
    if (isLong)
      words.push_back(static_cast<uint32_t>(payload.size()));
    words.insert(words.end(), payload.begin(), payload.end());
  }
  words[3] = static_cast<uint32_t>(words.size() - kHeaderWords);
  words[4] = checksum({words.data(), 4});
  return words;
}

std::optional<std::vector<CdoCommand>> decodeCdo(std::span<const uint32_t> words, std::string &error) {
  if (words.size() < kHeaderWords || words[0] != kHeaderWords - 1 || words[1] != kIdent || words[2] != kVersion) {
    error = "it has no header of a CDO of version 2.0";
    return std::nullopt;
  }
  if (words[3] != words.size() - kHeaderWords || words[4] != checksum(words.first(4))) {
    error = "the length or the checksum of the CDO's header is wrong";
    return std::nullopt;
  }
  std::vector<CdoCommand> commands;
  for (std::span<const uint32_t> rest = words.subspan(kHeaderWords); !rest.empty();) {
    auto wrong = [&](const char *why) {
      error = "command " + std::to_string(commands.size()) + " of the CDO " + why;
      return std::nullopt;
    };
    size_t length = rest[0] >> 16, first = 1;
    if (length == kLongLength && rest.size() > 1) {
      length = rest[1];
      first = 2;
      if (length < kLongLength)
        return wrong("has a long form that it does not need");
    }
    if (!known(rest[0] & 0xffff))
      return wrong("is not known");
    if (length > kLongLength && first == 1)
      return wrong("has a length that it cannot have");
    if (rest.size() - first < length)
      return wrong("ends behind the CDO");
    CdoCommand command;
    command.kind = static_cast<Kind>(rest[0] & 0xffff);
    if (!read(rest.subspan(first, length), command))
      return wrong("has a wrong number of words");
    commands.push_back(std::move(command));
    rest = rest.subspan(first + length);
  }
  return commands;
}

} // namespace dmx::aie
