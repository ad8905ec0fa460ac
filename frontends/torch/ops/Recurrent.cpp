//===- Recurrent.cpp - LSTM, GRU and plain recurrent networks -------------===//
#include "frontends/common/ops/Recurrent.h"
#include "Math.h"

#include "frontends/common/ops/Product.h"

namespace dmxc::torchfe {
namespace {

/// Blocks of rows, one a gate, in another order.
Val reordered(Emitter &e, const Val &x, const std::vector<int64_t> &order) {
  Dim size = Dim::floorDiv(x.extent(0), static_cast<int64_t>(order.size()));
  std::vector<Val> parts;
  for (int64_t gate : order)
    parts.push_back(e.sliceAxis(x, 0, size * gate, size));
  return e.concat(parts, 0);
}

/// What a layer's directions have, together.
struct LayerParameters {
  Val w, r, b, projections; ///< the last two null where there are none
};
/// Of `params`: for each direction two matrices, two vectors if `biases`, and a projection where there is one.
LayerParameters parametersOf(Emitter &e, llvm::ArrayRef<Val> params, int64_t directions, bool biases,
                             const std::vector<int64_t> &gates) {
  const size_t each = params.size() / directions, plain = biases ? 4 : 2;
  std::vector<Val> w, r, b, projections;
  auto ordered = [&](size_t at) { return reordered(e, params[at], gates); };
  for (size_t at = 0; at < params.size(); at += each) {
    w.push_back(unsqueeze(e, ordered(at), 0));
    r.push_back(unsqueeze(e, ordered(at + 1), 0));
    if (biases)
      b.push_back(unsqueeze(e, e.concat({ordered(at + 2), ordered(at + 3)}, 0), 0));
    if (each > plain)
      projections.push_back(unsqueeze(e, params[at + plain], 0));
  }
  auto together = [&](const std::vector<Val> &values) { return values.empty() ? Val() : e.concat(values, 0); };
  return {together(w), together(r), together(b), together(projections)};
}

using Layer = std::vector<Val> (*)(Emitter &, llvm::ArrayRef<Val>, const RecurrentOptions &);

/// A network of layers. `gates`: torch's places of those that the layer has, in its order. `activation`: of a cell
/// without gates.
void importRecurrent(AtenContext &c, Layer compute, const std::vector<int64_t> &gates,
                     const char *activation = nullptr) {
  bool isLstm = compute == lstm;
  Emitter &e = c.e;
  Val x = c.tensor("input");
  std::vector<Val> params = c.tensors("params"), states = isLstm ? c.tensors("hx") : std::vector<Val>{c.tensor("hx")};
  bool biases = c.flag("has_biases"), both = c.flag("bidirectional"), batchFirst = c.flag("batch_first");
  int64_t layers = c.integer("num_layers"), directions = both ? 2 : 1;
  size_t plain = biases ? 4 : 2, each = plain;
  // An LSTM's states differ in size where each direction has a matrix that projects its output.
  if (isLstm && states.size() == 2 && states[0].rank() == 3 && states[1].rank() == 3)
    each += states[0].extent(2) != states[1].extent(2);
  c.require(!c.flag("train") || c.number("dropout") == 0,
            "dropout between layers is random; export the model in eval mode");
  c.require(layers > 0 && params.size() == each * layers * directions && states.size() == (isLstm ? 2u : 1u),
            "the parameters do not fit the layers");
  c.requireShape(x.rank() == 3, "expected [sequence, batch, features]");
  for (size_t i = 0; i < params.size(); ++i)
    c.requireShape(params[i].rank() == (i % each < 2 || i % each == plain ? 2 : 1),
                   "the parameters must be matrices and vectors");
  for (const Val &state : states)
    c.requireShape(state.rank() == 3, "the states must have rank 3");
  if (batchFirst)
    x = e.transpose(x, {1, 0, 2});
  std::vector<Val> hidden, cells;
  for (int64_t layer = 0; layer < layers; ++layer) {
    LayerParameters p = parametersOf(e, llvm::ArrayRef<Val>(params).slice(each * directions * layer, each * directions),
                                     directions, biases, gates);
    auto initial = [&](const Val &all) { return e.sliceAxis(all, 0, layer * directions, directions); };
    RecurrentOptions o;
    o.hiddenSize = (p.projections ? p.projections : p.r).dim(2);
    o.direction = both ? "bidirectional" : "forward";
    o.linearBeforeReset = true;
    if (activation)
      o.activations.emplace(directions, activation);
    std::vector<Val> operands{x, p.w, p.r, p.b, Val(), initial(states[0])};
    if (isLstm)
      operands.insert(operands.end(), {initial(states[1]), Val(), p.projections});
    std::vector<Val> results = compute(e, operands, o);
    Val y = e.transpose(results[0], {0, 2, 1, 3}); // [sequence, directions, batch, hidden]
    x = e.reshape(y, {y.extent(0), y.extent(1), y.extent(2) * y.extent(3)});
    hidden.push_back(results[1]);
    if (isLstm)
      cells.push_back(results[2]);
  }
  c.result(0, batchFirst ? e.transpose(x, {1, 0, 2}) : x);
  c.result(1, e.concat(hidden, 0));
  if (isLstm)
    c.result(2, e.concat(cells, 0));
}
void importLstm(AtenContext &c) { importRecurrent(c, lstm, {0, 3, 1, 2}); } // i f g o there, i o f c here
void importGru(AtenContext &c) { importRecurrent(c, gru, {1, 0, 2}); }      // r z n there, z r h here
void importTanh(AtenContext &c) { importRecurrent(c, rnn, {0}, "Tanh"); }
void importRelu(AtenContext &c) { importRecurrent(c, rnn, {0}, "Relu"); }

//===--- One step ------------------------------------------------------------------------===//

/// x w^T + b with its gates apart.
std::vector<Val> gatesOf(AtenContext &c, const Val &x, const char *weight, const char *bias, int64_t gates) {
  Val w = c.tensor(weight);
  c.requireShape(w.rank() == 2 && x.rank() >= 1, "the weights must be matrices");
  Val y = numpyMatMul(c.e, x, c.e.transposeLast(w));
  if (Val b = c.optional(bias))
    y = c.e.add(y, b);
  std::optional<Dim> size = Dim::divideExactly(y.extent(-1), gates);
  c.requireShape(size.has_value(), "the weights do not divide into " + std::to_string(gates) + " gates");
  std::vector<Val> parts;
  for (int64_t i = 0; i < gates; ++i)
    parts.push_back(c.e.sliceAxis(y, y.rank() - 1, *size * i, *size));
  return parts;
}
void importLstmCell(AtenContext &c) {
  Emitter &e = c.e;
  std::vector<Val> states = c.tensors("hx");
  c.require(states.size() == 2, "an LSTM cell has two states");
  std::vector<Val> x = gatesOf(c, c.tensor("input"), "w_ih", "b_ih", 4), h = gatesOf(c, states[0], "w_hh", "b_hh", 4);
  auto gate = [&](int i) { return e.add(x[i], h[i]); };
  Val in = sigmoid(e, gate(0)), forget = sigmoid(e, gate(1)), value = tanhOf(e, gate(2)), out = sigmoid(e, gate(3));
  Val cell = e.add(e.mul(forget, states[1]), e.mul(in, value));
  c.result(0, e.mul(out, tanhOf(e, cell)));
  c.result(1, cell);
}
void importGruCell(AtenContext &c) {
  Emitter &e = c.e;
  Val state = c.tensor("hx");
  std::vector<Val> x = gatesOf(c, c.tensor("input"), "w_ih", "b_ih", 3), h = gatesOf(c, state, "w_hh", "b_hh", 3);
  Val reset = sigmoid(e, e.add(x[0], h[0])), update = sigmoid(e, e.add(x[1], h[1]));
  Val next = tanhOf(e, e.add(x[2], e.mul(reset, h[2])));
  c.result(e.add(next, e.mul(update, e.sub(state, next))));
}
template <bool relu> void importPlainCell(AtenContext &c) {
  Val x = gatesOf(c, c.tensor("input"), "w_ih", "b_ih", 1)[0], h = gatesOf(c, c.tensor("hx"), "w_hh", "b_hh", 1)[0];
  Val sum = c.e.add(x, h);
  c.result(relu ? c.e.emit<dmir::ReluOp>({sum}) : tanhOf(c.e, sum));
}

} // namespace

std::vector<AtenRow> recurrentOps() {
#define LAYERS                                                                                                         \
  "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
#define CELL "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
  return {
      {"lstm.input(Tensor input, Tensor[] hx, " LAYERS ") -> (Tensor, Tensor, Tensor)", importLstm},
      {"gru.input(Tensor input, Tensor hx, " LAYERS ") -> (Tensor, Tensor)", importGru},
      {"rnn_tanh.input(Tensor input, Tensor hx, " LAYERS ") -> (Tensor, Tensor)", importTanh},
      {"rnn_relu.input(Tensor input, Tensor hx, " LAYERS ") -> (Tensor, Tensor)", importRelu},
      {"lstm_cell(Tensor input, Tensor[] hx, " CELL ") -> (Tensor, Tensor)", importLstmCell},
      {"gru_cell(Tensor input, Tensor hx, " CELL ") -> Tensor", importGruCell},
      {"rnn_tanh_cell(Tensor input, Tensor hx, " CELL ") -> Tensor", importPlainCell<false>},
      {"rnn_relu_cell(Tensor input, Tensor hx, " CELL ") -> Tensor", importPlainCell<true>},
  };
#undef CELL
#undef LAYERS
}

} // namespace dmxc::torchfe
