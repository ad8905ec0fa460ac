//===- RowMapping.cpp - rows on an array of cores -------------------------===//
#include "RowMapping.h"

#include "targets/aie/Tilings.h"

#include "schemas/aie/RowKernels.h"

#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

static constexpr int64_t kMostBlocks = 1024;
static constexpr int64_t kTaskWords = 30; ///< of the control stream, about: a BD, its address, its start, its wait
static constexpr int64_t kMostRows = 128; ///< of a core, so that a column's are within a BD's wrap
/// Of rows that nothing joins but number by number, which are cut as is best.
static constexpr int64_t kCutColumns = 256;

ArrayRef<kernels::TileField<RowTiling>> RowTiling::fields() {
  static const kernels::TileField<RowTiling> all[] = {
      {"herd_rows", &RowTiling::herdRows, "rows of cores"},
      {"herd_columns", &RowTiling::herdColumns, "columns of cores"},
      {"rows_a_core", &RowTiling::rows, "rows that a core computes at once"}};
  return all;
}

int64_t RowMapping::outerCount() const {
  return std::accumulate(outer.begin(), outer.end(), int64_t(1), std::multiplies<>());
}

int64_t RowMapping::elements(const RowWalk &walk) const {
  int64_t last = walk.offset + (pitch() - 1) * walk.column + (walk.isRow ? 0 : (paddedRows() - 1) * walk.row);
  for (auto [extent, stride] : llvm::zip_equal(outer, walk.outer))
    last += (extent - 1) * stride;
  return (std::max(last + 1, walk.tensor.getNumElements()) + 7) / 8 * 8;
}

int64_t RowMapping::mostRows(const hw::Machine &machine) const {
  int64_t whole = 1 + llvm::count_if(walks, [](const RowWalk &walk) { return !walk.isRow; });
  int64_t rows = static_cast<int64_t>(walks.size()) + 1 - whole;
  int64_t has = machine.tile(hw::TileKind::Core).dataBytes - 4 * hw::kParameterWords - machine.accessBytes;
  return std::min(kMostRows, (has / (2 * 4 * pitch()) - rows) / whole); // two slots of each
}

int64_t RowMapping::clocks(const hw::Machine &machine) const {
  hw::Call call;
  int64_t numbers = tiling.rows * pitch(), core = 0, whole = 0;
  auto add = [&](hw::KernelId kernel) {
    call.kernel = kernel;
    call.scalars = {hw::takesMatrix(kernel) ? tiling.rows : numbers, pitch()};
    core += hw::clocksOf(machine, call);
  };
  add(hw::KernelId::CopyF32);
  for (const RowOp &op : ops)
    add(op.kernel);
  for (const RowWalk &walk : walks)
    whole += !walk.isRow;
  int64_t in = tiling.herdRows * numbers * whole, out = tiling.herdRows * numbers; // of a column: a word a clock
  int64_t tasks = tiling.herdColumns * (static_cast<int64_t>(walks.size()) + 1);
  int64_t slowest = std::max({core, in, out, tasks * kTaskWords * machine.controlClocks});
  return in + core + out + (outerCount() * blocks() - 1) * slowest; // the first one's fill, the last one's drain
}

//===--- walks ----------------------------------------------------------------------------===//

/// The strides of a view, one a dim of the result; 0 where numbers repeat. nullopt where they are not known, or go
/// back.
static std::optional<std::pair<int64_t, SmallVector<int64_t>>> stridesOf(Value value, Value origin,
                                                                         RankedTensorType result) {
  std::optional<kernels::StridedView> view = kernels::stridedView(value, origin);
  RankedTensorType type = typeOf(value);
  if (!view || !view->offset.known() || type.getRank() > result.getRank())
    return std::nullopt;
  SmallVector<int64_t> strides(static_cast<size_t>(result.getRank()), 0);
  size_t missing = strides.size() - static_cast<size_t>(type.getRank());
  for (auto [dim, stride] : llvm::enumerate(view->strides)) {
    if (type.getDimSize(dim) == 1)
      continue;
    if (!stride.known() || *stride.known() < 0)
      return std::nullopt;
    strides[dim + missing] = *stride.known();
  }
  return std::pair(*view->offset.known(), strides);
}

