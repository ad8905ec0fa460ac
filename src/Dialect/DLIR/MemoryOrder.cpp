//===- MemoryOrder.cpp - what tasks find in a program's memories ----------===//
#include "OrderChecker.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace dmxc::dlir;

MemoryOrder::MemoryOrder(DeviceProgramOp program, ProgramBytes &bytes) : bytes(bytes), program(program) {
  wasRead.push_back(true); // what the host writes, and what is read for certain
  llvm::StringMap<unsigned> kinds;
  for (auto op : program.getBody().getOps<MemoryOp>()) {
    const auto number = static_cast<int32_t>(buffers.size());
    numbers[op] = number;
    unsigned kind = kinds.insert({op.getKind(), kinds.size()}).first->second;
    buffers.push_back(
        {op, op.getName().str(), op.getKind().str(), bytes.addressOf(op), static_cast<int64_t>(op.getSize()), kind});
  }
  cells.resize(buffers.size());
  for (auto argument : program.getBody().getOps<ArgumentOp>())
    if (argument.getRole() == ArgumentRole::output)
      results.insert(argument.getName());
}

/// The bytes of a piece, which are all in its buffer; none: not known.
FailureOr<SmallVector<ByteRuns, 2>> MemoryOrder::runsOf(PieceOp piece) {
  const Buffer &buffer = buffers[numbers.lookup(piece.getMemory())];
  SmallVector<ByteRuns, 2> all = bytes.bytesOf(piece);
  for (ByteRuns &runs : all) {
    runs = normalized(std::move(runs));
    if (auto [begin, end] = hullOf(runs); runs.bytes > 0 && (begin < 0 || end > buffer.size))
      return piece.emitOpError("O6: has bytes ")
             << begin << " to " << end - 1 << " of '" << buffer.name << "', which has " << buffer.size;
  }
  return all;
}

LogicalResult MemoryOrder::bring() {
  for (auto piece : program.getBody().getOps<PieceOp>()) {
    FailureOr<SmallVector<ByteRuns, 2>> all = runsOf(piece);
    if (failed(all))
      return failure();
    if (results.contains(piece.getArgument()))
      continue;
    Stretch host;
    host.write = 0;
    const int32_t number = numbers.lookup(piece.getMemory());
    Cell &cell = cellOf(number, piece.getUnit());
    cell.isLive = true;
    live[{buffers[number].kindNumber, piece.getUnit()}][buffers[number].address] = number;
    if (all->empty())
      all->push_back({0, buffers[number].size, {}});
    for (const ByteRuns &runs : *all)
      cell.history.set(runs, host);
  }
  return success();
}

MemoryOrder::Cell &MemoryOrder::cellOf(int32_t buffer, int64_t unit) {
  auto &units = cells[buffer];
  if (units.size() <= static_cast<size_t>(unit))
    units.resize(unit + 1);
  if (!units[unit])
    units[unit] = std::make_unique<Cell>(buffers[buffer].size);
  return *units[unit];
}

void MemoryOrder::begin(ArrayRef<TokenOp> graphTokens) {
  settle();
  tokens.assign(graphTokens.begin(), graphTokens.end());
  slots.clear();
  for (unsigned token = 0; token < tokens.size(); ++token)
    if (tokens[token].getCredits())
      for (const auto &[key, part] : slotOf(token, 0))
        buffers[key.first].isSlot |= part.first < part.second;
}

void MemoryOrder::settle() {
  for (auto [cell, isSlot] : unsettled) {
    cell->history.settle(isSlot);
    cell->touches.clear();
    cell->isSettled = true;
  }
  unsettled.clear();
}

LogicalResult MemoryOrder::task(Operation *op, const Actor &actor, ArrayRef<int64_t> trips) {
  std::vector<Touched> touched;
  if (!bytes.touched(op, actor.unit, trips, touched))
    return success();
  for (Touched &one : touched)
    for (ByteRuns &runs : one.runs)
      runs = normalized(std::move(runs));
  for (bool writes : {false, true}) {
    if (writes)
      wasRead.push_back(false);
    for (const Touched &one : touched)
      for (int64_t unit : one.write == writes ? ArrayRef<int64_t>(one.units) : ArrayRef<int64_t>()) {
        Touch each{
            numbers.lookup(one.buffer), unit, writes, one.all, actor, {actor.queue, actor.clock[actor.queue], op}};
        if (failed(touch(each, one.runs)))
          return failure();
      }
  }
  return success();
}

