//===- Recurrent.cpp - RNN, GRU and LSTM ----------------------------------===//
#include "frontends/common/ops/Recurrent.h"
#include "../Differences.h"
#include "../NodeContext.h"

namespace dmxc::onnxfe {
namespace {

using Layer = std::vector<Val> (*)(Emitter &, llvm::ArrayRef<Val>, const RecurrentOptions &);

/// onnx.reference leaves these attributes and the lengths out.
void noteReadings(NodeContext &c, const RecurrentOptions &o) {
  auto isUsual = [&](const std::string &name) { return name == "Sigmoid" || name == "Tanh"; };
  if (c.has(4))
    c.noteDifference("recurrent-lengths");
  if (o.clip > 0)
    c.noteDifference("recurrent-clip");
  if (o.activations && !llvm::all_of(*o.activations, isUsual))
    c.noteDifference("recurrent-activations");
  if (o.coupled)
    c.noteDifference("lstm-input-forget");
}

template <Layer layer> void importLayer(NodeContext &c) {
  RecurrentOptions o;
  o.batchFirst = c.attrInt("layout", 0) != 0;
  o.direction = c.attrString("direction", "forward");
  if (c.hasAttr("hidden_size"))
    o.hiddenSize = c.attrInt("hidden_size");
  o.clip = c.attrFloat("clip", 0);
  o.linearBeforeReset = c.attrInt("linear_before_reset", 0) != 0;
  o.coupled = c.attrInt("input_forget", 0) != 0;
  o.activations = c.attrStrings("activations");
  o.alphas = c.attrFloats("activation_alpha").value_or(std::vector<double>());
  o.betas = c.attrFloats("activation_beta").value_or(std::vector<double>());
  o.wanted = {c.wants(0), c.wants(1), c.wants(2)};
  noteReadings(c, o);
  std::vector<Val> results = layer(c.e, c.allOperands(), o);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i])
      c.result(i, results[i]);
}

} // namespace

std::vector<OpRows> recurrentOps() {
  using namespace types;
  std::vector<TypeSet> set{Float, Float, Float, Float, Int, Float, Float, Float};
  return {
      {"RNN",
       {1},
       "TTTT.T>2",
       importLayer<rnn>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,output_sequence",
       set},
      {"RNN",
       {7},
       "TTTT.T>2",
       importLayer<rnn>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size",
       set},
      {"RNN",
       {14, 22},
       "TTTT.T>2",
       importLayer<rnn>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,layout",
       set},
      {"GRU",
       {1},
       "TTTT.T>2",
       importLayer<gru>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,output_sequence",
       set},
      {"GRU",
       {3},
       "TTTT.T>2",
       importLayer<gru>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,linear_before_reset,output_sequence",
       set},
      {"GRU",
       {7},
       "TTTT.T>2",
       importLayer<gru>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,linear_before_reset",
       set},
      {"GRU",
       {14, 22},
       "TTTT.T>2",
       importLayer<gru>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,layout,linear_before_reset",
       set},
      {"LSTM",
       {1},
       "TTTT.TTT>3",
       importLayer<lstm>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,input_forget,output_sequence",
       set},
      {"LSTM",
       {7},
       "TTTT.TTT>3",
       importLayer<lstm>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,input_forget",
       set},
      {"LSTM",
       {14, 22},
       "TTTT.TTT>3",
       importLayer<lstm>,
       "activation_alpha,activation_beta,activations,clip,direction,hidden_"
       "size,input_forget,layout",
       set},
  };
}

std::vector<Difference> recurrentDifferences() {
  return {
      {"recurrent-lengths", "LSTM, GRU, RNN", "sequence_lens", "ignored", "each sequence ends at its length", "",
       "each sequence ends at its length", "the reference does not have it", "", true},
      {"recurrent-clip", "LSTM, GRU, RNN", "clip", "ignored", "clipped", "", "clipped",
       "the reference does not have it", "", true},
      {"recurrent-activations", "LSTM, GRU, RNN", "activations other than the usual ones", "ignored, or fails",
       "as they are named", "", "as they are named", "the reference does not have it", "", true},
      {"lstm-input-forget", "LSTM", "input_forget", "ignored", "coupled", "", "coupled",
       "the reference does not have it", "", true},
  };
}

} // namespace dmxc::onnxfe
