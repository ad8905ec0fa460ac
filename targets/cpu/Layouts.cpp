//===- Layouts.cpp - which layouts the CPU target wants -----------------------===//
//
// Convolutions of f32, or of bytes summed in i32, with enough output channels write the blocked layout, in which their
// register tiles are whole cache lines; pooling, elementwise ops, joins along whole blocks and what moves pixels, all
// channels of one alike (resampling, padding, cropping), hand it on. Everything else is row-major.
//
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "targets/cpu/conv/ConvRegion.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

constexpr int64_t kBlock = 16;

Attribute layoutOf(Value v) { return dmir::layoutOf(v.getType()); }

bool isBlockedChannels(Attribute layout) {
  auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(layout);
  return blocked && blocked.getAxis() == 1 && blocked.getBlock() == kBlock;
}

/// Blocks that are mostly padding cost more memory traffic than they save.
bool worthBlocking(int64_t channels) { return channels >= 8; }

/// The blocked layout of an operand with the result's shape, which an elementwise op takes over.
Attribute operandLayout(Operation *op) {
  auto result = typeOf(op->getResult(0));
  for (Value operand : op->getOperands())
    if (isBlockedChannels(layoutOf(operand)) && dmir::dimsOf(operand) == dmir::dimsOf(result))
      return layoutOf(operand);
  return {};
}

/// Whether a movement leaves the batch and the channels of an image as they are: a channel of the result is made of
/// that channel of the input alone, at the same place in its block.
bool movesPixels(Operation *op) {
  auto isLead = [](ArrayRef<int64_t> perAxis, int64_t same) {
    return perAxis.size() > 2 && perAxis[0] == same && perAxis[1] == same;
  };
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](dmir::GatherOp gather) { return gather.getAxis() >= 2 && typeOf(gather.getIndices()).getRank() == 1; })
      .Case([&](dmir::PadOp pad) {
        return isLead(pad.getLow(), 0) && isLead(pad.getHigh(), 0) && isLead(pad.getInterior(), 0);
      })
      .Case([&](dmir::SliceOp slice) {
        SmallVector<Dim> from = dmir::dimsOf(slice.getInput()), to = dmir::dimsOf(slice.getResult());
        return isLead(slice.getStarts(), 0) && isLead(slice.getSteps(), 1) && from[0] == to[0] && from[1] == to[1];
      })
      .Default([](Operation *) { return false; });
}

/// Whether an op, behind a change of shape, turns its operand: from blocks of channels to channels that are adjacent is
/// no longer a way than from rows.
bool turns(Operation *op) {
  return isa<dmir::TransposeOp>(op) ||
         (isa<dmir::ReshapeOp>(op) && llvm::any_of(op->getUsers(), [](Operation *user) { return turns(user); }));
}

/// Whether a value is only read row by row, behind elementwise ops on it alone.
bool isReadInRows(Value value) {
  llvm::SmallSetVector<Value, 8> values;
  values.insert(value);
  for (size_t at = 0; at < values.size(); ++at)
    for (Operation *user : values[at].getUsers()) {
      if (isa<dmir::ConvOp, dmir::PoolOp, dmir::ConcatOp, dmir::ReduceOp>(user) || movesPixels(user) || turns(user))
        return false;
      if (user->hasTrait<dmir::Elementwise>() && dmir::dimsOf(user->getResult(0)) == dmir::dimsOf(value))
        values.insert(user->getResult(0));
    }
  return llvm::all_of(values, [&](Value made) {
    return made == value || llvm::all_of(made.getDefiningOp()->getOperands(), [&](Value operand) {
             return values.contains(operand) || dmir::dimsOf(operand) != dmir::dimsOf(value) ||
                    isa<BlockArgument>(operand) || dmir::isConstant(operand);
           });
  });
}

} // namespace

Attribute cpu::preferredResultLayout(Operation *op) {
  auto blocked = dmir::BlockedAttr::get(op->getContext(), 1, kBlock);
  return llvm::TypeSwitch<Operation *, Attribute>(op)
      .Case([&](dmir::ConvOp conv) -> Attribute {
        auto type = typeOf(conv.getResult());
        bool known = type.hasStaticShape() && typeOf(conv.getInput()).hasStaticShape();
        bool tiled = known ? type.getElementType().isF32() || cpu::isByteConv(conv)
                           : cpu::isShortConvOfImages(conv) || cpu::mayBlockOpenConv(conv);
        const bool inRows = known && tiled && cpu::writesRows(conv, isBlockedChannels(layoutOf(conv.getInput()))) &&
                            !cpu::paysFiltered(conv) && isReadInRows(conv.getResult());
        return tiled && worthBlocking(type.getDimSize(1)) && !inRows ? blocked : Attribute();
      })
      .Case([&](dmir::PoolOp pool) { return isBlockedChannels(layoutOf(pool.getInput())) ? blocked : Attribute(); })
      .Case([&](dmir::ConcatOp concat) -> Attribute {
        bool whole = concat.getAxis() == 1 && llvm::all_of(concat.getInputs(), [](Value v) {
                       return isBlockedChannels(layoutOf(v)) && typeOf(v).getDimSize(1) % kBlock == 0;
                     });
        return whole ? blocked : Attribute();
      })
      .Default([&](Operation *other) -> Attribute {
        if (movesPixels(other))
          return isBlockedChannels(layoutOf(other->getOperand(0))) ? blocked : Attribute();
        return other->hasTrait<dmir::Elementwise>() ? operandLayout(other) : Attribute();
      });
}

bool cpu::acceptsLayout(Operation *op, unsigned operand, Attribute layout) {
  if (layout && !isBlockedChannels(layout))
    return false;
  Value value = op->getOperand(operand);
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](dmir::ConvOp conv) {
        if (operand != 0)
          return !layout;
        // The first layer reads the model's input as it is; later ones want whole lines of channels.
        if (layout) // of open sizes only the register tiles read blocks
          return typeOf(value).hasStaticShape() || layoutOf(conv.getResult());
        bool readsPlain = typeOf(value).getDimSize(1) < kBlock && !cpu::isByteConv(conv);
        return readsPlain || !layoutOf(conv.getResult());
      })
      .Case<dmir::PoolOp, dmir::ConcatOp>([&](Operation *o) { return layout == layoutOf(o->getResult(0)); })
      .Case([&](dmir::ReduceOp reduce) {
        return !layout ||
               (!reduce.getAxes().empty() && llvm::all_of(reduce.getAxes(), [](int64_t axis) { return axis >= 2; }));
      })
      .Case([](dmir::RelayoutOp) { return true; })
      .Default([&](Operation *other) {
        if (movesPixels(other) && operand == 0)
          return layout == layoutOf(other->getResult(0));
        if (!other->hasTrait<dmir::Elementwise>())
          return !layout;
        auto result = typeOf(other->getResult(0));
        // Operands that are broadcast are read as they are.
        if (dmir::dimsOf(value) != dmir::dimsOf(result))
          return !layout;
        return layout == dmir::layoutOf(result);
      });
}
