//===- UserText.h - kernels that users wrote in assembly --------*- C++ -*-===//
//
// The text form of schemas/corsair/ISA.md, section 13, without addresses: `$name` stands for where an operand, a result
// or a buffer of the kernel's own begins, or for the number that a scalar is (src/Driver/KERNELS.md).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/corsair/Image.h"

#include "dmxc/Support/Result.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <array>
#include <map>
#include <optional>

namespace dmxc::corsair {

namespace hw = dmx::corsair;

/// An instruction of a queue with the CONFIG that it works by (a NOP where it needs none).
struct UserLine {
  unsigned number = 0; ///< in the file, from 1 on
  hw::Instruction instruction, config;
  std::map<std::string, std::string> buffers; ///< which an address counts from, by the field's name

  /// What the CONFIG says of a key, its default where it says nothing.
  int64_t key(hw::ConfigKey key) const;
};

/// An operand or a result as the author sees it: whole, row by row, in GM.
struct UserTensor {
  std::string name;
  unsigned line = 0;
  hw::ElemKind kind = hw::ElemKind::F16;
  std::optional<std::vector<int64_t>> shape;
};

/// A buffer of the kernel's own.
struct UserBuffer {
  std::string name;
  hw::Memory memory = hw::Memory::GM;
  int64_t bytes = 0;
};

/// Whose text it is.
struct UserName {
  std::string kernel, file, symbol; ///< `file` without its folder

  /// "the kernel 'acme.argmax' (argmax.dmxasm): line 12: " + a clause.
  Error refusal(unsigned line, const std::string &clause) const;
};

/// A text, and what a node gives it.
struct UserSource : UserName {
  llvm::StringRef text;
  llvm::ArrayRef<int64_t> scalars;
};

struct UserText {
  UserName name;
  std::vector<UserTensor> operands, results;
  std::vector<UserBuffer> buffers;
  std::map<int64_t, int64_t> credits; ///< of tokens, by number
  std::array<std::vector<UserLine>, 4> queues;

  /// Operand or result of a name, or null.
  const UserTensor *tensor(llvm::StringRef name) const;
  bool isOperand(llvm::StringRef name) const;
  /// Whether it works in memories of the slices, which all kernels share.
  bool usesUnits() const;
};

/// The kernel `symbol` of a text. Errors name file and line.
Result<UserText> readUserText(const UserSource &source, const hw::Machine &machine);

/// The memory that a field of an instruction is a place in; nothing where it is none, or none that is read.
std::optional<hw::Memory> memoryOf(const UserLine &line, llvm::StringRef field);
/// The line that ends the loop of line `begin` of a queue.
size_t endOfLoop(llvm::ArrayRef<UserLine> lines, size_t begin);

} // namespace dmxc::corsair
