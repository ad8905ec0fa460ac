//===- Recurrent.cpp - recurrences of com.microsoft -----------------------===//
#include "../ops/LinearAttention.h"
#include "Families.h"

namespace dmxc::onnxfe {
namespace {

/// What goes with one provider of ONNX Runtime alone must be as it is where it is left out.
void importConv(NodeContext &c) {
  for (auto [name, otherwise] : {std::pair("state_update_capacity", 0),
                                 {"state_channels_last", -1},
                                 {"state_length", 0},
                                 {"input_channel_offset", 0},
                                 {"input_channels", 0}})
    if (c.attrInt(name, otherwise) != otherwise)
      fail("op-unsupported", std::string(name) + " is for CUDA alone and not supported",
           {"export the model without it; it is " + std::to_string(otherwise) + " then"});
  int64_t axes = c.attrInt("ndim", 1);
  c.requireAttr(axes >= 1 && axes <= 3, "ndim must be 1, 2 or 3");
  if (axes != 1)
    fail("op-unsupported",
         "ndim=" + std::to_string(axes) +
             " is not supported; its definition does not say how the axes "
             "that are not causal are padded",
         {"export the model with Conv in its place"});
  importCausalConv(c);
}

void importLinear(NodeContext &c) { importLinearAttention(c, true); }

} // namespace

std::vector<OpRows> contribRecurrentOps() {
  return {
      {"CausalConvWithState",
       {1},
       "TTTT>3",
       importConv,
       "activation,channels_last,dilation,input_channel_offset,input_channels,ndim,state_channels_last,state_length,"
       "state_update_capacity,state_window",
       {kContribFloat},
       "one causal axis (ndim=1)",
       kMicrosoft},
      {"LinearAttention",
       {1},
       "TTT.TT>2",
       importLinear,
       "chunk_size,kv_num_heads,q_num_heads,scale,state_window,update_rule",
       {kContribFloat},
       "",
       kMicrosoft},
  };
}

} // namespace dmxc::onnxfe
