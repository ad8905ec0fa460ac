//===- MachineFile.h - a machine that a user describes ----------*- C++ -*-===//
#pragma once

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Result.h"

#include <optional>
#include <string>
#include <string_view>

namespace dmxc {

/// Reads MACHINE.json, which a target takes as a level. `parse` gives the machine, or an error that names the figure.
template <typename Machine>
Status readMachine(const std::string &file, std::optional<Machine> (*parse)(std::string_view, std::string &),
                   Machine &machine) {
  Result<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(file);
  if (!mapped)
    return mapped.takeError();
  std::string error;
  std::optional<Machine> parsed =
      parse({reinterpret_cast<const char *>((*mapped)->bytes().data()), (*mapped)->bytes().size()}, error);
  if (!parsed)
    return Error{ErrorKind::Model, file + ": " + error};
  machine = std::move(*parsed);
  return Status::ok();
}

} // namespace dmxc
