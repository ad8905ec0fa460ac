//===- DlirWriter.cpp - building ops of a device's program ----------------===//
#include "DlirWriter.h"

using namespace mlir;
using namespace dmxc;

Sum Sum::operator+(const Sum &other) const {
  Sum result = *this;
  result.base += other.base;
  for (auto [index, scale] : other.terms) {
    auto *at = llvm::find_if(result.terms, [index = index](auto &term) { return term.first == index; });
    if (at == result.terms.end())
      result.terms.push_back({index, scale});
    else
      at->second += scale;
  }
  return result;
}

Sum Sum::operator*(int64_t scale) const {
  Sum result(base * scale);
  for (auto [index, factor] : terms)
    if (factor != 0 && scale != 0)
      result.terms.push_back({index, factor * scale});
  return result;
}

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
  SmallVector<AffineExpr> places_, sums_;
  for (const Sum &place : places)
    places_.push_back(exprOf(place, indices, context));
  for (auto &[name, sum] : sums)
    sums_.push_back(exprOf(sum, indices, context));
  SmallVector<AffineMap> maps;
  for (AffineExpr expr : places_)
    maps.push_back(AffineMap::get(indices.size(), 0, expr));
  for (auto [named, expr] : llvm::zip(sums, sums_))
    state.addAttribute(named.first, AffineMapAttr::get(AffineMap::get(indices.size(), 0, expr)));
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

DlirWriter::DlirWriter(OpBuilder &builder, Location loc, StringRef name) : builder(builder), loc(loc) {
  dmmq = dlir::DmmqOp::create(builder, loc, builder.getStringAttr(name), DenseI64ArrayAttr());
  builder.setInsertionPointToStart(&dmmq.getBody().emplaceBlock());
}

Value DlirWriter::memory(dlir::MemoryKind kind, StringRef name, int64_t size, bool permanent) {
  return dlir::MemoryOp::create(builder, loc, dlir::MemoryType::get(builder.getContext()),
                                dlir::MemoryKindAttr::get(builder.getContext(), kind), builder.getStringAttr(name),
                                builder.getI64IntegerAttr(size), IntegerAttr(),
                                permanent ? builder.getUnitAttr() : UnitAttr());
}

Value DlirWriter::descriptor(const DmaSpec &spec) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(declarations);
  SmallVector<int64_t> dims, source, target;
  for (const DmaDim &dim : spec.dims)
    if (dim.count != 1) {
      dims.push_back(dim.count);
      source.push_back(dim.source);
      target.push_back(dim.target);
    }
  OperationState state(loc, dlir::DmaConfigOp::getOperationName());
  auto integer = [&](StringRef name, int64_t value) {
    if (value)
      state.addAttribute(name, builder.getI64IntegerAttr(value));
  };
  state.addAttribute("kind", builder.getStringAttr(spec.kind));
  if (!spec.to.empty() && spec.to != spec.kind)
    state.addAttribute("to", builder.getStringAttr(spec.to));
  integer("unit", spec.unit);
  state.addAttribute("dims", builder.getDenseI64ArrayAttr(dims));
  state.addAttribute("source", builder.getDenseI64ArrayAttr(source));
  state.addAttribute("target", builder.getDenseI64ArrayAttr(target));
  integer("source_slice", spec.sourceSlice);
  integer("target_slice", spec.targetSlice);
  integer("source_core", spec.sourceCore);
  state.addTypes(dlir::ConfigType::get(builder.getContext()));
  auto made = cast<dlir::DmaConfigOp>(builder.create(state));
  for (dlir::DmaConfigOp known : configs)
    if (known->getAttrDictionary() == made->getAttrDictionary()) {
      made.erase();
      return known;
    }
  configs.push_back(made);
  return made;
}

void DlirWriter::graph(StringRef name, int64_t quads) {
  builder.setInsertionPointToEnd(&dmmq.getBody().front());
  current = dlir::ScheduledGraphOp::create(builder, loc, builder.getStringAttr(name), builder.getI64IntegerAttr(quads));
  current.getBody().emplaceBlock().addArgument(builder.getIndexType(), loc);
  declarations = declarations ? declarations : current.getOperation();
  firstQueue = nullptr;
  registers = 0;
  builder.setInsertionPointToEnd(&current.getBody().front());
}

Value DlirWriter::token(int64_t credits) {
  OpBuilder::InsertionGuard guard(builder);
  if (firstQueue)
    builder.setInsertionPoint(firstQueue);
  return dlir::TokenOp::create(builder, loc, dlir::TokenType::get(builder.getContext()),
                               builder.getI64IntegerAttr(credits));
}

Value DlirWriter::quadRegister(ArrayRef<int64_t> values) {
  OpBuilder::InsertionGuard guard(builder);
  if (firstQueue)
    builder.setInsertionPoint(firstQueue);
  return dlir::RegisterOp::create(builder, loc, builder.getIndexType(), builder.getI64IntegerAttr(registers++),
                                  builder.getDenseI64ArrayAttr(values));
}

void DlirWriter::queue(int64_t number, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&current.getBody().front());
  auto op = dlir::DispatchQueueOp::create(builder, loc, builder.getI64IntegerAttr(number));
  firstQueue = firstQueue ? firstQueue : op.getOperation();
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  body();
}

void DlirWriter::group(StringRef name, ValueRange wait, ValueRange signal, function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder);
  auto op = dlir::TaskGroupOp::create(builder, loc, builder.getStringAttr(name), wait, signal);
  builder.setInsertionPointToStart(&op.getBody().emplaceBlock());
  body();
}

void DlirWriter::loop(const Sum &times, function_ref<void(Sum)> body) {
  if (times.terms.empty() && times.base == 1)
    return body(Sum(0));
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> indices;
  AffineExpr count = exprOf(times, indices, builder.getContext());
  OperationState state(loc, dlir::LoopOp::getOperationName());
  state.addOperands(indices);
  state.addAttribute("times", AffineMapAttr::get(AffineMap::get(indices.size(), 0, count)));
  Block &block = state.addRegion()->emplaceBlock();
  Value counter = block.addArgument(builder.getIndexType(), loc);
  builder.create(state);
  builder.setInsertionPointToStart(&block);
  body(counter);
}

void DlirWriter::pairs(int64_t count, function_ref<void(Sum)> body) {
  if (count > 1)
    loop(count / 2, [&](Sum counter) {
      body(counter * 2);
      body(counter * 2 + 1);
    });
  if (count % 2)
    body(count - 1);
}

void DlirWriter::barrier(dlir::BarrierScope scope, int64_t id, ArrayRef<int64_t> queues) {
  dlir::TaskBarrierOp::create(builder, loc, ValueRange(), ValueRange(),
                              dlir::BarrierScopeAttr::get(builder.getContext(), scope), builder.getI64IntegerAttr(id),
                              builder.getDenseI64ArrayAttr(queues));
}
