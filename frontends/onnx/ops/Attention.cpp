//===- Attention.cpp ===//
#include "../NodeContext.h"
namespace dmxc::onnxfe { std::vector<OpRows> attentionOps() { return {}; } }
