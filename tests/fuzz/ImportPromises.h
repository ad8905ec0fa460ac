//===- ImportPromises.h - what every import must keep -----------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DMIR/Import.h"

#include <string>

namespace dmxfuzz {

/// Imports a file and runs the frontend phase over what it gives: a valid module, or errors that are the file's fault
/// and say something. Folds small constants only. `other`: whose operators the file may name, if not null.
void importAndCheck(const dmxc::Frontend &frontend, const std::string &path, const dmxc::Frontend *other = nullptr);

} // namespace dmxfuzz
