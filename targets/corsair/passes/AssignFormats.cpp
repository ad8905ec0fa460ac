//===- AssignFormats.cpp - every value's number format --------------------===//
//
// BASIC: operands of matrix products BFP16_64, their bias BFP32_1, all other floats f16. Packed constants are quantized
// from the model's values, and inputs that only products read are quantized at the boundary from the user's: neither is
// rounded to f16 before.
//
//===----------------------------------------------------------------------===//
#include "KernelFunctions.h"
#include "Passes.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "targets/corsair/decide/Constants.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace dmxc {
#define GEN_PASS_DEF_ASSIGNFORMATS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

bool isWideFloat(Type type) { return isa<Float32Type, Float64Type, BFloat16Type>(type); }
bool hasFloats(Value value) { return isa<FloatType>(elementOf(value)); }

/// Formats of the values of one kernel's function.
class Assigner {
public:
  explicit Assigner(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    SmallVector<dmir::MatMulOp> products;
    for (Operation &op : function.getBody().front()) {
      if (op.getNumRegions())
        return op.emitError("holds other ops; formats are assigned before regions and loops are made");
      if (auto product = dyn_cast<dmir::MatMulOp>(op);
          product && hasFloats(product.getLhs()) && !corsair::makesNothing(product))
        products.push_back(product);
      if (auto transpose = dyn_cast<dmir::TransposeOp>(op); transpose && isGatheredApart(transpose))
        apart.insert(transpose);
    }
    for (dmir::MatMulOp product : products)
      if (failed(assign(product)))
        return failure();
    for (auto conv : llvm::make_early_inc_range(function.getOps<dmir::ConvOp>()))
      assign(conv);
    // Transposes whose products now transpose blocks.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
      if (isa<dmir::TransposeOp>(op) && op.use_empty())
        op.erase();
    quantizeInputs();
    narrowFloats();
    SmallVector<Type> results(function.getBody().front().getTerminator()->getOperandTypes());
    function.setType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
    return success();
  }

private:
  LogicalResult assign(dmir::MatMulOp op) {
    dmx::blockfp::BlockFormat format = *dmx::blockfp::blockFormatFromName("BFP16_64");
    for (Value operand : op->getOperands())
      if (!typeOf(operand).hasStaticShape() || typeOf(operand).getEncoding())
        return op.emitError() << "node '" << dmir::nodeName(op)
                              << "': a block floating point operand needs a static shape and no "
                              << "layout, not " << operand.getType();
    builder.setInsertionPoint(op);
    // The rows of a batch by weights are made one matrix, which is cast: what is turned round is so before.
    const bool flattens = typeOf(op.getLhs()).getRank() > 2 && isa<BlockArgument>(op.getRhs());
    Value lhs = quantized(op.getLhs(), dmir::BlockFpType::get(builder.getContext(), format, false), !flattens);
    Value rhs = quantized(op.getRhs(), dmir::BlockFpType::get(builder.getContext(), format, true));
    dmir::AddOp add = biasOf(op.getResult());
    auto bfp32 = dmir::BlockFpType::getBfp32(builder.getContext());
    auto half = builder.getF16Type();
    auto withElement = [&](Type element) { return RankedTensorType::get(shapeOf(op.getResult()), element); };
    auto product = dmir::MatMulOp::create(builder, op.getLoc(), withElement(add ? Type(bfp32) : Type(half)), lhs, rhs);
    product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    if (!add) {
      op.getResult().replaceAllUsesWith(product.getResult());
    } else {
      builder.setInsertionPoint(add);
      Value other = add.getLhs() == op.getResult() ? add.getRhs() : add.getLhs();
      Value bias = packedBias(add, other, shapeOf(op.getResult()).back());
      auto sum = dmir::AddOp::create(builder, add.getLoc(), withElement(bfp32), product.getResult(), bias);
      auto cast = dmir::CastOp::create(builder, add.getLoc(), withElement(half), sum);
      sum->setDiscardableAttrs(add->getDiscardableAttrDictionary());
      cast->setDiscardableAttrs(add->getDiscardableAttrDictionary());
      cast->removeAttr(lldmir::kBiasAttr);
      cast->removeAttr(lldmir::kGatherAttr);
      add.getResult().replaceAllUsesWith(cast);
      add.erase();
    }
    op.erase();
    return success();
  }

