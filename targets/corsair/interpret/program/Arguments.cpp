//===- Arguments.cpp - between the host's tensors and the card ------------===//
#include "Arguments.h"

#include "../Indices.h"

#include "targets/corsair/decide/Constants.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair::stages;
using hw::ElemKind;

Result<std::vector<CardArgument>> dmxc::corsair::stages::argumentsOf(dlir::DeviceProgramOp program) {
  std::vector<CardArgument> all;
  for (auto op : program.getBody().getOps<dlir::ArgumentOp>()) {
    CardArgument argument{op, {}, ElemKind::Raw, dyn_cast<RankedTensorType>(op.getTensor())};
    std::optional<ElemKind> form = hw::elemKindFromName(op.getForm().str());
    if (!argument.type || !argument.type.hasStaticShape() || !dmir::dtypeOf(argument.type.getElementType()) || !form ||
        *form == ElemKind::Raw)
      return errorAt(op, "'" + op.getName().str() + "' is no tensor of the host in a form of the device");
    argument.form = *form;
    for (auto piece : program.getBody().getOps<dlir::PieceOp>())
      if (piece.getArgument() == op.getName())
        argument.pieces.push_back(piece);
    all.push_back(std::move(argument));
  }
  return all;
}

/// The host's elements of a piece, in the device's order of dims.
static Result<View> hostPart(const CardArgument &argument, dlir::PieceOp piece, const View &whole) {
  dlir::ArgumentOp op = argument.op;
  View turned = whole;
  if (std::optional<ArrayRef<int64_t>> perm = op.getPerm()) {
    SmallVector<int64_t> sorted(*perm);
    llvm::sort(sorted);
    if (!llvm::equal(sorted, llvm::seq<int64_t>(0, whole.rank())))
      return errorAt(op, "has dims in no order of those that its tensor has");
    turned = whole.transposed(*perm);
  }
  for (auto [begin, extent, size] : llvm::zip(piece.getBegin(), piece.getExtent(), turned.shape))
    if (begin < 0 || extent < 0 || begin > size || extent > size - begin)
      return errorAt(piece, "is no box of the tensor of '" + op.getName().str() + "'");
  return turned.part(piece.getBegin(), piece.getExtent(), Dims(turned.rank(), 1));
}

/// The bytes of a plain piece, all of them within its buffer.
static Result<View> cardPart(const CardArgument &argument, dlir::PieceOp piece, const Cell &cell) {
  const int64_t size = hw::elementBytes(argument.form);
  if (piece.getStrides().size() != piece.getExtent().size())
    return errorAt(piece, "needs a stride for each dim");
  View view{argument.form, Dims(piece.getExtent()), Dims(piece.getStrides()), static_cast<int64_t>(piece.getOffset()),
            cell.bytes};
  Wide first = view.offset, last = first + size;
  for (auto [extent, step] : llvm::zip(view.shape, view.steps))
    (step < 0 ? first : last) += Wide(std::max<int64_t>(extent, 1) - 1) * step;
  if (view.elements() && (first < 0 || last > cell.size()))
    return errorAt(piece, "leaves the " + std::to_string(cell.size()) + " bytes of " + cell.name());
  return view;
}

