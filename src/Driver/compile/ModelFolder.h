//===- ModelFolder.h - a folder with a model, as people have them -*- C++ -*-===//
//
// What exporters and hubs write: a model's file and configurations beside it (genai_config.json of onnxruntime-genai;
// config.json and generation_config.json of transformers). Of a decoder they say which tensors are what, the tokens
// that end an answer, the most tokens.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Driver/Options.h"
#include "dmxc/Tools/Roles.h"

#include "mlir/IR/BuiltinOps.h"

namespace dmxc::driver {

/// What configurations say of a decoder.
struct DecoderConfig {
  tools::DecoderNames names;     ///< empty where they say nothing; caches as one pattern a part
  std::vector<int64_t> eos, bos; ///< tokens that end an answer, that begin a prompt
  int64_t context = 0;           ///< most tokens, prompt and answer together; 0: nothing is said
  int64_t vocabulary = 0;        ///< the same
};

struct ModelFolder {
  std::string model;                            ///< path of the model's file
  std::vector<std::string> configurations;      ///< paths of those that were read
  std::shared_ptr<const DecoderConfig> decoder; ///< null of other models
};

/// Errors are ErrorKind::IO for what cannot be read and where there is no model, Model for a configuration that is no
/// JSON, and Usage where several files may be meant.
Result<ModelFolder> readModelFolder(const std::string &folder);

/// Takes the folder in options.model apart; a file stays as it is.
Status resolveFolder(Options &options);

/// What makes states of a decoder's caches.
struct DecoderStates {
  std::vector<std::pair<std::string, std::string>> pairs; ///< inputs and outputs; none where not all caches grow
  /// As --dim would have them: one sequence, no rows at first, tokens one by one. Nothing of dims that were given.
  std::map<std::string, DimBounds> dims;
  std::string batch; ///< the dim of `dims` that counts sequences; "": none
};

/// Writes into an imported module what is said of it: texts under `generate.` (schemas/FORMAT.md), and bounds of the
/// dims that count tokens, where `given` (--dim) has none. Where tensors are not found, a warning says which.
DecoderStates describeDecoder(mlir::ModuleOp module, const DecoderConfig &config,
                              const std::map<std::string, DimBounds> &given, const std::string &file,
                              Diagnostics &diagnostics);

} // namespace dmxc::driver
