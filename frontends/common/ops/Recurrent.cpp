//===- Recurrent.cpp - RNN, GRU and LSTM ----------------------------------===//
//
// A few steps are unrolled; more, or as many as a run brings, are a loop.
//
//===----------------------------------------------------------------------===//
#include "Recurrent.h"
#include "Activation.h"
#include "Require.h"

#include <functional>

using namespace dmxc::dmir;

namespace dmxc::frontend {
namespace {

/// Steps that are still unrolled.
constexpr int64_t kMaxSteps = 512;

/// A function with its parameters.
struct Activation {
  std::string name;
  double alpha, beta;
};

/// The activation functions of all directions, with their parameters taken from
/// the lists in order.
std::vector<Activation> activationsOf(const RecurrentOptions &o, const std::vector<std::string> &defaults,
                                      int64_t directions) {
  std::vector<std::string> names;
  if (o.activations)
    names = *o.activations;
  else
    for (int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), defaults.begin(), defaults.end());
  requireAttr(names.size() == defaults.size() * directions,
              "'activations' must name " + std::to_string(defaults.size() * directions) + " functions");
  struct Parameters {
    const char *name;
    bool alpha, beta;
    double defaultAlpha, defaultBeta;
  };
  static const Parameters known[] = {{"Affine", true, true, 1, 0},           {"LeakyRelu", true, false, 0.01, 0},
                                     {"ThresholdedRelu", true, false, 1, 0}, {"ScaledTanh", true, true, 1, 1},
                                     {"HardSigmoid", true, true, 0.2, 0.5},  {"Elu", true, false, 1, 0}};
  std::vector<Activation> result;
  size_t nextAlpha = 0, nextBeta = 0;
  for (const std::string &name : names) {
    Activation activation{name, 0, 0};
    for (const Parameters &p : known) {
      if (name != p.name)
        continue;
      activation.alpha = p.alpha && nextAlpha < o.alphas.size() ? o.alphas[nextAlpha] : p.defaultAlpha;
      activation.beta = p.beta && nextBeta < o.betas.size() ? o.betas[nextBeta] : p.defaultBeta;
      nextAlpha += p.alpha;
      nextBeta += p.beta;
    }
    result.push_back(std::move(activation));
  }
  return result;
}

/// The operands the three operators share, with time as the first axis.
struct Cells {
  Val x;          ///< [time, batch, input]
  Val w, r, bias; ///< [dirs, gates*h, input], [dirs, gates*h, h], [dirs,
                  ///< 2*gates*h] or null
  Val lengths;    ///< [batch] or null
  Dim time, batch;
  Val projections; ///< [dirs, shown, h] or null
  int64_t hidden, directions, gates;
  int64_t shown; ///< size of an output, which is the hidden size where nothing projects it
  bool batchFirst, backwardOnly;
  double clip = 0; ///< 0: none
};

/// An operand that must have these dims, null when it is absent.
Val fitting(Emitter &e, const Val &value, const Dims &dims, const char *what) {
  if (!value)
    return value;
  requireShape(mayEqual(value.dims(), dims), std::string("the ") + what + " are " + value.describe() +
                                                 "; input, direction and hidden size ask for " + dimsString(dims));
  return e.expectDims(value, dims);
}

Cells cellsOf(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o, int64_t gates) {
  Cells cells;
  cells.gates = gates;
  cells.batchFirst = o.batchFirst;
  cells.x = requireTensor(operands, 0);
  requireShape(cells.x.rank() == 3, "the input must have rank 3");
  if (cells.batchFirst)
    cells.x = e.transpose(cells.x, {1, 0, 2});
  const std::string &direction = o.direction;
  requireAttr(direction == "forward" || direction == "reverse" || direction == "bidirectional",
              "direction '" + direction + "' is unknown");
  cells.directions = direction == "bidirectional" ? 2 : 1;
  cells.backwardOnly = direction == "reverse";
  cells.time = cells.x.extent(0);
  cells.batch = cells.x.extent(1);
  Val r = requireTensor(operands, 2);
  requireShape(r.rank() == 3, "the weights must have rank 3");
  cells.hidden = o.hiddenSize ? *o.hiddenSize : r.dim(2);
  requireAttr(cells.hidden > 0 && cells.hidden <= kMaxDim / (gates * 2), "'hidden_size' must be positive");
  int64_t rows = gates * cells.hidden;
  Val w = requireTensor(operands, 1);
  requireShape(w.rank() == 3, "the weights must have rank 3");
  cells.w = fitting(e, w, {cells.directions, rows, cells.x.extent(2)}, "weights");
  cells.shown = cells.hidden;
  if (Val projections = optionalTensor(operands, 8)) {
    requireShape(projections.rank() == 3, "the weights must have rank 3");
    cells.shown = projections.dim(1);
    cells.projections = fitting(e, projections, {cells.directions, cells.shown, cells.hidden}, "projections");
  }
  cells.r = fitting(e, r, {cells.directions, rows, cells.shown}, "recurrent weights");
  cells.bias = fitting(e, optionalTensor(operands, 3), {cells.directions, 2 * rows}, "biases");
  cells.clip = o.clip;
  if (Val lengths = optionalTensor(operands, 4)) {
    requireShape(lengths.rank() == 1 && mayEqual(lengths.extent(0), cells.batch),
                 "expected one sequence length a batch entry");
    bool full = lengths.isConstant();
    for (int64_t i = 0; full && i < lengths.numElements(); ++i)
      full = cells.time.is(lengths.constant().asInt(i));
    if (!full)
      cells.lengths = e.reshape(e.cast(lengths, DType::I64), {cells.batch, 1});
  }
  return cells;
}

/// One direction's entry of a [dirs, ...] tensor.
Val ofDirection(Emitter &e, const Val &value, int64_t d) {
  if (!value)
    return value;
  return e.reshape(e.sliceAxis(value, 0, d, 1), Dims(llvm::ArrayRef<Dim>(value.dims()).drop_front()));
}

/// A [dirs, batch, size] state at the start of a direction; zeros when absent.
Val initialState(Emitter &e, const Cells &cells, const Val &state, int64_t size, int64_t d) {
  if (!state)
    return e.splat(cells.x.dtype(), {cells.batch, size}, 0);
  Dims dims{cells.directions, cells.batch, size};
  if (!cells.batchFirst)
    return ofDirection(e, fitting(e, state, dims, "initial states"), d);
  std::swap(dims[0], dims[1]);
  return ofDirection(e, e.transpose(fitting(e, state, dims, "initial states"), {1, 0, 2}), d);
}

/// What one direction works with.
struct Direction {
  Val inputs;        ///< [time, batch, gates*h]: x W^T and the input bias for all
                     ///< steps at once
  Val recurrent;     ///< R^T, [h, gates*h]
  Val recurrentBias; ///< [gates*h] or null
  std::vector<Activation> activations;
};

Direction directionOf(Emitter &e, const Cells &cells, const std::vector<Activation> &activations, int64_t d) {
  int64_t rows = cells.gates * cells.hidden;
  Direction dir;
  Val flat = e.reshape(cells.x, {cells.batch * cells.time, cells.x.extent(2)});
  Val product = e.matmul(flat, e.transposeLast(ofDirection(e, cells.w, d)));
  if (Val bias = ofDirection(e, cells.bias, d)) {
    product = e.add(product, e.sliceAxis(bias, 0, 0, rows));
    dir.recurrentBias = e.sliceAxis(bias, 0, rows, rows);
  }
  dir.inputs = e.reshape(product, {cells.time, cells.batch, rows});
  dir.recurrent = e.transposeLast(ofDirection(e, cells.r, d));
  size_t count = activations.size() / cells.directions;
  dir.activations.assign(activations.begin() + d * count, activations.begin() + (d + 1) * count);
  return dir;
}

/// Runs a cell over time: `step(inputs of the step, states)` gives the new
/// states; the first one is the output.
using Step = std::function<std::vector<Val>(const Val &, const std::vector<Val> &)>;

struct Sequence {
  Val outputs;             ///< [time, batch, shown]
  std::vector<Val> finals; ///< [batch, shown], of an LSTM then [batch, h]
};

/// One step, number t: its output, then the new states. Beyond an entry's length the state is held and the output is 0.
std::vector<Val> runStep(Emitter &e, const Cells &cells, const Val &inputs, const Val &t, llvm::ArrayRef<Val> states,
                         const Step &step) {
  std::vector<Val> next = step(inputs, std::vector<Val>(states.begin(), states.end()));
  next.insert(next.begin(), next.front());
  if (!cells.lengths)
    return next;
  Val valid = e.compare(Compare::gt, cells.lengths, t);
  next[0] = e.select(valid, next[0], e.scalarLike(next[0], 0));
  for (size_t i = 1; i < next.size(); ++i)
    next[i] = e.select(valid, next[i], states[i - 1]);
  return next;
}

Sequence unrollDirection(Emitter &e, const Cells &cells, const Direction &dir, bool backward, std::vector<Val> states,
                         const Step &step) {
  int64_t time = *cells.time.known();
  std::vector<Val> outputs(time);
  for (int64_t k = 0; k < time; ++k) {
    int64_t t = backward ? time - 1 - k : k;
    Val inputs = e.reshape(e.sliceAxis(dir.inputs, 0, t, 1), {cells.batch, cells.gates * cells.hidden});
    std::vector<Val> next = runStep(e, cells, inputs, e.intScalar(DType::I64, t), states, step);
    outputs[t] = e.reshape(next.front(), {1, cells.batch, cells.shown});
    states.assign(next.begin() + 1, next.end());
  }
  Val all = outputs.empty() ? e.splat(cells.x.dtype(), {0, cells.batch, cells.shown}, 0) : e.concat(outputs, 0);
  return {all, std::move(states)};
}

Sequence loopDirection(Emitter &e, const Cells &cells, const Direction &dir, bool backward,
                       const std::vector<Val> &states, const Step &step) {
  auto body = [&](const Val &iteration, const Val &, llvm::ArrayRef<Val> carried) {
    Val t = backward ? e.sub(e.size(cells.time - 1), iteration) : iteration;
    std::vector<Val> next = runStep(e, cells, e.gather(dir.inputs, t, 0), t, carried, step);
    std::vector<Val> outputs{e.scalar(DType::Bool, 1)};
    outputs.insert(outputs.end(), next.begin() + 1, next.end());
    outputs.push_back(next.front());
    return outputs;
  };
  std::vector<Val> results = e.loop(e.size(cells.time), Val(), states, body);
  Val all = results.back();
  if (backward)
    all = e.sliceAxis(all, 0, cells.time - 1, cells.time, -1);
  results.pop_back();
  return {all, std::move(results)};
}

Sequence runDirection(Emitter &e, const Cells &cells, const Direction &dir, bool backward, std::vector<Val> states,
                      const Step &step) {
  bool few = cells.time.isStatic() && *cells.time.known() * cells.directions <= kMaxSteps;
  return few ? unrollDirection(e, cells, dir, backward, std::move(states), step)
             : loopDirection(e, cells, dir, backward, states, step);
}

/// Y [time, dirs, batch, h] and the final states [dirs, batch, h], in the
/// layout asked for.
std::vector<Val> resultsOf(Emitter &e, const Cells &cells, const std::vector<bool> &wanted,
                           const std::vector<Sequence> &sequences) {
  std::vector<Val> results(wanted.size()), outputs;
  for (const Sequence &sequence : sequences)
    outputs.push_back(e.reshape(sequence.outputs, {cells.time, 1, cells.batch, cells.shown}));
  if (wanted[0]) {
    Val y = e.concat(outputs, 1);
    results[0] = cells.batchFirst ? e.transpose(y, {2, 0, 1, 3}) : y;
  }
  for (size_t i = 0; i < sequences.front().finals.size(); ++i) {
    if (i + 1 >= wanted.size() || !wanted[i + 1])
      continue;
    std::vector<Val> states;
    for (const Sequence &sequence : sequences)
      states.push_back(e.reshape(sequence.finals[i], {1, cells.batch, i == 0 ? cells.shown : cells.hidden}));
    Val state = e.concat(states, 0);
    results[i + 1] = cells.batchFirst ? e.transpose(state, {1, 0, 2}) : state;
  }
  return results;
}

Val clipped(Emitter &e, const Val &x, double clip) {
  return clip > 0 ? e.min(e.max(x, e.scalarLike(x, -clip)), e.scalarLike(x, clip)) : x;
}

Val activate(Emitter &e, const Cells &cells, const Activation &activation, const Val &x) {
  return activationByName(e, activation.name, clipped(e, x, cells.clip), activation.alpha, activation.beta);
}

Val gate(Emitter &e, const Cells &cells, const Val &value, int64_t k) {
  return e.sliceAxis(value, value.rank() - 1, k * cells.hidden, cells.hidden);
}

/// h R^T with its bias.
Val recurrence(Emitter &e, const Direction &dir, const Val &h) {
  Val product = e.matmul(h, dir.recurrent);
  return dir.recurrentBias ? e.add(product, dir.recurrentBias) : product;
}

using MakeStep = std::function<Step(const Direction &, int64_t)>;

std::vector<Val> run(Emitter &e, const Cells &cells, const RecurrentOptions &o,
                     const std::vector<std::string> &defaults, const std::vector<Val> &initial,
                     const MakeStep &makeStep) {
  std::vector<Activation> activations = activationsOf(o, defaults, cells.directions);
  std::vector<Sequence> sequences;
  for (int64_t d = 0; d < cells.directions; ++d) {
    Direction dir = directionOf(e, cells, activations, d);
    std::vector<Val> states;
    for (const Val &state : initial)
      states.push_back(initialState(e, cells, state, states.empty() ? cells.shown : cells.hidden, d));
    Step step = makeStep(dir, d);
    sequences.push_back(runDirection(e, cells, dir, cells.backwardOnly || d == 1, std::move(states), step));
  }
  return resultsOf(e, cells, o.wanted, sequences);
}

} // namespace

