//===- UserLines.h - instructions of a user's kernel ------------*- C++ -*-===//
//
// Private to UserText: what is wrong is thrown as an Error.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "UserText.h"

#include "schemas/corsair/text/Text.h"

namespace dmxc::corsair {

/// A line's words.
struct NumberedTokens {
  unsigned line;
  std::vector<hw::text::Token> tokens;
};

/// What `$name` may stand for.
struct UserNames {
  std::map<std::string, int64_t> scalars;
  std::map<std::string, hw::Memory> buffers;

  /// A sum of products in which numbers stand for scalars, as the assembler reads it. A buffer that it counts from goes
  /// to `buffer`; null: there may be none.
  std::string expanded(const UserSource &source, unsigned line, const std::string &value, std::string *buffer) const;
};

/// The instructions of a stream that begins at line `begin`.
std::vector<UserLine> readLines(const UserSource &source, const hw::Machine &machine, const UserNames &names,
                                const UserText &text, unsigned begin, llvm::ArrayRef<NumberedTokens> lines);

} // namespace dmxc::corsair
