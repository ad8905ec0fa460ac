//===- InspectCode.h - code objects that a viewer knows ---------*- C++ -*-===//
//
// Private to the Tools room.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "InspectView.h"

#include "dmxc/Bundle/Diff.h"
#include "dmxc/Tools/CodeView.h"

namespace dmxc::tools {

/// A code object of a bundle and its viewer.
struct CodeObject {
  const bundle::TargetDesc *target = nullptr;
  const CodeViewer *viewer = nullptr;
  std::span<const std::byte> bytes;
  std::string bundle; ///< for messages

  /// CodeView.h; ErrorKind::Model with the entry's name when the bytes are not sound.
  Result<Json> describe(const std::string &kernel, bool full) const;
  Result<std::string> print(const std::string &kernel) const;
};

/// In the order of the manifest's targets.
std::vector<CodeObject> codeObjects(const bundle::Bundle &bundle);

/// Kernels with their counts of instructions; with `full` also memories and footprints.
void addCodeTables(const CodeObject &object, const Json &description, bool full, View &view);

/// What lies where in the memories that each kernel uses, of a full description: permanent ranges and temporaries with
/// the steps they live from and to.
void addRangeTables(const CodeObject &object, const Json &description, View &view);

/// Replaces "other bytes" of code objects by what differs in them.
void explainCode(const bundle::Bundle &a, const bundle::Bundle &b, std::vector<bundle::Difference> &differences);

// Fields of a viewer's or a device's JSON, whatever is there.
std::string textOf(const Json &object, const char *key);
double numberOf(const Json &object, const char *key);
int64_t wholeOf(const Json &object, const char *key);
const Json &partOf(const Json &object, const char *key); ///< null when absent

} // namespace dmxc::tools
