//===- Logic.cpp - comparisons, logic, bits and selection -----------------===//
#include "Elementwise.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {
namespace {

template <typename OpTy> void binary(NodeContext &c) {
  auto [a, b] = broadcastOperands(c);
  c.result(c.e.emit<OpTy>({a, b}));
}
template <Compare kind> void comparison(NodeContext &c) {
  auto [a, b] = broadcastOperands(c);
  c.result(c.e.compare(kind, a, b));
}
void importNot(NodeContext &c) { c.result(c.e.emit<NotOp>({c.operand(0)})); }
void importIsNaN(NodeContext &c) { c.result(c.e.emit<IsNaNOp>({c.operand(0)})); }

void importIsInf(NodeContext &c) {
  Val x = c.operand(0);
  bool negative = c.attrInt("detect_negative", 1) != 0, positive = c.attrInt("detect_positive", 1) != 0;
  Val infinite = c.e.emit<IsInfOp>({x});
  if (negative && positive)
    return c.result(infinite);
  if (!negative && !positive)
    return c.result(c.e.splat(DType::Bool, x.dims(), 0));
  Val side = c.e.compare(positive ? Compare::gt : Compare::lt, x, c.e.scalarLike(x, 0));
  c.result(c.e.emit<AndOp>({infinite, side}));
}

void importBitShift(NodeContext &c) {
  std::string direction = c.attrString("direction");
  c.requireAttr(direction == "LEFT" || direction == "RIGHT",
                "direction must be 'LEFT' or 'RIGHT', not '" + direction + "'");
  Val a = c.operand(0), b = c.operand(1);
  c.result(direction == "LEFT" ? c.e.emit<ShlOp>({a, b}) : c.e.emit<ShrOp>({a, b}));
}

void importWhere(NodeContext &c) {
  c.requireShape(c.operand(0).dtype() == DType::Bool, "the condition must be bool");
  c.result(c.e.select(c.operand(0), c.operand(1), c.operand(2)));
}

} // namespace

std::vector<OpRows> logicOps() {
  using namespace types;
  const char *legacy = "axis,broadcast";
  return {
      {"And", {1}, "TT>1", binary<AndOp>, legacy, {Bool}},
      {"And", {7}, "TT>1", binary<AndOp>, "", {Bool}},
      {"Or", {1}, "TT>1", binary<OrOp>, legacy, {Bool}},
      {"Or", {7}, "TT>1", binary<OrOp>, "", {Bool}},
      {"Xor", {1}, "TT>1", binary<XorOp>, legacy, {Bool}},
      {"Xor", {7}, "TT>1", binary<XorOp>, "", {Bool}},
      {"Not", {1}, ".>1", importNot, "", {Bool}},
      {"BitwiseAnd", {18}, "TT>1", binary<AndOp>, "", {Int}},
      {"BitwiseOr", {18}, "TT>1", binary<OrOp>, "", {Int}},
      {"BitwiseXor", {18}, "TT>1", binary<XorOp>, "", {Int}},
      {"BitwiseNot", {18}, ".>1", importNot, "", {Int}},
      {"BitShift", {11}, "TT>1", importBitShift, "direction", {Unsigned}},
      {"Equal", {1}, "TT>1", comparison<Compare::eq>, legacy, {Bool | Number}},
      {"Equal", {7, 11, 13, 19}, "TT>1", comparison<Compare::eq>, "", {Bool | Number}},
      {"Greater", {1}, "TT>1", comparison<Compare::gt>, legacy, {Number}},
      {"Greater", {7, 9, 13}, "TT>1", comparison<Compare::gt>, "", {Number}},
      {"Less", {1}, "TT>1", comparison<Compare::lt>, legacy, {Number}},
      {"Less", {7, 9, 13}, "TT>1", comparison<Compare::lt>, "", {Number}},
      {"GreaterOrEqual", {12, 16}, "TT>1", comparison<Compare::ge>, "", {Number}},
      {"LessOrEqual", {12, 16}, "TT>1", comparison<Compare::le>, "", {Number}},
      {"IsNaN", {9, 13, 20}, ".>1", importIsNaN, "", {Float | Narrow}},
      {"IsInf", {10, 20}, ".>1", importIsInf, "detect_negative,detect_positive", {Float | Narrow}},
      {"Where", {9, 16}, ".TT>1", importWhere, "", {Bool, Any}},
  };
}

} // namespace dmxc::onnxfe