  /// A convolution by packed weights, with its bias.
  void assign(dmir::ConvOp op) {
    auto weights = dyn_cast<BlockArgument>(op.getWeights());
    if (!weights || !corsair::isTiles(function.getArgAttrOfType<DictionaryAttr>(weights.getArgNumber(), kFormAttr)))
      return;
    const ArrayRef<int64_t> shape = shapeOf(weights);
    dmir::AddOp add = biasOf(op.getResult());
    Value bias = !add ? Value() : add.getLhs() == op.getResult() ? add.getRhs() : add.getLhs();
    if (bias)
      bias = packedVector(bias);
    auto format = *dmx::blockfp::blockFormatFromName("BFP16_64");
    weights.setType(RankedTensorType::get(shape, dmir::BlockFpType::get(builder.getContext(), format, true)));
    Operation *last = add ? add.getOperation() : op.getOperation();
    builder.setInsertionPoint(last);
    auto made = lldmir::ConvOp::create(builder, op.getLoc(), RankedTensorType::get(shapeOf(op), builder.getF16Type()),
                                       op.getInput(), weights, bias, ValueRange(), Value(), shape.drop_front(2),
                                       op.getStrides(), op.getDilations(), op.getLow(), op.getGroups(), ArrayAttr());
    made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    last->getResult(0).replaceAllUsesWith(made.getResult());
    if (add)
      add.erase();
    op.erase();
  }

  /// The argument as the numbers of the columns and the zeros that it goes on with when it is packed.
  BlockArgument packedVector(Value vector) {
    auto argument = cast<BlockArgument>(vector);
    auto form = function.getArgAttrOfType<DictionaryAttr>(argument.getArgNumber(), kFormAttr);
    const int64_t count = form.getAs<IntegerAttr>("size").getInt() / 4;
    argument.setType(RankedTensorType::get({count}, dmir::BlockFpType::getBfp32(builder.getContext())));
    return argument;
  }

  /// The numbers of the columns, in front of the zeros.
  Value packedBias(dmir::AddOp add, Value vector, int64_t columns) {
    BlockArgument argument = packedVector(vector);
    auto bfp32 = dmir::BlockFpType::getBfp32(builder.getContext());
    OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1), size = builder.getIndexAttr(columns);
    return tensor::ExtractSliceOp::create(builder, add.getLoc(), RankedTensorType::get({columns}, bfp32), argument,
                                          zero, size, one);
  }

  /// The addition of a packed vector that alone reads the product.
  static dmir::AddOp biasOf(Value product) {
    auto add = product.hasOneUse() ? dyn_cast<dmir::AddOp>(*product.user_begin()) : dmir::AddOp();
    return add && add->hasAttr(lldmir::kBiasAttr) ? add : dmir::AddOp();
  }

  /// The value cast to a format, one cast for all who want it. What is transposed is cast before: the blocks are the
  /// same, and turning R into C costs nothing where turning f16 does.
  Value quantized(Value value, dmir::BlockFpType element, bool turnsBlocks = true) {
    if (auto transpose = value.getDefiningOp<dmir::TransposeOp>();
        turnsBlocks && transpose && !apart.contains(transpose) && element.hasBlocks() && swapsMatrices(transpose)) {
      Value before = quantized(transpose.getInput(), element.transposed());
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(transpose);
      auto type = RankedTensorType::get(shapeOf(value), element);
      return dmir::TransposeOp::create(builder, transpose.getLoc(), type, before, transpose.getPermutation());
    }
    dmir::CastOp &cast = known[{value, element}];
    if (!cast) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfterValue(value);
      cast = dmir::CastOp::create(builder, value.getLoc(), RankedTensorType::get(shapeOf(value), element), value);
    }
    return cast;
  }

  static bool isGathered(Value value) {
    return llvm::any_of(value.getUses(), [](OpOperand &use) {
      auto numbers = use.getOwner()->getAttrOfType<DenseI64ArrayAttr>(lldmir::kGatherAttr);
      return numbers && llvm::is_contained(numbers.asArrayRef(), static_cast<int64_t>(use.getOperandNumber()));
    });
  }

  /// Whether a transpose may be whole in all quads where what it turns is not, or the other way round: blocks of what
  /// it turns would be of another part then.
  static bool isGatheredApart(dmir::TransposeOp op) {
    const bool input = isGathered(op.getInput()), result = isGathered(op.getResult());
    const bool ofProducts = llvm::all_of(op->getUsers(), [](Operation *user) { return isa<dmir::MatMulOp>(user); });
    return ofProducts ? input && !result : input || result;
  }

  /// True for a permutation that exchanges the last two dimensions and nothing else.
  static bool swapsMatrices(dmir::TransposeOp op) {
    ArrayRef<int64_t> permutation = op.getPermutation();
    int64_t rank = permutation.size();
    for (int64_t i = 0; i < rank - 2; ++i)
      if (permutation[i] != i)
        return false;
    return rank >= 2 && permutation[rank - 2] == rank - 1;
  }

  /// An input that is only read in one format has it at the boundary.
  void quantizeInputs() {
    for (BlockArgument argument : function.getArguments()) {
      if (argument.use_empty() || !isa<RankedTensorType>(argument.getType()))
        continue;
      // Partition knows which inputs are tiles; the others are f16.
      const unsigned number = argument.getArgNumber();
      if (!corsair::isTiles(function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr)) &&
          !function.getArgAttr(number, kTilesAttr))
        continue;
      auto first = dyn_cast<dmir::CastOp>(*argument.user_begin());
      bool alike = first && dmir::blockFpOf(first.getType()) && llvm::all_of(argument.getUsers(), [&](Operation *user) {
                     return isa<dmir::CastOp>(user) && user->getResult(0).getType() == first.getType();
                   });
      if (!alike)
        continue;
      Type type = first.getType();
      for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
        user->getResult(0).replaceAllUsesWith(argument);
        user->erase();
      }
      argument.setType(type);
    }
  }

  /// f32, f64 and bf16 become f16.
  void narrowFloats() {
    auto narrow = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && isWideFloat(type.getElementType()))
        value.setType(RankedTensorType::get(type.getShape(), builder.getF16Type(), type.getEncoding()));
    };
    for (BlockArgument argument : function.getArguments())
      narrow(argument);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
      if (auto constant = dyn_cast<dmir::ConstantOp>(op)) {
        narrowConstant(constant);
        continue;
      }
      for (Value result : op.getResults())
        narrow(result);
      if (auto mask = dyn_cast<dmir::MaskOp>(op))
        narrowFill(mask);
      if (auto cast = dyn_cast<dmir::CastOp>(op); cast && cast.getInput().getType() == cast.getType()) {
        cast.replaceAllUsesWith(cast.getInput());
        cast.erase();
      }
    }
  }

  /// The nearest number that f16 has; it saturates.
  void narrowFill(dmir::MaskOp mask) {
    if (!elementOf(mask.getResult()).isF16())
      return;
    const double fill = cast<FloatAttr>(mask.getFill()).getValueAsDouble();
    mask.setFillAttr(builder.getFloatAttr(builder.getF16Type(), std::clamp(fill, -65504.0, 65504.0)));
  }

  /// The device rounds what it fills a buffer with.
  void narrowConstant(dmir::ConstantOp constant) {
    if (!isWideFloat(elementOf(constant)))
      return;
    auto type = RankedTensorType::get(shapeOf(constant), builder.getF16Type());
    builder.setInsertionPointAfter(constant);
    auto cast = dmir::CastOp::create(builder, constant.getLoc(), type, constant);
    constant.getResult().replaceAllUsesExcept(cast, cast);
  }

  func::FuncOp function;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, Type>, dmir::CastOp> known;
  llvm::SmallPtrSet<Operation *, 4> apart;
};

