//===- CallerCaches.cpp - caches that are inputs and outputs of a run -----===//
//
// present = concat(past, rows) that the model reads: one tensor with room for rows, which the caller may have, so that
// a run writes its own rows alone. Where the caller gives two, the runtime puts the old rows into the new tensor first.
//
//===----------------------------------------------------------------------===//
#include "StateLengths.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Lengths.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dmxc {

namespace {

class CallerCaches {
public:
  explicit CallerCaches(func::FuncOp function) : function(function) {
    for (BlockArgument argument : function.getArguments())
      for (Dim dim : dmir::dimsOf(argument.getType()))
        if (std::optional<std::string> symbol = dim.symbolName())
          known.insert(*symbol);
  }

  void run() {
    Operation *returned = function.getBody().front().getTerminator();
    for (BlockArgument argument : function.getArguments())
      for (unsigned i = 0; i < returned->getNumOperands(); ++i)
        if (dmir::ConcatOp concat = cacheOf(argument, i, returned->getOperand(i))) {
          keep(argument, i, concat);
          break;
        }
    Builder b(function.getContext());
    function.setType(b.getFunctionType(function.getBody().getArgumentTypes(), returned->getOperandTypes()));
  }

private:
  /// The concatenation that makes a result of an argument, where the two can be one tensor; null where not.
  dmir::ConcatOp cacheOf(BlockArgument past, unsigned result, Value present) {
    dmir::ConcatOp concat = StateLengths::growthOf(past, present);
    if (!concat || !past.hasOneUse() || concat.getResult().hasOneUse() || dmir::keptName(function, false, result) ||
        dmir::keptName(function, true, past.getArgNumber()))
      return {};
    auto axis = static_cast<int64_t>(concat.getAxis());
    Dim rows = dmir::dimOf(past, axis), all = dmir::dimOf(present, axis);
    bool isKnown = true;
    all.forEachSymbol([&](std::string_view symbol) { isKnown &= known.contains(StringRef(symbol)); });
    Type element = elementOf(past);
    bool hasBytes = element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 == 0;
    return rows.symbolName() && isKnown && hasBytes ? concat : dmir::ConcatOp();
  }

  /// Caches that grow alike have as much room.
  const std::string &roomOf(Dim rows, Dim all) {
    std::string &room = rooms[rows.str() + " " + all.str()];
    for (int i = 0; room.empty(); ++i) {
      std::string free = *rows.symbolName() + "_room" + (i ? std::to_string(i) : "");
      if (known.insert(free).second)
        room = free;
    }
    return room;
  }

  void keep(BlockArgument past, unsigned result, dmir::ConcatOp concat) {
    auto axis = static_cast<int64_t>(concat.getAxis());
    Dim rows = dmir::dimOf(past, axis), all = dmir::dimOf(concat.getResult(), axis);
    std::string room = roomOf(rows, all);
    Builder b(function.getContext());
    auto name = function.getArgAttrOfType<StringAttr>(past.getArgNumber(), dmir::kNameAttr);
    if (!name)
      name = b.getStringAttr("in" + std::to_string(past.getArgNumber()));
    auto with = [&](Dim given) {
      return b.getArrayAttr({b.getStringAttr(room), b.getI64IntegerAttr(axis), dmir::dimAttr(b.getContext(), given)});
    };
    StateLengths::growInPlace(past, result, concat, Dim::symbol(room), elementOf(past));
    function.setArgAttr(past.getArgNumber(), dmir::kCacheAttr, name);
    function.setArgAttr(past.getArgNumber(), dmir::kRoomAttr, with(rows));
    function.setResultAttr(result, dmir::kCacheAttr, name);
    function.setResultAttr(result, dmir::kRoomAttr, with(all));
  }

  func::FuncOp function;
  llvm::StringSet<> known;                  ///< symbols that are dims of arguments
  std::map<std::string, std::string> rooms; ///< by how rows grow: their symbols
};

} // namespace

void keepCallerCaches(func::FuncOp function, const PhaseContext &context) {
  bool onHost = llvm::all_of(context.targets, [](const TargetBackend *target) { return target->runsOnHost(); });
  if (onHost && !context.targets.empty())
    CallerCaches(function).run();
}

} // namespace dmxc
