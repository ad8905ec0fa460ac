//===- ProgramWriter.cpp - building programs of a device's queues ---------===//
#include "ProgramWriter.h"

using namespace mlir;
using namespace dmxc;

/// The map of a sum over a list of indices, which grows by those that are not in it.
static AffineExpr exprOf(const Sum &sum, SmallVector<Value> &indices, MLIRContext *context) {
  AffineExpr result;
  for (auto [index, scale] : sum.terms) {
    auto *at = llvm::find(indices, index);
    AffineExpr term = getAffineDimExpr(at - indices.begin(), context) * scale;
    if (at == indices.end())
      indices.push_back(index);
    result = result ? result + term : term;
  }
  AffineExpr base = getAffineConstantExpr(sum.base, context);
  return !result ? base : sum.base ? result + base : result;
}

void TaskWriter::create() {
  MLIRContext *context = builder.getContext();
  SmallVector<Value> indices;
  SmallVector<AffineExpr> placeExprs;
  SmallVector<SmallVector<AffineExpr>> sumExprs;
  for (const Sum &place : places)
    placeExprs.push_back(exprOf(place, indices, context));
  for (auto &[name, values] : sums)
    for (SmallVector<AffineExpr> &exprs = sumExprs.emplace_back(); const Sum &sum : values)
      exprs.push_back(exprOf(sum, indices, context));
  SmallVector<AffineMap> maps;
  for (AffineExpr expr : placeExprs)
    maps.push_back(AffineMap::get(indices.size(), 0, expr));
  for (auto [named, exprs] : llvm::zip(sums, sumExprs))
    state.addAttribute(named.first, AffineMapAttr::get(AffineMap::get(indices.size(), 0, exprs, context)));
  state.addAttribute("places", builder.getAffineMapArrayAttr(maps));
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr(
                         {static_cast<int32_t>(buffers.size()), config ? 1 : 0, static_cast<int32_t>(indices.size())}));
  state.addOperands(buffers);
  if (config)
    state.addOperands(config);
  state.addOperands(indices);
  builder.create(state);
}

ProgramWriter::ProgramWriter(OpBuilder &builder, Location loc, StringRef name, StringRef device)
    : builder(builder), loc(loc) {
  made = dlir::DeviceProgramOp::create(builder, loc, builder.getStringAttr(name), builder.getStringAttr(device),
                                       DenseI64ArrayAttr());
  builder.setInsertionPointToStart(&made.getBody().emplaceBlock());
}

void ProgramWriter::toDeclarations() {
  if (declarations)
    builder.setInsertionPoint(declarations);
  else
    builder.setInsertionPointToEnd(&made.getBody().front());
}

dlir::ArgumentOp ProgramWriter::argument(dlir::ArgumentRole role, StringRef name, Type tensor, StringRef form,
                                         ArrayRef<int64_t> perm, TypedAttr data) {
  OpBuilder::InsertionGuard guard(builder);
  toDeclarations();
  return dlir::ArgumentOp::create(builder, loc, dlir::ArgumentRoleAttr::get(builder.getContext(), role),
                                  builder.getStringAttr(name), TypeAttr::get(tensor), builder.getStringAttr(form),
                                  IntegerAttr(),
                                  perm.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(perm), data);
}

dlir::MemoryOp ProgramWriter::memory(StringRef kind, StringRef name, int64_t size, bool permanent) {
  OpBuilder::InsertionGuard guard(builder);
  toDeclarations();
  return dlir::MemoryOp::create(builder, loc, dlir::MemoryType::get(builder.getContext()), builder.getStringAttr(kind),
                                builder.getStringAttr(name), builder.getI64IntegerAttr(size), IntegerAttr(),
                                permanent ? builder.getUnitAttr() : UnitAttr());
}

dlir::PieceOp ProgramWriter::piece(Value memory, StringRef argument, int64_t unit, int64_t offset,
                                   ArrayRef<int64_t> begin, ArrayRef<int64_t> extent, ArrayRef<int64_t> strides) {
  OpBuilder::InsertionGuard guard(builder);
  toDeclarations();
  return dlir::PieceOp::create(builder, loc, memory, builder.getStringAttr(argument), builder.getI64IntegerAttr(unit),
                               builder.getI64IntegerAttr(offset), builder.getDenseI64ArrayAttr(begin),
                               builder.getDenseI64ArrayAttr(extent), builder.getDenseI64ArrayAttr(strides));
}

