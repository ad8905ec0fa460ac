//===- MlFeatures.cpp - what ai.onnx.ml does to features ------------------===//
#include "../Differences.h"
#include "MlScores.h"

#include <algorithm>
#include <cmath>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

/// An attribute of one number for all features, or one for each, as floats of x's type that broadcast against x.
Val perFeature(NodeContext &c, const Val &x, const char *name) {
  std::vector<double> values = c.attrFloats(name).value_or(std::vector<double>());
  c.requireShape(x.rank() >= 1, "expected rank 1 or more");
  c.requireAttr(values.size() == 1 || mayEqual(x.extent(-1), static_cast<int64_t>(values.size())),
                std::string(name) + " has " + std::to_string(values.size()) + " numbers for " + x.extent(-1).str() +
                    " features");
  return c.e.floats(x.dtype(), {static_cast<int64_t>(values.size())}, values);
}

void importScaler(NodeContext &c) {
  Val x = c.operand(0);
  if (!isFloat(x.dtype()))
    x = c.e.cast(x, DType::F32);
  Val moved = c.e.sub(x, perFeature(c, x, "offset"));
  c.result(c.e.cast(c.e.mul(moved, perFeature(c, x, "scale")), DType::F32));
}

void importNormalizer(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0);
  if (!isFloat(x.dtype()))
    x = e.cast(x, DType::F32);
  c.requireShape(x.rank() == 1 || x.rank() == 2, "expected one row or rows of features");
  const std::string norm = c.attrString("norm", "MAX");
  c.requireAttr(norm == "MAX" || norm == "L1" || norm == "L2", "norm '" + norm + "' is unknown");
  Val size = norm == "L2" ? e.mul(x, x) : e.emit<AbsOp>({x});
  size = e.reduce(norm == "MAX" ? Reduction::max : Reduction::sum, size, {x.rank() - 1}, /*keepDims=*/true);
  if (norm == "L2")
    size = e.emit<SqrtOp>({size});
  Val isZero = e.compare(Compare::eq, size, e.scalarLike(size, 0));
  c.result(e.cast(e.div(x, e.select(isZero, e.scalarLike(size, 1), size)), DType::F32));
}

void importImputer(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), value, replaced;
  if (isFloat(x.dtype())) {
    value = perFeature(c, x, "imputed_value_floats");
    const double missing = c.attrFloat("replaced_value_float", 0);
    replaced = std::isnan(missing) ? e.emit<IsNaNOp>({x}) : e.compare(Compare::eq, x, e.scalarLike(x, missing));
  } else {
    std::vector<int64_t> values = c.attrInts("imputed_value_int64s", {});
    c.requireShape(x.rank() >= 1, "expected rank 1 or more");
    c.requireAttr(values.size() == 1 || mayEqual(x.extent(-1), static_cast<int64_t>(values.size())),
                  "imputed_value_int64s does not have one number, or one a feature");
    value = e.cast(e.ints(values), x.dtype());
    replaced = e.compare(Compare::eq, x, e.intScalar(x.dtype(), c.attrInt("replaced_value_int64", 0)));
  }
  c.result(e.select(replaced, value, x));
}

void importOneHotEncoder(NodeContext &c) {
  Emitter &e = c.e;
  std::vector<int64_t> categories = c.attrInts("cats_int64s", {});
  c.requireAttr(!categories.empty(),
                "there are no categories of integers (cats_int64s); strings have no tensor meaning "
                "here");
  Val x = c.cast64(0);
  Dims column = x.dims();
  column.push_back(1);
  Val same = e.compare(Compare::eq, e.reshape(x, column), e.ints(categories));
  if (!c.attrInt("zeros", 1)) {
    Val found = e.reduce(Reduction::max, e.cast(same, DType::I32), {x.rank()}, /*keepDims=*/false);
    c.requireAtRun(e.compare(Compare::gt, found, e.scalarLike(found, 0)));
  }
  c.result(e.cast(same, DType::F32));
}

void importFeatureVectorizer(NodeContext &c) {
  Emitter &e = c.e;
  std::vector<int64_t> sizes = c.attrInts("inputdimensions", {});
  c.requireAttr(static_cast<int>(sizes.size()) == c.numOperands(),
                "inputdimensions does not have one number an operand");
  std::vector<Val> parts;
  for (int i = 0; i < c.numOperands(); ++i) {
    Val x = e.cast(c.operand(i), DType::F32);
    c.requireShape(x.rank() == 1 || x.rank() == 2, "expected one row or rows of features");
    if (x.rank() == 1)
      x = e.reshape(x, {1, x.extent(0)});
    c.requireShape(mayEqual(x.extent(1), sizes[i]), "operand " + std::to_string(i) + " has " + x.extent(1).str() +
                                                        " features, not the " + std::to_string(sizes[i]) +
                                                        " of inputdimensions");
    parts.push_back(x);
  }
  c.result(e.concat(parts, 1));
}

//===----------------------------------------------------------------------===//
// LabelEncoder
//===----------------------------------------------------------------------===//

