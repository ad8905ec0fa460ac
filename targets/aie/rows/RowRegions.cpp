//===- RowRegions.cpp - which ops the array computes row by row -----------===//
#include "RowRegions.h"

#include "targets/aie/Tilings.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

namespace {

constexpr size_t kNear = 48; ///< ops that are looked at to find a product
constexpr int64_t kMostLoops = 512;

/// Of rows that are joined with so many tensors.
std::optional<std::string> refusesLength(const hw::Machine &machine, RankedTensorType result, size_t others) {
  RowMapping widest;
  widest.result = result;
  widest.columns = result.getRank() ? result.getShape().back() : 1;
  widest.walks.resize(1 + others);
  if (widest.mostRows(machine) < 1)
    return "a row of " + std::to_string(widest.columns) + " numbers and what comes of it" +
           (others ? " and what it is joined with" : "") + ", each twice, are more than a core's memory of " +
           std::to_string(machine.tile(hw::TileKind::Core).dataBytes) + " bytes";
  int64_t loops = 1;
  for (int64_t dim = 0; dim + 2 < result.getRank(); ++dim)
    loops *= result.getDimSize(dim);
  if (loops > kMostLoops)
    return "it has " + std::to_string(loops) + " matrices of rows, the array takes " + std::to_string(kMostLoops);
  return std::nullopt;
}

/// Whether the rows that an op is about may be cut anywhere (RowMapping.cpp).
bool isByNumber(const RowOp &op) {
  return op.kernel < hw::KernelId::SoftmaxF32 && (!op.other || op.other.getType() == op.op->getResult(0).getType());
}

/// Whether cores hold the rows of a chain, and of `more` tensors that it may be joined with.
bool holdsRows(const hw::Machine &machine, const RowChain &chain, size_t more) {
  return llvm::all_of(chain.ops, isByNumber) ||
         !refusesLength(machine, typeOf(chain.ops.back().op->getResult(0)), chain.others() + more);
}

/// Of a value that is read through views of `origin`.
std::optional<std::string> refusesRead(const hw::Machine &machine, Value value, Value origin, RankedTensorType result) {
  std::optional<RowWalk> walk = walkOf(value, origin, result);
  if (!walk)
    return "a shim does not read such a tensor by strides of rows and numbers";
  const hw::TileInfo &shim = machine.tile(hw::TileKind::Shim);
  int64_t longest = walk->column;
  for (int64_t stride : walk->outer)
    longest = std::max(longest, stride);
  if (longest > shim.largestStep)
    return "numbers are " + std::to_string(longest) + " words apart, a shim's BD steps over " +
           std::to_string(shim.largestStep);
  int64_t columns = result.getRank() ? result.getShape().back() : 1;
  if (walk->column != 1 && (columns + 7) / 8 * 8 > shim.largestWrap)
    return "rows of " + std::to_string(columns) + " numbers that are not beside each other; a dim of a shim's BD has " +
           std::to_string(shim.largestWrap);
  return std::nullopt;
}

bool isOfF32(Operation *op) {
  return llvm::all_of(
      llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()), SmallVector<Type>(op->getResultTypes())),
      [](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor && tensor.hasStaticShape() && tensor.getElementType().isF32() && tensor.getNumElements() > 0;
      });
}

/// An op by itself.
std::optional<std::string> refusesAlone(const hw::Machine &machine, Operation *op) {
  if (isView(op)) {
    if (!isOfF32(op))
      return "the array moves numbers of f32 of fixed sizes";
    if (isa<dmir::ReshapeOp>(op))
      return std::nullopt;
    if (std::optional<std::string> why = refusesLength(machine, typeOf(op->getResult(0)), 0))
      return why;
    return refusesRead(machine, op->getResult(0), op->getOperand(0), typeOf(op->getResult(0)));
  }
  std::optional<RowOp> row = rowOpOf(op);
  if (!row)
    return "the array multiplies matrices, convolves, and does to rows of f32 of fixed sizes what its cores have: "
           "sums, "
           "products and quotients with a tensor, a row or a number, few steps (relu, clip, sigmoid, gelu), softmax "
           "and "
           "normalisation of the last dim";
  RankedTensorType result = typeOf(op->getResult(0));
  std::optional<std::string> why = isByNumber(*row) ? std::nullopt : refusesLength(machine, result, bool(row->other));
  if (why)
    return why;
  return row->other ? refusesRead(machine, row->other, row->other, result) : std::nullopt;
}

/// What is beside rows: products, what the host computes, and further rows.
struct Beside {
  llvm::SetVector<Operation *> products, hosts, rows;
};

/// Of ops and the views around them.
Beside besideOf(const hw::Machine &machine, ArrayRef<Operation *> ops, const llvm::SetVector<Operation *> &seen,
                function_ref<bool(Operation *)> isProduct) {
  Beside beside;
  SmallVector<Operation *> open(ops);
  llvm::SetVector<Operation *> views;
  auto visit = [&](Operation *other) {
    if (!other || isa<dmir::ConstantOp>(other) || other->hasTrait<OpTrait::IsTerminator>() || seen.contains(other))
      return;
    bool isHost = refusesAlone(machine, other).has_value();
    if (isProduct(other))
      beside.products.insert(other);
    else if (!isHost && isView(other) && views.insert(other))
      open.push_back(other);
    else if (!isView(other) || isHost)
      (isHost ? beside.hosts : beside.rows).insert(other);
  };
  for (size_t i = 0; i < open.size() && i < kNear; ++i) { // grows while it runs
    for (Value operand : open[i]->getOperands())
      visit(operand.getDefiningOp());
    for (Operation *user : open[i]->getUsers())
      visit(user);
  }
  return beside;
}