std::vector<Val> rnn(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o) {
  Cells cells = cellsOf(e, operands, o, 1);
  return run(e, cells, o, {"Tanh"}, {optionalTensor(operands, 5)}, [&](const Direction &dir, int64_t) -> Step {
    return [&e, &cells, dir](const Val &x, const std::vector<Val> &states) -> std::vector<Val> {
      return {activate(e, cells, dir.activations[0], e.add(x, recurrence(e, dir, states[0])))};
    };
  });
}

/// Gates in the order z, r, h.
std::vector<Val> gru(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o) {
  Cells cells = cellsOf(e, operands, o, 3);
  bool linearFirst = o.linearBeforeReset;
  return run(e, cells, o, {"Sigmoid", "Tanh"}, {optionalTensor(operands, 5)},
             [&](const Direction &dir, int64_t) -> Step {
               return [&e, &cells, dir, linearFirst](const Val &x, const std::vector<Val> &states) -> std::vector<Val> {
                 const Val &h = states[0];
                 Val rec = recurrence(e, dir, h);
                 Val z = activate(e, cells, dir.activations[0], e.add(gate(e, cells, x, 0), gate(e, cells, rec, 0)));
                 Val r = activate(e, cells, dir.activations[0], e.add(gate(e, cells, x, 1), gate(e, cells, rec, 1)));
                 Val candidate;
                 if (linearFirst) {
                   candidate = e.mul(r, gate(e, cells, rec, 2));
                 } else {
                   candidate = e.matmul(e.mul(r, h), gate(e, cells, dir.recurrent, 2));
                   if (dir.recurrentBias)
                     candidate = e.add(candidate, gate(e, cells, dir.recurrentBias, 2));
                 }
                 candidate = activate(e, cells, dir.activations[1], e.add(gate(e, cells, x, 2), candidate));
                 // (1 - z) * candidate + z * h
                 return {e.add(candidate, e.mul(z, e.sub(h, candidate)))};
               };
             });
}

