//===- TensorReader.h - TensorProto to host tensors -------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace dmxc::onnxfe {

/// TensorProto.DataType as a DType; nullopt for string, complex and unknown
/// types.
std::optional<DType> dtypeOfOnnx(int32_t type);
/// "FLOAT", "STRING", "type 99": how messages name a TensorProto.DataType.
std::string onnxTypeName(int32_t type);
/// The TensorProto.DataType of a DType.
int32_t onnxTypeOf(DType type);

/// A tensor of the model file. When `path` is set, its bytes are exactly those
/// at [offset, offset + byteSize) of that file and `tensor` is a view of the
/// mapping (possibly at an odd address).
struct StoredTensor {
  Tensor tensor;
  std::string path;
  uint64_t offset = 0;
};

/// Decodes the tensors of one model. Not thread-safe.
class TensorReader {
public:
  /// `externalDir`: where external data is looked up; "" = the model's own
  /// folder.
  TensorReader(std::shared_ptr<const MappedFile> model, std::string modelPath, std::vector<std::string> externalDirs);

  /// Fails on strings, wrong sizes, and external data that is missing, too
  /// short or outside its folder.
  Result<StoredTensor> read(const onnx::TensorProto &proto);
  Result<StoredTensor> read(const onnx::SparseTensorProto &proto);

  /// External files read so far, sorted.
  std::vector<std::string> files() const;

private:
  Result<StoredTensor> readExternal(const onnx::TensorProto &proto, DType type, Shape shape);
  Result<std::string> externalPath(const std::string &location) const;
  Result<StoredTensor> fromRaw(DType type, Shape shape, const std::shared_ptr<const MappedFile> &file,
                               const std::string &path, uint64_t offset, uint64_t size);

  std::shared_ptr<const MappedFile> model;
  std::string modelPath;
  std::vector<std::string> externalDirs;
  std::map<std::string, std::shared_ptr<const MappedFile>> external;
};

} // namespace dmxc::onnxfe
