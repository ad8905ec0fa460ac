//===- FlexAttention.cpp - attention with graphs of one score -------------===//
//
// flex_attention has a graph that changes one score and one that says whether a query sees a key, of numbers. They
// are computed for all places at once, as inside of torch.vmap: batch, head, query and key are hidden axes. Tables of
// blocks say no more than the mask's graph does and are not read.
//
//===----------------------------------------------------------------------===//
#include "ProgramImporter.h"

#include "frontends/common/ops/Attention.h"
#include "frontends/common/ops/Require.h"

#include <array>
#include <cmath>
#include <numbers>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// Of batch, head, query and key, the outermost first; those of torch.vmap are above 0.
const std::vector<int64_t> kLevels = {-1, -2, -3, -4};
constexpr int64_t kKeys = 3; ///< their axis

struct Flex {
  Val query, key, value;
  double scale = 1;
  std::vector<Arg> ofScore, ofMask; ///< what the graphs read besides places
};

Val matrices(const std::vector<Arg> &operands, size_t i) {
  const bool is = i < operands.size() && operands[i].kind == Arg::Kind::Tensor && operands[i].tensors.size() == 1 &&
                  operands[i].tensors[0] && operands[i].tensors[0].rank() == 4 &&
                  isFloat(operands[i].tensors[0].dtype());
  if (!is)
    fail("op-argument", "query, key and value must be float tensors of [batch, heads, rows, size]");
  return operands[i].tensors[0];
}

/// Operands in torch's order, of lists each element by itself: tables of blocks, the scale, settings of kernels, what
/// the graphs read besides.
Flex flexOf(const std::vector<Arg> &before, const std::vector<Arg> &behind, const std::vector<const Graph *> &graphs) {
  constexpr size_t ofScore = 5, ofMask = 4; // what the graphs get first: the score, its places
  auto isScale = [](const Arg &arg) { return arg.kind == Arg::Kind::Float && !arg.list && arg.numbers.size() == 1; };
  auto scale = std::find_if(behind.begin(), behind.end(), isScale);
  if (graphs.size() != 2 || before.size() != 3 || scale == behind.end())
    fail("op-argument", "it takes query, key, value, a graph of the score, one of the mask and the scale");
  Flex flex{matrices(before, 0), matrices(before, 1), matrices(before, 2), scale->numbers[0], {}, {}};
  std::vector<Arg> more;
  for (auto arg = scale + 1; arg != behind.end(); ++arg) {
    for (const Val &value : arg->tensors)
      more.push_back(Arg::tensor(value));
    for (Dim value : arg->ints)
      more.push_back(Arg::integer(value));
  }
  const std::array<size_t, 2> inputs = {graphs[0]->inputs.size(), graphs[1]->inputs.size()};
  if (inputs[0] < ofScore || inputs[1] < ofMask || inputs[0] - ofScore + inputs[1] - ofMask != more.size())
    fail("torch-graph", "its graphs have " + std::to_string(inputs[0]) + " and " + std::to_string(inputs[1]) +
                            " inputs for " + std::to_string(more.size()) + " values besides the score and its place");
  flex.ofScore.assign(more.begin(), more.begin() + static_cast<int64_t>(inputs[0] - ofScore));
  flex.ofMask.assign(more.begin() + static_cast<int64_t>(inputs[0] - ofScore), more.end());
  return flex;
}

bool hasMasked(const Tensor &tensor) {
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (tensor.asDouble(i) == kMasked)
      return true;
  return false;
}

/// Whether a graph of the score can give -inf for scores that are finite.
bool mayMask(const Graph &graph, const std::vector<Arg> &more) {
  for (const Arg &arg : more)
    for (const Val &value : arg.tensors)
      if (isFloat(value.dtype()) && (!value.isConstant() || hasMasked(value.constant())))
        return true;
  for (const Node &node : graph.nodes)
    for (const NamedArgument &input : node.inputs) {
      if (input.value.graph && mayMask(*input.value.graph, {}))
        return true;
      for (const Element &element : input.value.elements)
        if (element.kind == Element::Kind::Float && std::isinf(element.number))
          return true;
    }
  return false;
}

bool isTrue(const Val &value) { return value.isConstant() && value.elements().is(1) && value.constant().asInt(0); }

} // namespace