std::optional<RowWalk> aie::walkOf(Value value, Value origin, RankedTensorType result) {
  auto strides = stridesOf(value, origin, result);
  if (!strides)
    return std::nullopt;
  RowWalk walk;
  walk.tensor = typeOf(origin ? origin : value);
  walk.offset = strides->first;
  walk.outer = strides->second;
  if (!walk.outer.empty())
    walk.column = walk.outer.pop_back_val();
  bool isOne = result.getRank() == 0 || result.getShape().back() == 1;
  walk.column = isOne ? 1 : walk.column;
  return walk.column > 0 ? std::optional(walk) : std::nullopt;
}

/// A chain that joins number by number alone, of tensors that lie as the result does, is rows of any length.
static bool cutsRows(RowMapping &mapping) {
  auto isWhole = [&](const RowWalk &walk) {
    int64_t apart = 1;
    bool dense = walk.offset == 0 && walk.column == 1;
    for (int64_t dim = mapping.result.getRank(); dim-- > 0; apart *= mapping.result.getDimSize(dim))
      if (mapping.result.getDimSize(dim) > 1)
        dense &= (dim + 1 == mapping.result.getRank() ? walk.column : walk.outer[static_cast<size_t>(dim)]) == apart;
    return dense;
  };
  auto byNumbers = [](const RowOp &op) { return !hw::takesMatrix(op.kernel); };
  if (!llvm::all_of(mapping.walks, isWhole) || !llvm::all_of(mapping.ops, byNumbers))
    return false;
  int64_t numbers = mapping.result.getNumElements();
  int64_t share = (numbers + mapping.cores() - 1) / mapping.cores();
  mapping.columns = std::clamp<int64_t>((share + 7) / 8 * 8, 8, kCutColumns);
  mapping.inner = (numbers + mapping.columns - 1) / mapping.columns;
  for (RowWalk &walk : mapping.walks) {
    walk.row = mapping.columns;
    walk.outer.clear();
  }
  mapping.resultStrides.assign(static_cast<size_t>(mapping.result.getRank()), 1);
  for (size_t dim = mapping.resultStrides.size(); dim-- > 1;)
    mapping.resultStrides[dim - 1] = mapping.resultStrides[dim] * mapping.result.getDimSize(dim);
  return true;
}

/// The kernel that joins with one row what the other one joins with a whole tensor.
static hw::KernelId ofRow(hw::KernelId kernel) {
  auto apart = static_cast<int>(hw::KernelId::AddRowF32) - static_cast<int>(hw::KernelId::AddF32);
  return static_cast<hw::KernelId>(static_cast<int>(kernel) + apart);
}

/// Joins the dims before the last one, from behind, as long as one stride is right for all operands; the others are
/// loops.
static void splitDims(RowMapping &mapping) {
  ArrayRef<int64_t> shape = mapping.result.getShape();
  mapping.columns = shape.empty() ? 1 : shape.back();
  size_t first = shape.empty() ? 0 : shape.size() - 1; // of the dims that are rows
  auto joins = [&](const RowWalk &walk, size_t dim) {
    return shape[dim] == 1 || mapping.inner == 1 || walk.outer[dim] == walk.row * mapping.inner;
  };
  while (first > 0 && llvm::all_of(mapping.walks, [&](const RowWalk &walk) { return joins(walk, first - 1); })) {
    --first;
    if (shape[first] == 1)
      continue;
    for (RowWalk &walk : mapping.walks)
      walk.row = mapping.inner == 1 ? walk.outer[first] : walk.row;
    mapping.inner *= shape[first];
  }
  mapping.outer.assign(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(first));
  for (RowWalk &walk : mapping.walks) {
    walk.outer.truncate(first);
    walk.isRow = &walk != &mapping.walks.front() && walk.row == 0;
    if (mapping.inner == 1 && !walk.isRow)
      walk.row = mapping.pitch(); // of rows behind the only one
  }
  size_t other = 1;
  for (RowOp &op : mapping.ops)
    if (op.other && mapping.walks[other++].isRow)
      op.kernel = ofRow(op.kernel);
}

