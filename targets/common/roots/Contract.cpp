//===- Contract.cpp - what a kernel relies on ------------------------------===//

#include "Contract.h"

#include "dmx/dmx_kernel.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Target/TargetBackend.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

namespace {

using Words = std::vector<int64_t>;

class ContractWriter {
public:
  explicit ContractWriter(dmir::SymbolSet symbols) : symbols(std::move(symbols)) {}

  void number(int64_t value) { words.push_back(value); }
  void size(Dim dim) {
    Dim::Builder<Words> builder;
    builder.number = [](int64_t value) { return Words{DMX_WORD_NUMBER, value}; };
    builder.symbol = [&](std::string_view name) {
      auto it = llvm::find_if(symbols, [&](StringAttr symbol) { return symbol.getValue() == StringRef(name); });
      return Words{DMX_WORD_DIM, it - symbols.begin()};
    };
    builder.add = [](Words a, Words b) { return join(DMX_WORD_ADD, std::move(a), std::move(b)); };
    builder.mul = [](Words a, Words b) { return join(DMX_WORD_MUL, std::move(a), std::move(b)); };
    builder.call = [](Dim::Call call, Words a, Words b) {
      constexpr int64_t ops[] = {DMX_WORD_FLOORDIV, DMX_WORD_MIN, DMX_WORD_MAX, DMX_WORD_BROADCAST};
      return join(ops[static_cast<int>(call)], std::move(a), std::move(b));
    };
    llvm::append_range(words, dim.build(builder));
  }
  Words finish() {
    words.front() = static_cast<int64_t>(words.size());
    return std::move(words);
  }

private:
  static Words join(int64_t op, Words a, Words b) {
    a.insert(a.begin(), op);
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  dmir::SymbolSet symbols;
  Words words{0};
};

/// Bytes of a dense tensor.
Dim tensorBytes(Type type) {
  Dim count = 1;
  for (Dim extent : dmir::dimsOf(type))
    count *= extent;
  unsigned bits = dtypeBits(*dmir::dtypeOf(cast<RankedTensorType>(type).getElementType()));
  return bits % 8 == 0 ? count * Dim(bits / 8) : Dim::ceilDiv(count * Dim(bits), 8);
}

} // namespace

std::vector<int64_t> dmxc::kernels::contractWords(dlir::KernelOp kernel, const KernelPlan &plan) {
  Block *block = kernel.getBlock();
  Operation *yield = block->getTerminator();
  dmir::SymbolSet symbols = dmir::symbolsOf(block);
  ContractWriter out(symbols);
  int64_t returned = 0;
  for (auto op : block->getOps<dmir::DefineDimsOp>())
    returned += static_cast<int64_t>(op.getSymbols().size());
  out.number(block->getNumArguments() + yield->getNumOperands());
  out.number(yield->getNumOperands());
  out.number(static_cast<int64_t>(symbols.size()));
  out.number(returned);
  out.size(plan.work);
  out.size(plan.scratch);
  auto packed = kernel.getStrategy().getAs<DictionaryAttr>(strategy::kPacked);
  for (BlockArgument argument : block->getArguments()) {
    auto form = packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
    out.size(form ? Dim(form.getAs<IntegerAttr>("size").getInt()) : tensorBytes(argument.getType()));
  }
  for (Value result : yield->getOperands())
    out.size(tensorBytes(result.getType()));
  return out.finish();
}
