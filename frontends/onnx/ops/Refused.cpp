//===- Refused.cpp - operators that are known and refused, and why --------===//
#include "../OpTable.h"

namespace dmxc::onnxfe {

std::vector<OpRows> refusedOps() {
  std::vector<OpRows> rows;
  auto refuse = [&](const std::vector<const char *> &names, const char *reason, const char *domain = "") {
    for (const char *name : names)
      rows.push_back({name, {1}, ">0", nullptr, "", {}, reason, domain});
  };
  refuse({"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"},
         "it draws random numbers, so its results cannot be reproduced");
  refuse({"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch"},
         "it works on strings, which have no tensor meaning here");
  refuse({"ImageDecoder"}, "it decodes compressed images, which is the application's part");
  refuse({"CategoryMapper"}, "it maps to or from strings, which have no tensor meaning here", "ai.onnx.ml");
  refuse({"CastMap", "DictVectorizer"}, "it works on maps, which have no tensor meaning here", "ai.onnx.ml");
  refuse({"Gradient", "Adagrad", "Adam", "Momentum"}, "training is not supported", "ai.onnx.preview.training");
  return rows;
}

} // namespace dmxc::onnxfe
