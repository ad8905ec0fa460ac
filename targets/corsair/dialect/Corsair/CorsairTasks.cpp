//===- CorsairTasks.cpp - text form and rules of the engines' tasks -------===//
#include "targets/corsair/dialect/Corsair/Corsair.h"

#include "dmxc/Dialect/DLIR/TaskSyntax.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::engine;
using dlir::Clause;
using dlir::TaskSyntax;
using dmx::corsair::Memory;

#define GET_OP_CLASSES
#include "targets/corsair/dialect/Corsair/CorsairOps.cpp.inc"

//===--- text forms -----------------------------------------------------------------===//

namespace {

constexpr StringLiteral kProductPlaces[] = {"", "x", "to", "?from"}, kSimdPlaces[] = {"to", "?a", "?b", "?c"},
                        kReshapePlaces[] = {"", "to", "?indices"};

constexpr Clause kMatmul[] = {{"num_imc", Clause::Integer},
                              {"ppr_mode", Clause::Integer},
                              {"groups", Clause::Integer},
                              {"core", Clause::Integer},
                              {"slices", Clause::Integer},
                              {"activation_kind", Clause::String},
                              {"weight_kind", Clause::String},
                              {"rows", Clause::Map},
                              {"row", Clause::Map},
                              {"k0", Clause::Map},
                              {"accumulate", Clause::Map},
                              {"steps", Clause::Map},
                              {"accumulate_steps", Clause::Nothing},
                              {"chunks", Clause::Integer},
                              {"activation_chunk", Clause::Integer},
                              {"activation_step", Clause::Integer},
                              {"result_row", Clause::Integer},
                              {"result_group", Clause::Integer},
                              {"result_step", Clause::Integer},
                              {"stash_chunk", Clause::Integer},
                              {"stash_group", Clause::Integer},
                              {"stash_step", Clause::Integer}};
constexpr Clause kConv[] = {{"num_imc", Clause::Integer},
                            {"ppr_mode", Clause::Integer},
                            {"groups", Clause::Integer},
                            {"core", Clause::Integer},
                            {"slices", Clause::Integer},
                            {"activation_kind", Clause::String},
                            {"weight_kind", Clause::String},
                            {"rows", Clause::Map},
                            {"image_row", Clause::Map},
                            {"pixel", Clause::Map},
                            {"k0", Clause::Map},
                            {"accumulate", Clause::Map},
                            {"steps", Clause::Map},
                            {"accumulate_steps", Clause::Nothing},
                            {"chunks", Clause::Integer},
                            {"image_band", Clause::Integer},
                            {"image_chunk", Clause::Integer},
                            {"image_blocks", Clause::Integer},
                            {"pixel_slice", Clause::Integer},
                            {"pixels", Clause::Integer},
                            {"window", Clause::Dictionary},
                            {"result_row", Clause::Integer},
                            {"result_group", Clause::Integer},
                            {"result_step", Clause::Integer},
                            {"stash_chunk", Clause::Integer},
                            {"stash_group", Clause::Integer},
                            {"stash_step", Clause::Integer}};
constexpr Clause kSimd[] = {
    {"dims", Clause::Array},       {"to_kind", Clause::String},    {"to_strides", Clause::Array},
    {"a_kind", Clause::String},    {"a_strides", Clause::Array},   {"b_kind", Clause::String},
    {"b_strides", Clause::Array},  {"c_kind", Clause::String},     {"c_strides", Clause::Array},
    {"slices", Clause::Integer},   {"inner", Clause::Integer},     {"split", Clause::Integer},
    {"causal", Clause::Integer},   {"count_pad", Clause::Nothing}, {"imm0", Clause::Float},
    {"imm1", Clause::Float},       {"index", Clause::Map},         {"count", Clause::Map},
    {"window", Clause::Dictionary}};
constexpr Clause kReshape[] = {{"rule", Clause::String},
                               {"slice", Clause::Integer},
                               {"pixel", Clause::Map},
                               {"count", Clause::Map},
                               {"rows", Clause::Map},
                               {"columns", Clause::Map},
                               {"batch", Clause::Map},
                               {"element", Clause::Integer},
                               {"source_pitch", Clause::Integer},
                               {"target_pitch", Clause::Integer},
                               {"source_batch", Clause::Integer},
                               {"target_batch", Clause::Integer}};
constexpr Clause kSignalRemote[] = {{"token", Clause::Integer}, {"quads", Clause::Map}, {"amount", Clause::Integer}};
constexpr Clause kWaitRemote[] = {{"token", Clause::Integer}, {"quad", Clause::Map}, {"amount", Clause::Integer}};
constexpr Clause kMail[] = {{"quad", Clause::Map}, {"first", Clause::Integer}, {"amount", Clause::Integer}};
constexpr Clause kReset[] = {{"units", Clause::Integer}, {"slices", Clause::Integer}};
constexpr Clause kNop[] = {{"clocks", Clause::Integer}};

constexpr TaskSyntax kMatmulSyntax{TaskSyntax::None, "", kProductPlaces, kMatmul};
constexpr TaskSyntax kConvSyntax{TaskSyntax::None, "", kProductPlaces, kConv};
constexpr TaskSyntax kSimdSyntax{TaskSyntax::Text, "function", kSimdPlaces, kSimd};
constexpr TaskSyntax kReshapeSyntax{TaskSyntax::Text, "function", kReshapePlaces, kReshape};
constexpr TaskSyntax kCpuSyntax{TaskSyntax::Symbol, "function", {}, {}};
constexpr TaskSyntax kSignalRemoteSyntax{TaskSyntax::None, "", {}, kSignalRemote};
constexpr TaskSyntax kWaitRemoteSyntax{TaskSyntax::None, "", {}, kWaitRemote};
constexpr TaskSyntax kMailSyntax{TaskSyntax::None, "", {}, kMail};
constexpr TaskSyntax kResetSyntax{TaskSyntax::None, "", {}, kReset};
constexpr TaskSyntax kNopSyntax{TaskSyntax::None, "", {}, kNop};

} // namespace

