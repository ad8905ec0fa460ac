//===- MatmulPack.cpp - packed operands of products -----------------------===//

#include "MatmulRegion.h"

#include "BlockWeights.h"
#include "Gemm.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

StringRef dmxc::cpu::formName(DictionaryAttr form) {
  auto name = form.getAs<StringAttr>("form");
  return name ? name.getValue() : "";
}

bool dmxc::cpu::isMatmulForm(DictionaryAttr form) {
  return formName(form) == "quads16" || formName(form) == "pairs16" || formName(form) == kRunsForm ||
         isBlockForm(formName(form)) || formatOfForm(formName(form));
}

static int64_t number(DictionaryAttr form, StringRef name) { return form.getAs<IntegerAttr>(name).getInt(); }

/// Matrices that are packed one after the other.
static int64_t countOf(DictionaryAttr form) { return form.contains("count") ? number(form, "count") : 1; }

static FloatMatrix matrixOf(DictionaryAttr form, const Tensor &constant) {
  const float *data = reinterpret_cast<const float *>(constant.data()) + number(form, "offset");
  return {data, number(form, "k"), number(form, "n"), number(form, "stride_k"), number(form, "stride_n")};
}

Status dmxc::cpu::packMatmulOperand(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  if (isBlockForm(formName(form))) {
    packBlockForm(form, {constant.data(), constant.byteSize()}, out);
    return Status::ok();
  }
  int64_t offset = number(form, "offset"), k = number(form, "k"), n = number(form, "n");
  int64_t strideK = number(form, "stride_k"), strideN = number(form, "stride_n");
  int64_t bytes = dtypeBits(constant.dtype()) / 8;
  std::optional<WeightFormat> format = formatOfForm(formName(form));
  if (formName(form) == kRunsForm) {
    std::optional<WeightRuns> runs = runsOfForm(form);
    if (!runs)
      return modelError("a packed form 'runs' lacks its columns, runs and rows");
    return packRuns(*runs, {constant.data() + bytes * offset, k, n, strideK, strideN, bytes, isFloat(constant.dtype())},
                    out);
  }
  if (formName(form) == "pairs16")
    packPairs16(constant.data() + 2 * offset, k, n, strideK, strideN, out);
  else if (!format)
    packFours16(constant.data() + offset, k, n, strideK, strideN, out);
  else if (*format == WeightFormat::Kept)
    for (int64_t i = 0, size = panel16Bytes(k, n, bytes), count = countOf(form); i < count; ++i)
      packPanel16(constant.data() + (offset + i * (count > 1 ? number(form, "stride") : 0)) * bytes, k, n, strideK,
                  strideN, bytes, out.subspan(i * size, size));
  else
    packRounded(*format, matrixOf(form, constant), out);
  return Status::ok();
}

std::optional<double> dmxc::cpu::matmulOperandError(DictionaryAttr form, const Tensor &constant) {
  std::optional<WeightFormat> format = formatOfForm(formName(form));
  if (!format || *format == WeightFormat::Kept)
    return std::nullopt;
  return roundingError(*format, matrixOf(form, constant));
}
