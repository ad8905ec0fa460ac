//===- ModelFile.h - an exported program and its tensors --------*- C++ -*-===//
#pragma once

#include "../Program.h"
#include "Payloads.h"

namespace dmxc::torchfe {

/// What one model file holds, whatever its layout.
struct ModelFile {
  Program program;
  Payloads weights;   ///< parameters and persistent buffers
  Payloads constants; ///< constants and buffers that are not persistent
};

/// Reads a file that torch.export.save wrote. `model` names one of several programs; "" is the only one.
Result<ModelFile> readModelFile(const std::shared_ptr<const MappedFile> &file, const std::string &model);

} // namespace dmxc::torchfe
