//===- SaveTemps.h - what --save-temps keeps --------------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Result.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace dmxc {

/// Writes a file into a folder, which is made where it is missing. Nothing is done where the folder is "".
inline Status saveTemp(llvm::StringRef folder, const llvm::Twine &name,
                       llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (folder.empty())
    return Status::ok();
  if (std::error_code failed = llvm::sys::fs::create_directories(folder))
    return Error{ErrorKind::IO, "cannot make the folder '" + folder.str() + "': " + failed.message()};
  const std::string path = (folder + "/" + name).str();
  std::error_code failed;
  llvm::raw_fd_ostream out(path, failed);
  if (!failed) {
    print(out);
    out.flush();
    failed = out.error();
    out.clear_error(); // which would end the process when it is closed
  }
  return failed ? Status(Error{ErrorKind::IO, "cannot write '" + path + "': " + failed.message()}) : Status::ok();
}

} // namespace dmxc
