//===- WireReader.h - a model's bytes without its weights -------*- C++ -*-===//
//
// libprotobuf copies every byte of a message and stops at 2 GiB. Weights must
// be neither copied nor limited, so the mapped file is first walked at the wire
// level and copied without them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"

#include <cstddef>
#include <span>
#include <string>

namespace dmxc::onnxfe {

/// Raw tensor data longer than this stays in the file.
inline constexpr uint64_t kCutBytes = 256;

/// A serialised ModelProto equal to the one in `file`, except that
/// - TensorProto.raw_data of more than kCutBytes is left out and its place in
/// the file is put into
///   TensorProto.segment as [begin, end) (segments of the file itself are
///   refused: nothing can forge one);
/// - doc strings and training information are left out.
/// Fails, with the byte offset, on anything that is not well-formed protobuf.
/// Thread-safe.
Result<std::string> slimModel(std::span<const std::byte> file);

} // namespace dmxc::onnxfe
