//===- BlockFp.cpp - the block floating point type ------------------------===//
#include "dmxc/Dialect/DMIR/BlockFp.h"

#include "dmxc/Support/Diagnostic.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;
using dmx::blockfp::BlockFormat;
using dmx::blockfp::Orientation;

BlockFpType BlockFpType::get(MLIRContext *context, const BlockFormat &format, bool columns) {
  return get(context, dmx::blockfp::typeId(format), columns && !format.isBfp32());
}

BlockFpType BlockFpType::getBfp32(MLIRContext *context) {
  return get(context, *dmx::blockfp::blockFormatFromName("BFP32_1"), false);
}

BlockFormat BlockFpType::getFormat() const { return *dmx::blockfp::blockFormatFromId(getId()); }
bool BlockFpType::hasBlocks() const { return !getFormat().isBfp32(); }
int64_t BlockFpType::getBlock() const { return getFormat().block; }
BlockFpType BlockFpType::transposed() const { return hasBlocks() ? get(getContext(), getId(), !getColumns()) : *this; }

std::string BlockFpType::getName() const {
  return dmx::blockfp::nameOf(getFormat()) + (hasBlocks() ? getColumns() ? "C" : "R" : "");
}

bool dmxc::dmir::isBfp32(Type type) {
  auto block = dyn_cast<BlockFpType>(type);
  return block && !block.hasBlocks();
}

LogicalResult BlockFpType::verify(function_ref<InFlightDiagnostic()> emitError, unsigned id, bool columns) {
  std::optional<BlockFormat> format = dmx::blockfp::blockFormatFromId(id);
  if (!format)
    return emitError() << "no block floating point format has the number " << id;
  if (columns && format->isBfp32())
    return emitError() << "BFP32_1 has no blocks and so no orientation";
  return success();
}

namespace {

/// ": did you mean 'BFP16_64R'?" for what is near a canonical name.
std::string suggestion(StringRef text) {
  std::vector<std::string> names;
  for (const BlockFormat &format : dmx::blockfp::allBlockFormats())
    for (const char *suffix : {"R", "C"})
      names.push_back(dmx::blockfp::nameOf(format) + (format.isBfp32() ? "" : suffix));
  std::string near = nearestName(text.str(), names);
  return near.empty() ? "; names are such as BFP16_64R, BFP12_128C, BFP32_1, SBFP12_16_7C"
                      : "; did you mean '" + near + "'?";
}

/// `, R` or `, C` after a name or shorthand without one.
ParseResult parseOrientation(AsmParser &parser, std::optional<Orientation> &orientation) {
  if (failed(parser.parseOptionalComma()))
    return success();
  StringRef letter;
  SMLoc where = parser.getCurrentLocation();
  if (parser.parseKeyword(&letter))
    return failure();
  if (letter != "R" && letter != "C")
    return parser.emitError(where, "an orientation is R or C, not '") << letter << "'";
  Orientation read = letter == "R" ? Orientation::Row : Orientation::Column;
  if (orientation && *orientation != read)
    return parser.emitError(where, "the name already has the other orientation");
  orientation = read;
  return success();
}

} // namespace

Type BlockFpType::parse(AsmParser &parser) {
  std::string text;
  StringRef keyword;
  if (parser.parseLess())
    return {};
  SMLoc where = parser.getCurrentLocation();
  if (failed(parser.parseOptionalString(&text))) {
    if (parser.parseKeyword(&keyword))
      return {};
    text = keyword.str();
  }
  std::string error;
  std::optional<dmx::blockfp::ParsedFormat> parsed = dmx::blockfp::parseFormat(text, error);
  if (!parsed || parsed->format.kind != dmx::blockfp::NumberFormat::Kind::Block ||
      !dmx::blockfp::typeId(parsed->format.block)) {
    parser.emitError(where, "'") << text << "' is not a block floating point format" << suggestion(text);
    return {};
  }
  if (parsed->format.rounding != dmx::blockfp::Rounding::Nearest) {
    parser.emitError(where, "a type has no rounding; write '")
        << text << "' with N for its rounding, casts round to nearest even";
    return {};
  }
  std::optional<Orientation> orientation = parsed->format.orientation;
  if (parseOrientation(parser, orientation) || parser.parseGreater())
    return {};
  bool bfp32 = parsed->format.block.isBfp32();
  if (bfp32 == orientation.has_value()) {
    parser.emitError(where) << (bfp32
                                    ? "BFP32_1 has no blocks and so no orientation"
                                    : "'" + text + "' needs an orientation: R after the name (blocks along rows) or C");
    return {};
  }
  if (!parsed->warning.empty())
    mlir::emitWarning(parser.getEncodedSourceLoc(where), parsed->warning);
  return get(parser.getContext(), parsed->format.block, orientation == Orientation::Column);
}

