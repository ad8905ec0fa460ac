//===- Pipeline.cpp - how a product's kernel is made --------------------------===//

#include "Pipeline.h"
#include "convolution/TapCopies.h"
#include "convolution/WindowTerms.h"

#include "dmxc/Dialect/DMIR/Model.h"

#include "mlir/IR/Builders.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

namespace {

constexpr StringLiteral kRing = "operands";
constexpr int64_t kWarpgroup = 128;
/// Registers of a thread that loads what is on its way: pairs of terms and their places; with a table of these;
/// of taps, two groups of them.
constexpr int64_t kLoadingRegisters = 56, kTableRegisters = 72, kTapRegisters = 104;
constexpr int64_t kLookingRegisters = 40; ///< of one that looks up which steps are kept
constexpr int64_t kMostTileRows = 256, kMostRaster = 1 << 16;

struct Side {
  StringRef name;
  GemmOperand &operand;
  int64_t rows; ///< of a tile
};

/// Steps of a tile; nothing where a run says how many terms there are, or the packed operand which of them it keeps.
std::optional<int64_t> stepsOf(const GemmProduct &product) {
  return product.kept ? std::nullopt : Dim::ceilDiv(product.k, kTileRowElements).known();
}

} // namespace

Pipeline::Pipeline(const GemmProduct &product, const GemmTile &tile, const hw::Machine &machine) : tile(tile) {
  if (tile.columns >= 256) // their sums leave few registers, places of windows fewer
    sumsAtOnce /= product.copiesTaps() ? 8 : 2;
  else if (product.copiesTaps())
    rightPairs *= 2;
  placeTable(product, machine);
  if (tile.consumers() == 1) // a thread can have no more than the launch gives it
    return;
  const bool loads = !product.left.byThreads.empty() || !product.right.byThreads.empty();
  copierRegisters = product.copiesTaps() ? kTapRegisters
                    : termTable          ? kTableRegisters
                    : loads              ? kLoadingRegisters
                    : product.kept       ? std::max<int64_t>(kLookingRegisters, machine.fewestRegisters)
                                         : machine.fewestRegisters;
  multiplierRegisters =
      std::min(machine.registersOfEach(machine.registers - kWarpgroup * copierRegisters, kWarpgroup * tile.consumers()),
               machine.registersOfEach(machine.mostRegisters, 1));
}

void Pipeline::placeTable(const GemmProduct &product, const hw::Machine &machine) {
  auto divides = [](const WindowAxis &axis) { return !llvm::isPowerOf2_64(axis.taps.valueOr(1)); }; // else by shifts
  const Windows *windows = product.copiesTaps() ? nullptr : product.right.windows;
  const int64_t bytes = windows && llvm::any_of(windows->axes, divides)
                            ? product.k.known().value_or(0) * TermTable::entryBytes(*windows)
                            : 0;
  termTable = tile.sharedBytes() + bytes <= machine.mostShared ? bytes : 0;
}