DMXC_TASK_SYNTAX(MatmulOp, kMatmulSyntax)
DMXC_TASK_SYNTAX(ConvOp, kConvSyntax)
DMXC_TASK_SYNTAX(SimdOp, kSimdSyntax)
DMXC_TASK_SYNTAX(ReshapeOp, kReshapeSyntax)
DMXC_TASK_SYNTAX(CpuOp, kCpuSyntax)
DMXC_TASK_SYNTAX(SignalRemoteOp, kSignalRemoteSyntax)
DMXC_TASK_SYNTAX(WaitRemoteOp, kWaitRemoteSyntax)
DMXC_TASK_SYNTAX(SendOp, kMailSyntax)
DMXC_TASK_SYNTAX(ReceiveOp, kMailSyntax)
DMXC_TASK_SYNTAX(ResetOp, kResetSyntax)
DMXC_TASK_SYNTAX(NopOp, kNopSyntax)

//===--- rules ----------------------------------------------------------------------===//

template <typename OpTy> static LogicalResult verifyTask(OpTy op) {
  auto program = op->template getParentOfType<dlir::DeviceProgramOp>();
  if (program && program.getDevice() != "corsair")
    return op.emitOpError("is no task of the device '") << program.getDevice() << "'";
  return dlir::verifyTask(dlir::partsOf(op));
}

/// The number of a clause that is a constant.
static std::optional<int64_t> constantOf(std::optional<AffineMap> map) {
  return map && map->isSingleConstant() ? std::optional(map->getSingleConstantResult()) : std::nullopt;
}

template <typename OpTy> static LogicalResult verifyProduct(OpTy op, bool image) {
  if (failed(verifyTask(op)))
    return failure();
  size_t count = op.getBuffers().size();
  if (count < 3 || count > 4 || op.getDescriptor())
    return op.emitOpError("C1: has activations, weights, a result and perhaps a stash");
  Memory first = corsair::memoryOf(op.getBuffers()[0]);
  if (!(first == Memory::IB || (image && first == Memory::GM)) || corsair::memoryOf(op.getBuffers()[1]) != Memory::WB ||
      corsair::memoryOf(op.getBuffers()[2]) != Memory::OB ||
      (count == 4 && corsair::memoryOf(op.getBuffers()[3]) != Memory::ST))
    return op.emitOpError("C1: ") << (image ? "an image lies in GM or IB" : "activations lie in IB")
                                  << ", weights in WB, the result in OB, a stash in ST";
  int64_t imc = op.getNumImc(), mode = op.getPprMode();
  if (imc < 1 || mode < 0 || mode > 30 || imc > int64_t(1) << mode)
    return op.emitOpError("C2: 1 <= num_imc ") << imc << " <= 2^ppr_mode " << mode << " does not hold";
  if (op.getGroups() && static_cast<int64_t>(*op.getGroups()) < 1)
    return op.emitOpError("C3: groups is positive");
  if (std::optional<int64_t> rows = constantOf(op.getRows()); rows && (*rows < 1 || *rows > 64))
    return op.emitOpError("C4: rows is 1 to 64, not ") << *rows;
  for (auto [name, number] : {std::pair("k0", constantOf(op.getK0())), {"steps", constantOf(op.getSteps())}})
    if (number && *number < 0)
      return op.emitOpError("C6: ") << name << " is not negative, as " << *number << " is";
  return success();
}

