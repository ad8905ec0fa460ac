//===- States.cpp - lengths of states, and copies of states ----------------===//

#include "Session.h"
#include "runtime/bundle/DType.h"

#include <algorithm>
#include <cstring>

namespace dmxrt {

//===----------------------------------------------------------------------===//
// Of a frame
//===----------------------------------------------------------------------===//

/// The rows that are there; an error where those of the run would have no room. The dims that tell that come before.
Result<int64_t> Frame::lengthDim(const Dim &dim) {
  size_t index = static_cast<size_t>(&dim - graph.dims.data());
  dims[index] = lengths[index];
  auto next = graph.exprs.evaluate(dim.next, dims);
  if (!next)
    return within(cat("length '", dim.name, "'"), next.takeError());
  if (*next < 0 || *next > dim.max)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "states of length '", dim.name, "': the run needs ", *next,
                " rows, of which ", lengths[index], " are there, and the session has room for ", dim.max,
                "; run fewer at once, truncate them, or compile with more: --dim ", dim.name, "=0..N");
  nextLengths[index] = *next;
  return lengths[index];
}

void Frame::advanceLengths() {
  for (size_t i = 0; i < graph.dims.size(); ++i)
    if (graph.dims[i].isLength) {
      lengths[i] = nextLengths[i];
      lengthsChanged = true;
    }
}

Result<uint32_t> Frame::findLength(const char *name) const {
  std::string known;
  for (uint32_t i = 0; i < graph.dims.size(); ++i) {
    if (!graph.dims[i].isLength)
      continue;
    if (!name || graph.dims[i].name == name)
      return i;
    known += cat(known.empty() ? "" : ", ", "'", graph.dims[i].name, "'");
  }
  if (known.empty())
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the entry point has no states with a length; compile it with --state");
  return fail(DMX_STATUS_INVALID_ARGUMENT, "there is no length '", name, "'; there are ", known);
}

bool Frame::mayHave(std::span<const int64_t> given) const {
  for (size_t i = 0; i < graph.dims.size(); ++i)
    if (given[i] < 0 || given[i] > (graph.dims[i].isLength ? graph.dims[i].max : 0))
      return false;
  return true;
}

int64_t Frame::longest() const { return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end()); }

void Frame::truncate(uint32_t dim, int64_t length) {
  for (size_t i = 0; i < lengths.size(); ++i)
    if (dim == kNone || i == dim)
      lengths[i] = std::min(lengths[i], length);
  lengthsChanged = true;
}

Status Frame::checkStatesOnHost() const {
  for (const Buffer &buffer : graph.buffers)
    if (buffer.kind == BufferKind::State && buffer.device != kNone && !runsOnHost(graph.targets[buffer.device]))
      return fail(DMX_STATUS_UNSUPPORTED, "target '", graph.targets[buffer.device],
                  "' keeps a state to itself; states of the host alone are copied");
  return {};
}

Frame::Rows Frame::rowsOf(size_t index, std::span<const int64_t> given) const {
  const Buffer &buffer = graph.buffers[index];
  if (buffer.length == kNone)
    return {1, states[index].size, 0};
  Rows rows;
  uint64_t row = dmx_dtype_bits(buffer.dtype), room = 1;
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    int64_t extent = 0;
    graph.exprs.isConstant(buffer.shape[axis], extent);
    (axis < buffer.axis ? rows.count : axis == buffer.axis ? room : row) *= static_cast<uint64_t>(extent);
  }
  rows.bytes = row * static_cast<uint64_t>(given[buffer.length]) / 8;
  rows.stride = row * room / 8;
  return row % 8 ? Rows{1, states[index].size, 0} : rows; // of few bits and no whole bytes
}

uint64_t Frame::stateBytes(std::span<const int64_t> given) const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].data) {
      Rows rows = rowsOf(i, given);
      bytes += rows.count * rows.bytes;
    }
  return bytes;
}

template <typename Visit> void Frame::forEachRun(Visit visit) const {
  for (size_t i = 0; i < states.size(); ++i) {
    auto *at = static_cast<std::byte *>(states[i].data);
    const Rows rows = at ? rowsOf(i, lengths) : Rows{0};
    for (uint64_t k = 0; k < rows.count && rows.bytes; ++k)
      visit(i, at + k * rows.stride, k * rows.stride, rows.bytes);
  }
}

std::byte *Frame::saveStates(std::byte *out) const {
  forEachRun([&](size_t, const std::byte *from, uint64_t, uint64_t bytes) {
    std::memcpy(out, from, bytes);
    out += bytes;
  });
  return out;
}

const std::byte *Frame::loadStates(const std::byte *in, std::span<const int64_t> given) {
  std::copy(given.begin(), given.end(), lengths.begin());
  lengthsChanged = true;
  forEachRun([&](size_t, std::byte *to, uint64_t, uint64_t bytes) {
    std::memcpy(to, in, bytes);
    in += bytes;
  });
  return in;
}