/// Whether an op's rows cross less often, or no more, where they are the array's: what is nearest to them tells.
bool saves(const hw::Machine &machine, Operation *op, function_ref<bool(Operation *)> isProduct) {
  llvm::SetVector<Operation *> seen;
  seen.insert(op);
  for (SmallVector<Operation *> ring{op}; !ring.empty() && seen.size() < kNear;) {
    Beside beside = besideOf(machine, ring, seen, isProduct);
    if (size_t products = beside.products.size(), hosts = beside.hosts.size(); products || hosts)
      return products >= hosts;
    ring.assign(beside.rows.begin(), beside.rows.end());
    seen.insert(ring.begin(), ring.end());
  }
  return true; // nothing of the host's
}

/// The value that lies in memory where only views are between it and the user; through values with one user.
Operation *readerOf(Operation *view) {
  while (isView(view) && view->hasOneUse())
    view = *view->user_begin();
  return view;
}

} // namespace

std::optional<std::string> aie::refusesRows(const hw::Machine &machine, const Herd &herd, Operation *op,
                                            function_ref<bool(Operation *)> isProduct) {
  if (std::optional<std::string> why = refusesAlone(machine, op))
    return why;
  if (!saves(machine, op, isProduct))
    return "more of what is beside it is the host's than products of the array: its rows would cross for this alone";
  return std::nullopt;
}

bool aie::fusesRowConsumer(const hw::Machine &machine, const Herd &, Operation *root, Value result,
                           Operation *consumer) {
  std::optional<RowOp> row = rowOpOf(consumer);
  if (!row || spineOf(*row) != result || row->other == result || !result.hasOneUse() || refusesAlone(machine, consumer))
    return false;
  RowChain chain = chainTo(consumer->getResult(0), root->getOperand(0));
  bool leavesRoom = chain.others() < kMostOthers; // for a join before the root
  return llvm::any_of(chain.ops, [&](const RowOp &op) { return op.op == root; }) && leavesRoom &&
         !aie::refuses(chain) && holdsRows(machine, chain, 1);
}

/// Views are read through wherever they are read; an op is computed on the way where its rows are what is changed next.
bool aie::fusesRowProducer(const hw::Machine &machine, const Herd &, Operation *root, OpOperand &use,
                           Operation *producer) {
  Operation *owner = use.getOwner();
  if (isView(producer)) {
    Operation *reader = readerOf(owner);
    RankedTensorType result = typeOf(reader->getResult(0));
    if (isa<dmir::BroadcastOp>(producer) || (isView(reader) && reader != root) ||
        refusesLength(machine, result, kMostOthers))
      return false;
    if (isView(reader))
      return !refusesRead(machine, reader->getResult(0), producer->getOperand(0), result);
    for (Value operand : reader->getOperands())
      if (kernels::stridedView(operand, producer->getOperand(0)))
        return !refusesRead(machine, operand, producer->getOperand(0), result);
    return false;
  }
  std::optional<RowOp> reader = rowOpOf(owner), row = rowOpOf(producer);
  if (!reader || !row || spineOf(*reader) != use.get() || reader->other == use.get())
    return false;
  RowChain up = aie::chainTo(root->getResult(0), spineOf(*row));
  bool holds = !up.ops.empty() && up.ops.front().op == producer && !aie::refuses(up);
  // What follows behind a root is in the region already, and is not seen from here: a join with one tensor has room.
  bool hasRoom = dmir::isPulled(root) || (up.ops.size() == 2 && row->other);
  return holds && hasRoom && holdsRows(machine, up, dmir::isPulled(root) ? 0 : kMostOthers - up.others()) &&
         !refusesAlone(machine, producer);
}

Result<DictionaryAttr> aie::rowStrategy(const hw::Machine &machine, const Herd &herd, dmir::RegionOp region) {
  DictionaryAttr given = region.getStrategyAttr();
  Result<RowMapping> mapping = rowMappingOf(machine, herd, region.getBlock(), given ? given.get(kTiling) : Attribute(),
                                            given ? given.getAs<DictionaryAttr>(strategy::kDecided) : DictionaryAttr());
  if (!mapping)
    return mapping.takeError();
  int64_t bytes = 4 * mapping->result.getNumElements();
  for (const RowWalk &walk : mapping->walks)
    bytes += 4 * walk.tensor.getNumElements();
  Builder b(region.getContext());
  NamedAttrList list;
  list.set(strategy::kAlgorithm,
           b.getStringAttr("rows of " + std::to_string(mapping->columns) + ", " + std::to_string(mapping->tiling.rows) +
                           " a core, " + std::to_string(mapping->clocks(machine)) + " clocks"));
  list.set(kTiling, kernels::writeTile(mapping->tiling, region.getContext()));
  addFigures(list, region.getContext(), 0, bytes);
  return list.getDictionary(region.getContext());
}
