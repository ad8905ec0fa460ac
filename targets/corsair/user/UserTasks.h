//===- UserTasks.h - tasks of a user's assembly -----------------*- C++ -*-===//
#pragma once

#include "UserText.h"

#include "targets/corsair/write/KernelWriter.h"

namespace dmxc::corsair {

/// Writes the instructions of a user's kernel as one task of the main program: each of its queues has what the author
/// gave it, with her loops and tokens, so that the program's order is checked as that of any other.
class UserWriter {
public:
  /// At the writer's place, for its node.
  UserWriter(KernelWriter &to, const UserText &text) : to(to), text(text), node(to.writer.loc) {}

  Status run(llvm::ArrayRef<DeviceTensor> operands, const DeviceTensor &result);

private:
  Status write(int queue, llvm::ArrayRef<UserLine> lines);
  void tokens(int queue, const UserLine &line);
  void task(int queue, const UserLine &line);
  /// Fails where the task that was written last is none of the device.
  Status check(const UserLine &line);
  void simd(const QueueWriter &queue, const UserLine &line);
  void move(const QueueWriter &queue, const UserLine &line);
  void reshape(const QueueWriter &queue, const UserLine &line);
  void transpose(const QueueWriter &queue, const UserLine &line);
  void product(const QueueWriter &queue, const UserLine &line);
  mlir::Value descriptor(const UserLine &line);

  /// Fails where indices may lead out of a buffer; an index beyond irange stops the run.
  Status checkIndexed(llvm::ArrayRef<UserLine> lines) const;

  Address placeOf(const UserLine &line, llvm::StringRef field);
  static Address valueOf(const UserLine &line, llvm::StringRef field);
  /// A clause with the field's value, where that is not its default.
  static void clause(const QueueWriter &queue, TaskWriter &task, llvm::StringRef name, const UserLine &line,
                     llvm::StringRef field);
  int token(int64_t number);

  KernelWriter &to;
  const UserText &text;
  const mlir::Location node;
  std::map<std::string, Address> places;
  std::map<std::string, int64_t> bytes;
};

} // namespace dmxc::corsair
