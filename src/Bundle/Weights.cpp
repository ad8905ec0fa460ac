//===- Weights.cpp - safetensors entries ----------------------------------===//
#include "dmxc/Bundle/Weights.h"

#include "Json.h"
#include "schemas/Size.h"

#include <algorithm>
#include <cstring>

namespace dmxc::bundle {

using json::Reader;
using json::Value;

namespace {
constexpr uint64_t dataAlignment = 4096;
constexpr uint64_t tensorAlignment = 64;
constexpr std::string_view fillerPrefix = "__pad";

uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

struct TypeName {
  DType dtype;
  const char *name;
};
constexpr TypeName typeNames[] = {
    {DType::Bool, "BOOL"},      {DType::I8, "I8"},
    {DType::I16, "I16"},        {DType::I32, "I32"},
    {DType::I64, "I64"},        {DType::U8, "U8"},
    {DType::U16, "U16"},        {DType::U32, "U32"},
    {DType::U64, "U64"},        {DType::F16, "F16"},
    {DType::BF16, "BF16"},      {DType::F32, "F32"},
    {DType::F64, "F64"},        {DType::F8E4M3FN, "F8_E4M3"},
    {DType::F8E5M2, "F8_E5M2"},
};

const char *weightTypeName(DType dtype) {
  for (const TypeName &row : typeNames)
    if (row.dtype == dtype)
      return row.name;
  return nullptr;
}

std::optional<DType> weightType(std::string_view name) {
  for (const TypeName &row : typeNames)
    if (name == row.name)
      return row.dtype;
  return std::nullopt;
}

bool isFiller(std::string_view name) { return name.starts_with(fillerPrefix) && name.ends_with("__"); }

Error misuse(const std::string &name, const std::string &message) {
  return {ErrorKind::Internal, "weight '" + name + "': " + message};
}
} // namespace

Status WeightsWriter::insert(Item item) {
  if (fixed)
    return misuse(item.name, "added after the layout was fixed");
  if (item.name == "__metadata__" || isFiller(item.name))
    return misuse(item.name, "the name is reserved");
  if (!byName.emplace(item.name, items.size()).second)
    return misuse(item.name, "the name was used before");
  items.push_back(std::move(item));
  return Status::ok();
}

Status WeightsWriter::add(const std::string &name, DType dtype, const Shape &shape, Producer produce,
                          const std::string &packing) {
  uint64_t size = dtypeBytes(dtype, static_cast<uint64_t>(elementCount(shape)));
  const char *type = weightTypeName(dtype);
  if (!type)
    return addBytes(name, size, std::move(produce), packing.empty() ? std::string(dtypeName(dtype)) : packing);
  return insert({name, type, packing, shape, size, 0, std::move(produce)});
}

Status WeightsWriter::addBytes(const std::string &name, uint64_t byteSize, Producer produce,
                               const std::string &packing) {
  return insert({name, "U8", packing, {static_cast<int64_t>(byteSize)}, byteSize, 0, std::move(produce)});
}

Status WeightsWriter::add(const std::string &name, const Tensor &tensor, const std::string &packing) {
  return add(name, tensor.dtype(), tensor.shape(), [tensor](ByteSink &sink) { return sink.take(tensor); }, packing);
}

void WeightsWriter::layout() {
  if (fixed)
    return;
  fixed = true;
  Value root = Value::object(), metadata = Value::object();
  for (const Item &item : items)
    if (!item.packing.empty())
      metadata[item.name] = item.packing;
  if (!metadata.empty())
    root["__metadata__"] = std::move(metadata);
  auto describe = [&](const std::string &name, const std::string &dtype, const Shape &shape, uint64_t begin,
                      uint64_t size) {
    root[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, begin + size}}};
  };
  uint64_t at = 0, fillers = 0;
  for (Item &item : items) {
    item.begin = alignUp(at, tensorAlignment);
    if (uint64_t gap = item.begin - at)
      describe(std::string(fillerPrefix) + std::to_string(fillers++) + "__", "U8", {static_cast<int64_t>(gap)}, at,
               gap);
    describe(item.name, item.dtype, item.shape, item.begin, item.size);
    at = item.begin + item.size;
  }
  dataSize = at;
  header = root.dump(-1, ' ', false, Value::error_handler_t::replace);
  header.append(alignUp(header.size() + 8, dataAlignment) - 8 - header.size(), ' ');
}

uint64_t WeightsWriter::offsetOf(const std::string &name) {
  layout();
  return 8 + header.size() + items[byName.at(name)].begin;
}

uint64_t WeightsWriter::size() {
  layout();
  return 8 + header.size() + dataSize;
}