LogicalResult MemoryOrder::touch(const Touch &touch, ArrayRef<ByteRuns> all) {
  const Buffer &buffer = buffers[touch.buffer];
  Cell &cell = cellOf(touch.buffer, touch.unit);
  if (cell.isSettled)
    unsettled.push_back({&cell, buffer.isSlot});
  cell.isSettled = false;
  for (const ByteRuns &runs : all)
    if (auto [begin, end] = hullOf(runs); begin < 0 || end > buffer.size) {
      if (!touch.all) // of what is not touched for certain nothing is said
        return success();
      return touch.moment.task->emitOpError("O6: ")
             << placeOf(touch.moment.task) << (touch.writes ? " writes" : " reads") << " bytes " << begin << " to "
             << end - 1 << " of '" << buffer.name << "', which has " << buffer.size;
    }
  if (touch.writes && failed(takeRoom(touch, cell)))
    return failure();
  auto *mine = llvm::find_if(cell.touches, [&](const Moment &m) { return m.queue == touch.moment.queue; });
  if (mine == cell.touches.end())
    cell.touches.push_back(touch.moment);
  else
    *mine = touch.moment;
  if (!touch.writes && !touch.all)
    return readSome(touch, cell, all);
  for (const ByteRuns &runs : all)
    if (failed(touch.writes ? write(touch, cell, runs) : read(touch, cell, runs)))
      return failure();
  return success();
}

std::optional<int32_t> MemoryOrder::inTheWay(int32_t number, int64_t unit) {
  const Buffer &buffer = buffers[number];
  auto &there = live[{buffer.kindNumber, unit}];
  for (auto at = there.lower_bound(buffer.address + buffer.size); at != there.begin();) {
    const Buffer &other = buffers[(--at)->second];
    if (other.address + other.size > buffer.address)
      return at->second != number ? std::optional(at->second) : std::nullopt;
    break; // those that are there do not overlap
  }
  return std::nullopt;
}

/// A buffer's first write ends those that lie where it lies.
LogicalResult MemoryOrder::takeRoom(const Touch &touch, Cell &cell) {
  if (cell.isLive)
    return success();
  while (std::optional<int32_t> number = inTheWay(touch.buffer, touch.unit)) {
    Cell &other = cellOf(*number, touch.unit);
    for (const Moment &moment : other.touches)
      if (!isBefore(moment, touch)) {
        Operation *op = touch.moment.task;
        return op->emitOpError("O2: ") << placeOf(op) << " writes '" << buffers[touch.buffer].name << "' where '"
                                       << buffers[*number].name << "' lies, which "
                                       << moment.task->getName().getStringRef() << " in " << placeOf(moment.task)
                                       << " touches; no token and no barrier puts one of them first";
      }
    other.isLive = false;
    other.history = ByteHistory(buffers[*number].size);
    live[{buffers[*number].kindNumber, touch.unit}].erase(buffers[*number].address);
  }
  cell.isLive = true;
  live[{buffers[touch.buffer].kindNumber, touch.unit}][buffers[touch.buffer].address] = touch.buffer;
  return success();
}

static void addReader(Stretch &stretch, const Moment &moment) {
  auto *mine = llvm::find_if(stretch.readers, [&](const Moment &m) { return m.queue == moment.queue; });
  if (mine == stretch.readers.end())
    stretch.readers.push_back(moment);
  else
    *mine = moment;
}

/// A queue that begins to read a slot has its token from the queue that wrote it.
static bool isHandedOver(const Actor &actor, const Stretch &stretch) {
  const Moment &writer = stretch.writer;
  return writer.queue == actor.queue || writer.time == 0 || llvm::is_contained(actor.waitedFor, writer.queue) ||
         actor.received[writer.queue] >= writer.time ||
         llvm::any_of(stretch.readers, [&](const Moment &m) { return m.queue == actor.queue; });
}

LogicalResult MemoryOrder::read(const Touch &touch, Cell &cell, const ByteRuns &runs) {
  LogicalResult result = success();
  const bool isSlot = buffers[touch.buffer].isSlot;
  cell.history.each(runs, [&](int64_t at, Stretch &stretch) {
    if (failed(result))
      return;
    const Moment &writer = stretch.writer;
    if (stretch.isWritten() && !isBefore(writer, touch))
      result = race(touch, writer, true, at);
    else if (!stretch.isWritten() || stretch.isFree)
      result = missing(touch, stretch, at);
    else if (isSlot && !isHandedOver(touch.actor, stretch))
      result = notHandedOver(touch, stretch, at);
    if (failed(result))
      return;
    wasRead[stretch.write] = true;
    addReader(stretch, touch.moment);
  });
  return result;
}

