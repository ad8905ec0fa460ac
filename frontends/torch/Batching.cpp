//===- Batching.cpp - programs of torch.vmap ------------------------------===//
//
// torch.export writes vmap as calls that give a tensor a hidden axis, a level, and take it away again; the operators
// between see one sample. Here a tensor with hidden axes has them in front. Elementwise operators align them and
// compute all samples at once; any other operator is called sample by sample: unrolled, or in a loop.
//
//===----------------------------------------------------------------------===//
#include "AtenContext.h"
#include "ProgramImporter.h"

#include "frontends/common/ops/Formulas.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace dmxc::torchfe {
namespace {

using Levels = std::vector<int64_t>;

/// More samples than this are a loop.
constexpr int64_t kMaxUnrolled = 16;

constexpr std::string_view kElementwise =
    " __and__ __or__ __xor__ _to_copy abs acos add alias asin atan atan2 bitwise_and bitwise_left_shift"
    " bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clone"
    " contiguous cos cosh detach div elu eq erf erfc exp exp2 expm1 floor floor_divide fmax fmin fmod"
    " full_like ge gelu gt hardsigmoid hardswish hardtanh hypot isfinite isinf isnan le leaky_relu lerp"
    " log log10 log1p log2 log_sigmoid logaddexp logical_and logical_not logical_or logical_xor logit lt"
    " masked_fill maximum minimum mish mul ne neg ones_like pow reciprocal relu relu6 remainder round"
    " rsqrt rsub selu sigmoid sign silu sin sinc sinh softplus sqrt square sub tan tanh to true_divide"
    " trunc where xlogy zeros_like ";

bool isElementwise(const std::string &name) {
  return kElementwise.find(" " + name.substr(0, name.find('.')) + " ") != std::string_view::npos;
}

/// Whether what it gives are sizes, or hangs on the operand's type alone: all samples share it.
bool isShared(const std::string &name) {
  return name.starts_with("sym_") || name.starts_with("size.") || name.starts_with("numel.") || name == "dim.default" ||
         name.starts_with("new_");
}

Levels levelsOf(const Arg &arg, size_t i) { return i < arg.levels.size() ? arg.levels[i] : Levels(); }

/// All levels of the operands, outer ones first: whatever order an operator's operands stand in, what has all levels is
/// not turned.
Levels unionOf(const std::vector<Arg> &arguments) {
  Levels all;
  for (const Arg &arg : arguments)
    for (const Levels &levels : arg.levels)
      for (int64_t level : levels)
        if (std::find(all.begin(), all.end(), level) == all.end())
          all.push_back(level);
  llvm::sort(all, [](int64_t a, int64_t b) { return std::abs(a) < std::abs(b); });
  return all;
}

/// The axis of a hidden level.
int64_t placeOf(const Levels &levels, int64_t level) {
  return std::find(levels.begin(), levels.end(), level) - levels.begin();
}

/// The operands of one sample along a level.
std::vector<Arg> sampleOf(Emitter &e, std::vector<Arg> arguments, int64_t level, const Val &index) {
  for (Arg &arg : arguments)
    for (size_t i = 0; i < arg.levels.size(); ++i) {
      int64_t at = placeOf(arg.levels[i], level);
      if (at == static_cast<int64_t>(arg.levels[i].size()))
        continue;
      arg.tensors[i] = e.gather(arg.tensors[i], index, at);
      arg.levels[i].erase(arg.levels[i].begin() + at);
    }
  return arguments;
}

/// How many samples a level has.
Dim samplesOf(const std::vector<Arg> &arguments, int64_t level) {
  for (const Arg &arg : arguments)
    for (size_t i = 0; i < arg.levels.size(); ++i)
      if (int64_t at = placeOf(arg.levels[i], level); at < static_cast<int64_t>(arg.levels[i].size()))
        return arg.tensors[i].extent(at);
  return 1;
}

std::vector<Arg> callBatched(const AtenOp &op, const std::vector<Arg> &arguments, const std::string &name, Emitter &e);

std::vector<Arg> callAligned(const AtenOp &op, std::vector<Arg> arguments, const Levels &all, const std::string &name,
                             Emitter &e) {
  int64_t rank = 0;
  for (const Arg &arg : arguments)
    for (size_t i = 0; i < arg.tensors.size(); ++i)
      if (arg.tensors[i])
        rank = std::max<int64_t>(rank, arg.tensors[i].rank() - levelsOf(arg, i).size());
  for (Arg &arg : arguments) {
    for (size_t i = 0; i < arg.levels.size(); ++i)
      if (arg.tensors[i] && !arg.levels[i].empty())
        arg.tensors[i] = withLevels(e, arg.tensors[i], arg.levels[i], all, rank);
    arg.levels.clear();
  }
  std::vector<Arg> results = callOperator(op, std::move(arguments), name, e);
  for (Arg &result : results)
    result.levels.assign(result.tensors.size(), all);
  return results;
}

/// Whether it reads x[i, j, ..] with an index of integers for each axis from the first on.
bool isIndexing(const std::string &name, const std::vector<Arg> &arguments) {
  return (name == "index.Tensor" || name == "_unsafe_index.Tensor") &&
         llvm::all_of(arguments[1].tensors, [](const Val &index) { return index && index.dtype() != DType::Bool; });
}

/// All samples at once: hidden axes, which stand first, are indexed by their own places.
std::vector<Arg> callIndexed(const AtenOp &op, std::vector<Arg> arguments, const Levels &all, const std::string &name,
                             Emitter &e) {
  Arg &x = arguments[0], &index = arguments[1];
  int64_t rank = 0;
  for (size_t i = 0; i < index.tensors.size(); ++i)
    rank = std::max<int64_t>(rank, index.tensors[i].rank() - levelsOf(index, i).size());
  std::vector<Val> whole;
  const Levels own = levelsOf(x, 0);
  for (size_t axis = 0; axis < own.size(); ++axis)
    whole.push_back(withLevels(e, e.iota(DType::I64, {x.tensors[0].extent(axis)}, 0), {own[axis]}, all, rank));
  for (size_t i = 0; i < index.tensors.size(); ++i)
    whole.push_back(withLevels(e, index.tensors[i], levelsOf(index, i), all, rank));
  index.tensors = std::move(whole);
  index.levels.clear();
  x.levels.clear();
  std::vector<Arg> results = callOperator(op, std::move(arguments), name, e);
  results.at(0).levels = {all};
  return results;
}

/// Sample by sample along a level; what each gives is stacked along a first axis.
std::vector<Arg> callSamples(const AtenOp &op, const std::vector<Arg> &arguments, int64_t level,
                             const std::string &name, Emitter &e) {
  const Dim count = samplesOf(arguments, level);
  auto sample = [&](const Val &index) { return callBatched(op, sampleOf(e, arguments, level, index), name, e); };
  if (isShared(op.schema.name))
    return sample(e.intScalar(DType::I64, 0));
  std::vector<Arg> results; // the last sample's, whose tensors give way to all samples'
  std::vector<Val> stacked;
  auto flat = [&] {
    std::vector<Val> tensors;
    for (const Arg &result : results)
      tensors.insert(tensors.end(), result.tensors.begin(), result.tensors.end());
    return tensors;
  };
  if (count.valueOr(kMaxUnrolled + 1) <= kMaxUnrolled && !count.is(0)) {
    std::vector<std::vector<Val>> parts;
    for (int64_t i = 0; i < *count.known(); ++i) {
      results = sample(e.intScalar(DType::I64, i));
      parts.resize(flat().size());
      for (size_t j = 0; j < parts.size(); ++j)
        parts[j].push_back(unsqueeze(e, flat()[j], 0));
    }
    for (const std::vector<Val> &part : parts)
      stacked.push_back(e.concat(part, 0));
  } else {
    stacked = e.loop(e.size(count), Val(), {}, [&](const Val &iteration, const Val &condition, llvm::ArrayRef<Val>) {
      results = sample(iteration);
      std::vector<Val> outputs = flat();
      outputs.insert(outputs.begin(), condition);
      return outputs;
    });
  }
  size_t next = 0;
  for (Arg &result : results) {
    result.levels.resize(result.tensors.size());
    for (size_t i = 0; i < result.tensors.size(); ++i) {
      result.tensors[i] = stacked[next++];
      result.levels[i].insert(result.levels[i].begin(), level);
    }
  }
  return results;
}

std::vector<Arg> callBatched(const AtenOp &op, const std::vector<Arg> &arguments, const std::string &name, Emitter &e) {
  const Levels all = unionOf(arguments);
  if (all.empty())
    return callOperator(op, arguments, name, e);
  if (isIndexing(op.schema.name, arguments))
    return callIndexed(op, arguments, all, name, e);
  return isElementwise(op.schema.name) ? callAligned(op, arguments, all, name, e)
                                       : callSamples(op, arguments, all.back(), name, e);
}

} // namespace

