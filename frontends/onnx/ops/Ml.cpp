//===- Ml.cpp - operators of classical machine learning -------------------===//
#include "MlScores.h"

#include "frontends/common/ops/Order.h"

#include <algorithm>
#include <set>

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

void importBinarizer(NodeContext &c) {
  Val x = c.operand(0);
  Val above = c.e.compare(Compare::gt, x, c.e.scalarLike(x, c.attrFloat("threshold", 0)));
  c.result(c.e.cast(above, x.dtype()));
}

void importArrayFeatureExtractor(NodeContext &c) {
  Val x = c.operand(0), index = c.operand(1);
  c.requireShape(x.rank() >= 1 && !index.elements().is(0), "expected rank 1 or more and at least one index");
  if (x.rank() == 1) // a vector's features are a row
    x = c.e.reshape(x, {1, x.extent(0)});
  c.result(c.e.gather(x, c.e.reshape(index, {index.elements()}), x.rank() - 1));
}

/// The n-grams of one length: how often each occurs in each row of x, [rows, grams], f32.
Val countsOf(NodeContext &c, const Val &x, const std::vector<std::vector<int64_t>> &grams, int64_t maxSkip) {
  Emitter &e = c.e;
  int64_t length = grams.front().size(), count = grams.size();
  Val total = e.splat(DType::F32, {x.dim(0), count}, 0);
  for (int64_t distance = 1; distance <= maxSkip + 1; ++distance) {
    int64_t windows = x.dim(1) - (length - 1) * distance;
    if (windows <= 0)
      break;
    Val hit;
    for (int64_t j = 0; j < length; ++j) {
      std::vector<int64_t> items;
      for (const std::vector<int64_t> &gram : grams)
        items.push_back(gram[j]);
      Val item = e.reshape(e.sliceAxis(x, 1, j * distance, windows), {x.dim(0), windows, 1});
      Val same = e.compare(Compare::eq, item, e.reshape(e.ints(items), {1, 1, count}));
      hit = hit ? e.emit<AndOp>({hit, same}) : same;
    }
    total = e.add(total, e.reduce(Reduction::sum, e.cast(hit, DType::F32), {1}, false));
    if (length == 1) // skipping changes nothing
      break;
  }
  return total;
}

/// The pool's n-grams by length - 1, as far as their length is asked for.
std::vector<std::vector<std::vector<int64_t>>> poolOf(NodeContext &c, size_t indexes) {
  std::vector<int64_t> pool = c.attrInts("pool_int64s", {}), starts = c.attrInts("ngram_counts", {});
  std::vector<std::vector<std::vector<int64_t>>> grams(starts.size());
  std::set<std::vector<int64_t>> seen;
  size_t total = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    int64_t end = n + 1 < starts.size() ? starts[n + 1] : static_cast<int64_t>(pool.size());
    int64_t length = n + 1;
    c.requireAttr(starts[n] >= 0 && end >= starts[n] && end <= static_cast<int64_t>(pool.size()) &&
                      (end - starts[n]) % length == 0,
                  "ngram_counts does not fit the pool");
    for (int64_t at = starts[n]; at < end; at += length) {
      grams[n].emplace_back(pool.begin() + at, pool.begin() + at + length);
      c.requireAttr(seen.insert(grams[n].back()).second, "an n-gram stands twice in the pool");
    }
    total += grams[n].size();
  }
  c.requireAttr(total == indexes, "ngram_indexes does not have one number for each n-gram of the pool");
  return grams;
}