Value ProgramWriter::descriptor(const DescriptorSpec &spec, const NamedAttrList &further) {
  OpBuilder::InsertionGuard guard(builder);
  toDeclarations();
  SmallVector<int64_t> dims, source, target;
  for (const DescriptorDim &dim : spec.dims)
    if (dim.count != 1 || spec.keepsDims) {
      dims.push_back(dim.count);
      source.push_back(dim.source);
      target.push_back(dim.target);
    }
  OperationState state(loc, dlir::DescriptorOp::getOperationName());
  auto integer = [&](StringRef name, int64_t value) {
    if (value)
      state.addAttribute(name, builder.getI64IntegerAttr(value));
  };
  state.addAttributes(further);
  state.addAttribute("kind", builder.getStringAttr(spec.kind));
  if (!spec.to.empty() && spec.to != spec.kind)
    state.addAttribute("to", builder.getStringAttr(spec.to));
  integer("unit", spec.unit);
  state.addAttribute("dims", builder.getDenseI64ArrayAttr(dims));
  state.addAttribute("source", builder.getDenseI64ArrayAttr(source));
  state.addAttribute("target", builder.getDenseI64ArrayAttr(target));
  if (spec.valid) {
    SmallVector<int64_t> high(dims);
    high.front() = spec.valid;
    state.addAttribute("high", builder.getDenseI64ArrayAttr(high));
  }
  integer("source_unit_step", spec.sourceUnitStep);
  integer("target_unit_step", spec.targetUnitStep);
  integer("source_subunit_step", spec.sourceSubunitStep);
  state.addTypes(dlir::DescriptorType::get(builder.getContext()));
  auto op = cast<dlir::DescriptorOp>(builder.create(state));
  auto [known, isNew] = descriptors.insert({op->getAttrDictionary(), op});
  if (!isNew)
    op.erase();
  return known->second;
}

void ProgramWriter::channel(StringRef name, int64_t depth, ArrayRef<int64_t> extents) {
  OpBuilder::InsertionGuard guard(builder);
  toDeclarations();
  dlir::ChannelOp::create(builder, loc, builder.getStringAttr(name), builder.getI64IntegerAttr(depth),
                          extents.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(extents));
}

dlir::ScheduledGraphOp ProgramWriter::graph(StringRef name, ArrayRef<int64_t> units) {
  builder.setInsertionPointToEnd(&made.getBody().front());
  current =
      dlir::ScheduledGraphOp::create(builder, loc, builder.getStringAttr(name), builder.getDenseI64ArrayAttr(units));
  current.getBody().emplaceBlock().addArguments(SmallVector<Type>(units.size(), builder.getIndexType()),
                                                SmallVector<Location>(units.size(), loc));
  declarations = declarations ? declarations : current.getOperation();
  firstQueue = nullptr;
  registers = 0;
  builder.setInsertionPointToEnd(&current.getBody().front());
  return current;
}

Value ProgramWriter::token(int64_t credits, StringRef home) {
  OpBuilder::InsertionGuard guard(builder);
  if (firstQueue)
    builder.setInsertionPoint(firstQueue);
  return dlir::TokenOp::create(builder, loc, dlir::TokenType::get(builder.getContext()),
                               builder.getI64IntegerAttr(credits),
                               home.empty() ? StringAttr() : builder.getStringAttr(home));
}

Value ProgramWriter::ring(StringRef kind, StringRef name, int64_t slots, int64_t size, StringRef home, QueueName from,
                          QueueName to, int64_t uses) {
  OpBuilder::InsertionGuard guard(builder);
  if (firstQueue)
    builder.setInsertionPoint(firstQueue);
  return dlir::RingOp::create(
      builder, loc, dlir::MemoryType::get(builder.getContext()), builder.getStringAttr(kind),
      builder.getStringAttr(name), builder.getI64IntegerAttr(slots), builder.getI64IntegerAttr(size),
      builder.getStringAttr(home), builder.getStrArrayAttr(from.engine), builder.getDenseI64ArrayAttr(from.number),
      builder.getStrArrayAttr(to.engine), builder.getDenseI64ArrayAttr(to.number), builder.getI64IntegerAttr(uses));
}

