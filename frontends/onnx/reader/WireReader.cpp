//===- WireReader.cpp - a model's bytes without its weights ---------------===//
#include "WireReader.h"

#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>

namespace dmxc::onnxfe {
namespace {

/// The messages that can contain a tensor, directly or not.
enum class Message { Model, Graph, Node, Attribute, Tensor, SparseTensor, Function };

const char *nameOf(Message message) {
  switch (message) {
  case Message::Model:
    return "ModelProto";
  case Message::Graph:
    return "GraphProto";
  case Message::Node:
    return "NodeProto";
  case Message::Attribute:
    return "AttributeProto";
  case Message::Tensor:
    return "TensorProto";
  case Message::SparseTensor:
    return "SparseTensorProto";
  case Message::Function:
    return "FunctionProto";
  }
  return "message";
}

/// The message type of a length-delimited field, if it is one to walk into.
std::optional<Message> childOf(Message parent, uint32_t field) {
  switch (parent) {
  case Message::Model:
    if (field == 7)
      return Message::Graph;
    if (field == 25)
      return Message::Function;
    break;
  case Message::Graph:
    if (field == 1)
      return Message::Node;
    if (field == 5)
      return Message::Tensor;
    if (field == 15)
      return Message::SparseTensor;
    break;
  case Message::Node:
    if (field == 5)
      return Message::Attribute;
    break;
  case Message::Attribute:
    if (field == 5 || field == 10)
      return Message::Tensor;
    if (field == 6 || field == 11)
      return Message::Graph;
    if (field == 22 || field == 23)
      return Message::SparseTensor;
    break;
  case Message::SparseTensor:
    if (field == 1 || field == 2)
      return Message::Tensor;
    break;
  case Message::Function:
    if (field == 7)
      return Message::Node;
    if (field == 11)
      return Message::Attribute;
    break;
  case Message::Tensor:
    break;
  }
  return std::nullopt;
}

/// Fields nothing here reads: doc strings of all but the model, inputs and outputs, and ModelProto.training_info.
bool isDropped(Message message, uint32_t field) {
  switch (message) {
  case Message::Model:
    return field == 20;
  case Message::Graph:
    return field == 10;
  case Message::Node:
    return field == 6;
  case Message::Attribute:
    return field == 13;
  case Message::Tensor:
    return field == 12;
  case Message::Function:
    return field == 8;
  case Message::SparseTensor:
    return false;
  }
  return false;
}

constexpr uint32_t kTensorSegment = 3, kTensorRawData = 9;
/// libprotobuf refuses more than 100 levels; stopping earlier gives a better
/// message.
constexpr int kMaxDepth = 96;

void putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

class Walker {
public:
  explicit Walker(std::span<const std::byte> file)
      : data(reinterpret_cast<const uint8_t *>(file.data())), size(file.size()) {}

  Status message(Message kind, uint64_t at, uint64_t end, int depth, std::string &out);

private:
  struct Field {
    uint64_t start; // of the tag
    uint32_t number;
    uint32_t wire;
    uint64_t payload; // first byte of a length-delimited field
    uint64_t length;
    uint64_t next;
  };

  std::optional<uint64_t> varint(uint64_t &at, uint64_t end) const {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at >= end)
        return std::nullopt;
      uint8_t byte = data[at++];
      if (shift == 63 && byte > 1)
        return std::nullopt;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    return std::nullopt;
  }
  Result<Field> field(Message kind, uint64_t at, uint64_t end) const;

  const uint8_t *data;
  uint64_t size;
};

Error malformed(Message kind, uint64_t at, const std::string &what) {
  return modelError("not a valid ONNX file: at byte " + std::to_string(at) + ", in a " + nameOf(kind) + ", " + what);
}

Result<Walker::Field> Walker::field(Message kind, uint64_t at, uint64_t end) const {
  Field f{at, 0, 0, 0, 0, 0};
  uint64_t cursor = at;
  std::optional<uint64_t> tag = varint(cursor, end);
  if (!tag)
    return malformed(kind, at, "a field tag is cut off or longer than 10 bytes");
  if (*tag > UINT32_MAX || (*tag >> 3) == 0)
    return malformed(kind, at, "the field tag " + std::to_string(*tag) + " is out of range");
  f.number = static_cast<uint32_t>(*tag >> 3);
  f.wire = *tag & 7;
  switch (f.wire) {
  case 0:
    if (!varint(cursor, end))
      return malformed(kind, at, "a number is cut off or longer than 10 bytes");
    break;
  case 1:
    f.length = 8;
    break;
  case 5:
    f.length = 4;
    break;
  case 2: {
    std::optional<uint64_t> length = varint(cursor, end);
    if (!length)
      return malformed(kind, at, "a length is cut off or longer than 10 bytes");
    f.length = *length;
    break;
  }
  default:
    return malformed(kind, at,
                     "field " + std::to_string(f.number) + " has wire type " + std::to_string(f.wire) +
                         ", which ONNX does not use");
  }
  if (f.length > end - cursor)
    return malformed(kind, at,
                     "field " + std::to_string(f.number) + " claims " + std::to_string(f.length) + " bytes but only " +
                         std::to_string(end - cursor) + " remain (is the file truncated?)");
  f.payload = cursor;
  f.next = cursor + f.length;
  return f;
}

Status Walker::message(Message kind, uint64_t at, uint64_t end, int depth, std::string &out) {
  if (depth > kMaxDepth)
    return modelError("not a valid ONNX file: messages are nested deeper than " + std::to_string(kMaxDepth) +
                      " levels at byte " + std::to_string(at));
  std::optional<std::pair<uint64_t, uint64_t>> cut;
  while (at < end) {
    Result<Field> parsed = field(kind, at, end);
    if (!parsed)
      return parsed.takeError();
    const Field &f = *parsed;
    at = f.next;
    if (isDropped(kind, f.number))
      continue;
    if (kind == Message::Tensor && f.number == kTensorSegment)
      return malformed(kind, f.start,
                       "a tensor is stored in segments, which no released ONNX "
                       "version defines");
    if (kind == Message::Tensor && f.number == kTensorRawData && f.wire == 2) {
      cut.reset(); // the last occurrence counts
      if (f.length > kCutBytes) {
        cut = {f.payload, f.next};
        continue;
      }
    }
    std::optional<Message> child = f.wire == 2 ? childOf(kind, f.number) : std::nullopt;
    if (!child) {
      out.append(reinterpret_cast<const char *>(data) + f.start, f.next - f.start);
    } else {
      std::string body;
      if (Status status = message(*child, f.payload, f.next, depth + 1, body); !status)
        return status;
      putVarint(out, static_cast<uint64_t>(f.number) << 3 | 2);
      putVarint(out, body.size());
      out += body;
    }
    if (out.size() > INT_MAX)
      return modelError("the model has more than 2 GiB besides its raw tensor "
                        "data; store tensors as raw_data or external data");
  }
  if (cut) {
    std::string segment;
    segment.push_back(1 << 3);
    putVarint(segment, cut->first);
    segment.push_back(2 << 3);
    putVarint(segment, cut->second);
    putVarint(out, kTensorSegment << 3 | 2);
    putVarint(out, segment.size());
    out += segment;
  }
  return Status::ok();
}

} // namespace

Result<std::string> slimModel(std::span<const std::byte> file) {
  if (file.empty())
    return modelError("the file is empty; expected an ONNX model");
  std::string out;
  Walker walker(file);
  if (Status status = walker.message(Message::Model, 0, file.size(), 0, out); !status)
    return status.takeError();
  return out;
}

} // namespace dmxc::onnxfe