/// Gates in the order i, o, f, c; peepholes i, o, f.
std::vector<Val> lstm(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o) {
  Cells cells = cellsOf(e, operands, o, 4);
  bool coupled = o.coupled;
  Val peepholes = fitting(e, optionalTensor(operands, 7), {cells.directions, 3 * cells.hidden}, "peephole weights");
  std::vector<Val> initial{optionalTensor(operands, 5), optionalTensor(operands, 6)};
  return run(e, cells, o, {"Sigmoid", "Tanh", "Tanh"}, initial, [&](const Direction &dir, int64_t d) -> Step {
    Val peep = ofDirection(e, peepholes, d), projection = ofDirection(e, cells.projections, d);
    return [&e, &cells, dir, coupled, peep, projection](const Val &x,
                                                        const std::vector<Val> &states) -> std::vector<Val> {
      const Val &cell = states[1];
      Val sum = e.add(x, recurrence(e, dir, states[0]));
      auto gated = [&](int64_t k, int64_t peephole, const Val &seen) {
        Val value = gate(e, cells, sum, k);
        if (peep)
          value = e.add(value, e.mul(gate(e, cells, peep, peephole), seen));
        return activate(e, cells, dir.activations[0], value);
      };
      Val i = gated(0, 0, cell);
      Val f = coupled ? e.sub(e.scalarLike(i, 1), i) : gated(2, 2, cell);
      Val candidate = activate(e, cells, dir.activations[1], gate(e, cells, sum, 3));
      Val next = e.add(e.mul(f, cell), e.mul(i, candidate));
      Val o = gated(1, 1, next);
      Val shown = activationByName(e, dir.activations[2].name, next, dir.activations[2].alpha, dir.activations[2].beta);
      Val output = e.mul(o, shown);
      return {projection ? e.matmul(output, e.transposeLast(projection)) : output, next};
    };
  });
}

} // namespace dmxc::frontend