void importTfIdf(NodeContext &c) {
  Emitter &e = c.e;
  if (c.hasAttr("pool_strings"))
    fail("op-unsupported", "strings have no tensor meaning here");
  Val x = c.cast64(0);
  c.requireShape(x.rank() == 1 || x.rank() == 2, "expected rank 1 or 2");
  bool rows = x.rank() == 2;
  x = rows ? x : e.reshape(x, {1, x.dim(0)});
  int64_t shortest = c.attrInt("min_gram_length"), longest = c.attrInt("max_gram_length"),
          skip = c.attrInt("max_skip_count");
  c.requireAttr(shortest >= 1 && longest >= shortest && skip >= 0 && skip < 1024,
                "the lengths of n-grams or the skip count are out of range");
  std::vector<int64_t> indexes = c.attrInts("ngram_indexes", {});
  std::vector<std::vector<std::vector<int64_t>>> grams = poolOf(c, indexes.size());
  // A column of the result for each n-gram, by its index.
  int64_t columns = 0, gram = 0;
  for (int64_t index : indexes) {
    c.requireAttr(index >= 0 && index < (int64_t(1) << 26), "an index of " + std::to_string(index));
    columns = std::max(columns, index + 1);
  }
  Val result = e.splat(DType::F32, {x.dim(0), columns}, 0);
  for (size_t n = 0; n < grams.size(); gram += grams[n].size(), ++n) {
    if (grams[n].empty() || static_cast<int64_t>(n) + 1 < shortest || static_cast<int64_t>(n) + 1 > longest)
      continue;
    Val counts = countsOf(c, x, grams[n], skip);
    Val at = e.ints(llvm::ArrayRef<int64_t>(indexes).slice(gram, grams[n].size()));
    result = scatterElements(e, result, e.broadcast(at, counts.shape()), counts, 1, ScatterMode::add);
  }
  std::string mode = c.attrString("mode");
  c.requireAttr(mode == "TF" || mode == "IDF" || mode == "TFIDF", "mode '" + mode + "' is unknown");
  if (mode == "IDF")
    result = e.cast(e.compare(Compare::gt, result, e.scalarLike(result, 0)), DType::F32);
  if (std::optional<std::vector<double>> weights = c.attrFloats("weights"); weights && mode != "TF") {
    // By the n-gram's place in the pool or by its index? Both agree only when every n-gram stands at its index.
    bool same = weights->size() == indexes.size();
    for (size_t i = 0; i < indexes.size(); ++i)
      same &= indexes[i] == static_cast<int64_t>(i);
    c.requireAttr(same, "weights are supported only where ngram_indexes counts from 0 in order");
    result = e.mul(result, e.floats(DType::F32, {columns}, *weights));
  }
  c.result(rows ? result : e.reshape(result, {columns}));
}

/// A map of class to score for each row: the tensor of scores, whose columns are the classes in their order.
void importZipMap(NodeContext &c) {
  Val scores = c.operand(0);
  int64_t classes = ClassLabels(c, "classlabels_int64s").count();
  c.requireShape(scores.rank() == 1 || scores.rank() == 2, "expected rank 1 or 2");
  c.requireShape(scores.extent(scores.rank() - 1).valueOr(classes) == classes,
                 "there are " + std::to_string(classes) + " labels");
  c.result(scores);
}

} // namespace

std::vector<OpRows> mlOps() {
  using namespace types;
  constexpr const char *ml = "ai.onnx.ml";
  constexpr TypeSet Plain = bitOf(DType::F32) | bitOf(DType::F64) | Index;
  return {
      {"Binarizer", {1}, ".>1", importBinarizer, "threshold", {Plain}, "", ml},
      {"ArrayFeatureExtractor", {1}, "..>1", importArrayFeatureExtractor, "", {Plain, Index}, "", ml},
      {"ZipMap",
       {1},
       ".>1",
       importZipMap,
       "classlabels_int64s,classlabels_strings",
       {bitOf(DType::F32)},
       "a tensor instead of maps",
       ml},
      {"TfIdfVectorizer",
       {9},
       ".>1",
       importTfIdf,
       "max_gram_length,max_skip_count,min_gram_length,mode,ngram_counts,ngram_indexes,pool_int64s,pool_strings,"
       "weights",
       {Index},
       "of integers"},
  };
}

} // namespace dmxc::onnxfe
