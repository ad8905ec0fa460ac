//===- FamilyRegionTest.cpp - random cases of operators' families -------------===//
//
// Shapes that are drawn, extents 0 and 1 among them, of operators whose kernels take several ways by shape. A plain run
// takes one of so many cases, the long one all.
//
//===----------------------------------------------------------------------===//

#include "tests/Sample.h"
#include "tests/unit/TargetsCommon/RegionHarness.h"

#include <gtest/gtest.h>

#include <random>

using namespace dmxc::kernels::test;

namespace {

constexpr int kCases = 400;

class Draw {
public:
  explicit Draw(unsigned seed) : random(seed) {}
  int64_t upTo(int64_t most) { return std::uniform_int_distribution<int64_t>(0, most)(random); }
  int64_t of(std::initializer_list<int64_t> values) { return values.begin()[upTo(values.size() - 1)]; }
  /// An extent: often small, now and then 0 or 1.
  int64_t extent(int64_t most) {
    return upTo(9) == 0 ? upTo(1) : 1 + upTo(upTo(1) ? most - 1 : std::min<int64_t>(most - 1, 20));
  }
  std::string type(std::initializer_list<const char *> types) { return types.begin()[upTo(types.size() - 1)]; }

private:
  std::mt19937 random;
};

std::string tensor(std::initializer_list<int64_t> shape, const std::string &type) {
  std::string text = "tensor<";
  for (int64_t dim : shape)
    text += std::to_string(dim) + "x";
  return text + type + ">";
}

/// Cases that `make` writes, a function each, of which a plain run takes one of `share`.
void expectFamily(uint64_t share, const std::function<std::string(Draw &, const std::string &name)> &make) {
  dmxc::sampling::Sample sample(share);
  std::string text;
  for (int i = 0; i < kCases; ++i) {
    Draw draw(i);
    std::string one = make(draw, "case_" + std::to_string(i));
    if (sample.takesNext())
      text += one;
  }
  expectAgree(text, 1);
}

TEST(FamilyRegion, FewRowsByAMatrixOfTheRun) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t batch = draw.of({1, 1, 3}), m = draw.upTo(5), k = draw.extent(300), n = draw.extent(300);
    std::string type = draw.type({"f32", "f32", "f16", "f64", "i32", "ui8"});
    std::string a = tensor({batch, m, k}, type), b = tensor({batch, k, n}, type), r = tensor({batch, m, n}, type);
    bool exact = type[0] != 'f';
    return "func.func @" + name + "(%a: " + a + ", %b: " + b + ") -> " + r +
           (exact ? "" : " attributes {ulp = 4.0, abs = 2.0e-4}") + " {\n  %r = dmir.matmul %a, %b : (" + a + ", " + b +
           ") -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

TEST(FamilyRegion, OneRowByATransposedMatrixOfTheRun) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t batch = draw.of({0, 1, 1, 3}), m = draw.of({1, 1, 1, 2}),
            k = draw.upTo(3) ? 16 * draw.upTo(20) : draw.extent(300), n = draw.extent(100);
    std::string type = draw.type({"f32", "f32", "f32", "f16", "f64", "i32"});
    std::string a = tensor({batch, m, k}, type), b = tensor({batch, n, k}, type), t = tensor({batch, k, n}, type),
                r = tensor({batch, m, n}, type);
    return "func.func @" + name + "(%a: " + a + ", %b: " + b + ") -> " + r +
           (type[0] == 'f' ? " attributes {ulp = 4.0, abs = 2.0e-4}" : "") +
           " {\n  %t = dmir.transpose %b {permutation = array<i64: 0, 2, 1>} : (" + b + ") -> " + t +
           "\n  %r = dmir.matmul %a, %t : (" + a + ", " + t + ") -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

TEST(FamilyRegion, TopK) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t lines = draw.of({1, 1, 2, 5}), axis = draw.upTo(1),
            n = draw.upTo(2) ? draw.extent(600) : 512 + draw.upTo(3000);
    int64_t k = draw.upTo(2) ? draw.upTo(n) : std::min<int64_t>(n, 1 + draw.upTo(8));
    std::string type = draw.type({"f32", "f32", "f16", "f64", "i32", "i8", "ui8", "i64"}),
                more = draw.upTo(1) ? " {test.lo = -6, test.hi = 6}" : "";
    std::string a = axis ? tensor({lines, n}, type) : tensor({n, lines}, type);
    std::string v = axis ? tensor({lines, k}, type) : tensor({k, lines}, type),
                i = axis ? tensor({lines, k}, "i64") : tensor({k, lines}, "i64");
    return "func.func @" + name + "(%a: " + a + (type == "ui8" ? "" : more) + ") -> (" + v + ", " + i +
           ") attributes {specials} {\n  %v, %i = dmir.top_k %a {k = " + std::to_string(k) +
           " : i64, axis = " + std::to_string(axis) + " : i64, largest = " + (draw.upTo(1) ? "true" : "false") +
           "} : (" + a + ") -> (" + v + ", " + i + ")\n  return %v, %i : " + v + ", " + i + "\n}\n";
  });
}

