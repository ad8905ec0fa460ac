//===- Functions.cpp - activations that are written out -------------------===//
//
// Exporters write gelu as eight ops and softplus as four, each in another order and with other constants. What such a
// formula is decides what it gives: it is computed at some places and compared with the functions of DMIR.
//
//===----------------------------------------------------------------------===//
#include "Functions.h"

#include "Quantised.h"

#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace dmxc;

namespace {

constexpr size_t kMostOps = 14; // of a formula: gelu by tanh with a cube of two products has ten
constexpr double kPlaces[] = {-30, -12.5, -6,  -3.7, -3,  -2.2, -1.3, -0.9, -0.5, -0.1, -1e-3, 0,  1e-3, 0.05,
                              0.3, 0.7,   1.0, 1.7,  2.5, 3.1,  4,    5.5,  8,    15,   19.5,  21, 40};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

struct Function {
  double (*exact)(double);
  Operation *(*create)(OpBuilder &, Location, Value);
};

template <typename OpTy> Operation *createOp(OpBuilder &b, Location loc, Value x) { return OpTy::create(b, loc, x); }

const Function kFunctions[] = {
    {[](double x) { return x * sigmoid(x); }, createOp<dmir::SiluOp>},
    {[](double x) { return x / 2 * std::erfc(-x * std::numbers::sqrt2 / 2); }, createOp<dmir::GeluOp>},
    {[](double x) { return x * sigmoid(2 * std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x)); },
     createOp<dmir::GeluTanhOp>},
    {[](double x) { return x * std::clamp(x + 3, 0.0, 6.0) / 6; }, createOp<dmir::HardSwishOp>},
    {softplus, createOp<dmir::SoftplusOp>},
    {[](double x) { return 1 / std::sqrt(x); }, createOp<dmir::RsqrtOp>},
};

/// An op of numbers at one place each; nullopt for ops that no formula has.
std::optional<double> computed(Operation *op, ArrayRef<double> x) {
  using Answer = std::optional<double>;
  return llvm::TypeSwitch<Operation *, Answer>(op)
      .Case<dmir::AddOp>([&](auto) { return x[0] + x[1]; })
      .Case<dmir::SubOp>([&](auto) { return x[0] - x[1]; })
      .Case<dmir::MulOp>([&](auto) { return x[0] * x[1]; })
      .Case<dmir::DivOp>([&](auto) { return x[0] / x[1]; })
      .Case<dmir::PowOp>([&](auto) { return std::pow(x[0], x[1]); })
      .Case<dmir::MaxOp>([&](auto) { return std::max(x[0], x[1]); })
      .Case<dmir::MinOp>([&](auto) { return std::min(x[0], x[1]); })
      .Case<dmir::NegOp>([&](auto) { return -x[0]; })
      .Case<dmir::AbsOp>([&](auto) { return std::abs(x[0]); })
      .Case<dmir::ReluOp>([&](auto) { return std::max(x[0], 0.0); })
      .Case<dmir::SqrtOp>([&](auto) { return std::sqrt(x[0]); })
      .Case<dmir::ReciprocalOp>([&](auto) { return 1 / x[0]; })
      .Case<dmir::ExpOp>([&](auto) { return std::exp(x[0]); })
      .Case<dmir::Expm1Op>([&](auto) { return std::expm1(x[0]); })
      .Case<dmir::LogOp>([&](auto) { return std::log(x[0]); })
      .Case<dmir::Log1pOp>([&](auto) { return std::log1p(x[0]); })
      .Case<dmir::TanhOp>([&](auto) { return std::tanh(x[0]); })
      .Case<dmir::ErfOp>([&](auto) { return std::erf(x[0]); })
      .Case<dmir::SigmoidOp>([&](auto) { return sigmoid(x[0]); })
      .Case<dmir::SoftplusOp>([&](auto) { return softplus(x[0]); })
      .Case<dmir::SelectOp>([&](auto) { return x[0] != 0 ? x[1] : x[2]; })
      .Case([&](dmir::CompareOp compare) {
        const bool below = x[0] < x[1], equal = x[0] == x[1];
        const bool answers[] = {equal, !equal, below, below || equal, !below && !equal, !below};
        return static_cast<double>(answers[static_cast<int>(compare.getKind())]);
      })
      .Default([](Operation *) -> Answer { return std::nullopt; });
}

bool isOfFormulas(Operation *op) {
  constexpr double none[] = {0, 0, 0};
  return op && op->getNumResults() == 1 && computed(op, none);
}

/// The ops between a value and what is computed from it alone, besides numbers.
class Formula {
public:
  explicit Formula(Operation *root) : type(root->getResult(0).getType()) { take(root); }

  /// Goes back to the next value of which the root is a function; null where there is none.
  Value next() {
    while (sound && ops.size() <= kMostOps && !open.empty()) {
      if (open.size() == 1 && !tried.contains(open.front()) && open.front().getType() == type) {
        tried.insert(open.front());
        return open.front();
      }
      // The last that is computed: all else may be needed for it.
      Operation *last = nullptr;
      for (Value value : open)
        if (Operation *op = value.getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
          last = op;
      const bool inBlock = last && last->getBlock() == root()->getBlock();
      if (!inBlock || !isOfFormulas(last))
        return {};
      llvm::erase(open, last->getResult(0));
      take(last);
    }
    return {};
  }

  /// The root where the value is x; nullopt if that is no number.
  double at(Value value, double x) const {
    llvm::DenseMap<Value, double> known = numbers;
    known[value] = x;
    for (Operation *op : llvm::reverse(ops)) {
      std::array<double, 3> operands{}; // no op of formulas has more
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        operands[i] = known.lookup(operand);
      known[op->getResult(0)] = computed(op, operands).value_or(0);
    }
    return known.lookup(root()->getResult(0));
  }

private:
  Operation *root() const { return ops.front(); }

  void take(Operation *op) {
    ops.push_back(op);
    for (Value operand : op->getOperands())
      if (std::optional<double> number = quantised::evaluateNumber(operand))
        numbers[operand] = *number;
      else if (!llvm::is_contained(open, operand) && !llvm::is_contained(ops, operand.getDefiningOp()))
        open.push_back(operand);
    // Shapes that broadcast make another function of each element.
    Type result = op->getResult(0).getType();
    sound &= result == type || elementOf(op->getResult(0)).isInteger(1);
  }

  Type type;
  SmallVector<Operation *> ops; ///< each after those that read it
  SmallVector<Value> open;
  llvm::DenseSet<Value> tried;
  llvm::DenseMap<Value, double> numbers;
  bool sound = true;
};

bool isAlike(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= 1e-6 + 1e-5 * std::abs(b);
}

} // namespace

Operation *dmxc::createFunction(OpBuilder &builder, Operation *op) {
  if (!isOfFormulas(op) || !isa<FloatType>(elementOf(op->getResult(0))))
    return nullptr;
  Formula formula(op);
  while (Value x = formula.next())
    for (const Function &function : kFunctions)
      if (llvm::all_of(kPlaces, [&](double at) { return isAlike(formula.at(x, at), function.exact(at)); }))
        return function.create(builder, op->getLoc(), x);
  return nullptr;
}
