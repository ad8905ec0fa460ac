//===- Recurrent.cpp - RNN, GRU and LSTM ----------------------------------===//
#include "frontends/common/ops/Recurrent.h"
#include "../NodeContext.h"

namespace dmxc::onnxfe {
namespace {

using Layer = std::vector<Val> (*)(Emitter &, llvm::ArrayRef<Val>, const RecurrentOptions &);

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

} // namespace dmxc::onnxfe