namespace {
/// Holds a producer to the size of its tensor.
class BoundedSink : public ByteSink {
public:
  BoundedSink(ByteSink &out, uint64_t left) : out(out), left(left) {}
  Status write(std::span<const std::byte> bytes) override {
    Status admitted = admit(bytes.size());
    return admitted ? out.write(bytes) : std::move(admitted);
  }
  Status take(const Tensor &tensor) override {
    Status admitted = admit(tensor.byteSize());
    return admitted ? out.take(tensor) : std::move(admitted);
  }
  bool complete() const { return !over && left == 0; }

private:
  Status admit(uint64_t size) {
    over |= size > left;
    if (over)
      return Error{ErrorKind::Internal, "too many bytes were produced"};
    left -= size;
    return Status::ok();
  }

  ByteSink &out;
  uint64_t left;
  bool over = false;
};
} // namespace

Status WeightsWriter::write(ByteSink &sink) {
  layout();
  uint64_t length = header.size();
  std::byte prefix[8];
  std::memcpy(prefix, &length, 8);
  if (Status done = sink.write(std::span<const std::byte>(prefix)); !done)
    return done;
  if (Status done = sink.write(std::string_view(header)); !done)
    return done;
  uint64_t at = 0;
  for (const Item &item : items) {
    if (Status done = sink.writeZeros(item.begin - at); !done)
      return done;
    BoundedSink bounded(sink, item.size);
    Status done = item.produce(bounded);
    if (done && !bounded.complete())
      return misuse(item.name, "its producer did not write exactly " + std::to_string(item.size) + " bytes");
    if (!done)
      return done;
    at = item.begin + item.size;
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Bytes of a dense tensor, or nothing when the product overflows.
std::optional<uint64_t> checkedBytes(unsigned bits, const Shape &shape) {
  dmx::Size all = bits;
  for (int64_t dim : shape)
    all *= dim;
  return all.isKnown() ? std::optional(all.value() / 8) : std::nullopt;
}

WeightInfo readTensor(const std::string &name, const Reader &r, uint64_t dataSize) {
  WeightInfo info;
  info.name = name;
  info.dtype = r.string("dtype");
  info.shape = r.integers("shape", true);
  std::vector<int64_t> range = r.integers("data_offsets", true);
  if (r.failed())
    return info;
  if (range.size() != 2 || range[0] < 0 || range[1] < range[0] || static_cast<uint64_t>(range[1]) > dataSize) {
    r.fail("'data_offsets' leave the " + std::to_string(dataSize) + " bytes of data");
    return info;
  }
  info.offset = static_cast<uint64_t>(range[0]);
  info.size = static_cast<uint64_t>(range[1] - range[0]);
  std::optional<DType> type = weightType(info.dtype);
  if (!type)
    r.fail("unknown dtype '" + info.dtype + "'");
  else if (checkedBytes(dtypeBits(*type), info.shape) != info.size)
    r.fail("dtype and shape do not give the " + std::to_string(info.size) + " bytes of 'data_offsets'");
  return info;
}

} // namespace

Result<std::vector<WeightInfo>> readWeights(std::span<const std::byte> entry) {
  uint64_t length = 0;
  if (entry.size() < 8)
    return modelError("safetensors: the entry is shorter than its length field");
  std::memcpy(&length, entry.data(), 8);
  if (length > entry.size() - 8)
    return modelError("safetensors: the header of " + std::to_string(length) + " bytes leaves the entry of " +
                      std::to_string(entry.size()) + " bytes");
  uint64_t dataStart = 8 + length, dataSize = entry.size() - dataStart;
  Reader::Sink sink;
  std::string_view text(reinterpret_cast<const char *>(entry.data()) + 8, length);
  Value root = json::parse(text, "safetensors header", sink);
  std::vector<WeightInfo> all;
  std::map<std::string, std::string> packings;
  if (!sink.failed && !root.is_object())
    return modelError("safetensors header: expected an object");
  if (!sink.failed)
    for (auto &item : root.items()) {
      Reader r(item.value(), "tensor '" + item.key() + "'", sink);
      if (item.key() == "__metadata__")
        Reader(root, "safetensors", sink).forEachField("__metadata__", [&](const std::string &k, const Reader &v) {
          packings[k] = v.asString();
        });
      else
        all.push_back(readTensor(item.key(), r, dataSize));
    }
  if (sink.failed)
    return modelError(sink.message);
  std::stable_sort(all.begin(), all.end(),
                   [](auto &a, auto &b) { return std::pair(a.offset, a.size) < std::pair(b.offset, b.size); });
  uint64_t at = 0;
  for (WeightInfo &info : all) {
    if (info.offset != at)
      return modelError("tensor '" + info.name + "' begins at byte " + std::to_string(info.offset) +
                        " of the data, expected " + std::to_string(at) + ": tensors overlap or leave a hole");
    at += info.size;
    info.offset += dataStart;
    info.packing = packings[info.name];
  }
  if (at != dataSize)
    return modelError("safetensors: " + std::to_string(dataSize - at) + " bytes after the last tensor");
  std::erase_if(all, [](const WeightInfo &info) { return isFiller(info.name); });
  return all;
}

} // namespace dmxc::bundle