TEST(FamilyRegion, ReductionsOverOuterAxes) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t outer = draw.of({1, 1, 2}), lines = draw.upTo(2) ? 128 + draw.upTo(40) : draw.extent(300);
    int64_t rows = draw.upTo(2) ? 64 + draw.upTo(1200) : draw.extent(100);
    std::string kind = draw.type({"sum", "mean", "max", "min"});
    std::string type = draw.type({"f32", "f32", "f16", "f64", "i32", "i8", "ui8"});
    if (!lines && kind != "sum") // of nothing the interpreter has no extreme
      lines = 1;
    std::string a = tensor({outer, lines, rows}, type), r = tensor({outer, rows}, type);
    return "func.func @" + name + "(%a: " + a + ") -> " + r +
           " attributes {ulp = 8.0, abs = 2.0e-5} {\n  %r = dmir.reduce " + kind +
           " %a {axes = array<i64: 1>, keepDims = false} : (" + a + ") -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

/// Of rows that lie in memory as they are computed with, and of others: narrow types, and what is fused before them.
TEST(FamilyRegion, Softmaxes) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t axis = draw.upTo(2), shape[3];
    for (int64_t &size : shape)
      size = draw.of({1, 2, 7});
    shape[draw.upTo(2)] = draw.extent(60);
    shape[axis] = draw.upTo(2) ? draw.extent(400) : 1 + draw.upTo(1500);
    std::string type = draw.type({"f32", "f32", "f32", "f64", "f16", "bf16"}), log = draw.upTo(1) ? "true" : "false";
    std::string a = tensor({shape[0], shape[1], shape[2]}, type), from = "%a", last = "%r", text;
    if (draw.upTo(2) == 0) {
      text += "  %s = dmir.neg %a : (" + a + ") -> " + a + "\n";
      from = "%s";
    }
    text += "  %r = dmir.softmax " + from + " {axis = " + std::to_string(axis) + " : i64, log = " + log + "} : (" + a +
            ") -> " + a + "\n";
    if (draw.upTo(2) == 0) {
      text += "  %t = dmir.neg %r : (" + a + ") -> " + a + "\n";
      last = "%t";
    }
    // Differences of up to 16 are rounded before their powers are taken, and logarithms cancel near 0. Of f64 the
    // interpreter has no wider type: it adds up to 1500 powers one after the other, with an error of its own.
    std::string bound = log == "true" ? "ulp = 60.0, abs = 4.0e-6" : type == "f64" ? "ulp = 64.0" : "ulp = 16.0";
    return "func.func @" + name + "(%a: " + a + ") -> " + a + " attributes {" + (draw.upTo(2) ? "" : "specials, ") +
           bound + "} {\n" + text + "  return " + last + " : " + a + "\n}\n";
  });
}