void Frame::copyStates(const Frame &other) {
  lengths = other.lengths;
  lengthsChanged = true;
  forEachRun([&](size_t state, std::byte *to, uint64_t offset, uint64_t bytes) {
    std::memcpy(to, static_cast<const std::byte *>(other.states[state].data) + offset, bytes);
  });
}

//===----------------------------------------------------------------------===//
// Of a session
//===----------------------------------------------------------------------===//

namespace {

/// What is before the states' bytes, and the lengths, one i64 for each dim of the entry point's graph.
struct SavedHeader {
  char magic[8];
  char bundle[64]; // sha256 of the manifest, in hex
  uint32_t graph = 0, dims = 0;
};
constexpr char kMagic[8] = {'d', 'm', 'x', 's', 't', 'a', 't', '1'};

} // namespace

Status Session::stateLength(const char *name, int64_t &length, int64_t &capacity) const {
  auto dim = frame->findLength(name);
  if (!dim)
    return dim.takeError();
  length = frame->lengthOf(*dim);
  capacity = frame->roomOf(*dim);
  return {};
}

Status Session::truncateStates(const char *name, int64_t length) {
  auto dim = frame->findLength(name);
  if (!dim)
    return dim.takeError();
  int64_t most = name ? frame->lengthOf(*dim) : frame->longest();
  if (length < 0 || length > most)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "argument length is ", length, ", and there are ", most, " rows");
  frame->truncate(name ? *dim : kNone, length);
  return {};
}

Status Session::checkStatesOnHost() const {
  for (const Frame *each : frames)
    if (Status status = each->checkStatesOnHost(); !status)
      return status;
  return {};
}

Status Session::copyStates(const Session &from) {
  if (from.machinery.bundle->archive().manifestSha256() != machinery.bundle->archive().manifestSha256() ||
      from.signature.graph != signature.graph)
    return fail(DMX_STATUS_INVALID_ARGUMENT,
                "the sessions are of different bundles or entry points; make both from one bundle");
  if (Status status = checkStatesOnHost(); !status)
    return status;
  for (size_t i = 0; i < frames.size(); ++i)
    frames[i]->copyStates(*from.frames[i]);
  return {};
}

Status Session::saveStates(std::byte *data, size_t &size) const {
  if (Status status = checkStatesOnHost(); !status)
    return status;
  std::span<const int64_t> lengths = frame->lengthValues();
  size_t needed = sizeof(SavedHeader) + lengths.size_bytes();
  for (const Frame *each : frames)
    needed += each->stateBytes(each->lengthValues());
  size_t room = std::exchange(size, needed);
  if (!data)
    return {};
  if (room < needed)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "there is room for ", room, " bytes, and the states take ", needed);
  SavedHeader header;
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  std::memcpy(header.bundle, machinery.bundle->archive().manifestSha256().data(), sizeof header.bundle);
  header.graph = static_cast<uint32_t>(signature.graph);
  header.dims = static_cast<uint32_t>(lengths.size());
  std::memcpy(data, &header, sizeof header);
  std::memcpy(data + sizeof header, lengths.data(), lengths.size_bytes());
  std::byte *out = data + sizeof header + lengths.size_bytes();
  for (const Frame *each : frames)
    out = each->saveStates(out);
  return {};
}

Status Session::loadStates(std::span<const std::byte> saved) {
  if (Status status = checkStatesOnHost(); !status)
    return status;
  SavedHeader header;
  if (saved.size() < sizeof header || std::memcmp(saved.data(), kMagic, sizeof kMagic) != 0)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "these ", saved.size(),
                " bytes are no saved states; give those of dmx_session_state_save");
  std::memcpy(&header, saved.data(), sizeof header);
  const std::string &own = machinery.bundle->archive().manifestSha256();
  if (own.compare(0, sizeof header.bundle, header.bundle, sizeof header.bundle) != 0 ||
      header.graph != static_cast<uint32_t>(signature.graph))
    return fail(DMX_STATUS_INVALID_ARGUMENT,
                "the saved states are of another bundle or entry point; load them where they were saved");
  std::vector<int64_t> lengths(frame->lengthValues().size());
  uint64_t rest = saved.size() - sizeof header, needed = lengths.size() * sizeof(int64_t);
  bool fits = header.dims == lengths.size() && rest >= needed;
  if (fits) {
    std::memcpy(lengths.data(), saved.data() + sizeof header, needed);
    fits = frame->mayHave(lengths);
  }
  for (const Frame *each : frames)
    needed +=
        fits ? each->stateBytes(each == frame.get() ? std::span<const int64_t>(lengths) : each->lengthValues()) : 0;
  if (!fits || needed != rest)
    return fail(DMX_STATUS_INVALID_ARGUMENT, "the saved states are damaged: their lengths ask for other than these ",
                saved.size(), " bytes");
  const std::byte *in = saved.data() + sizeof header + lengths.size() * sizeof(int64_t);
  for (Frame *each : frames)
    in = each == frame.get() ? each->loadStates(in, lengths) : each->loadStates(in, each->lengthValues());
  return {};
}

} // namespace dmxrt
