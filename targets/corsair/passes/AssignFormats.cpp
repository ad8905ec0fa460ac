//===- AssignFormats.cpp - every value's number format --------------------===//
//
// BASIC: operands of matrix products BFP16_64, their bias BFP32_1, all other floats f16. Constants are quantized from
// the model's values, and inputs that only products read are quantized at the boundary from the user's: neither is
// rounded to f16 before.
//
//===----------------------------------------------------------------------===//
#include "FormatTable.h"
#include "KernelFunctions.h"
#include "Passes.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"

#include "targets/corsair/decide/Constants.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/GlobPattern.h"

namespace dmxc {
#define GEN_PASS_DEF_ASSIGNFORMATS
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;

namespace {

bool isWideFloat(Type type) { return isa<Float32Type, Float64Type, BFloat16Type>(type); }
bool hasFloats(Value value) { return isa<FloatType>(elementOf(value)); }

struct Rule {
  llvm::GlobPattern nodes;
  dmx::blockfp::BlockFormat format;
};

/// Formats of one function's values.
class Assigner {
public:
  Assigner(func::FuncOp function, ArrayRef<Rule> rules)
      : function(function), rules(rules), builder(function.getContext()), isKernel(function->hasAttr(kQuadsAttr)) {}

  LogicalResult run() {
    SmallVector<dmir::MatMulOp> products;
    for (Operation &op : function.getBody().front()) {
      if (op.getNumRegions())
        return op.emitError("holds other ops; formats are assigned before regions and loops are made");
      if (auto product = dyn_cast<dmir::MatMulOp>(op);
          product && hasFloats(product.getLhs()) && !corsair::makesNothing(product))
        products.push_back(product);
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
    for (dmir::CastOp &cast : casts)
      if (cast && !isKernel && failed(quantizeConstant(cast))) // the device quantises what it fills a buffer with
        return failure();
    quantizeInputs();
    if (failed(narrowFloats()))
      return failure();
    SmallVector<Type> results(function.getBody().front().getTerminator()->getOperandTypes());
    function.setType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
    return success();
  }

  SmallVector<Attribute> constants; ///< types of the quantized constants

private:
  LogicalResult assign(dmir::MatMulOp op) {
    dmx::blockfp::BlockFormat format = *dmx::blockfp::blockFormatFromName("BFP16_64");
    std::string node = dmir::nodeName(op);
    for (const Rule &rule : rules)
      if (rule.nodes.match(node))
        format = rule.format;
    for (Value operand : op->getOperands())
      if (!typeOf(operand).hasStaticShape() || typeOf(operand).getEncoding())
        return op.emitError() << "node '" << node << "': a block floating point operand needs a static shape and no "
                              << "layout, not " << operand.getType();
    builder.setInsertionPoint(op);
    // The rows of a batch by weights are made one matrix, which is cast: what is turned round is so before.
    const bool flattens = isKernel && typeOf(op.getLhs()).getRank() > 2 && isa<BlockArgument>(op.getRhs());
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
      Value bias = isKernel ? packedBias(add, other, shapeOf(op.getResult()).back()) : quantized(other, bfp32);
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

  /// A convolution by packed weights of a kernel, with its bias.
  void assign(dmir::ConvOp op) {
    auto weights = isKernel ? dyn_cast<BlockArgument>(op.getWeights()) : BlockArgument();
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
                                       op.getInput(), weights, bias, Value(), shape.drop_front(2), op.getStrides(),
                                       op.getDilations(), op.getLow(), op.getGroups());
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

  /// The addition of a constant vector that alone reads the product.
  dmir::AddOp biasOf(Value product) {
    auto add = product.hasOneUse() ? dyn_cast<dmir::AddOp>(*product.user_begin()) : dmir::AddOp();
    if (isKernel)
      return add && add->hasAttr(lldmir::kBiasAttr) ? add : dmir::AddOp();
    if (!add || add.getType() != product.getType())
      return {};
    Value other = add.getLhs() == product ? add.getRhs() : add.getLhs();
    return dmir::isConstant(other) && typeOf(other).getRank() == 1 ? add : dmir::AddOp();
  }

  /// The value cast to a format, one cast for all who want it. What is transposed is cast before: the blocks are the
  /// same, and turning R into C costs nothing where turning f16 does.
  Value quantized(Value value, dmir::BlockFpType element, bool turnsBlocks = true) {
    if (auto transpose = value.getDefiningOp<dmir::TransposeOp>();
        turnsBlocks && transpose && element.hasBlocks() && swapsMatrices(transpose)) {
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
      casts.push_back(cast);
    }
    return cast;
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

  LogicalResult quantizeConstant(dmir::CastOp &cast) {
    auto constant = cast.getInput().getDefiningOp<dmir::ConstantOp>();
    if (!constant)
      return success();
    FailureOr<Value> value = converted(constant, typeOf(cast.getResult()));
    if (failed(value))
      return failure();
    constants.push_back(TypeAttr::get(cast.getType()));
    cast.replaceAllUsesWith(*value);
    cast.erase();
    cast = {};
    if (constant.use_empty())
      constant.erase();
    return success();
  }

  /// The constant in another element type.
  FailureOr<Value> converted(dmir::ConstantOp constant, RankedTensorType type) {
    Result<Tensor> tensor = dmir::constantTensor(constant.getValue());
    if (!tensor)
      return constant.emitError(tensor.error().message);
    Result<Tensor> result = dmir::blockFpOf(type) ? dmir::quantize(*tensor, type) : toHalf(*tensor);
    if (!result)
      return constant.emitError() << "node '" << dmir::nodeName(constant) << "': " << result.error().message;
    builder.setInsertionPoint(constant);
    return dmir::ConstantOp::create(builder, constant.getLoc(), dmir::constantAttr(*result, type)).getResult();
  }

  static Result<Tensor> toHalf(const Tensor &values) {
    Tensor half(DType::F16, values.shape());
    for (int64_t i = 0, count = values.numElements(); i < count; ++i)
      half.setDouble(i, values.asDouble(i));
    return half;
  }

  /// An input that is only read in one format has it at the boundary.
  void quantizeInputs() {
    for (BlockArgument argument : function.getArguments()) {
      if (argument.use_empty() || !isa<RankedTensorType>(argument.getType()))
        continue;
      // Of a kernel's inputs partition knows which are tiles; the others are f16.
      const unsigned number = argument.getArgNumber();
      if (isKernel && !corsair::isTiles(function.getArgAttrOfType<DictionaryAttr>(number, kFormAttr)) &&
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
  LogicalResult narrowFloats() {
    auto narrow = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && isWideFloat(type.getElementType()))
        value.setType(RankedTensorType::get(type.getShape(), builder.getF16Type(), type.getEncoding()));
    };
    for (BlockArgument argument : function.getArguments())
      narrow(argument);
    for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
      if (auto constant = dyn_cast<dmir::ConstantOp>(op)) {
        if (failed(narrowConstant(constant)))
          return failure();
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
    return success();
  }

  /// The nearest number that f16 has; it saturates.
  void narrowFill(dmir::MaskOp mask) {
    if (!elementOf(mask.getResult()).isF16())
      return;
    const double fill = cast<FloatAttr>(mask.getFill()).getValueAsDouble();
    mask.setFillAttr(builder.getFloatAttr(builder.getF16Type(), std::clamp(fill, -65504.0, 65504.0)));
  }

  LogicalResult narrowConstant(dmir::ConstantOp constant) {
    if (!isWideFloat(elementOf(constant)))
      return success();
    if (isKernel) { // the device rounds what it fills a buffer with
      auto type = RankedTensorType::get(shapeOf(constant), builder.getF16Type());
      builder.setInsertionPointAfter(constant);
      auto cast = dmir::CastOp::create(builder, constant.getLoc(), type, constant);
      constant.getResult().replaceAllUsesExcept(cast, cast);
      return success();
    }
    auto type = RankedTensorType::get(shapeOf(constant), builder.getF16Type());
    FailureOr<Value> value = converted(constant, type);
    if (failed(value))
      return failure();
    constant.getResult().replaceAllUsesWith(*value);
    constant.erase();
    return success();
  }

  func::FuncOp function;
  ArrayRef<Rule> rules;
  OpBuilder builder;
  llvm::DenseMap<std::pair<Value, Type>, dmir::CastOp> known;
  SmallVector<dmir::CastOp> casts;
  const bool isKernel; ///< packed constants are arguments, and what adds a bias says so
};

struct AssignFormats : dmxc::impl::AssignFormatsBase<AssignFormats> {
  using AssignFormatsBase::AssignFormatsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Builder builder(&getContext());
    FailureOr<std::vector<Rule>> parsed = parseRules();
    if (failed(parsed))
      return signalPassFailure();
    SmallVector<func::FuncOp> functions;
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        functions.push_back(function);
    // The user's types of several entry points stand under their names.
    SmallVector<NamedAttribute> inputs, outputs, constants;
    for (func::FuncOp function : functions) {
      if (!function.getBody().hasOneBlock()) {
        function.emitError("has several blocks; formats are assigned in straight-line code");
        return signalPassFailure();
      }
      StringAttr name = function.getSymNameAttr();
      inputs.emplace_back(name, builder.getTypeArrayAttr(function.getArgumentTypes()));
      outputs.emplace_back(name, builder.getTypeArrayAttr(function.getResultTypes()));
      Assigner assigner(function, *parsed);
      if (failed(assigner.run()))
        return signalPassFailure();
      constants.emplace_back(name, builder.getArrayAttr(assigner.constants));
      if (print)
        printFormats(function, llvm::errs());
    }
    auto record = [&](StringRef key, ArrayRef<NamedAttribute> entries) {
      if (!entries.empty() && !module->hasAttr(key))
        module->setAttr(key, entries.size() == 1 ? entries[0].getValue() : builder.getDictionaryAttr(entries));
    };
    record("dm.model_inputs.type", inputs);
    record("dm.model_outputs.type", outputs);
    record("dm.model_constants.type", constants);
  }

  FailureOr<std::vector<Rule>> parseRules() {
    std::vector<Rule> parsed;
    for (const std::string &text : rules) {
      auto [glob, name] = StringRef(text).rsplit('=');
      auto nodes = llvm::GlobPattern::create(glob);
      if (!nodes) {
        llvm::consumeError(nodes.takeError());
        return getOperation().emitError() << "option 'rules': '" << glob << "' is no glob";
      }
      std::optional<dmx::blockfp::BlockFormat> format = dmx::blockfp::blockFormatFromName(name.str());
      if (!format || format->isBfp32() || format->kind != dmx::blockfp::FormatKind::Bfp || format->precision == 6)
        return getOperation().emitError()
               << "option 'rules': '" << text << "' is not GLOB=FORMAT with a format such as BFP16_64 or BFP12_128";
      parsed.push_back({std::move(*nodes), *format});
    }
    return parsed;
  }
};

} // namespace