TEST(FamilyRegion, Transposes) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t n = draw.of({1, 2, 3}), h = draw.extent(90), w = draw.extent(90), c = draw.of({1, 3, 16, 40});
    std::string type = draw.type({"f32", "f32", "f16", "bf16", "f64", "i32", "i8", "i1"});
    int64_t way = draw.upTo(3);
    if (way == 3)
      h = draw.of({2, 3, 4, 8, 16});
    std::string a = tensor({n, h, w, c}, type);
    std::string r = way == 0   ? tensor({n, w, h, c}, type)
                    : way == 1 ? tensor({n, c, h, w}, type)
                    : way == 3 ? tensor({n, w, c, h}, type)
                               : tensor({n, h, c, w}, type);
    std::string order = way == 0 ? "0, 2, 1, 3" : way == 1 ? "0, 3, 1, 2" : way == 3 ? "0, 2, 3, 1" : "0, 1, 3, 2";
    std::string more = type[0] == 'f' && draw.upTo(1) ? "  %s = dmir.neg %r : (" + r + ") -> " + r + "\n" : "";
    return "func.func @" + name + "(%a: " + a + ") -> " + r +
           " {\n  %r = dmir.transpose %a {permutation = array<i64: " + order + ">} : (" + a + ") -> " + r + "\n" +
           more + "  return " + (more.empty() ? "%r" : "%s") + " : " + r + "\n}\n";
  });
}

TEST(FamilyRegion, RelayoutsToBlocks) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t n = draw.of({0, 1, 1, 3}), c = draw.of({1, 16, 20, 32, 48}), h = draw.extent(20), w = draw.extent(60);
    std::string type = draw.type({"f32", "f32", "f16", "bf16", "f64", "i32", "i8", "i1"});
    std::string a = tensor({n, c, h, w}, type), r = tensor({n, c, h, w}, type + ", #dmir.blocked<1, 16>"),
                text = "func.func @" + name + "(%a: " + a + ") -> " + r + " {\n", from = "%a";
    if (type[0] == 'f' && draw.upTo(1)) {
      text += "  %s = dmir.neg %a : (" + a + ") -> " + a + "\n";
      from = "%s";
    }
    return text + "  %r = dmir.relayout " + from + " : (" + a + ") -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

/// As transposed convolutions have them: channels of a phase or phases of a channel beside each other, which become
/// positions, of which some are cut off.
TEST(FamilyRegion, PhasesThatTakeTurns) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t n = draw.of({0, 1, 1, 2}), o = draw.of({1, 3, 16, 16, 32, 48}), h = draw.extent(6), w = draw.extent(24),
            sh = draw.of({1, 2, 2, 3}), sw = draw.of({1, 2, 2, 2, 3, 4, 8});
    bool first = draw.upTo(2), blocked = draw.upTo(2);
    std::string type = draw.type({"f32", "f32", "f32", "f16", "f64", "i8"}),
                plain = tensor({n, o * sh * sw, h, w}, type),
                a = tensor({n, o * sh * sw, h, w}, type + (blocked ? ", #dmir.blocked<1, 16>" : "")),
                phases = first ? tensor({n, sh, sw, o, h, w}, type) : tensor({n, o, sh, sw, h, w}, type),
                turns = tensor({n, o, h, sh, w, sw}, type), r = tensor({n, o, h * sh, w * sw}, type), from = "%a", text;
    if (blocked) {
      text = "  %p = dmir.relayout %a : (" + a + ") -> " + plain + "\n";
      from = "%p";
    }
    text += "  %s = dmir.reshape " + from + " : (" + plain + ") -> " + phases +
            "\n  %t = dmir.transpose %s {permutation = array<i64: 0, " + (first ? "3, 4, 1, 5, 2" : "1, 4, 2, 5, 3") +
            ">} : (" + phases + ") -> " + turns + "\n  %j = dmir.reshape %t : (" + turns + ") -> " + r + "\n";
    std::string last = "%j", cut = r;
    if (draw.upTo(2) && h && w) {
      int64_t top = draw.upTo(sh - 1), left = draw.upTo(sw - 1), rows = h * sh - top - draw.upTo(sh - 1),
              columns = w * sw - left - draw.upTo(sw - 1);
      if (rows > 0 && columns > 0) {
        auto list = [](int64_t x, int64_t y, int64_t z, int64_t u) {
          return "array<i64: " + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ", " +
                 std::to_string(u) + ">";
        };
        cut = tensor({n, o, rows, columns}, type);
        text += "  %c = dmir.slice %j {starts = " + list(0, 0, top, left) + ", sizes = " + list(n, o, rows, columns) +
                ", steps = " + list(1, 1, 1, 1) + "} : (" + r + ") -> " + cut + "\n";
        last = "%c";
      }
    }
    return "func.func @" + name + "(%a: " + a + ") -> " + cut + " {\n" + text + "  return " + last + " : " + cut +
           "\n}\n";
  });
}

