//===- PackedRows.cpp - rows of constants that products keep packed -------===//

#include "PackedRows.h"

#include "MatmulRegion.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

static int64_t number(DictionaryAttr form, StringRef name) {
  auto value = form.getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

/// Columns of a row that lie together: those of a word of a form of few bits, one of others. Rows of a product's
/// rounded weights are kept as those.
static kernels::Panels panelsOfForm(DictionaryAttr form) {
  switch (formatOfForm(formName(form)).value_or(WeightFormat::Kept)) {
  case WeightFormat::BF16:
    return {1, BFloat16Type::get(form.getContext()), 0};
  case WeightFormat::S8:
    return {1, IntegerType::get(form.getContext(), 8),
            scalesOffset(number(form, "k"), number(form, "n")) / static_cast<int64_t>(sizeof(float))};
  case WeightFormat::Kept:
    return {formName(form) == "blocks16" ? 4 : 1, {}, 0};
  }
  llvm_unreachable("a format of weights");
}

/// Whether a form holds the rows of a matrix of this type as its columns, in panels.
static bool holdsRows(DictionaryAttr form, RankedTensorType type) {
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  if (form.contains("count") || number(form, "offset") != 0 || number(form, "n") != rows ||
      number(form, "stride_k") != 1 || number(form, "stride_n") != number(form, "k"))
    return false;
  if (formatOfForm(formName(form)))
    return number(form, "k") == columns;
  return formName(form) == "blocks16" && type.getElementType().getIntOrFloatBitWidth() == 8 &&
         number(form, "k") * number(form, "bits") == columns * 8;
}

/// Whether all that a region does with an operand is gathering its rows.
static bool gathersRows(dmir::RegionOp region, unsigned operand) {
  BlockArgument argument = region.getBlock()->getArgument(operand);
  return !argument.use_empty() && llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto gather = dyn_cast<dmir::GatherOp>(use.getOwner());
    return gather && use.getOperandNumber() == 0 && gather.getAxis() == 0;
  });
}

/// The form that all readers of a constant but those that gather its rows want; null where they want several, or one
/// wants none.
static DictionaryAttr commonForm(Value constant, StringRef device, WeightFormat weights) {
  DictionaryAttr common;
  for (OpOperand &use : constant.getUses()) {
    auto reader = dyn_cast<dmir::RegionOp>(use.getOwner());
    if (!reader || reader.getDevice() != device)
      return {};
    unsigned operand = use.getOperandNumber();
    if (gathersRows(reader, operand))
      continue;
    Result<KernelPlan> plan = planRegion(reader, reader.getStrategyAttr(), weights, {});
    auto form = plan ? dyn_cast_or_null<DictionaryAttr>(plan->packed.get(std::to_string(operand))) : DictionaryAttr();
    if (!form || (common && common != form))
      return {};
    common = form;
  }
  return common;
}

void dmxc::cpu::readPackedRows(dmir::RegionOp region, WeightFormat weights, KernelPlan &plan) {
  for (auto [i, input] : llvm::enumerate(region.getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    if (type.getRank() != 2 || !type.hasStaticShape() || !dmir::isConstant(input) || !gathersRows(region, i))
      continue;
    if (DictionaryAttr form = commonForm(input, region.getDevice(), weights); form && holdsRows(form, type))
      plan.packed.set(std::to_string(i), form);
  }
}

SmallVector<std::pair<unsigned, kernels::Panels>> dmxc::cpu::panelsOf(DictionaryAttr strategy) {
  SmallVector<std::pair<unsigned, kernels::Panels>> panels;
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  for (NamedAttribute entry : packed ? packed.getValue() : ArrayRef<NamedAttribute>()) {
    auto form = dyn_cast<DictionaryAttr>(entry.getValue());
    unsigned operand = 0;
    if (form && !entry.getName().getValue().getAsInteger(10, operand) &&
        (formatOfForm(formName(form)) || formName(form) == "blocks16"))
      panels.push_back({operand, panelsOfForm(form)});
  }
  return panels;
}

std::string dmxc::cpu::roundedRowsOf(Operation *op, DictionaryAttr strategy) {
  auto gather = dyn_cast<dmir::GatherOp>(op);
  auto argument = gather ? dyn_cast<BlockArgument>(gather.getOperand(0)) : BlockArgument();
  auto packed = strategy ? strategy.getAs<DictionaryAttr>(strategy::kPacked) : DictionaryAttr();
  auto form =
      argument && packed ? packed.getAs<DictionaryAttr>(std::to_string(argument.getArgNumber())) : DictionaryAttr();
  std::optional<WeightFormat> format = form ? formatOfForm(formName(form)) : std::nullopt;
  return format ? formatName(*format).str() : "";
}
