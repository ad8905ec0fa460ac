//===- Payloads.cpp - parameters, buffers and constants -------------------===//
#include "Payloads.h"
#include "../Program.h"
#include "Pickle.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace dmxc::torchfe {
namespace {

/// Larger tensors are no model's; keeps all arithmetic on sizes far from overflow.
constexpr int64_t kMaxElements = int64_t(1) << 46;

constexpr int64_t kMaxGathered = int64_t(1) << 28;

/// A single component of a path, so that nothing outside the archive can be meant.
bool isPlainName(const std::string &name) {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

/// Elements of a view and of the storage it reaches into; nothing where a number is negative or too large.
struct Extent {
  int64_t elements, reach;
};
std::optional<Extent> extentOf(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides, int64_t offset) {
  if (sizes.size() != strides.size() || sizes.size() > 64 || offset < 0 || offset > kMaxElements)
    return std::nullopt;
  Extent extent{1, offset + 1};
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0 || sizes[i] > kMaxElements || strides[i] > kMaxElements)
      return std::nullopt;
    __int128 elements = static_cast<__int128>(extent.elements) * sizes[i];
    __int128 reach = extent.reach + (sizes[i] > 1 ? static_cast<__int128>(sizes[i] - 1) * strides[i] : 0);
    if (elements > kMaxElements || (!empty && reach > kMaxElements))
      return std::nullopt;
    extent = {static_cast<int64_t>(elements), empty ? 0 : static_cast<int64_t>(reach)};
  }
  if (empty)
    extent = {0, 0};
  return extent;
}

bool isContiguous(const std::vector<int64_t> &sizes, const std::vector<int64_t> &strides) {
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected *= sizes[i];
  }
  return true;
}

