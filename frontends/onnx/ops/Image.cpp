//===- Image.cpp ===//
#include "../NodeContext.h"
namespace dmxc::onnxfe { std::vector<OpRows> imageOps() { return {}; } }
