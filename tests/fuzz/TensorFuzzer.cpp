//===- TensorFuzzer.cpp - any bytes as a tensor file ----------------------===//
//
// A TensorProto comes into dmxc as a model's weight and into dmx-run as a file; both readers must agree on it, whether
// the bytes were copied by libprotobuf or left in the file. The first byte says what the rest is.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"
#include "Folder.h"
#include "ModelMutator.h"
#include "onnx/reader/TensorReader.h"
#include "onnx/reader/WireReader.h"

#include "dmxc/Tools/TensorFile.h"

#include <cmath>
#include <cstring>

using namespace dmxc;
using dmxfuzz::promise;

namespace {

enum Kind : uint8_t { Dense, Sparse, Npy, KindCount };

const dmxfuzz::Folder &folder() {
  static const dmxfuzz::Folder instance;
  return instance;
}

/// Reads every byte and some elements, so that a sanitizer sees a tensor that is longer than its memory.
void touch(const Tensor &tensor) {
  promise(!tensor.empty(), "a tensor that was read has bytes");
  unsigned sum = 0;
  for (std::byte byte : tensor.raw())
    sum += std::to_integer<unsigned>(byte);
  volatile unsigned keep = sum;
  (void)keep;
  for (int64_t i = 0; i < std::min<int64_t>(tensor.numElements(), 16); ++i)
    (void)tensor.asDouble(i);
}

bool equal(const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape())
    return false;
  if (a.dtype() != DType::Bool)
    return a.byteSize() == 0 || std::memcmp(a.data(), b.data(), a.byteSize()) == 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    if (a.asInt(i) != b.asInt(i))
      return false;
  return true;
}

void checkResult(const Result<onnxfe::StoredTensor> &result) {
  if (!result) {
    promise(!result.error().message.empty(), "a refused tensor comes with a reason");
    promise(result.error().kind != ErrorKind::Internal, "no tensor makes an internal error");
    return;
  }
  touch(result->tensor);
}

std::string field(char tag, const std::string &bytes) {
  std::string out(1, tag);
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7)
    out.push_back(static_cast<char>(size | 0x80));
  out.push_back(static_cast<char>(size));
  return out + bytes;
}

/// The tensor as a weight of a model: its large data stays in the file. `tag` is the field of GraphProto.
std::optional<onnx::ModelProto> slimmed(char tag, const std::string &bytes, std::shared_ptr<const MappedFile> &file) {
  Result<std::shared_ptr<const MappedFile>> opened =
      MappedFile::open(folder().write("model.onnx", field(0x3a, field(tag, bytes))));
  promise(static_cast<bool>(opened), "the model can be opened");
  file = *opened;
  Result<std::string> slim = onnxfe::slimModel(file->bytes());
  onnx::ModelProto model;
  if (!slim || !model.ParsePartialFromString(*slim))
    return std::nullopt;
  return model;
}

void useDense(const std::string &bytes) {
  std::shared_ptr<const MappedFile> file;
  std::optional<onnx::ModelProto> model = slimmed(0x2a, bytes, file);
  std::string path = folder().write("input_0.pb", bytes);
  Result<tools::NamedTensor> fromFile = tools::readTensorProto(path);
  promise(fromFile || !fromFile.error().message.empty(), "a refused file comes with a reason");
  if (fromFile)
    touch(fromFile->tensor);
  if (!model || model->graph().initializer_size() != 1)
    return;
  onnxfe::TensorReader reader(file, file->path(), {});
  Result<onnxfe::StoredTensor> inFile = reader.read(model->graph().initializer(0));
  checkResult(inFile);
  onnx::TensorProto whole;
  if (!whole.ParsePartialFromString(bytes))
    return;
  onnxfe::TensorReader copying(nullptr, file->path(), {});
  Result<onnxfe::StoredTensor> copied = copying.read(whole);
  checkResult(copied);
  promise(static_cast<bool>(inFile) == static_cast<bool>(copied), "data in the file is read as a copy is");
  promise(!inFile || equal(inFile->tensor, copied->tensor), "data in the file is what a copy is");
  promise(!fromFile || !inFile || equal(fromFile->tensor, inFile->tensor), "dmxc and dmx-run read the same tensor");
}

void useSparse(const std::string &bytes) {
  std::shared_ptr<const MappedFile> file;
  std::optional<onnx::ModelProto> model = slimmed(0x7a, bytes, file);
  if (!model || model->graph().sparse_initializer_size() != 1)
    return;
  const onnx::SparseTensorProto &sparse = model->graph().sparse_initializer(0);
  int64_t elements = 1;
  for (int64_t dim : sparse.dims()) // a dense form of some gigabytes is allowed, but too slow for a round
    elements = dim < 0 || elements > (1 << 20) ? elements : elements * std::min<int64_t>(dim, 1 << 20);
  if (elements > (1 << 20))
    return;
  onnxfe::TensorReader reader(file, file->path(), {});
  checkResult(reader.read(sparse));
}

void useNpy(const std::string &bytes) {
  Result<Tensor> tensor = tools::readNpy(folder().write("x.npy", bytes));
  promise(tensor || !tensor.error().message.empty(), "a refused file comes with a reason");
  if (tensor)
    touch(*tensor);
}

template <typename Proto, typename Change>
std::string changed(const std::string &bytes, dmxfuzz::Random &random, Change change) {
  Proto proto;
  if (!proto.ParsePartialFromString(bytes))
    return "";
  for (unsigned changes = 1 + random() % 3; changes; --changes)
    change(proto);
  return proto.SerializePartialAsString();
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() { return {}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  switch (data[0] % KindCount) {
  case Dense:
    useDense(bytes);
    break;
  case Sparse:
    useSparse(bytes);
    break;
  default:
    useNpy(bytes);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  if (size < 2 || data[0] % KindCount == Npy || random() % 4 == 0)
    return LLVMFuzzerMutate(data, size, capacity);
  std::string bytes(reinterpret_cast<char *>(data) + 1, size - 1);
  if (data[0] % KindCount == Dense)
    bytes = changed<onnx::TensorProto>(bytes, random, [&](onnx::TensorProto &t) { dmxfuzz::changeTensor(t, random); });
  else
    bytes = changed<onnx::SparseTensorProto>(bytes, random, [&](onnx::SparseTensorProto &t) {
      if (random() % 3 == 0)
        t.add_dims(dmxfuzz::oddNumber(random));
      else
        dmxfuzz::changeTensor(random() % 2 ? *t.mutable_values() : *t.mutable_indices(), random);
    });
  if (bytes.empty() || bytes.size() + 1 > capacity)
    return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data + 1, bytes.data(), bytes.size());
  return bytes.size() + 1;
}