/// The keys or the values, in any of the forms the attribute has; null where they are strings or missing.
Val listOf(NodeContext &c, const std::string &what) {
  if (auto ints = c.attrInts((what + "_int64s").c_str()))
    return c.e.ints(*ints);
  if (auto floats = c.attrFloats((what + "_floats").c_str()))
    return c.e.floats(DType::F32, {static_cast<int64_t>(floats->size())}, *floats);
  if (c.hasAttr((what + "_strings").c_str()))
    fail("op-unsupported", "its " + what + " are strings, which have no tensor meaning here");
  Val tensor = c.attrTensor((what + "_tensor").c_str());
  c.requireAttr(tensor.rank() == 1, what + "_tensor must be a list");
  return tensor;
}

Val defaultOf(NodeContext &c, DType type) {
  Emitter &e = c.e;
  if (c.hasAttr("default_tensor")) {
    Val value = c.attrTensor("default_tensor");
    c.requireAttr(value.numElements() == 1, "default_tensor must be one number");
    return e.cast(e.reshape(value, {}), type);
  }
  return isFloat(type) ? e.scalar(type, c.attrFloat("default_float", -0.0))
                       : e.intScalar(type, c.attrInt("default_int64", -1));
}

void importLabelEncoder(NodeContext &c) {
  Emitter &e = c.e;
  Val x = c.operand(0), keys = listOf(c, "keys"), values = listOf(c, "values");
  c.requireAttr(keys.dtype() == x.dtype(), "the keys are " + std::string(dtypeName(keys.dtype())) +
                                               ", the operand is " + std::string(dtypeName(x.dtype())));
  const int64_t count = keys.dim(0);
  c.requireAttr(count == values.dim(0),
                "there are " + std::to_string(count) + " keys and " + std::to_string(values.dim(0)) + " values");
  Val fallback = defaultOf(c, values.dtype());
  if (count == 0)
    return c.result(e.broadcast(fallback, x.dims()));
  // The place of the last key that is the same, counted from 1; 0 picks the default.
  Dims column = x.dims();
  column.push_back(1);
  Val wide = e.reshape(x, column), same = e.compare(Compare::eq, wide, keys);
  if (isFloat(x.dtype())) // every NaN is the same key
    same = e.emit<OrOp>({same, e.emit<AndOp>({e.emit<IsNaNOp>({wide}), e.emit<IsNaNOp>({keys})})});
  Val places = e.mul(e.cast(same, DType::I64), e.add(e.iota(DType::I64, {count}, 0), 1));
  Val place = e.reduce(Reduction::max, places, {x.rank()}, /*keepDims=*/false);
  c.result(e.gather(e.concat({e.reshape(fallback, {1}), values}, 0), place, 0));
}

} // namespace

std::vector<OpRows> mlFeatureOps() {
  using namespace types;
  constexpr const char *ml = "ai.onnx.ml";
  constexpr TypeSet Plain = bitOf(DType::F32) | bitOf(DType::F64) | Index;
  constexpr const char *labels = "default_float,default_int64,default_string,keys_floats,keys_int64s,keys_strings,"
                                 "values_floats,values_int64s,values_strings";
  constexpr const char *labelsAndTensors =
      "default_float,default_int64,default_string,default_tensor,keys_floats,keys_int64s,keys_strings,keys_tensor,"
      "values_floats,values_int64s,values_strings,values_tensor";
  return {
      {"Scaler", {1}, ".>1", importScaler, "offset,scale=floats", {Plain}, "", ml},
      {"Normalizer", {1}, ".>1", importNormalizer, "norm", {Plain}, "", ml},
      {"Imputer",
       {1},
       ".>1",
       importImputer,
       "imputed_value_floats,imputed_value_int64s,replaced_value_float,replaced_value_int64",
       {Plain},
       "",
       ml},
      {"OneHotEncoder", {1}, ".>1", importOneHotEncoder, "cats_int64s,cats_strings,zeros", {Plain}, "of integers", ml},
      {"FeatureVectorizer", {1}, "T*>1", importFeatureVectorizer, "inputdimensions", {Plain}, "", ml},
      {"LabelEncoder", {2}, ".>1", importLabelEncoder, labels, {Plain | bitOf(DType::I16)}, "of numbers", ml},
      {"LabelEncoder", {4}, ".>1", importLabelEncoder, labelsAndTensors, {Plain | bitOf(DType::I16)}, "of numbers", ml},
  };
}

std::vector<Difference> mlFeatureDifferences() {
  return {
      {"normalizer-max-negative", "Normalizer", "norm MAX with negative numbers", "by the largest absolute value",
       "by the largest number", "", "by the largest absolute value", "as scikit-learn"},
      {"onehotencoder-fraction", "OneHotEncoder", "floats between categories that are integers", "no category",
       "the category of the whole part", "", "the category of the whole part", "those that run models have it so"},
      {"labelencoder-nan", "LabelEncoder", "before version 4, NaN among the keys", "is found by no NaN",
       "is found by no NaN", "", "is found by NaN", "what later versions say"},
  };
}

} // namespace dmxc::onnxfe