void BlockFpType::print(AsmPrinter &printer) const { printer << "<" << getName() << ">"; }

//===--- tensors ---------------------------------------------------------------===//

BlockFpType dmxc::dmir::blockFpOf(Type tensor) {
  auto ranked = dyn_cast<RankedTensorType>(tensor);
  return ranked ? dyn_cast<BlockFpType>(ranked.getElementType()) : BlockFpType();
}

int64_t dmxc::dmir::blockedDim(RankedTensorType type) {
  BlockFpType block = blockFpOf(type);
  return block && block.hasBlocks() ? type.getRank() - (block.getColumns() ? 2 : 1) : -1;
}

std::optional<BlockLayout> dmxc::dmir::blockLayoutOf(RankedTensorType type, std::string &error) {
  auto refuse = [&](const std::string &reason) {
    error.clear();
    llvm::raw_string_ostream(error) << type << " has no wire format: " << reason;
    return std::nullopt;
  };
  BlockFpType block = blockFpOf(type);
  if (!block || !block.hasBlocks())
    return refuse("its elements are not in blocks");
  if (!type.hasStaticShape())
    return refuse("its shape is not static");
  if (type.getRank() < 2)
    return refuse("blocks run along one of the last two dimensions, and it has fewer");
  std::string reason;
  std::optional<dmx::blockfp::TensorLayout> matrix =
      dmx::blockfp::makeLayout(block.getFormat(), block.getColumns() ? Orientation::Column : Orientation::Row,
                               type.getDimSize(type.getRank() - 2), type.getDimSize(type.getRank() - 1), reason);
  if (!matrix)
    return refuse(reason);
  BlockLayout layout{*matrix};
  // Far below 2^63, so that byte counts and their sums stay in range.
  constexpr int64_t mostBytes = int64_t(1) << 48;
  for (int64_t dim : type.getShape().drop_back(2)) {
    if (dim && layout.matrices > mostBytes / dim / std::max<int64_t>(matrix->bytes(), 1))
      return refuse("it is larger than 2^48 bytes");
    layout.matrices *= dim;
  }
  return layout;
}

/// Any float type as f32.
static Tensor widened(const Tensor &values) {
  if (values.dtype() == DType::F32)
    return values;
  Tensor wide(DType::F32, values.shape());
  for (int64_t i = 0, count = values.numElements(); i < count; ++i)
    wide.setDouble(i, values.asDouble(i));
  return wide;
}

Result<Tensor> dmxc::dmir::quantize(const Tensor &values, RankedTensorType type) {
  Tensor wide = widened(values);
  if (isBfp32(type.getElementType())) {
    Tensor result(DType::F32, values.shape());
    for (int64_t i = 0, count = values.numElements(); i < count; ++i)
      result.as<float>()[i] = dmx::blockfp::roundToBfp32(wide.as<float>()[i]);
    return result;
  }
  std::string error;
  std::optional<BlockLayout> layout = blockLayoutOf(type, error);
  if (!layout)
    return modelError(error);
  Tensor result(DType::U8, {layout->bytes()});
  int64_t elements = layout->matrix.rows * layout->matrix.cols;
  for (int64_t m = 0; m < layout->matrices; ++m)
    if (dmx::blockfp::MaybeError failure =
            dmx::blockfp::quantizeTensor(layout->matrix, {wide.as<float>() + m * elements, layout->matrix.cols}, {},
                                         result.mutableData() + m * layout->matrix.bytes()))
      return modelError(*failure);
  return result;
}
