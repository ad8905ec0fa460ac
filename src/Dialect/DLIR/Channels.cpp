//===- Channels.cpp - rules of a program's channels -----------------------===//
#include "Channels.h"

#include "dmxc/Dialect/DLIR/Sum.h"

#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;
using namespace dmxc::dlir;

static constexpr int64_t kMostElements = 1 << 20;

static int64_t productOf(ArrayRef<int64_t> extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    if (llvm::MulOverflow(count, extent, count))
      return INT64_MAX;
  return count;
}

LogicalResult ChannelOp::verify() {
  const DeviceModel *model = modelOf(*this);
  if (!model || !model->channels)
    return emitOpError("C1: the device has no channels");
  if (static_cast<int64_t>(getDepth()) < 1)
    return emitOpError("C2: a depth of ") << static_cast<int64_t>(getDepth());
  if (!getExtents())
    return success();
  if (!model->arrays)
    return emitOpError("C3: the device has no arrays of channels");
  if (getExtents()->empty() || getExtents()->size() > 3 ||
      llvm::any_of(*getExtents(), [](int64_t n) { return n < 1; }) || productOf(*getExtents()) > kMostElements)
    return emitOpError("C3: has one to three extents from 1 on, and at most ") << kMostElements << " elements";
  return success();
}

//===--- places and what depends on them ----------------------------------------------===//

SmallVector<SmallVector<int64_t>> dmxc::dlir::placesOf(ArrayRef<int64_t> grid) {
  SmallVector<SmallVector<int64_t>> all;
  for (int64_t i = 0; i < productOf(grid); ++i) {
    SmallVector<int64_t> place(grid.size());
    int64_t rest = i;
    for (size_t dim = grid.size(); dim-- > 0; rest /= grid[dim])
      place[dim] = rest % grid[dim];
    all.push_back(place);
  }
  return all;
}

std::optional<SmallVector<int64_t>> dmxc::dlir::valuesAt(AffineMap map, ValueRange indices, ArrayRef<int64_t> place,
                                                         ArrayRef<int64_t> trips) {
  SmallVector<int64_t> values;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    auto argument = dyn_cast<BlockArgument>(index);
    Operation *owner = argument ? argument.getOwner()->getParentOp() : nullptr;
    std::optional<unsigned> depth = isa_and_present<LoopOp>(owner) ? loopDepth(index) : std::nullopt;
    if (depth && *depth < trips.size())
      values.push_back(trips[*depth]);
    else if (isa_and_present<DispatchQueueOp, ScheduledGraphOp>(owner) && argument.getArgNumber() < place.size())
      values.push_back(place[argument.getArgNumber()]);
    else if (map.isFunctionOfDim(static_cast<unsigned>(dim)))
      return std::nullopt;
    else
      values.push_back(0);
  }
  return map.compose(values);
}

LogicalResult dmxc::dlir::verifyElement(Operation *end, ChannelOp channel, AffineMapAttr element, ValueRange indices) {
  size_t rank = channel.getExtents() ? channel.getExtents()->size() : 0;
  if ((element ? element.getValue().getNumResults() : 0) != rank)
    return end->emitOpError("C4: names an element by ") << (element ? element.getValue().getNumResults() : 0)
                                                        << " indices, @" << channel.getSymName() << " has " << rank;
  auto queue = end->getParentOfType<DispatchQueueOp>();
  if (!element || !queue)
    return success();
  if (productOf(queue.grid()) > kMostElements)
    return end->emitOpError("C4: is in more than ") << kMostElements << " units";
  for (ArrayRef<int64_t> place : placesOf(queue.grid())) {
    auto at = valuesAt(element.getValue(), indices, place);
    if (!at)
      return end->emitOpError("C4: names an element by something else than its unit's place");
    for (auto [index, extent] : llvm::zip(*at, *channel.getExtents()))
      if (index < 0 || index >= extent)
        return end->emitOpError("C4: names element ")
               << index << " of @" << channel.getSymName() << ", of which there are " << extent;
  }
  return success();
}

//===--- both ends ----------------------------------------------------------------------===//

/// The elements that an end has in all units of its queue; one of a channel that is no array.
template <typename End> static void addElements(End end, std::set<SmallVector<int64_t>> &elements) {
  auto queue = end->template getParentOfType<DispatchQueueOp>();
  if (!end.getElement()) {
    elements.insert(SmallVector<int64_t>());
    return;
  }
  for (ArrayRef<int64_t> place : placesOf(queue.grid()))
    elements.insert(*valuesAt(*end.getElement(), end.getIndices(), place));
}

/// "@a[1, 2]"
static std::string nameOf(ChannelOp channel, ArrayRef<int64_t> element) {
  std::string text = "@" + channel.getSymName().str();
  llvm::raw_string_ostream out(text);
  if (!element.empty()) {
    out << "[";
    llvm::interleaveComma(element, out);
    out << "]";
  }
  return text;
}

static LogicalResult verifyChannel(ChannelOp channel, ArrayRef<PutOp> puts, ArrayRef<GetOp> gets,
                                   const DeviceModel &model) {
  std::set<SmallVector<int64_t>> given, taken;
  for (PutOp put : puts)
    addElements(put, given);
  for (GetOp get : gets)
    addElements(get, taken);
  for (const SmallVector<int64_t> &element : given)
    if (!taken.count(element))
      return puts.front()->emitOpError("C6: nothing gets what is put into ") << nameOf(channel, element);
  for (const SmallVector<int64_t> &element : taken)
    if (!given.count(element))
      return gets.front()->emitOpError("C6: nothing is put into ") << nameOf(channel, element);
  for (PutOp put : puts)
    for (GetOp get : gets)
      if (StringRef from = memoryOf(put.getBuffers().front()), to = memoryOf(get.getBuffers().front());
          !model.memory(from)->moveTo(to))
        return put->emitOpError("C3: the device does not move from ")
               << from << " to " << to << ", where @" << channel.getSymName() << " is got";
  return success();
}

LogicalResult dmxc::dlir::verifyChannels(DeviceProgramOp program, const DeviceModel &model) {
  llvm::DenseMap<StringAttr, SmallVector<PutOp>> puts;
  llvm::DenseMap<StringAttr, SmallVector<GetOp>> gets;
  program->walk([&](PutOp op) { puts[op.getChannelAttr().getAttr()].push_back(op); });
  program->walk([&](GetOp op) { gets[op.getChannelAttr().getAttr()].push_back(op); });
  for (auto channel : program.getBody().getOps<ChannelOp>())
    if (failed(verifyChannel(channel, puts[channel.getSymNameAttr()], gets[channel.getSymNameAttr()], model)))
      return failure();
  return success();
}
