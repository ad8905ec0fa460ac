//===- OnnxFuzzer.cpp - any bytes as an ONNX model ------------------------===//
//
// The whole import and the frontend phase. Must end with a valid module or with an error that says something; a crash,
// a hang and a huge allocation are findings.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "Folder.h"
#include "ImportPromises.h"
#include "ModelMutator.h"
#include "onnx/OnnxFrontend.h"

#include <cstring>

std::vector<std::string> dmxfuzz::builtInSeeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const dmxfuzz::Folder folder;
  std::string bytes(reinterpret_cast<const char *>(data), size);
  dmxfuzz::importAndCheck(dmxc::onnxFrontend(), folder.write("model.onnx", bytes));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  onnx::ModelProto model;
  if (random() % 8 == 0 || !model.ParsePartialFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, capacity);
  for (unsigned changes = 1 + random() % 3; changes; --changes)
    dmxfuzz::changeModel(model, random);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > capacity)
    return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

/// libFuzzer alone asks for it.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t firstSize, const uint8_t *second,
                                            size_t secondSize, uint8_t *out, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  onnx::ModelProto model, other;
  if (!model.ParsePartialFromArray(first, static_cast<int>(firstSize)) ||
      !other.ParsePartialFromArray(second, static_cast<int>(secondSize)))
    return 0;
  dmxfuzz::joinModels(model, other, random);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > capacity)
    return 0;
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}