/// Some of the bytes: those that are there.
LogicalResult MemoryOrder::readSome(const Touch &touch, Cell &cell, ArrayRef<ByteRuns> all) {
  const Stretch *unordered = nullptr;
  bool there = false;
  int64_t first = INT64_MAX;
  for (const ByteRuns &runs : all)
    cell.history.each(runs, [&](int64_t at, Stretch &stretch) {
      first = std::min(first, at);
      if (!stretch.isWritten() || stretch.isFree)
        return;
      if (!isBefore(stretch.writer, touch)) {
        unordered = &stretch;
        return;
      }
      there = true;
      wasRead[stretch.write] = true;
      addReader(stretch, touch.moment);
    });
  if (there || first == INT64_MAX)
    return success();
  return unordered ? race(touch, unordered->writer, true, first) : missing(touch, Stretch(), first);
}

LogicalResult MemoryOrder::write(const Touch &touch, Cell &cell, const ByteRuns &runs) {
  LogicalResult result = success();
  cell.history.each(runs, [&](int64_t at, Stretch &stretch) {
    if (failed(result))
      return;
    if (stretch.isWritten() && !isBefore(stretch.writer, touch))
      result = race(touch, stretch.writer, true, at);
    for (const Moment &reader : stretch.readers)
      if (succeeded(result) && !isBefore(reader, touch))
        result = race(touch, reader, false, at);
    if (!touch.all && stretch.isWritten())
      stretch.writer = touch.moment;
  });
  Stretch now;
  now.write = static_cast<uint32_t>(wasRead.size() - 1);
  now.writer = touch.moment;
  if (succeeded(result) && touch.all)
    cell.history.set(runs, now);
  return result;
}

LogicalResult MemoryOrder::verifyResults() {
  for (auto piece : program.getBody().getOps<PieceOp>()) {
    if (!results.contains(piece.getArgument()))
      continue;
    Cell &cell = cellOf(numbers.lookup(piece.getMemory()), piece.getUnit());
    FailureOr<SmallVector<ByteRuns, 2>> all = runsOf(piece);
    LogicalResult result = all;
    for (const ByteRuns &runs : succeeded(all) ? *all : SmallVector<ByteRuns, 2>())
      cell.history.each(runs, [&](int64_t at, const Stretch &stretch) {
        if (succeeded(result) && !stretch.isWritten())
          result = piece.emitOpError("O5: nothing writes byte ")
                   << at << " of the result '" << piece.getArgument() << "'";
      });
    if (failed(result))
      return failure();
  }
  return success();
}

//===--- messages -----------------------------------------------------------------------===//

/// "byte 64 of 'ib' (IB 1)"
std::string MemoryOrder::nameOf(const Touch &touch, int64_t at) const {
  const Buffer &buffer = buffers[touch.buffer];
  return "byte " + std::to_string(at) + " of '" + buffer.name + "' (" + buffer.kind + " " + std::to_string(touch.unit) +
         ")";
}

LogicalResult MemoryOrder::race(const Touch &touch, const Moment &other, bool writes, int64_t at) const {
  Operation *op = touch.moment.task;
  return op->emitOpError("O2: ") << placeOf(op) << (touch.writes ? " writes " : " reads ") << nameOf(touch, at)
                                 << ", which " << other.task->getName().getStringRef() << " in " << placeOf(other.task)
                                 << (writes ? " writes" : " reads")
                                 << "; no token and no barrier puts one of them first";
}

LogicalResult MemoryOrder::missing(const Touch &touch, const Stretch &found, int64_t at) {
  Operation *op = touch.moment.task;
  InFlightDiagnostic error = op->emitOpError("O3: ") << placeOf(op) << " reads " << nameOf(touch, at) << ", ";
  if (found.isWritten())
    return error << "whose slot is free since " << placeOf(found.writer.task)
                 << " wrote it; an op that fills it again is missing";
  if (std::optional<int32_t> other = inTheWay(touch.buffer, touch.unit))
    return error << "where '" << buffers[*other].name
                 << "' lies; an op that writes it, a gather perhaps, is missing before";
  return error << "which nothing has written; an op that writes it, a gather perhaps, is missing before";
}

LogicalResult MemoryOrder::notHandedOver(const Touch &touch, const Stretch &found, int64_t at) const {
  Operation *op = touch.moment.task;
  return op->emitOpError("O3: ") << placeOf(op) << " reads " << nameOf(touch, at) << " of a slot that "
                                 << found.writer.task->getName().getStringRef() << " in " << placeOf(found.writer.task)
                                 << " wrote, and the token comes from another queue: an op of that one is missing";
}