TEST(FamilyRegion, Pads) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t c = draw.of({1, 2, 5}), h = 1 + draw.upTo(20), w = 1 + draw.upTo(draw.upTo(1) ? 100 : 20);
    std::string mode = draw.type({"edge", "reflect", "constant", "wrap"}),
                type = draw.type({"f32", "f32", "f16", "i8", "i64"});
    auto most = [&](int64_t size) {
      return mode == "reflect" ? std::min<int64_t>(size - 1, 9) : mode == "wrap" ? std::min<int64_t>(size, 9) : 9;
    };
    int64_t low[] = {draw.upTo(most(h)), draw.upTo(most(w))}, high[] = {draw.upTo(most(h)), draw.upTo(most(w))};
    std::string a = tensor({c, h, w}, type), r = tensor({c, h + low[0] + high[0], w + low[1] + high[1]}, type);
    auto ofPlane = [](const int64_t *sizes) {
      return "array<i64: 0, " + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ">";
    };
    return "func.func @" + name + "(%a: " + a + ", %v: tensor<" + type + ">) -> " + r +
           " {\n  %r = dmir.pad %a, %v {low = " + ofPlane(low) + ", high = " + ofPlane(high) +
           ", interior = array<i64: 0, 0, 0>, mode = #dmir<pad_mode " + mode + ">} : (" + a + ", tensor<" + type +
           ">) -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

/// Two numbers of an axis each, as an attribute.
std::string ofImage(const std::string &name, const int64_t *numbers) {
  return name + " = array<i64: " + std::to_string(numbers[0]) + ", " + std::to_string(numbers[1]) + ">";
}

TEST(FamilyRegion, Pools) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    bool isMax = draw.upTo(1), isBlocked = draw.upTo(2) == 0;
    int64_t n = draw.of({0, 1, 1, 2}), c = draw.of({1, 3, 20}), in[2], out[2], window[2], strides[2], dilations[2],
            low[2], high[2], extra[2] = {0, 0};
    for (int axis = 0; axis < 2; ++axis) {
      window[axis] = 1 + draw.upTo(draw.upTo(3) ? 8 : 14), strides[axis] = draw.of({1, 1, 1, 2, 3}),
      dilations[axis] = draw.of({1, 1, 1, 2});
      const int64_t reach = (window[axis] - 1) * dilations[axis];
      low[axis] = draw.upTo(reach), high[axis] = draw.upTo(reach);
      in[axis] = std::max<int64_t>(draw.extent(axis ? 60 : 20), reach + 1 - low[axis] - high[axis]);
      if (high[axis])
        extra[axis] = draw.upTo(std::min(high[axis], strides[axis] - 1));
      out[axis] = (in[axis] + low[axis] + high[axis] - reach - 1) / strides[axis] + 1;
    }
    // Of zeros of both signs either one is the largest.
    std::string type = draw.type({"f32", "f32", "f32", "f16", "f64", "i32", "i8", "ui8"}),
                bound = isMax ? "specials, abs = 1.0e-300" : "ulp = 4.0, abs = 1.0e-5",
                layout = isBlocked ? ", #dmir.blocked<1, 16>" : "";
    std::string a = tensor({n, c, in[0], in[1]}, type + layout), r = tensor({n, c, out[0], out[1]}, type + layout);
    return "func.func @" + name + "(%a: " + a + ") -> " + r + " attributes {" + bound + "} {\n  %r = dmir.pool " +
           (isMax ? "max" : "average") + " %a {" + ofImage("window", window) + ", " + ofImage("strides", strides) +
           ", " + ofImage("dilations", dilations) + ", " + ofImage("low", low) + ", " + ofImage("high", high) + ", " +
           ofImage("ceilExtra", extra) + ", countPadding = " + (draw.upTo(1) ? "true" : "false") + "} : (" + a +
           ") -> " + r + "\n  return %r : " + r + "\n}\n";
  });
}