Val withLevels(Emitter &e, const Val &x, const Levels &own, const Levels &all, int64_t rank) {
  std::vector<int64_t> order;
  Dims dims;
  for (int64_t level : all) {
    int64_t at = placeOf(own, level);
    bool has = at < static_cast<int64_t>(own.size());
    if (has)
      order.push_back(at);
    dims.push_back(has ? x.extent(at) : Dim(1));
  }
  const int64_t hidden = own.size(), sample = x.rank() - hidden;
  dims.append(rank - sample, Dim(1));
  for (int64_t axis = hidden; axis < x.rank(); ++axis) {
    order.push_back(axis);
    dims.push_back(x.extent(axis));
  }
  return e.reshape(e.transpose(x, order), dims);
}

bool isBatched(const Arg &arg) {
  return std::any_of(arg.levels.begin(), arg.levels.end(), [](const Levels &levels) { return !levels.empty(); });
}

std::vector<Arg> callWithLevels(const AtenOp &op, const std::vector<Arg> &arguments, const std::string &name,
                                Emitter &e) {
  if (std::any_of(arguments.begin(), arguments.end(), hasComplex))
    fail("op-unsupported", "complex tensors inside of torch.vmap are not known here");
  return callBatched(op, arguments, name, e);
}

std::vector<Arg> importBatching(Emitter &e, const std::string &call, const std::vector<Arg> &operands) {
  auto number = [&](size_t i) {
    if (i >= operands.size() || operands[i].kind != Arg::Kind::Int || operands[i].ints.size() != 1 ||
        !operands[i].ints[0].isStatic())
      fail("op-argument", "the operand " + std::to_string(i) + " must be an integer");
    return *operands[i].ints[0].known();
  };
  if (call == "lazy_load_decompositions" || call == "_vmap_increment_nesting" || call == "_vmap_decrement_nesting")
    return {};
  if (call != "_add_batch_dim" && call != "_remove_batch_dim")
    fail("op-unsupported", "of torch's functional transforms only vmap is known here");
  if (operands.empty() || operands[0].kind != Arg::Kind::Tensor || operands[0].tensors.size() != 1)
    fail("op-argument", "the first operand must be a tensor");
  Val x = operands[0].tensors[0];
  Levels levels = levelsOf(operands[0], 0);
  const int64_t hidden = levels.size(), sample = x.rank() - hidden;
  if (call == "_add_batch_dim") { // tensor, its axis, level
    if (sample == 0)
      fail("op-rank", "a scalar has no axis of samples");
    x = moveAxis(e, x, hidden + AtenContext::normalizeAxis(number(1), sample), hidden);
    levels.push_back(number(2));
  } else { // tensor, level, how many samples, the axis that they become
    int64_t at = placeOf(levels, number(1));
    if (operands.size() < 4 || operands[2].ints.size() != 1)
      fail("op-argument", "the number of samples is missing");
    if (at == hidden) { // the same for all samples
      x = unsqueeze(e, x, hidden);
      Dims dims = x.dims();
      dims[hidden] = operands[2].ints[0];
      x = e.broadcast(x, dims);
    } else {
      levels.erase(levels.begin() + at);
      x = moveAxis(e, x, at, hidden - 1);
    }
    int64_t first = levels.size();
    x = moveAxis(e, x, first, first + AtenContext::normalizeAxis(number(3), x.rank() - first));
  }
  Arg result = Arg::tensor(x);
  result.levels = {levels};
  return {result};
}

} // namespace dmxc::torchfe
