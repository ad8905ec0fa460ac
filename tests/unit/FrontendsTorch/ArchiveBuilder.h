//===- ArchiveBuilder.h - archives as torch writes them ---------*- C++ -*-===//
#pragma once

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/ZipFormat.h"

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zlib.h>

namespace torchtest {

using Records = std::vector<std::pair<std::string, std::string>>;

inline void put(std::string &bytes, uint64_t value, int count) {
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>(value >> (8 * i));
}

/// Stored records at multiples of 64, sizes and checksums in descriptors and the central directory alone, a ZIP64 end
/// record: what PyTorchFileWriter writes.
inline std::string makeArchive(const Records &records, const std::string &root = "m") {
  std::string bytes, central;
  for (const auto &[name, data] : records) {
    std::string path = root.empty() ? name : root + "/" + name;
    uint64_t offset = bytes.size(), padding = (64 - (offset + 30 + path.size() + 4) % 64) % 64;
    uint32_t crc = crc32(0, reinterpret_cast<const Bytef *>(data.data()), data.size());
    put(bytes, dmxc::zip::localSignature, 4);
    put(bytes, 0x08080000, 6); // version and flags
    put(bytes, 0, 2);          // stored
    put(bytes, 0, 4);
    put(bytes, 0, 8);
    put(bytes, 0, 2);
    bytes.resize(offset + 26);
    put(bytes, path.size(), 2);
    put(bytes, padding + 4, 2);
    bytes += path + "FB";
    put(bytes, padding, 2);
    bytes += std::string(padding, 'Z') + data;
    put(bytes, 0x08074b50, 4);
    put(bytes, crc, 4);
    put(bytes, data.size(), 4);
    put(bytes, data.size(), 4);
    size_t start = central.size();
    put(central, dmxc::zip::centralSignature, 4);
    central.resize(start + 8);
    put(central, 0x0808, 2);
    central.resize(start + 16);
    put(central, crc, 4);
    put(central, data.size(), 4);
    put(central, data.size(), 4);
    put(central, path.size(), 2);
    central.resize(start + 42);
    put(central, offset, 4);
    central += path;
  }
  uint64_t directory = bytes.size(), wide = directory + central.size();
  bytes += central;
  put(bytes, dmxc::zip::end64Signature, 4);
  put(bytes, 44, 8);
  put(bytes, 0, 12);
  for (uint64_t number : {uint64_t(records.size()), uint64_t(records.size()), uint64_t(central.size()), directory})
    put(bytes, number, 8);
  put(bytes, dmxc::zip::locator64Signature, 4);
  put(bytes, 0, 4);
  put(bytes, wide, 8);
  put(bytes, 1, 4);
  put(bytes, dmxc::zip::endSignature, 4);
  put(bytes, 0, 4);
  put(bytes, records.size(), 2);
  put(bytes, records.size(), 2);
  put(bytes, central.size(), 4);
  put(bytes, directory, 4);
  put(bytes, 0, 2);
  return bytes;
}

/// The bytes as a mapped file that nobody else sees.
inline std::shared_ptr<const dmxc::MappedFile> mapped(const std::string &bytes) {
  int fd = memfd_create("archive", 0);
  for (size_t at = 0; at < bytes.size();) {
    ssize_t count = write(fd, bytes.data() + at, bytes.size() - at);
    if (count <= 0)
      throw std::runtime_error("memfd");
    at += count;
  }
  auto file = dmxc::MappedFile::open("/proc/self/fd/" + std::to_string(fd));
  close(fd);
  if (!file)
    throw std::runtime_error(file.error().message);
  return *file;
}

/// A program of one relu over an input [2, 3], a parameter 'w' of f32 [3] beside it.
inline std::string programJson() {
  auto meta = [](const std::string &sizes, const std::string &strides) {
    return R"({"dtype":7,"sizes":)" + sizes +
           R"(,"requires_grad":false,"device":{"type":"cpu","index":null},"strides":)" + strides +
           R"(,"storage_offset":{"as_int":0},"layout":7})";
  };
  std::string row = R"([{"as_int":2},{"as_int":3}])", one = R"([{"as_int":3},{"as_int":1}])";
  return R"({"graph_module":{"graph":{"inputs":[{"as_tensor":{"name":"p_w"}},{"as_tensor":{"name":"x"}}],)"
         R"("outputs":[{"as_tensor":{"name":"add"}}],"nodes":[{"target":"torch.ops.aten.add.Tensor","inputs":[)"
         R"({"name":"self","arg":{"as_tensor":{"name":"x"}},"kind":1},{"name":"other","arg":{"as_tensor":{"name":"p_w"}},"kind":1}],)"
         R"("outputs":[{"as_tensor":{"name":"add"}}],"metadata":{"nn_module_stack":"a,,M;b,h.0,N"}}],"tensor_values":{"p_w":)" +
         meta(R"([{"as_int":3}])", R"([{"as_int":1}])") + R"(,"x":)" + meta(row, one) + R"(,"add":)" + meta(row, one) +
         R"(},"sym_int_values":{}},"signature":{"input_specs":[{"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},)"
         R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":[{"user_output":{"arg":{"as_tensor":{"name":"add"}}}}]},)"
         R"("module_call_graph":[]},"opset_version":{"aten":10},"range_constraints":{"s0":{"min_val":2,"max_val":null}},)"
         R"("schema_version":{"major":8,"minor":14},"verifiers":["ATEN"],"torch_version":"2.9.0"})";
}

inline std::string configJson(const std::string &sizes, const std::string &strides, int64_t offset,
                              const std::string &path = "weight_0", int dtype = 7) {
  return R"({"config":{"w":{"path_name":")" + path + R"(","is_param":true,"use_pickle":false,"tensor_meta":{"dtype":)" +
         std::to_string(dtype) + R"(,"sizes":)" + sizes + R"(,"strides":)" + strides +
         R"(,"storage_offset":{"as_int":)" + std::to_string(offset) + R"(},"layout":7}}}})";
}

/// data.pkl of {"w": a parameter that is a float tensor [3] at `offset` of storage 0}.
inline std::string pickle(int offset = 0, const std::string &global = "torch._utils\n_rebuild_tensor_v2") {
  auto text = [](const std::string &value) {
    std::string bytes = "X";
    put(bytes, value.size(), 4);
    return bytes + value;
  };
  std::string bytes = "\x80\x02}q";
  bytes += '\0';
  bytes += "(" + text("w") + "c" + global + "\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
           text("cpu") + "K\x10tQK";
  bytes += static_cast<char>(offset);
  bytes += std::string("K\x03\x85K\x01\x85\x89") + "ccollections\nOrderedDict\n)RtRu.";
  return bytes;
}

} // namespace torchtest