/// What a graph gives at all places, as [batch, heads, queries, keys] with 1 where it is the same.
Val ProgramImporter::atAllPlaces(const Graph &graph, std::vector<Arg> arguments, const std::string &prefix) {
  std::vector<Arg> results = inlineGraph(graph, std::move(arguments), prefix);
  if (results.size() != 1 || results[0].kind != Arg::Kind::Tensor || results[0].tensors.size() != 1)
    fail("torch-graph", "its graphs must give one tensor each");
  const Val &value = results[0].tensors[0];
  std::vector<int64_t> levels = results[0].levels.empty() ? std::vector<int64_t>() : results[0].levels[0];
  if (value.isPoison())
    return value;
  if (value.rank() != static_cast<int64_t>(levels.size()))
    fail("torch-graph", "its graphs must give one number for a place, not " + value.describe());
  return withLevels(emitter, value, levels, kLevels, 0);
}

std::vector<Arg> ProgramImporter::importFlexAttention(const std::vector<Arg> &before, const std::vector<Arg> &behind,
                                                      const std::vector<const Graph *> &graphs, const std::string &name,
                                                      const std::vector<bool> &read) {
  Emitter &e = emitter;
  Flex flex = flexOf(before, behind, graphs);
  const DType type = flex.query.dtype() == DType::F64 ? DType::F64 : DType::F32;
  auto heads = [&](const Val &x) { return e.cast(repeatHeads(e, x, flex.query.extent(1)), type); };
  Val scores = e.matmul(e.cast(flex.query, type), e.transposeLast(heads(flex.key)));
  scores = e.mul(scores, flex.scale);
  const Dims dims = scores.dims();
  std::vector<Arg> places;
  for (size_t axis = 0; axis < kLevels.size(); ++axis) {
    places.push_back(Arg::tensor(e.iota(DType::I32, {dims[axis]}, 0)));
    places.back().levels = {{kLevels[axis]}};
  }
  auto at = [&](const std::vector<Arg> &more, const std::vector<Arg> &first = {}) {
    std::vector<Arg> all = first;
    all.insert(all.end(), places.begin(), places.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  auto modified = [&](const Val &score, std::vector<int64_t> levels, const std::string &suffix) {
    Arg first = Arg::tensor(score);
    first.levels = {std::move(levels)};
    Val value = atAllPlaces(*graphs[0], at(flex.ofScore, {first}), name + suffix);
    return value.isPoison() ? value : e.cast(value, type);
  };
  Val keep = atAllPlaces(*graphs[1], at(flex.ofMask), name + "/mask/");
  scores = modified(scores, kLevels, "/score/");
  Val bias = mayMask(*graphs[0], flex.ofScore) ? modified(e.scalar(type, 0), {}, "/rows/") : e.scalar(type, 0);
  if (keep.isPoison() || scores.isPoison() || bias.isPoison())
    return std::vector<Arg>(read.size(), Arg::tensor(Val::poison()));
  auto masked = [&](const Val &x) { return isTrue(keep) ? x : e.select(keep, x, e.scalar(type, kMasked)); };
  scores = e.broadcast(masked(scores), dims);
  Val weights = e.softmax(scores, kKeys);
  bias = masked(bias);
  if (Val blind = bias.elements().is(1) ? Val() : rowsWithoutKeys(e, bias))
    weights = e.select(blind, e.scalar(type, 0), weights);
  std::vector<Arg> results{Arg::tensor(e.cast(e.matmul(weights, heads(flex.value)), flex.query.dtype()))};
  // The logarithm of the sum of powers, and the highest score, both to base 2.
  auto most = [&] { return e.reduce(Reduction::max, scores, {kKeys}, true); };
  auto result = [&](size_t i, llvm::function_ref<Val()> of) {
    Dims rows(llvm::ArrayRef<Dim>(dims).drop_back());
    bool is = i < read.size() && read[i];
    results.push_back(is ? Arg::tensor(e.reshape(e.mul(of(), std::numbers::log2e), rows)) : Arg::none());
  };
  result(1, [&] {
    Val highest = most(), none = e.compare(Compare::eq, highest, e.scalar(type, kMasked));
    Val shift = e.select(none, e.scalar(type, 0), highest);
    Val sum = e.reduce(Reduction::sum, e.emit<ExpOp>({e.sub(scores, shift)}), {kKeys}, true);
    return e.add(e.emit<LogOp>({sum}), shift);
  });
  result(2, most);
  return results;
}

} // namespace dmxc::torchfe