/// The module's attributes: what the user has, and what the model's constants have become.
class ModelTypes {
public:
  explicit ModelTypes(ModuleOp module) : module(module), builder(module.getContext()) {}

  /// Of several graphs each has its own, under its name; those of branches and loops have constants alone.
  void record() {
    SmallVector<NamedAttribute> inputs, outputs, constants;
    for (auto program : module.getOps<dlir::ProgramOp>()) {
      StringAttr name = program.getSymNameAttr();
      ArrayAttr own = constantsOf(program);
      if (!program.getOwned()) {
        inputs.emplace_back(name, typesOf(program.getInputs()));
        outputs.emplace_back(name, typesOf(program.getOutputs()));
      }
      if (!program.getOwned() || !own.empty())
        constants.emplace_back(name, own);
    }
    set("dm.model_inputs.type", inputs);
    set("dm.model_outputs.type", outputs);
    set("dm.model_constants.type", constants);
  }

private:
  void set(StringRef key, ArrayRef<NamedAttribute> entries) {
    if (!entries.empty())
      module->setAttr(key, entries.size() == 1 ? entries[0].getValue() : builder.getDictionaryAttr(entries));
  }

  Attribute typesOf(ArrayAttr tensors) {
    SmallVector<Attribute> types;
    for (Attribute tensor : tensors)
      types.push_back(cast<DictionaryAttr>(tensor).get("type"));
    return builder.getArrayAttr(types);
  }

  ArrayAttr constantsOf(dlir::ProgramOp program) {
    SmallVector<Attribute> types;
    for (auto buffer : program.getOps<dlir::BufferOp>())
      if (buffer.getKind() == dlir::BufferKind::constant)
        types.push_back(TypeAttr::get(typeOf(buffer)));
    return builder.getArrayAttr(types);
  }

  /// The model's shape, in the elements that a kernel of the card reads; the host's read what the model has.
  Type typeOf(dlir::BufferOp buffer) {
    auto own = cast<RankedTensorType>(buffer.getTensor());
    for (OpOperand &use : buffer->getUses()) {
      auto dispatch = dyn_cast<dlir::DispatchOp>(use.getOwner());
      auto function = dispatch ? module.lookupSymbol<func::FuncOp>(dispatch.getKernel()) : func::FuncOp();
      if (function && function->hasAttr(kQuadsAttr) && use.getOperandNumber() < function.getNumArguments())
        return RankedTensorType::get(own.getShape(), elementOf(function.getArgument(use.getOperandNumber())));
    }
    return own;
  }

  ModuleOp module;
  Builder builder;
};

struct AssignFormats : dmxc::impl::AssignFormatsBase<AssignFormats> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kQuadsAttr) && failed(Assigner(function).run()))
        return signalPassFailure();
    ModelTypes(getOperation()).record();
  }
};

} // namespace