static Area areaOf(const View &view) {
  Area area{view.offset, hw::elementBytes(view.kind), {}};
  for (auto [extent, step] : llvm::zip(view.shape, view.steps))
    area.dims.push_back({extent, step});
  return area;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Blocks of runs: the runs of a piece one after the other, as rows.
static View runsOf(const View &part, ElemKind form) {
  const bool columns = hw::nameOf(form).back() == 'c';
  Dims order(llvm::to_vector(llvm::seq<int64_t>(0, part.rank())));
  if (columns)
    std::swap(order[part.rank() - 1], order[part.rank() - 2]);
  const View turned = part.transposed(order);
  const int64_t length = turned.shape.back();
  return turned.copy(ElemKind::F32).reshaped({length ? turned.elements() / length : 0, length});
}

static Status bringTiles(const CardArgument &argument, dlir::PieceOp piece, const View &part, Cell &cell,
                         Accesses &access) {
  const hw::TileShape shape = *hw::tileOf(argument.form);
  if (part.rank() < 2 || piece.getStrides().size() != 2)
    return errorAt(piece, "of tiles needs a matrix, and the steps to the next band and to the next tile");
  const View runs = runsOf(part, argument.form);
  const int64_t count = runs.shape[0], length = runs.shape[1];
  std::vector<float> values(shape.depth);
  for (int64_t first = 0; first < count; first += hw::kTileRuns)
    for (int64_t k = 0; k < length; k += shape.depth) {
      const Wide place = Wide(piece.getOffset()) + Wide(first / hw::kTileRuns) * piece.getStrides()[0] +
                         Wide(k / shape.depth) * piece.getStrides()[1];
      std::byte *tile = access.write(cell, place, shape.bytes(), argument.form);
      if (!tile)
        return at(piece, access.status());
      std::memset(tile, 0, shape.bytes());
      for (int64_t r = 0; r < std::min<int64_t>(hw::kTileRuns, count - first); ++r) {
        const int64_t valid = std::min<int64_t>(shape.depth, length - k);
        std::fill(values.begin(), values.end(), 0.0F);
        std::memcpy(values.data(), runs.data() + ((first + r) * length + k) * sizeof(float), valid * sizeof(float));
        std::byte *scales = tile + r * shape.scaleBytes() / hw::kTileRuns,
                  *mantissas = tile + shape.scaleBytes() + r * shape.runBytes();
        if (!hw::quantizeRun(shape, values.data(), hw::Rounding::Nearest, nullptr, scales, mantissas))
          return errorAt(piece, "is brought numbers that have no code");
      }
    }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// In and out
//===----------------------------------------------------------------------===//

static Status bringBytes(const CardArgument &argument, dlir::PieceOp piece, const Tensor &tensor, Card &card) {
  Accesses access;
  const int64_t begin = piece.getBegin().front(), size = piece.getExtent().front();
  const auto all = static_cast<int64_t>(tensor.byteSize());
  if (begin < 0 || size < 0 || begin > all || size > all - begin)
    return errorAt(piece, "takes bytes " + std::to_string(begin) + " to " + std::to_string(begin + size - 1) +
                              " of a constant of " + std::to_string(all));
  std::byte *out =
      access.write(card.cell(piece.getMemory(), piece.getUnit()), Wide(piece.getOffset()), size, argument.form);
  if (out && size)
    std::memcpy(out, tensor.data() + begin, size);
  return at(piece, access.status());
}

Status dmxc::corsair::stages::bring(const CardArgument &argument, const Tensor &tensor, Card &card) {
  dlir::ArgumentOp op = argument.op;
  if (op.getRole() != dlir::ArgumentRole::constant && ArrayRef(tensor.shape()) != argument.type.getShape())
    return errorAt(op, "'" + op.getName().str() + "' is of another shape than what its task brings");
  const bool isPlain = op.getRole() != dlir::ArgumentRole::constant && !hw::isTiled(argument.form);
  const View whole =
      op.getRole() == dlir::ArgumentRole::constant ? View() : fromHost(tensor, isPlain ? argument.form : ElemKind::F32);
  for (dlir::PieceOp piece : argument.pieces) {
    if (op.getRole() == dlir::ArgumentRole::constant) {
      if (Status done = bringBytes(argument, piece, tensor, card); !done)
        return done;
      continue;
    }
    Cell &cell = card.cell(piece.getMemory(), piece.getUnit());
    Accesses access;
    Result<View> part = hostPart(argument, piece, whole);
    if (!part)
      return part.takeError();
    if (!isPlain) {
      if (Status done = bringTiles(argument, piece, *part, cell, access); !done)
        return done;
      continue;
    }
    Result<View> to = cardPart(argument, piece, cell);
    if (!to)
      return to.takeError();
    if (!access.write(cell, areaOf(*to), argument.form))
      return at(piece, access.status());
    copyInto(*part, *to);
  }
  return Status::ok();
}

Result<Tensor> dmxc::corsair::stages::take(const CardArgument &argument, Card &card) {
  dlir::ArgumentOp op = argument.op;
  if (hw::isTiled(argument.form))
    return notEvaluated(op, "'" + op.getName().str() + "' is a result of tiles");
  const bool isState = op.getRole() == dlir::ArgumentRole::state; // each unit has all of it
  const ArrayRef pieces = isState ? ArrayRef(argument.pieces).take_front(1) : ArrayRef(argument.pieces);
  Wide elements = 0;
  for (dlir::PieceOp piece : pieces)
    elements += elementCount(piece.getExtent());
  if (elements != elementCount(argument.type.getShape()))
    return errorAt(op, "'" + op.getName().str() + "' has pieces of other elements than its tensor");
  std::vector<View> parts;
  for (dlir::PieceOp piece : pieces) {
    const Cell &cell = card.cell(piece.getMemory(), piece.getUnit());
    Accesses access;
    Result<View> from = cardPart(argument, piece, cell);
    if (!from)
      return from.takeError();
    if (!access.read(cell, areaOf(*from), argument.form))
      return at(piece, access.status()).takeError();
    parts.push_back(*from);
  }
  View whole = View::zeros(argument.form, argument.type.getShape());
  for (auto [piece, part] : llvm::zip(pieces, parts)) {
    Result<View> to = hostPart(argument, piece, whole);
    if (!to)
      return to.takeError();
    copyInto(part, *to);
  }
  return toHost(whole, *dmir::dtypeOf(argument.type.getElementType()));
}

Result<Tensor> dmxc::corsair::stages::packed(const CardArgument &argument, const Tensor &constant, DictionaryAttr form,
                                             const hw::Machine &machine) {
  dlir::ArgumentOp op = argument.op;
  if (!argument.type.getElementType().isUnsignedInteger(8) || argument.type.getRank() != 1)
    return errorAt(op, "'" + op.getName().str() + "' is a constant that is no tensor of bytes");
  if (!form)
    return static_cast<int64_t>(constant.byteSize()) == argument.type.getNumElements()
               ? Result<Tensor>(constant)
               : errorAt(op, "'" + op.getName().str() + "' has other bytes than its constant");
  Tensor bytes(DType::U8, {argument.type.getNumElements()});
  const std::span out(bytes.mutableData(), bytes.byteSize());
  Status done = corsair::packConstant(form, constant, out, machine);
  return done ? Result<Tensor>(bytes) : errorAt(op, done.error().message);
}
