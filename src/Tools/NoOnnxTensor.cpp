//===- NoOnnxTensor.cpp - what .pb files are without the ONNX front end ---===//
#include "dmxc/Tools/TensorFile.h"

namespace dmxc::tools {

static Error unknown(const std::string &path) {
  return ioError("'" + path + "': this build has no ONNX front end and knows no .pb files; save tensors as .npy");
}

Result<NamedTensor> readTensorProto(const std::string &path) { return unknown(path); }
Result<std::vector<NamedTensor>> readTensorsProto(const std::string &path) { return unknown(path); }
Status writeTensorProto(const std::string &path, const NamedTensor &) { return unknown(path); }

} // namespace dmxc::tools
