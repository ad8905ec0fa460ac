//===- UserPtx.h - entries of PTX texts that users wrote --------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include "llvm/ADT/StringRef.h"

#include <functional>
#include <string>
#include <vector>

namespace dmxc::cuda {

/// A PTX text and which of its entries is meant.
struct UserText {
  std::string kernel; ///< "acme.argmax"
  std::string file;   ///< its name, for messages and places
  std::string symbol, text;
  bool takesAll = false; ///< the entry has all parameters of schemas/cuda/KERNELS.md; else buffers, sizes and maps

  /// "the kernel 'acme.argmax' (argmax.ptx): " + a clause.
  Error refusal(const std::string &clause) const;
};

/// What the entry becomes.
struct EntryShape {
  std::string name;               ///< of the kernel; those of its variables begin with it
  int64_t words = 0, maps = 0;    ///< parameters: buffers and sizes; tensor maps
  int64_t block = 1, cluster = 1; ///< threads, blocks
};

/// An entry as it stands among others of a bundle.
struct AdoptedEntry {
  std::string text; ///< with the variables that it mentions
  unsigned version = 80;
};

/// Takes an entry out of a text, with what of the text's variables it mentions: its name and theirs, parameters that it
/// leaves out and the threads of its blocks are those of `shape`. Places in source files stay, by `fileNumber` of a
/// file's name; where the text has none it is the text itself. Fails with a refusal.
Result<AdoptedEntry> adoptEntry(const UserText &from, const EntryShape &shape,
                                const std::function<unsigned(llvm::StringRef)> &fileNumber);

} // namespace dmxc::cuda
