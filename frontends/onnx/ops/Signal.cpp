//===- Signal.cpp ===//
#include "../NodeContext.h"
namespace dmxc::onnxfe { std::vector<OpRows> signalOps() { return {}; } }