/// Indices as nearest neighbours have them: each position `run` times, or one of `step`.
std::string indices(int64_t first, int64_t step, int64_t run, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ", " : "") + std::to_string(first + i / run * step);
  return "dmir.constant dense<[" + text + "]> : " + tensor({count}, "i64") + "\n";
}

TEST(FamilyRegion, ResizesToNearest) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t n = draw.of({0, 1, 1, 2}), c = draw.of({1, 3, 20}), in[2], out[2];
    std::string type = draw.type({"f32", "f32", "f32", "f16", "f64", "i8", "i64"}), constants,
                layout = draw.upTo(3) ? "" : ", #dmir.blocked<1, 16>";
    for (int axis = 0; axis < 2; ++axis) {
      int64_t run = draw.of({1, 2, 2, 2, 3, 4, 8}), step = run == 1 ? draw.of({0, 1, 2, 3}) : 1,
              first = draw.of({0, 0, 1});
      out[axis] = 2 + draw.upTo(axis ? 90 : 12);
      in[axis] = first + (out[axis] - 1) / run * step + 1 + draw.upTo(1);
      constants += "  %i" + std::to_string(axis) + " = " + indices(first, step, run, out[axis]);
    }
    std::string i[] = {tensor({out[0]}, "i64"), tensor({out[1]}, "i64")},
                a = tensor({n, c, in[0], in[1]}, type + layout), m = tensor({n, c, out[0], in[1]}, type + layout),
                r = tensor({n, c, out[0], out[1]}, type + layout);
    bool more = draw.upTo(1), pads = layout.empty() && draw.upTo(2) == 0;
    std::string p = pads ? tensor({n, c, out[0], out[1] + 3}, type) : r;
    std::string text = "func.func @" + name + "(%a: " + a + ", %b: " + p + ", %v: " + tensor({}, type) + ") -> " + p +
                       " {\n" + constants + "  %h = dmir.gather %a, %i0 {axis = 2 : i64} : (" + a + ", " + i[0] +
                       ") -> " + m + "\n  %r = dmir.gather %h, %i1 {axis = 3 : i64} : (" + m + ", " + i[1] + ") -> " +
                       r + "\n";
    if (pads)
      text += "  %p = dmir.pad %r, %v {low = array<i64: 0, 0, 0, 1>, high = array<i64: 0, 0, 0, 2>, interior = "
              "array<i64: 0, 0, 0, 0>, "
              "mode = #dmir<pad_mode constant>} : (" +
              r + ", " + tensor({}, type) + ") -> " + p + "\n";
    std::string last = pads ? "%p" : "%r";
    if (more)
      text += "  %s = dmir.add " + last + ", %b : (" + p + ", " + p + ") -> " + p + "\n";
    return text + "  return " + (more ? "%s" : last) + " : " + p + "\n}\n";
  });
}

TEST(FamilyRegion, GreedySelections) {
  expectFamily(40, [](Draw &draw, const std::string &name) {
    int64_t rows = draw.of({0, 1, 1, 3}), n = draw.extent(150), range = draw.of({2, 9, 60});
    std::string type = draw.type({"f32", "i32", "f64", "i64", "i8"}), most = std::to_string(draw.of({0, 3, 200})),
                c = tensor({rows, n}, "i1"), x = tensor({rows, n, 1}, type), y = tensor({rows, 1, n}, type),
                e = tensor({rows, n, n}, "i1"), least = " {test.lo = 0, test.hi = " + std::to_string(range) + "}";
    std::string whole =
        "(%c: " + c + ", %e: " + e + ", %l: tensor<i64> {test.lo = " + most + ", test.hi = 201}) -> " + c + " {\n";
    std::string near = "(%c: " + c + ", %a: " + x + least + ", %b: " + y + least +
                       ", %l: tensor<i64> {test.lo = " + most + ", test.hi = 201}) -> " + c +
                       " {\n  %e = dmir.compare eq %a, %b : (" + x + ", " + y + ") -> " + e + "\n";
    return "func.func @" + name + (draw.upTo(2) ? near : whole) + "  %r = dmir.greedy_select %c, %e, %l : (" + c +
           ", " + e + ", tensor<i64>) -> " + c + "\n  return %r : " + c + "\n}\n";
  });
}

} // namespace