/// Where the numbers of the result lie, when blocks are known.
static void placeResult(RowMapping &mapping) {
  ArrayRef<int64_t> shape = mapping.result.getShape();
  mapping.resultStrides.assign(shape.size(), 1);
  int64_t apart = mapping.pitch();
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (dim + 1 == shape.size())
      continue;
    if (dim + 1 == mapping.outer.size())
      apart = mapping.paddedRows() * mapping.pitch();
    mapping.resultStrides[dim] = apart;
    apart *= shape[dim];
  }
}

//===--- mappings -------------------------------------------------------------------------===//

static Result<RowMapping> chainOf(Block *block, const Herd &herd) {
  if (block->getTerminator()->getNumOperands() != 1)
    return modelError("it has other results than its last op's");
  Value last = block->getTerminator()->getOperand(0);
  RowChain chain = chainTo(last);
  if (std::optional<std::string> why = aie::refuses(chain))
    return modelError(*why);
  RowMapping mapping;
  mapping.result = typeOf(last);
  mapping.ops = chain.ops;
  mapping.tiling = {herd.rows, herd.columns, 1};
  if (!mapping.result.hasStaticShape() || !mapping.result.getElementType().isF32())
    return modelError("its result is no tensor of f32 of fixed sizes");
  SmallVector<Value> read{chain.first};
  for (const RowOp &op : chain.ops)
    if (op.other)
      read.push_back(op.other);
  for (Value value : read) {
    std::optional<kernels::StridedView> view = kernels::stridedView(value);
    std::optional<RowWalk> walk;
    if (view && view->buffer < block->getNumArguments())
      walk = walkOf(value, block->getArgument(view->buffer), mapping.result);
    if (!walk)
      return modelError("'" +
                        (value.getDefiningOp() ? value.getDefiningOp()->getName().getStringRef().str() : "a dim") +
                        "' in it is nothing that cores do row by row, and no view that a shim reads through");
    walk->argument = view->buffer;
    mapping.walks.push_back(*walk);
  }
  if (!cutsRows(mapping))
    splitDims(mapping);
  return mapping;
}

/// The powers of two that a core holds and needs, and the fewest that make one block of all rows.
static std::set<int64_t> rowsOf(const hw::Machine &machine, const RowMapping &mapping) {
  std::set<int64_t> all;
  int64_t needs = (mapping.inner + mapping.cores() - 1) / mapping.cores();
  int64_t most = std::max<int64_t>(1, std::min(needs, mapping.mostRows(machine)));
  RowMapping tried = mapping;
  auto add = [&](int64_t rows) {
    tried.tiling.rows = rows;
    if (!aie::refuses(machine, tried))
      all.insert(rows);
  };
  for (int64_t rows = 1; rows < most; rows *= 2)
    add(rows);
  add(most);
  return all;
}

/// The one that costs least, of equal ones the largest.
static int64_t preferredRows(const hw::Machine &machine, RowMapping mapping) {
  int64_t best = 1, least = INT64_MAX;
  for (int64_t rows : rowsOf(machine, mapping)) {
    mapping.tiling.rows = rows;
    if (int64_t clocks = mapping.clocks(machine); clocks <= least) {
      least = clocks;
      best = rows;
    }
  }
  return best;
}