LogicalResult MatmulOp::verify() {
  if (failed(verifyProduct(*this, false)))
    return failure();
  const int64_t first = constantOf(getRow()).value_or(0), rows = constantOf(getRows()).value_or(1);
  if (first < 0 || first > 64 - rows)
    return emitOpError("C5: rows ") << first << " to " << first + rows - 1 << " are not those of tiles of 64";
  return success();
}

LogicalResult ConvOp::verify() {
  if (failed(verifyProduct(*this, true)))
    return failure();
  if (const int64_t pixel = constantOf(getPixel()).value_or(0); pixel < 0)
    return emitOpError("C5: there is no pixel ") << pixel;
  return success();
}

LogicalResult SimdOp::verify() {
  if (failed(verifyTask(*this)))
    return failure();
  for (Value buffer : getBuffers())
    if (!llvm::is_contained({Memory::GM, Memory::SIMD, Memory::OB}, corsair::memoryOf(buffer)))
      return emitOpError("C1: operands lie in GM, SIMD or OB");
  size_t rank = getDims().size();
  if (rank < 1 || rank > 4 || getToStrides().size() != rank)
    return emitOpError("C2: has one to four dims and a step of each operand for each");
  const std::optional<StringRef> kinds[] = {getAKind(), getBKind(), getCKind()};
  const std::optional<ArrayRef<int64_t>> strides[] = {getAStrides(), getBStrides(), getCStrides()};
  for (size_t i = 0; i < 3; ++i) {
    bool there = getBuffers().size() > i + 1;
    if (kinds[i].has_value() != there || strides[i].has_value() != there)
      return emitOpError("C3: an operand that is there has kind and steps, another none");
    if (there && strides[i]->size() != rank)
      return emitOpError("C2: has one to four dims and a step of each operand for each");
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  if (failed(verifyTask(*this)))
    return failure();
  bool transpose = getFunction() == "transpose", extract = getFunction() == "extract";
  if (!transpose && !extract && getFunction() != "insert")
    return emitOpError("C1: the function is extract, insert or transpose, not \"") << getFunction() << "\"";
  if (transpose ? !getRows() || !getColumns() || !getElement() || getDescriptor() || getRule() : !getDescriptor())
    return emitOpError("C2: extract and insert have a descriptor, transpose rows, columns and an element's bytes");
  StringRef rule = getRule().value_or("strided");
  if (!llvm::is_contained({"strided", "gather", "scatter", "window"}, rule) || (extract && rule == "scatter") ||
      (!extract && (rule == "gather" || rule == "window")))
    return emitOpError("C3: ") << getFunction() << " has no rule \"" << rule << "\"";
  if ((getBuffers().size() == 3) != (rule == "gather" || rule == "scatter"))
    return emitOpError("C3: indices come with gather and scatter only");
  return success();
}

LogicalResult CpuOp::verify() {
  auto program = (*this)->getParentOfType<dlir::DeviceProgramOp>();
  if (!program || !isa_and_present<CpuFunctionOp>(program.lookupSymbol(getFunctionAttr())))
    return emitOpError("C1: there is no CPU function ") << getFunctionAttr();
  return verifyTask(*this);
}

LogicalResult SignalRemoteOp::verify() { return verifyTask(*this); }
LogicalResult WaitRemoteOp::verify() { return verifyTask(*this); }
LogicalResult SendOp::verify() { return verifyTask(*this); }
LogicalResult ReceiveOp::verify() { return verifyTask(*this); }
LogicalResult ResetOp::verify() { return verifyTask(*this); }
LogicalResult NopOp::verify() { return verifyTask(*this); }