/// The elements of a view in row-major order.
Tensor gathered(DType type, const Shape &sizes, const std::vector<int64_t> &strides, const std::byte *base) {
  Tensor result(type, sizes);
  size_t width = dtypeBits(type) / 8;
  std::vector<int64_t> index(sizes.size(), 0);
  int64_t from = 0;
  std::byte *to = result.mutableData();
  for (int64_t left = result.numElements(); left > 0; --left, to += width) {
    std::memcpy(to, base + from * width, width);
    for (size_t axis = sizes.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < sizes[axis])
        break;
      from -= strides[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return result;
}

/// Numbers of a table; a symbol has no place there.
bool numbersOf(const std::vector<SymInt> &list, std::vector<int64_t> &numbers) {
  for (const SymInt &size : list) {
    if (!size.expression.empty())
      return false;
    numbers.push_back(size.number);
  }
  return true;
}

std::string listText(const std::vector<int64_t> &list) {
  std::string text;
  for (int64_t number : list)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

/// What is larger than kMaxElements stays so.
int64_t twice(int64_t number) { return std::clamp(number, -kMaxElements, kMaxElements + 1) * 2; }

} // namespace

void Payloads::View::splitComplex(std::optional<DType> parts) {
  if (!parts)
    return;
  dtype = parts;
  isComplex = true;
  offset = twice(offset);
  std::transform(strides.begin(), strides.end(), strides.begin(), twice);
  sizes.push_back(2);
  strides.push_back(1);
}

Status Payloads::addTable(const Archive &archive, const std::string &folder, const std::string &model) {
  std::string prefix = "data/" + folder + "/", where = prefix + model + "_" + folder + "_config.json";
  const Record *table = archive.find(where);
  if (!table)
    return Status::ok();
  auto configs = readPayloadConfig(table->text(), where);
  if (!configs)
    return configs.takeError();
  for (const auto &[name, config] : *configs) {
    View view;
    view.recordName = prefix + config.file;
    view.pickled = config.pickled;
    if (!isPlainName(config.file))
      return modelError("record '" + where + "': the path '" + config.file.substr(0, 200) + "' of '" + name +
                        "' is no name of a record");
    view.dtype = dtypeOfSchema(config.meta.dtype);
    view.typeName = schemaTypeName(config.meta.dtype);
    if (!config.meta.offset.expression.empty() || !numbersOf(config.meta.sizes, view.sizes) ||
        !numbersOf(config.meta.strides, view.strides))
      return modelError("record '" + where + "': the shape of '" + name + "' is symbolic");
    view.offset = config.meta.offset.number;
    view.splitComplex(dtypeOfComplexParts(config.meta.dtype));
    if (const Record *record = archive.find(view.recordName))
      view.record = *record;
    views[name] = std::move(view);
  }
  return Status::ok();
}

Status Payloads::addPickle(const Archive &archive, const std::string &name) {
  const Record *outer = archive.find(name);
  if (!outer || outer->bytes.empty())
    return Status::ok();
  auto wrong = [&](const Error &error) { return Error{error.kind, "record '" + name + "': " + error.message}; };
  Result<Archive> inner = Archive::read(outer->bytes, outer->offset);
  if (!inner)
    return wrong(inner.error());
  if (const Record *order = inner->find("byteorder"); order && order->text() != "little")
    return wrong(modelError("its tensors are not little-endian"));
  const Record *pickle = inner->find("data.pkl");
  if (!pickle)
    return wrong(modelError("it has no data.pkl, so it is no torch.save file"));
  auto tensors = readPickledTensors(pickle->bytes);
  if (!tensors)
    return wrong(tensors.error());
  for (auto &[key, tensor] : *tensors) {
    View view;
    view.dtype = tensor.dtype;
    view.typeName = tensor.typeName;
    view.recordName = name + ":data/" + tensor.storage;
    if (const Record *record = inner->find("data/" + tensor.storage))
      view.record = *record;
    view.offset = tensor.offset;
    view.sizes = std::move(tensor.sizes);
    view.strides = std::move(tensor.strides);
    view.splitComplex(tensor.parts);
    views[key] = std::move(view);
  }
  return Status::ok();
}

Result<Payload> Payloads::read(const std::string &name) const {
  Result<Payload> payload = readParts(name);
  if (payload)
    payload->isComplex = views.at(name).isComplex;
  return payload;
}

Result<Payload> Payloads::readParts(const std::string &name) const {
  const View &view = views.at(name);
  auto wrong = [&](const std::string &what) {
    return modelError("record '" + view.recordName + "', tensor '" + name + "': " + what);
  };
  if (view.pickled)
    return wrong("it is a pickled object, not plain bytes; save the program with plain tensors");
  if (!view.dtype)
    return wrong("its element type " + view.typeName + " has no tensor meaning here");
  std::optional<Extent> extent = extentOf(view.sizes, view.strides, view.offset);
  if (!extent)
    return wrong("sizes " + listText(view.sizes) + ", strides " + listText(view.strides) + " and offset " +
                 std::to_string(view.offset) + " are not those of a tensor");
  Shape sizes = view.sizes;
  if (extent->elements == 0)
    return Payload{Tensor(*view.dtype, sizes)};
  if (!view.record)
    return wrong("the archive has no such record");
  if (view.record->bytes.empty())
    return wrong("the record is empty: the program was saved without its weights");
  uint64_t width = dtypeBits(*view.dtype) / 8;
  if (static_cast<uint64_t>(extent->reach) > view.record->bytes.size() / width)
    return wrong("it needs " + std::to_string(extent->reach * width) + " bytes, the record has " +
                 std::to_string(view.record->bytes.size()));
  const std::byte *base = view.record->bytes.data() + view.offset * width;
  if (isContiguous(view.sizes, view.strides))
    return Payload{Tensor(*view.dtype, sizes, base, file), true, view.record->offset + view.offset * width};
  // Strides of 0 repeat elements: a few bytes could ask for any amount of memory.
  if (extent->elements > extent->reach && extent->elements > kMaxGathered)
    return wrong("sizes " + listText(view.sizes) + " repeat its elements too often");
  return Payload{gathered(*view.dtype, sizes, view.strides, base)};
}

std::vector<std::string> Payloads::names() const {
  std::vector<std::string> list;
  for (const auto &[name, view] : views)
    list.push_back(name);
  return list;
}

} // namespace dmxc::torchfe