/// Herds first, then rows, by which a choice rests on what is decided before.
static kernels::FreeTile<RowTiling> freeOf(const hw::Machine &machine, const Herd &most, RowMapping &mapping,
                                           MLIRContext *context, DictionaryAttr asked) {
  kernels::FreeTile<RowTiling> free("", context, asked);
  auto add = [&](int64_t RowTiling::*field, std::set<int64_t> values, int64_t preferred) {
    free.add(field, std::move(values), preferred);
    mapping.tiling.*field = free.decided()[field].value_or(preferred);
  };
  auto upTo = [](int64_t last) {
    std::set<int64_t> all;
    for (int64_t value = 1; value <= last; ++value)
      all.insert(value);
    return all;
  };
  add(&RowTiling::herdRows, upTo(most.rows), most.rows);
  add(&RowTiling::herdColumns, upTo(most.columns), most.columns);
  add(&RowTiling::rows, rowsOf(machine, mapping), preferredRows(machine, mapping));
  return free;
}

Result<RowMapping> aie::rowMappingOf(const hw::Machine &machine, const Herd &most, Block *block, Attribute written,
                                     DictionaryAttr decided) {
  Result<RowMapping> mapping = chainOf(block, most);
  auto own = dyn_cast_or_null<DictionaryAttr>(written);
  if (mapping && written && !own)
    return modelError("'" + kTiling.str() + "' of its strategy is no dictionary; what is left out is derived");
  if (!mapping)
    return mapping;
  NamedAttrList asked(own);
  for (NamedAttribute each : decided ? decided.getValue() : ArrayRef<NamedAttribute>())
    asked.set(each.getName(), each.getValue());
  MLIRContext *context = block->getParentOp()->getContext();
  kernels::FreeTile<RowTiling> free = freeOf(machine, most, *mapping, context, asked.getDictionary(context));
  DictionaryAttr whole = kernels::writeTile(mapping->tiling, context);
  NamedAttrList given(whole);
  for (NamedAttribute each : own ? own.getValue() : ArrayRef<NamedAttribute>())
    given.set(each.getName(), each.getValue());
  std::string wrong = kernels::wrongField(given.getDictionary(context), free.take(), whole, kTiling.str());
  if (!wrong.empty())
    return modelError(wrong);
  if (mapping->resultStrides.empty())
    placeResult(*mapping);
  return mapping;
}

std::vector<Decision> aie::rowDecisions(const hw::Machine &machine, const Herd &most, Block *block,
                                        DictionaryAttr decided) {
  Result<RowMapping> mapping = chainOf(block, most);
  return mapping ? freeOf(machine, most, *mapping, block->getParentOp()->getContext(), decided).take()
                 : std::vector<Decision>();
}

std::optional<std::string> aie::refuses(const hw::Machine &machine, const RowMapping &mapping) {
  const hw::TileInfo &shim = machine.tile(hw::TileKind::Shim);
  auto number = [](int64_t value) { return std::to_string(value); };
  if (mapping.tiling.rows > mapping.mostRows(machine))
    return "two buffers of each of its rows of " + number(mapping.columns) +
           " numbers do not fit into a core's memory of " + number(machine.tile(hw::TileKind::Core).dataBytes) +
           " bytes";
  for (const RowWalk &walk : mapping.walks) {
    if (std::max(walk.row, walk.column) > shim.largestStep)
      return "rows or numbers of one are " + number(std::max(walk.row, walk.column)) +
             " words apart, a shim's BD steps over " + number(shim.largestStep);
    if (walk.column != 1 && mapping.pitch() > shim.largestWrap)
      return "rows of " + number(mapping.pitch()) +
             " numbers that are not beside each other; a dim of a shim's BD has " + number(shim.largestWrap);
    if (mapping.elements(walk) > hw::kMostPadding * (walk.tensor.getNumElements() + hw::kSpareElements))
      return "a tensor would take " + number(mapping.elements(walk)) + " numbers of the array's DDR";
  }
  int64_t blocks = mapping.outerCount() * mapping.blocks();
  if (blocks > kMostBlocks)
    return "it has " + number(blocks) + " blocks of rows, the array's control stream holds " + number(kMostBlocks);
  int64_t rows = mapping.outerCount() * mapping.paddedRows() * mapping.pitch();
  if (rows > hw::kMostPadding * (mapping.result.getNumElements() + hw::kSpareElements))
    return "its result would take " + number(rows) + " numbers of the array's DDR";
  return std::nullopt;
}
