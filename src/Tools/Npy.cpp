//===- Npy.cpp - tensors in NumPy files -----------------------------------===//
//
// The format: numpy/lib/format.py. Magic, version, length of the header, a
// Python dict as text, then the elements.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Tools/TensorFile.h"

#include "schemas/Size.h"

#include <algorithm>
#include <cstring>

namespace dmxc::tools {

namespace {

constexpr std::string_view magic("\x93NUMPY", 6);

struct Header {
  char order = '|'; ///< '<', '>', '|' or '='
  char kind = 0;    ///< 'f', 'i', 'u', 'b', 'V', ...
  int64_t width = 0;
  bool fortran = false;
  Shape shape;
};

/// Reads the dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2,
/// 3), }.
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : rest(text) {}

  bool parse(Header &header) {
    if (!eat('{'))
      return false;
    while (!eat('}')) {
      std::string key;
      if (!string(key) || !eat(':') || !value(key, header))
        return false;
      eat(',');
    }
    return header.width > 0 && sawShape;
  }

private:
  void skip() {
    size_t at = rest.find_first_not_of(" \n\t");
    rest.remove_prefix(std::min(at, rest.size()));
  }
  bool eat(char c) {
    skip();
    if (rest.empty() || rest.front() != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  bool eat(std::string_view word) {
    skip();
    if (!rest.starts_with(word))
      return false;
    rest.remove_prefix(word.size());
    return true;
  }
  bool string(std::string &out) {
    skip();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return false;
    size_t end = rest.find(rest[0], 1);
    if (end == std::string_view::npos)
      return false;
    out = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool integer(int64_t &out) {
    skip();
    size_t used = 0;
    out = 0;
    while (used < rest.size() && rest[used] >= '0' && rest[used] <= '9') {
      if (__builtin_mul_overflow(out, int64_t(10), &out) ||
          __builtin_add_overflow(out, int64_t(rest[used] - '0'), &out))
        return false;
      ++used;
    }
    rest.remove_prefix(used);
    eat('L'); // Python 2 wrote (3L, 4L)
    return used > 0;
  }
  bool value(const std::string &key, Header &header) {
    if (key == "fortran_order") {
      header.fortran = eat("True");
      return header.fortran || eat("False");
    }
    if (key == "descr") {
      std::string descr;
      if (!string(descr) || descr.size() < 3)
        return false;
      header.order = descr[0];
      header.kind = descr[1];
      HeaderParser number(std::string_view(descr).substr(2));
      return number.integer(header.width) && number.rest.empty();
    }
    if (key != "shape" || !eat('('))
      return false;
    sawShape = true;
    while (!eat(')')) {
      int64_t dim;
      if (!integer(dim))
        return false;
      header.shape.push_back(dim);
      eat(',');
    }
    return true;
  }

  std::string_view rest;
  bool sawShape = false;
};

std::optional<DType> plainType(char kind, int64_t width) {
  if (kind == 'b' && width == 1)
    return DType::Bool;
  for (DType type : {DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64,
                     DType::F16, DType::F32, DType::F64})
    if (kind == (isFloat(type) ? 'f' : isSignedInt(type) ? 'i' : 'u') && width * 8 == dtypeBits(type))
      return type;
  return std::nullopt;
}

bool isNarrowFloat(DType type) { return isFloat(type) && dtypeBits(type) == 8; }

/// The element type of the file; with `unpacked` set when a packed type lies one
/// element a byte.
std::optional<DType> elementType(const Header &h, std::optional<DType> expected, bool &unpacked) {
  unpacked = false;
  if (expected && *expected == DType::BF16 && h.kind == 'V' && h.width == 2)
    return DType::BF16;
  bool byte = h.width == 1 && (h.kind == 'V' || h.kind == 'u' || h.kind == 'i');
  if (expected && byte && isNarrowFloat(*expected) && h.kind != 'i')
    return expected;
  if (expected && byte && isPacked(*expected)) {
    unpacked = true;
    return expected;
  }
  return plainType(h.kind, h.width);
}

Error bad(const std::string &path, const std::string &what) { return ioError("cannot read '" + path + "': " + what); }

void swapBytes(std::byte *data, uint64_t count, uint64_t width) {
  for (uint64_t i = 0; i < count; ++i)
    std::reverse(data + i * width, data + (i + 1) * width);
}

/// Copies elements stored first-axis-fastest into row-major order.
void fromFortran(const std::byte *from, std::byte *to, const Shape &shape, uint64_t width) {
  size_t rank = shape.size();
  std::vector<uint64_t> strides(rank);
  uint64_t stride = width;
  for (size_t axis = 0; axis < rank; ++axis) {
    strides[axis] = stride;
    stride *= static_cast<uint64_t>(shape[axis]);
  }
  std::vector<int64_t> index(rank);
  uint64_t offset = 0;
  for (int64_t left = elementCount(shape); left > 0; --left) {
    std::memcpy(to, from + offset, width);
    to += width;
    for (size_t axis = rank; axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis])
        break;
      offset -= strides[axis] * static_cast<uint64_t>(shape[axis]);
      index[axis] = 0;
    }
  }
}

Result<Tensor> pack(const std::string &path, DType type, const Header &header, const std::byte *bytes) {
  Tensor tensor(type, header.shape);
  int64_t count = tensor.numElements();
  int patterns = 1 << dtypeBits(type);
  int low = isSignedInt(type) ? -patterns / 2 : 0, high = low + patterns - 1;
  for (int64_t i = 0; i < count; ++i) {
    int value = header.kind == 'i' ? static_cast<int8_t>(bytes[i]) : static_cast<uint8_t>(bytes[i]);
    if (value < low || value > high)
      return bad(path, "element " + std::to_string(i) + " is " + std::to_string(value) + ", out of range for " +
                           std::string(dtypeName(type)));
    setPackedBits(type, tensor.mutableData(), i, static_cast<uint8_t>(value));
  }
  return tensor;
}

/// Bytes of the elements as they lie in the file; nothing on overflow.
std::optional<uint64_t> storedBytes(const Header &header) {
  dmx::Size bytes = header.width;
  for (int64_t dim : header.shape)
    bytes *= dim;
  return bytes.isKnown() ? std::optional(bytes.value()) : std::nullopt;
}

Result<Tensor> decode(const std::string &path, const Header &header, std::optional<DType> expected,
                      std::span<const std::byte> data, std::shared_ptr<const void> owner) {
  bool unpacked = false;
  std::optional<DType> type = elementType(header, expected, unpacked);
  std::string descr = std::string(1, header.order) + header.kind + std::to_string(header.width);
  if (!type)
    return bad(path, "its element type '" + descr + "' is not one a tensor can have" +
                         (expected ? " (expected " + std::string(dtypeName(*expected)) + ")" : ""));
  std::optional<uint64_t> size = storedBytes(header);
  if (!size || *size > data.size())
    return bad(path, "shape " + shapeString(header.shape) + " of '" + descr + "' needs more than the " +
                         std::to_string(data.size()) + " bytes after the header; the file is truncated");
  if (unpacked)
    return pack(path, *type, header, data.data());
  uint64_t width = static_cast<uint64_t>(header.width);
  bool swapped = header.order == '>' && width > 1;
  bool aligned = reinterpret_cast<uintptr_t>(data.data()) % width == 0;
  bool fortran = header.fortran && header.shape.size() > 1;
  if (!swapped && !fortran && aligned)
    return Tensor(*type, header.shape, data.data(), std::move(owner));
  Tensor tensor(*type, header.shape);
  if (fortran)
    fromFortran(data.data(), tensor.mutableData(), header.shape, width);
  else if (*size)
    std::memcpy(tensor.mutableData(), data.data(), *size);
  if (swapped)
    swapBytes(tensor.mutableData(), *size / width, width);
  return tensor;
}

std::string descrOf(DType type) {
  switch (type) {
  case DType::Bool:
    return "|b1";
  case DType::BF16:
    return "|V2";
  case DType::I2:
  case DType::I4:
    return "|i1";
  case DType::U2:
  case DType::U4:
    return "|u1";
  case DType::F8E4M3FN:
  case DType::F8E4M3FNUZ:
  case DType::F8E5M2:
  case DType::F8E5M2FNUZ:
  case DType::F4E2M1:
  case DType::F8E8M0:
    return "|V1";
  default:
    break;
  }
  unsigned width = dtypeBits(type) / 8;
  return std::string(width == 1 ? "|" : "<") +
         (isFloat(type)       ? 'f'
          : isSignedInt(type) ? 'i'
                              : 'u') +
         std::to_string(width);
}

std::string npyHeader(const Tensor &tensor) {
  std::string shape;
  for (int64_t dim : tensor.shape())
    shape += std::to_string(dim) + (tensor.rank() == 1 ? "," : ", ");
  if (tensor.rank() > 1)
    shape.resize(shape.size() - 2);
  std::string dict = "{'descr': '" + descrOf(tensor.dtype()) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  dict.append(63 - (dict.size() + 10) % 64, ' ');
  dict += '\n';
  std::string text(magic);
  text += {'\x01', '\0', static_cast<char>(dict.size()), static_cast<char>(dict.size() >> 8)};
  return text + dict;
}

} // namespace

Result<Tensor> readNpy(const std::string &path, std::optional<DType> expected) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  std::span<const std::byte> bytes = (*file)->bytes();
  std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(magic) || text.size() < 10)
    return bad(path, "not a NumPy file (.npy)");
  unsigned major = static_cast<unsigned char>(text[6]);
  if (major < 1 || major > 3)
    return bad(path, "NumPy format " + std::to_string(major) + " is not known; 1 to 3 are");
  uint64_t length = 0, start = major == 1 ? 10 : 12;
  if (text.size() < start)
    return bad(path, "the file is truncated");
  std::memcpy(&length, text.data() + 8, start - 8);
  Header header;
  if (length > text.size() - start || !HeaderParser(text.substr(start, length)).parse(header))
    return bad(path, "its header is not one of a plain array (structured types, "
                     "objects and strings are not tensors)");
  return decode(path, header, expected, bytes.subspan(start + length), *file);
}

Status writeNpy(const std::string &path, const Tensor &tensor) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  Status done = (*file)->write(npyHeader(tensor));
  if (DType type = tensor.dtype(); isPacked(type)) {
    for (int64_t i = 0; done && i < tensor.numElements(); ++i) {
      uint8_t bits = packedBits(type, tensor.data(), i);
      auto value = static_cast<std::byte>(isSignedInt(type) ? signExtended(type, bits) : bits);
      done = (*file)->write({&value, 1});
    }
  } else if (done) {
    done = (*file)->write({tensor.data(), tensor.byteSize()});
  }
  return done ? (*file)->commit(Durability::Process) : done;
}

} // namespace dmxc::tools
