//===- CarriedMemory.cpp - caches that are outputs of a run and inputs of the next ===//
#include "Memory.h"

#include "dmxc/Support/Visible.h"

#include <algorithm>
#include <cstring>

namespace dmxc::tools {

namespace {

constexpr size_t kAlignment = 64;

/// Bytes that may be more than are used, so that a cache that grows seldom moves.
class Room {
public:
  Status reserve(uint64_t bytes, const std::string &what) {
    if (bytes <= size)
      return Status::ok();
    uint64_t wanted = (bytes + bytes / 2 + kAlignment - 1) / kAlignment * kAlignment;
    auto tensor = newTensor(DType::U8, {static_cast<int64_t>(wanted)}, what);
    if (!tensor)
      return tensor.takeError();
    memory = std::move(*tensor);
    size = wanted;
    return Status::ok();
  }
  std::byte *data() { return memory.mutableData(); }

private:
  Tensor memory;
  uint64_t size = 0;
};

struct Cache {
  CacheRole role;
  std::string name;
  DType dtype = DType::F32;
  Shape shape;         ///< as it is now
  Room now, next;      ///< of the run's input and output
  bool isLate = false; ///< the output lies in the session: its shape is known behind the run
  uint64_t bytes() const { return dtypeBytes(dtype, elementCount(shape)); }
  dmx_tensor_view view(Room &room) const {
    return {static_cast<dmx_dtype>(dtype) + 1, static_cast<uint32_t>(shape.size()), shape.data(), room.data()};
  }
};

class CarriedMemory : public Memory {
public:
  CarriedMemory(bool hasPositions, int64_t context) : hasPositions(hasPositions), context(context) {}

  /// `result`: what it is in the next run, which may know extents that the input leaves open.
  Status add(const IoTensor &tensor, const IoTensor &result, const CacheRole &role) {
    Cache cache;
    cache.role = role;
    cache.name = tensor.name;
    cache.dtype = tensor.dtype;
    for (size_t axis = 0; axis < tensor.dims.size(); ++axis) {
      const IoDim &dim = tensor.dims[axis], &after = result.dims[axis];
      bool grows = axis == role.axis;
      int64_t known = dim.min == dim.max       ? dim.min
                      : after.min == after.max ? after.min
                                               : 1; // what is open is the batch
      if (axis == role.room)
        known = std::min(context ? context : kNoLimit, dim.max);
      if (known == kNoLimit)
        return modelError("the cache '" + visible(tensor.name) + "' (" + visible(tensor.str()) +
                          ") has one size in all runs and does not say which; --context N gives it room for N tokens");
      cache.shape.push_back(grows ? 0 : known);
      if (grows && dim.max < kNoLimit)
        mostTokens = std::min(mostTokens, dim.max + 1); // the last token's run gets one less
    }
    if (role.axis && isPacked(tensor.dtype))
      return modelError("the cache '" + visible(tensor.name) + "' grows and has more than one element a byte, " +
                        std::string(dtypeName(tensor.dtype)) + ", which dmx-generate cannot carry");
    // Behind the heads by custom: batch x heads x tokens x size.
    if (!role.axis && hasPositions && tensor.dims.size() >= 3)
      mostTokens = std::min(mostTokens, cache.shape[role.room.value_or(cache.shape.size() - 2)]);
    hasFixed |= !role.axis;
    if (Status done = cache.now.reserve(std::max<uint64_t>(cache.bytes(), 1), what(cache)); !done)
      return done;
    caches.push_back(std::move(cache));
    return Status::ok();
  }

  Status bind(ModelSession &session, int64_t) override {
    moved = 0;
    for (Cache &cache : caches) {
      moved += cache.bytes();
      if (Status done = session.bind(DMX_INPUT, cache.role.input, cache.view(cache.now)); !done)
        return done;
    }
    for (Cache &cache : caches) {
      auto shape = session.outputShape(cache.role.output);
      if (!shape)
        return shape.takeError();
      cache.isLate = cache.isLate || !*shape;
      if (cache.isLate) {
        if (Status done = session.unbind(DMX_OUTPUT, cache.role.output); !done)
          return done;
        continue;
      }
      cache.shape = **shape; // from here on: the input is bound
      if (Status done = cache.next.reserve(std::max<uint64_t>(cache.bytes(), 1), what(cache)); !done)
        return done;
      if (Status done = session.bind(DMX_OUTPUT, cache.role.output, cache.view(cache.next)); !done)
        return done;
      moved += cache.bytes();
    }
    return Status::ok();
  }

  Status keep(ModelSession &session) override {
    for (Cache &cache : caches) {
      if (!cache.isLate) {
        std::swap(cache.now, cache.next);
        continue;
      }
      auto view = session.outputView(cache.role.output);
      if (!view)
        return view.takeError();
      cache.shape.assign(view->dims, view->dims + view->rank);
      if (Status done = cache.now.reserve(std::max<uint64_t>(cache.bytes(), 1), what(cache)); !done)
        return done;
      if (cache.bytes())
        std::memcpy(cache.now.data(), view->data, cache.bytes());
      moved += cache.bytes();
    }
    return Status::ok();
  }

  Status truncate(ModelSession &, int64_t length, int64_t kept) override {
    for (Cache &cache : caches) {
      if (!cache.role.axis) {
        if (!kept)
          std::memset(cache.now.data(), 0, cache.bytes());
        continue;
      }
      int64_t &extent = cache.shape[*cache.role.axis];
      if (kept && extent != length)
        return modelError("the cache '" + visible(cache.name) + "' has " + std::to_string(extent) + " tokens of " +
                          std::to_string(length) + ", so that single ones cannot be forgotten; leave --lookup away");
      keepFirst(cache, kept);
      extent = kept;
    }
    return Status::ok();
  }

  /// A cache of one size without positions may be a sum over all tokens.
  bool forgetsSingleTokens() const override { return !hasFixed || hasPositions; }
  int64_t room() const override { return mostTokens; }
  uint64_t bytesMoved() const override { return moved; }

private:
  static std::string what(const Cache &cache) { return "the cache '" + cache.name + "'"; }

  static void keepFirst(Cache &cache, int64_t kept) {
    size_t axis = *cache.role.axis;
    const Shape &shape = cache.shape;
    int64_t rows = elementCount(std::span(shape).first(axis));
    uint64_t row = dtypeBytes(cache.dtype, elementCount(std::span(shape).subspan(axis + 1)));
    for (int64_t i = 1; i < rows; ++i)
      std::memmove(cache.now.data() + i * kept * row, cache.now.data() + i * shape[axis] * row, kept * row);
  }

  std::vector<Cache> caches;
  const bool hasPositions;
  const int64_t context;
  bool hasFixed = false;
  int64_t mostTokens = kNoLimit;
  uint64_t moved = 0;
};

} // namespace

Result<std::unique_ptr<Memory>> carriedMemory(const ModelSession &session, const Roles &roles, int64_t context) {
  auto memory = std::make_unique<CarriedMemory>(roles.positions || roles.mask, context);
  for (const CacheRole &role : roles.caches)
    if (Status done = memory->add(session.inputs()[role.input], session.outputs()[role.output], role); !done)
      return done.takeError();
  return std::unique_ptr<Memory>(std::move(memory));
}

} // namespace dmxc::tools