Launch Pipeline::launch(const GemmProduct &product, const hw::Machine &machine) const {
  return {Dim::min(product.tiles(tile), machine.multiprocessors), tile.threads(), tile.sharedBytes() + termTable,
          product.maps(tile), movesRegisters()};
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static dmir::DimsAttr dimsAttr(MLIRContext *context, ArrayRef<Dim> dims) { return dmir::DimsAttr::get(context, dims); }

static void writeCopy(OpBuilder &b, Location loc, const GemmProduct &product, StringRef side,
                      const GemmOperand &operand, int64_t rows, int64_t pairs) {
  MLIRContext *context = b.getContext();
  if (!operand.byThreads.empty()) {
    CopyOp::create(b, loc, side, dmir::DimsAttr(), dmir::DimsAttr(), DenseI64ArrayAttr(), dmir::DimsAttr(),
                   b.getI64IntegerAttr(pairs), b.getStringAttr(operand.byThreads));
    return;
  }
  TensorMap map = product.map(operand, rows);
  CopyOp::create(b, loc, side, dimsAttr(context, map.sizes), dimsAttr(context, map.strides),
                 b.getDenseI64ArrayAttr(map.box), map.offset.is(0) ? dmir::DimsAttr() : dimsAttr(context, map.offset),
                 IntegerAttr(), StringAttr());
}

namespace {

/// Writes the program of a block.
class Writer {
public:
  Writer(OpBuilder &b, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), loc(product.op->getLoc()), product(product), pipeline(pipeline), tile(pipeline.tile) {}

  PipelineOp write() {
    return withBody<PipelineOp>(
        [&](Block &) {
          auto registers = [&](int64_t count) { return count ? b.getI64IntegerAttr(count) : IntegerAttr(); };
          RoleOp::create(b, loc, kMultiplyEngine, tile.consumers(), registers(pipeline.multiplierRegisters));
          RoleOp::create(b, loc, kCopyEngine, 1, registers(pipeline.copierRegisters));
          withBody<dlir::DeviceProgramOp>([&](Block &) { program(); }, b.getStringAttr(kBlockUnit),
                                          b.getStringAttr(kDeviceName), DenseI64ArrayAttr());
        },
        tile.rows, tile.columns, pipeline.raster);
  }

private:
  /// An op with a body, which `fill` writes.
  template <typename Op, typename... Arguments> Op withBody(function_ref<void(Block &)> fill, Arguments... arguments) {
    auto op = Op::create(b, loc, arguments...);
    OpBuilder::InsertionGuard guard(b);
    fill(*b.createBlock(&op.getBody()));
    return op;
  }

  void program() {
    const std::optional<int64_t> steps = stepsOf(product);
    argument("tiles", kTilesRegister);
    if (!steps)
      argument("steps", kStepsRegister);
    withBody<dlir::ScheduledGraphOp>(
        [&](Block &body) {
          body.addArgument(b.getIndexType(), loc);
          Value tiles = registerOf(kTilesRegister), brought = steps ? Value() : registerOf(kStepsRegister);
          auto queue = [&](int64_t number) { return b.getDenseI64ArrayAttr(number); };
          Value ring = dlir::RingOp::create(
              b, loc, dlir::MemoryType::get(b.getContext()), b.getStringAttr(kSharedMemory), b.getStringAttr(kRing),
              b.getI64IntegerAttr(tile.stages), b.getI64IntegerAttr(tile.slotBytes()), b.getStringAttr(kBlockUnit),
              b.getStrArrayAttr({kCopyEngine}), queue(0), b.getStrArrayAttr({kMultiplyEngine}), queue(0));
          walks(kMultiplyEngine, tiles, steps, brought, [&] { drain(ring); }, [&] { sums(); });
          walks(kCopyEngine, tiles, steps, brought, [&] { fill(ring); }, [] {});
        },
        b.getStringAttr("main"), b.getDenseI64ArrayAttr(1));
  }

  /// What a run brings.
  void argument(StringRef name, int64_t number) {
    dlir::ArgumentOp::create(b, loc, dlir::ArgumentRoleAttr::get(b.getContext(), dlir::ArgumentRole::scalar),
                             b.getStringAttr(name), TypeAttr::get(b.getI64Type()), b.getStringAttr("i64"),
                             b.getI64IntegerAttr(number), DenseI64ArrayAttr(), TypedAttr());
  }
  Value registerOf(int64_t number) {
    return dlir::RegisterOp::create(b, loc, b.getIndexType(), b.getI64IntegerAttr(number), b.getDenseI64ArrayAttr(0));
  }

  /// The queue of a role: its walk over tiles and that over the steps of each.
  void walks(StringRef engine, Value tiles, std::optional<int64_t> steps, Value brought, function_ref<void()> step,
             function_ref<void()> behind) {
    withBody<dlir::DispatchQueueOp>(
        [&](Block &) {
          loop(std::nullopt, tiles, [&] {
            loop(steps, brought, step);
            behind();
          });
        },
        b.getStringAttr(kBlockUnit), b.getStringAttr(engine), b.getI64IntegerAttr(0), DenseI64ArrayAttr());
  }

  void loop(std::optional<int64_t> times, Value brought, function_ref<void()> body) {
    AffineMap map =
        times ? AffineMap::getConstantMap(*times, b.getContext()) : AffineMap::get(1, 0, b.getAffineDimExpr(0));
    withBody<dlir::LoopOp>(
        [&](Block &block) {
          block.addArgument(b.getIndexType(), loc);
          body();
        },
        times ? ValueRange() : ValueRange(brought), AffineMapAttr::get(map));
  }

  void drain(Value ring) {
    withBody<dlir::DrainOp>(
        [&](Block &) { MultiplyOp::create(b, loc, kMmaRows, tile.columns, kMmaDepth, pipeline.behind); },
        ValueRange(ring));
  }
  void sums() {
    withBody<dlir::TaskGroupOp>([&](Block &) { WriteOp::create(b, loc, pipeline.sumsAtOnce); }, b.getStringAttr("sums"),
                                ValueRange(), ValueRange(), DenseI64ArrayAttr(), DenseI64ArrayAttr());
  }
  void fill(Value ring) {
    withBody<dlir::FillOp>(
        [&](Block &) {
          writeCopy(b, loc, product, "left", product.left, tile.rows, pipeline.leftPairs);
          writeCopy(b, loc, product, "right", product.right, tile.columns, pipeline.rightPairs);
        },
        ValueRange(ring));
  }

  OpBuilder &b;
  Location loc;
  const GemmProduct &product;
  const Pipeline &pipeline;
  const GemmTile &tile;
};

} // namespace

PipelineOp dmxc::cuda::writePipeline(OpBuilder &b, const GemmProduct &product, const Pipeline &pipeline) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(product.op);
  return Writer(b, product, pipeline).write();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// What an op calls itself, in quotes; "" where it has no name.
std::string nameOf(Operation *op) {
  for (StringRef key : {"name", "engine", "side"})
    if (auto name = op->getAttrOfType<StringAttr>(key))
      return (" \"" + name.getValue() + "\"").str();
  return "";
}

class Reader {
public:
  Reader(PipelineOp text, GemmProduct &product, const hw::Machine &machine)
      : text(text), product(product), machine(machine) {}

  Result<Pipeline> read();

private:
  /// The walks of a role's queue.
  struct Walks {
    dlir::LoopOp tiles, steps;
  };

  bool readShape();
  bool readGraph(dlir::DeviceProgramOp program);
  bool readWalks(StringRef engine, Walks &walks);
  bool readRing();
  bool readRoles();
  bool readRegisters();
  bool readCopies();
  bool readCopy(CopyOp copy, const Side &side, int64_t &pairs);
  bool readProducts();

  /// Keeps the first thing that is wrong: the op, what it has and what it may have.
  bool wrong(Operation *op, const llvm::Twine &what) {
    if (why.empty())
      why = ("node '" + dmir::nodeName(product.op) + "': " + op->getName().getStringRef() + nameOf(op) + " " + what)
                .str();
    return false;
  }
  bool within(Operation *op, StringRef key, int64_t has, int64_t least, int64_t most, const llvm::Twine &because = "") {
    return (has >= least && has <= most) ||
           wrong(op, "has " + key + " " + llvm::Twine(has) + "; it is " +
                         (least == most ? llvm::Twine(least) : llvm::Twine(least) + " to " + llvm::Twine(most)) +
                         because);
  }
  /// The one op of a kind in a body, which has so many ops.
  template <typename Op> Op only(Operation *in, std::optional<size_t> ops = 1) {
    Block &body = in->getRegion(0).front();
    auto found = body.getOps<Op>();
    auto count = std::distance(found.begin(), found.end());
    if (count != 1)
      wrong(in, "has " + llvm::Twine(count) + " times " + Op::getOperationName() + "; there is one");
    else if (ops && body.getOperations().size() != *ops)
      wrong(in, "has " + llvm::Twine(body.getOperations().size()) + " ops; it has " + llvm::Twine(*ops));
    else
      return *found.begin();
    return Op();
  }
  /// Whether a loop has so many trips, or those of a register that a run brings.
  bool hasTrips(dlir::LoopOp loop, std::optional<int64_t> trips, int64_t number, const llvm::Twine &what);

  PipelineOp text;
  GemmProduct &product;
  const hw::Machine &machine;
  Pipeline pipeline;
  dlir::ScheduledGraphOp graph;
  dlir::RingOp ring;
  RoleOp producer, consumer;
  dlir::FillOp fill;
  MultiplyOp multiply;
  WriteOp write;
  std::string why;
};

bool Reader::hasTrips(dlir::LoopOp loop, std::optional<int64_t> trips, int64_t number, const llvm::Twine &what) {
  AffineMap times = loop.getTimes();
  auto reg = times.getNumDims() == 1 && times == AffineMap::getMultiDimIdentityMap(1, text.getContext())
                 ? loop.getIndices()[0].getDefiningOp<dlir::RegisterOp>()
                 : dlir::RegisterOp();
  if (trips ? times.isSingleConstant() && times.getSingleConstantResult() == *trips
            : reg && static_cast<int64_t>(reg.getNumber()) == number)
    return true;
  auto queue = loop->getParentOfType<dlir::DispatchQueueOp>();
  std::string needed = trips ? std::to_string(*trips) : "those of dlir.register " + std::to_string(number);
  return wrong(loop, "of queue \"" + queue.getEngine() + "\" has other trips than " + what + ": " + needed);
}

/// The graph of a block, and what a run brings to it.
bool Reader::readGraph(dlir::DeviceProgramOp program) {
  auto isBrought = [&](int64_t number) {
    return llvm::any_of(program.getBody().getOps<dlir::ArgumentOp>(), [&](dlir::ArgumentOp argument) {
      return argument.getToRegister() && static_cast<int64_t>(*argument.getToRegister()) == number;
    });
  };
  const size_t arguments = stepsOf(product) ? 1 : 2;
  for (size_t number = 0; number < arguments; ++number)
    if (!isBrought(static_cast<int64_t>(number)))
      return wrong(program, "has no argument for register " + llvm::Twine(number));
  graph = only<dlir::ScheduledGraphOp>(program, arguments + 1);
  if (!graph || graph.getName() != "main" || graph.unitCount() != 1)
    return graph && wrong(graph, "is \"main\" of one unit, which is a block");
  return true;
}

bool Reader::readWalks(StringRef engine, Walks &walks) {
  for (auto queue : graph.getBody().getOps<dlir::DispatchQueueOp>())
    if (queue.getEngine() == engine) {
      if (queue.getUnits())
        return wrong(queue, "has a grid of its own; a block is one unit");
      walks.tiles = only<dlir::LoopOp>(queue);
      walks.steps = walks.tiles ? only<dlir::LoopOp>(walks.tiles, std::nullopt) : dlir::LoopOp();
      return walks.steps && hasTrips(walks.tiles, std::nullopt, kTilesRegister, "the block has tiles") &&
             hasTrips(walks.steps, stepsOf(product), kStepsRegister, "a tile has steps of 64 terms");
    }
  return wrong(graph, "has no queue \"" + engine + "\"");
}

/// Two roles and a program with a ring, whose queues walk over tiles and their steps.
bool Reader::readShape() {
  SmallVector<RoleOp> roles(text.getBody().getOps<RoleOp>());
  if (roles.size() != 2 || roles[0].getName() != kMultiplyEngine || roles[1].getName() != kCopyEngine)
    return wrong(text, "has " + llvm::Twine(roles.size()) + " roles; it has two, first \"" + kMultiplyEngine +
                           "\", then \"" + kCopyEngine + "\"");
  consumer = roles[0], producer = roles[1];
  Walks drains, fills;
  auto program = only<dlir::DeviceProgramOp>(text, 3);
  if (!program || !readGraph(program))
    return false;
  const size_t registers = stepsOf(product) ? 1 : 2;
  ring = only<dlir::RingOp>(graph, registers + 3);
  if (!ring || !readWalks(kMultiplyEngine, drains) || !readWalks(kCopyEngine, fills))
    return false;
  auto drain = only<dlir::DrainOp>(drains.steps);
  multiply = drain ? only<MultiplyOp>(drain) : MultiplyOp();
  auto group = multiply ? only<dlir::TaskGroupOp>(drains.tiles, 2) : dlir::TaskGroupOp();
  if (!group)
    return false;
  if (group->isBeforeInBlock(drains.steps) || !group.getWait().empty() || !group.getSignal().empty())
    return wrong(group, "stands behind the steps of a tile, without tokens");
  write = only<WriteOp>(group);
  fill = write ? only<dlir::FillOp>(fills.steps) : dlir::FillOp();
  return fill && (fills.tiles.getBody().front().getOperations().size() == 1 ||
                  wrong(fills.tiles, "of the queue that fills holds its steps alone"));
}

bool Reader::readRing() {
  GemmTile &tile = pipeline.tile;
  tile.rows = text.getRows(), tile.columns = text.getColumns(), pipeline.raster = text.getRaster();
  auto isPart = [&](StringRef key, int64_t has) {
    return (has > 0 && has <= kMostTileRows && has % kMmaRows == 0) ||
           wrong(text, "has a tile of " + llvm::Twine(has) + " " + key + "; it is a multiple of 64 up to 256");
  };
  if (!isPart("rows", tile.rows) || !isPart("columns", tile.columns) ||
      !within(text, "raster", pipeline.raster, 1, kMostRaster))
    return false;
  if (product.kept && !within(text, "columns", tile.columns, product.kept->columns, product.kept->columns,
                              ", for which its right operand is packed"))
    return false;
  if (static_cast<int64_t>(ring.getSize()) != tile.slotBytes())
    return wrong(ring, "has size " + llvm::Twine(ring.getSize()) + "; a slot of the tile's " + llvm::Twine(tile.rows) +
                           " rows and " + llvm::Twine(tile.columns) + " columns has " + llvm::Twine(tile.slotBytes()));
  pipeline.behind = multiply.getBehind();
  if (!within(multiply, "behind", pipeline.behind, 0, 1))
    return false;
  tile.stages = ring.getSlots();
  const int64_t least = pipeline.behind + 1, most = tile.mostStages(machine);
  if (least > most)
    return wrong(ring, "has slots of " + llvm::Twine(tile.slotBytes()) + " bytes, of which " + llvm::Twine(least) +
                           " are needed; a block of " + machine.name + " has " + llvm::Twine(machine.mostShared) +
                           " bytes of shared memory");
  return within(ring, "slots", tile.stages, least, most,
                ": those that are read, and what " + llvm::Twine(machine.mostShared) +
                    " bytes of shared memory of a block hold");
}

bool Reader::readRoles() {
  const int64_t needed = pipeline.tile.consumers();
  if (!within(consumer, "warpgroups", consumer.getWarpgroups(), needed, needed, ", each for 64 rows of the tile") ||
      !within(producer, "warpgroups", producer.getWarpgroups(), 1, 1))
    return false;
  if (pipeline.tile.threads() > machine.mostThreads)
    return wrong(consumer, "has " + llvm::Twine(needed) + " warpgroups beside one that copies, " +
                               llvm::Twine(pipeline.tile.threads()) + " threads; a block of " + machine.name + " has " +
                               llvm::Twine(machine.mostThreads));
  return readRegisters();
}

bool Reader::readRegisters() {
  if (consumer.getRegisters().has_value() != producer.getRegisters().has_value())
    return wrong(consumer.getRegisters() ? producer : consumer,
                 "has no registers, but the other role; all or none have some");
  if (!consumer.getRegisters())
    return true;
  pipeline.copierRegisters = *producer.getRegisters(), pipeline.multiplierRegisters = *consumer.getRegisters();
  const int64_t given = std::min(machine.registersOfEach(machine.registers, pipeline.tile.threads()),
                                 machine.registersOfEach(machine.mostRegisters, 1));
  const std::tuple<RoleOp, int64_t, int64_t, int64_t> roles[] = {
      {producer, pipeline.copierRegisters, machine.fewestRegisters, given},
      {consumer, pipeline.multiplierRegisters, given, machine.registersOfEach(machine.mostRegisters, 1)}};
  for (auto [role, has, least, most] : roles) {
    if (!within(role, "registers", has, least, most, ": the launch gives " + llvm::Twine(given)))
      return false;
    if (has % machine.registerStep)
      return wrong(role, "has registers " + llvm::Twine(has) + "; they are a multiple of " +
                             llvm::Twine(machine.registerStep));
  }
  const int64_t all =
      kWarpgroup * (pipeline.copierRegisters + pipeline.tile.consumers() * pipeline.multiplierRegisters);
  return all <= machine.registers ||
         wrong(consumer, "has registers " + llvm::Twine(pipeline.multiplierRegisters) +
                             ", with which the block's threads have " + llvm::Twine(all) + "; a multiprocessor of " +
                             machine.name + " has " + llvm::Twine(machine.registers));
}

/// What a map of the text says otherwise than the operand lies; "" where nothing.
static std::string otherMap(CopyOp copy, const TensorMap &map) {
  MLIRContext *context = copy.getContext();
  auto differs = [](StringRef key, Attribute has, Attribute needed) {
    std::string text;
    if (has != needed)
      llvm::raw_string_ostream(text) << "has a map of other " << key << " than the operand's: " << needed;
    return text;
  };
  for (const std::string &text :
       {differs("sizes", copy.getSizesAttr(), dimsAttr(context, map.sizes)),
        differs("strides", copy.getStridesAttr(), dimsAttr(context, map.strides)),
        differs("box", copy.getBoxAttr(), DenseI64ArrayAttr::get(context, map.box)),
        differs("offset", copy.getOffsetAttr() ? copy.getOffsetAttr() : dimsAttr(context, Dim(0)),
                dimsAttr(context, map.offset))})
    if (!text.empty())
      return text;
  return "";
}

bool Reader::readCopy(CopyOp copy, const Side &side, int64_t &pairs) {
  if (copy.getSide() != side.name)
    return wrong(copy, "stands where the " + side.name + " operand's is");
  if (copy.getPairs()) {
    pairs = *copy.getPairs();
    product.copyByThreads(side.operand);
    const int64_t rounds = side.rows * (kTileRowElements / 2) / kWarpgroup;
    const int64_t unit = product.copiesTaps() && &side.operand == &product.right ? TapCopies::kUnitPairs : 1;
    return (pairs > 0 && rounds % pairs == 0 && pairs % unit == 0) ||
           wrong(copy, "has threads that load " + llvm::Twine(pairs) + " pairs at a time; it is a part of " +
                           llvm::Twine(rounds) + ", a multiple of " + llvm::Twine(unit));
  }
  if (!side.operand.byThreads.empty())
    return wrong(copy, "has a map, but threads copy it: " + side.operand.byThreads);
  std::string other = otherMap(copy, product.map(side.operand, side.rows));
  return other.empty() || wrong(copy, other);
}

bool Reader::readCopies() {
  SmallVector<CopyOp> copies(fill.getBody().getOps<CopyOp>());
  if (copies.size() != 2)
    return wrong(fill, "holds " + llvm::Twine(copies.size()) +
                           " copies; it has one of the left operand and one of the right one");
  return readCopy(copies[0], {"left", product.left, pipeline.tile.rows}, pipeline.leftPairs) &&
         readCopy(copies[1], {"right", product.right, pipeline.tile.columns}, pipeline.rightPairs);
}

bool Reader::readProducts() {
  const int64_t columns = pipeline.tile.columns;
  if (!within(multiply, "rows", multiply.getRows(), kMmaRows, kMmaRows) ||
      !within(multiply, "columns", multiply.getColumns(), columns, columns, ", those of the tile") ||
      !within(multiply, "terms", multiply.getTerms(), kMmaDepth, kMmaDepth))
    return false;
  pipeline.sumsAtOnce = write.getColumns();
  return (pipeline.sumsAtOnce > 0 && pipeline.sumsAtOnce % 8 == 0 && columns % pipeline.sumsAtOnce == 0) ||
         wrong(write, "has columns " + llvm::Twine(pipeline.sumsAtOnce) +
                          "; it is a multiple of 8 and a part of the tile's " + llvm::Twine(columns));
}

Result<Pipeline> Reader::read() {
  if (readShape() && readRing() && readRoles() && readCopies() && readProducts())
    return pipeline;
  return modelError(why);
}

} // namespace

Result<Pipeline> dmxc::cuda::readPipeline(PipelineOp text, GemmProduct &product, const hw::Machine &machine) {
  Result<Pipeline> read = Reader(text, product, machine).read();
  if (read)
    read->placeTable(product, machine);
  return read;
}