Value ProgramWriter::launchRegister(ArrayRef<int64_t> values) {
  OpBuilder::InsertionGuard guard(builder);
  if (firstQueue)
    builder.setInsertionPoint(firstQueue);
  return dlir::RegisterOp::create(builder, loc, builder.getIndexType(), builder.getI64IntegerAttr(registers++),
                                  builder.getDenseI64ArrayAttr(values));
}

void ProgramWriter::queue(StringRef unit, StringRef engine, int64_t number, function_ref<void()> body,
                          ArrayRef<int64_t> units) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&current.getBody().front());
  auto op = dlir::DispatchQueueOp::create(builder, loc, builder.getStringAttr(unit), builder.getStringAttr(engine),
                                          builder.getI64IntegerAttr(number),
                                          units.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(units));
  firstQueue = firstQueue ? firstQueue : op.getOperation();
  Block &block = op.getBody().emplaceBlock();
  block.addArguments(SmallVector<Type>(units.size(), builder.getIndexType()), SmallVector<Location>(units.size(), loc));
  builder.setInsertionPointToStart(&block);
  currentQueue = op;
  body();
  currentQueue = {};
}

void ProgramWriter::group(StringRef name, ValueRange wait, ValueRange signal, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder);
  auto op = dlir::TaskGroupOp::create(builder, loc, builder.getStringAttr(name), wait, signal, DenseI64ArrayAttr(),
                                      DenseI64ArrayAttr());
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  body();
}

void ProgramWriter::fill(ValueRange rings, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder);
  auto op = dlir::FillOp::create(builder, loc, rings);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  body();
}

void ProgramWriter::drain(ValueRange rings, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder);
  auto op = dlir::DrainOp::create(builder, loc, rings);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  body();
}

void ProgramWriter::loop(const Sum &times, function_ref<void(Sum)> body) {
  if (times.terms.empty() && times.base == 1)
    return body(Sum(0));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = openLoop(times).getBody().front();
  builder.setInsertionPointToStart(&block);
  body(block.getArgument(0));
}

dlir::LoopOp ProgramWriter::openLoop(const Sum &times) {
  SmallVector<Value> indices;
  AffineExpr count = exprOf(times, indices, builder.getContext());
  OperationState state(loc, dlir::LoopOp::getOperationName());
  state.addOperands(indices);
  state.addAttribute("times", AffineMapAttr::get(AffineMap::get(indices.size(), 0, count)));
  state.addRegion()->emplaceBlock().addArgument(builder.getIndexType(), loc);
  return cast<dlir::LoopOp>(builder.create(state));
}

void ProgramWriter::pairs(int64_t count, function_ref<void(Sum)> body) {
  if (count > 1)
    loop(count / 2, [&](const Sum &counter) {
      body(counter * 2);
      body(counter * 2 + 1);
    });
  if (count % 2)
    body(count - 1);
}

TaskWriter ProgramWriter::copy(StringRef from, StringRef to) {
  TaskWriter copy = task(dlir::DmaCopyOp::getOperationName());
  copy.text("from", from).text("to", to);
  return copy;
}

TaskWriter ProgramWriter::channelEnd(StringRef op, StringRef channel, ArrayRef<Sum> element) {
  TaskWriter end = task(op);
  if (!element.empty())
    end.sum("element", element);
  end.set("channel", FlatSymbolRefAttr::get(builder.getContext(), channel));
  return end;
}

void ProgramWriter::tokens(OpBuilder &at, ValueRange wait, ValueRange signal, int64_t count) {
  auto counts = [&](ValueRange tokens) {
    return count == 1 || tokens.empty() ? DenseI64ArrayAttr()
                                        : at.getDenseI64ArrayAttr(SmallVector<int64_t>(tokens.size(), count));
  };
  dlir::TaskBarrierOp::create(at, loc, wait, signal, counts(wait), counts(signal), {}, {}, {});
}

void ProgramWriter::barrier(StringRef scope, int64_t id, ArrayRef<int64_t> queues) {
  dlir::TaskBarrierOp::create(builder, loc, ValueRange(), ValueRange(), {}, {}, builder.getStringAttr(scope),
                              builder.getI64IntegerAttr(id), builder.getDenseI64ArrayAttr(queues));
}
