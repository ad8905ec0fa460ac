//===- Rounding.cpp - constants that are not what the model has -----------===//
#include "Rounding.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Model.h"

using namespace mlir;

std::optional<dmxc::RoundedConstant> dmxc::roundingOf(dlir::BufferOp constant, const std::string &node,
                                                      const TargetBackend &target) {
  if (auto rounded = constant->getAttrOfType<DictionaryAttr>(dmir::kRoundedAttr)) {
    auto count = [&](StringRef key) { return static_cast<uint64_t>(rounded.getAs<IntegerAttr>(key).getInt()); };
    return RoundedConstant{node, count("bytes"), count("kept"), dmir::roundedError(rounded)};
  }
  if (!constant.getFormAttr())
    return std::nullopt;
  Result<Tensor> tensor = dmir::constantTensor(constant.getDataAttr());
  std::optional<double> error = tensor ? target.roundingError(constant.getFormAttr(), *tensor) : std::nullopt;
  if (!error)
    return std::nullopt;
  return RoundedConstant{node, dtypeBytes(tensor->dtype(), tensor->numElements()), constant.getSize(), *error};
}
