//===- EntryName.h - the rules for names of entries -------------*- C++ -*-===//
//
// Private to the Bundle room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dmxc::bundle {

/// What is wrong with the name of an entry (the manifest's excepted), or
/// nothing. A good name can be unpacked below a directory without leaving it.
std::string entryNameProblem(std::string_view name);

/// Rank of the entry's group in the archive: graph.json, weights/, code/,
/// debug/, tests/; the last rank for a name that has no group.
unsigned entryGroup(std::string_view name);

/// Alignment of the entry's data in the archive, in bytes.
inline uint64_t entryAlignment(std::string_view name) { return name.starts_with("weights/") ? 4096 : 64; }

} // namespace dmxc::bundle
