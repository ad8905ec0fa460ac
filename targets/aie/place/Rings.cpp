//===- Rings.cpp - what rings hold, and where they lie --------------------===//
#include "Placement.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kBank = 16 << 10; ///< bytes of a core's memory that one access a clock reaches

/// A slot has the type of what is moved into or out of it: rows where one queue takes rows as they lie.
LogicalResult Placement::typeRing(dlir::RingOp ring) {
  MemRefType &type = rings[ring].type;
  for (Operation *user : ring->getUsers()) {
    std::optional<End> end = endOf(user);
    if (!end)
      continue;
    FailureOr<Walk> walk = walkOf(*end);
    if (failed(walk))
      return failure();
    bool rows = walk->whole && walk->sizes.size() == 2;
    int64_t bytes = bytesOf(walk->element), size = ring.getSize();
    const bool isWords = ring.getKind() == "L2" && program->hasAttr(kFunction) && walk->whole && size % 4 == 0;
    if (type && isWords && type.getElementType() != walk->element) // operands of a user's function, after each other
      type = MemRefType::get({size / 4}, b.getI32Type());
    if (type && isWords && type.getElementType() == b.getI32Type() && type.getElementType() != walk->element)
      continue;
    if (type && type.getElementType() != walk->element)
      return user->emitOpError("takes '") << ring.getName() << "' as another kind of numbers than others do";
    if (size % bytes)
      return user->emitOpError("takes '") << ring.getName() << "', of which a slot is no whole number of elements";
    if (rows && walk->length * bytes == size)
      type = MemRefType::get(walk->sizes, walk->element);
    else if (!type)
      type = MemRefType::get({size / bytes}, walk->element);
  }
  if (!type)
    type = typeOfSums(ring);
  if (!type)
    return ring.emitOpError("'") << ring.getName()
                                 << "' is put and got by no queue and holds no product's sums, so that nobody knows "
                                    "what is in it";
  return success();
}

static LogicalResult refuseOver(dlir::RingOp ring, int64_t end, int64_t most) {
  return ring.emitOpError("'") << ring.getName() << "' ends at byte " << end << " of " << ring.getKind()
                               << ", with the rings before it, and a " << ring.getHome() << " has " << most
                               << ": `slots` or `size` of one of them are too large";
}

/// What one channel fills or empties begins at a bank of its own, where there is room; the parameters are behind the
/// first.
LogicalResult Placement::placeL1(ArrayRef<dlir::RingOp> all) {
  const int64_t most = machine.tile(hw::TileKind::Core).dataBytes;
  for (int64_t bank : {kBank, int64_t(1)}) {
    int64_t next = 0;
    auto behind = [&](int64_t bytes) {
      int64_t address = static_cast<int64_t>(llvm::alignTo(next, machine.accessBytes));
      next = address + bytes;
      return address;
    };
    for (dlir::RingOp ring : all) {
      Slots &slots = rings[ring];
      slots.address = behind(slots.count * slots.bytes);
      if (next > most && bank == 1)
        return refuseOver(ring, next, most);
      if (ring == all.front())
        parametersAddress = behind(4 * parameterWords);
      if (ring != all.back())
        next = static_cast<int64_t>(llvm::alignTo(next, bank));
    }
    if (all.empty())
      parametersAddress = behind(4 * parameterWords);
    if (next <= most)
      return success();
    if (bank == 1)
      return refuseOver(all.back(), next, most);
  }
  return success();
}

LogicalResult Placement::placeL2(ArrayRef<dlir::RingOp> all) {
  const int64_t most = machine.tile(hw::TileKind::Memory).dataBytes;
  int64_t next = 0;
  for (dlir::RingOp ring : all) {
    Slots &slots = rings[ring];
    slots.address = next;
    next += slots.count * slots.bytes;
    if (next > most)
      return refuseOver(ring, next, most);
  }
  return success();
}

LogicalResult Placement::placeRings() {
  SmallVector<dlir::RingOp> ofCores, others;
  auto isMoved = [&](dlir::RingOp ring) {
    return llvm::any_of(ring->getUsers(), [&](Operation *user) { return endOf(user).has_value(); });
  };
  for (bool moved : {true, false})
    for (auto ring : graph.getBody().getOps<dlir::RingOp>())
      if (isMoved(ring) == moved && failed(typeRing(ring)))
        return failure();
  typeFirstOperands();
  for (auto ring : graph.getBody().getOps<dlir::RingOp>())
    (ring.getKind() == "L1" ? ofCores : others).push_back(ring);
  return failure(failed(placeL1(ofCores)) || failed(placeL2(others)));
}
