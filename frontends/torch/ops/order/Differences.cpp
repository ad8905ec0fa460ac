//===- Differences.cpp - slopes and areas along axes ----------------------===//
#include "../Math.h"

#include "frontends/common/ops/Order.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

//===--- Areas ------------------------------------------------------------------------===//

/// Areas under lines between neighbouring points at distances of dx or at x, in y's place along the axis.
Val panels(AtenContext &c, const Val &y, int64_t axis) {
  Emitter &e = c.e;
  auto steps = [&](const Val &v, int64_t along, bool sum) {
    Dim rest = Dim::max(v.extent(along) - 1, 0);
    Val later = e.sliceAxis(v, along, v.extent(along) - rest, rest), before = e.sliceAxis(v, along, 0, rest);
    return sum ? e.add(later, before) : e.sub(later, before);
  };
  Val heights = steps(y, axis, true), widths;
  if (!c.given("x")) {
    widths = c.like(y, c.number("dx"));
  } else {
    Val x = c.cast(c.tensor("x"), y.dtype());
    if (x.rank() == 1)
      x = alongAxis(e, x, axis, y.rank());
    c.requireShape(x.rank() == y.rank(), "x is a line or has the axes of y");
    widths = steps(x, axis, false);
  }
  return e.mul(e.mul(heights, widths), 0.5);
}
template <bool cumulative> void importTrapezoid(AtenContext &c) {
  Val given = c.asFloat(c.tensor("y"));
  if (c.given("x"))
    given = promote(c, {{given, false}, {c.tensor("x"), false}})[0];
  Val y = c.wide(given);
  int64_t axis = c.axis("dim", y.rank());
  Val areas = panels(c, y, axis);
  c.result(c.cast(cumulative ? cumulativeSum(c.e, areas, axis) : sumOver(c.e, areas, {axis}, false), given.dtype()));
}

//===--- Slopes -----------------------------------------------------------------------===//

/// Slopes along an axis. The distances of neighbours are `step` or lie along the axis.
class Slopes {
public:
  Slopes(Emitter &e, const Val &x, int64_t axis, double step, Val steps)
      : e(e), x(x), axis(axis), count(x.extent(axis)), step(step), steps(std::move(steps)) {}

  Val all(int64_t edgeOrder) {
    Val inner = steps ? weighted(0, count - 2, [&](const Val &p, const Val &q) { return inside(p, q); })
                      : e.mul(e.sub(at(2, count - 2), at(0, count - 2)), 0.5 / step);
    return e.concat(
        {edgeOrder == 1 ? straight(0) : bent(0), inner, edgeOrder == 1 ? straight(count - 2) : bent(count - 3)}, axis);
  }

private:
  struct Weights {
    Val before, here, after;
  };
  Val at(Dim start, Dim size) { return e.sliceAxis(x, axis, start, size); }
  Val between(Dim start, Dim size) { return steps ? e.sliceAxis(steps, axis, start, size) : e.scalarLike(x, step); }
  template <typename Rule> Val weighted(Dim start, Dim size, Rule rule) {
    Weights w = rule(between(start, size), between(start + 1, size));
    Val sum = e.add(e.mul(w.before, at(start, size)), e.mul(w.here, at(start + 1, size)));
    return e.add(sum, e.mul(w.after, at(start + 2, size)));
  }
  /// The parabola's slope at the middle of three points at distances p and q, ..
  Weights inside(const Val &p, const Val &q) {
    Val both = e.add(p, q);
    return {negOf(e, e.div(q, e.mul(p, both))), e.div(e.sub(q, p), e.mul(p, q)), e.div(p, e.mul(q, both))};
  }
  /// .. at the first of them.
  Weights first(const Val &p, const Val &q) {
    Val both = e.add(p, q);
    return {negOf(e, e.div(e.add(both, p), e.mul(p, both))), e.div(both, e.mul(p, q)),
            negOf(e, e.div(p, e.mul(q, both)))};
  }
  Val straight(Dim start) { return e.div(e.sub(at(start + 1, 1), at(start, 1)), between(start, 1)); }
  Val bent(Dim start) {
    return weighted(start, 1, [&](const Val &p, const Val &q) {
      if (start.is(0))
        return first(p, q);
      Weights mirrored = first(q, p);
      return Weights{negOf(e, mirrored.after), negOf(e, mirrored.here), negOf(e, mirrored.before)};
    });
  }

  Emitter &e;
  Val x;
  int64_t axis;
  Dim count;
  double step;
  Val steps;
};

/// The differences of neighbours along a line, as an axis of a tensor.
Val distancesOf(AtenContext &c, const Val &points, const Val &x, int64_t axis) {
  c.requireShape(points.rank() == 1 && mayEqual(points.extent(0), x.extent(axis)),
                 "the points of an axis are a line of its length");
  Val line = c.cast(points, x.dtype());
  Dim rest = points.extent(0) - 1;
  return alongAxis(c.e, c.e.sub(c.e.sliceAxis(line, 0, 1, rest), c.e.sliceAxis(line, 0, 0, rest)), axis, x.rank());
}

void importGradient(AtenContext &c) {
  const Arg &spacing = c.arg("spacing");
  std::vector<Operand> operands{{c.asFloat(c.tensor("self")), false}};
  for (const Val &points : spacing.tensors)
    operands.push_back({points, false});
  Val given = promote(c, operands)[0], x = c.wide(given);
  std::vector<int64_t> axes = c.given("dim") ? c.integers("dim") : axesFrom(0, x.rank());
  int64_t edgeOrder = c.integer("edge_order");
  c.require(edgeOrder == 1 || edgeOrder == 2, "edge_order is 1 or 2");
  std::vector<double> steps = spacing.numbers;
  for (Dim step : spacing.ints)
    steps.push_back(static_cast<double>(step.valueOr(0)));
  const size_t lines = spacing.kind == Arg::Kind::Tensor ? spacing.tensors.size() : 0;
  if (steps.empty())
    steps.push_back(1);
  if (steps.size() == 1)
    steps.resize(axes.size(), steps[0]);
  c.require(steps.size() == axes.size() && (lines == 0 || lines == axes.size()), "there is one spacing an axis");
  std::vector<Val> results;
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = AtenContext::normalizeAxis(axes[i], x.rank());
    c.requireShape(x.rank() > 0 && x.extent(axis).valueOr(INT64_MAX) > edgeOrder,
                   "an axis needs more elements than edge_order");
    Slopes slopes(c.e, x, axis, steps[i], lines ? distancesOf(c, spacing.tensors[i], x, axis) : Val());
    results.push_back(c.cast(slopes.all(edgeOrder), given.dtype()));
  }
  c.result(results);
}

} // namespace

std::vector<AtenRow> differenceOps() {
#define EDGES ", int edge_order=1) -> Tensor[]"
  return {
      {"trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", importTrapezoid<false>},
      {"trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", importTrapezoid<false>},
      {"cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", importTrapezoid<true>},
      {"cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", importTrapezoid<true>},
      {"gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None" EDGES, importGradient},
      {"gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim" EDGES, importGradient},
      {"gradient.array(Tensor self, *, int[] dim" EDGES, importGradient},
      {"gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None" EDGES, importGradient},
      {"gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim" EDGES, importGradient},
      {"gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None" EDGES, importGradient},
      {"gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim" EDGES, importGradient},
  };
#undef EDGES
}

} // namespace dmxc::torchfe
