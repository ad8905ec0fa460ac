//===- ComputeTest.cpp - products, windows, normalisations ----------------===//
#include "Cases.h"

namespace dmxc::reference::test {

namespace {

const Family
    products("MatMul",
             {
                 {"matmul", "", {"2x2x{T}: 1 2 0 1", "2x2x{T}: 1 0 1 2"}, {"2x2x{T}: 3 4 1 2"}, kNumbers},
                 {"matmul", "", {"2x3xi32: 1 2 3 4 5 6", "3x2xi32: 7 8 9 10 11 12"}, {"2x2xi32: 58 64 139 154"}},
                 {"matmul", "", {"5x1xi32: 1 2 3 4 5", "1x1xi32: -2"}, {"5x1xi32: -2 -4 -6 -8 -10"}},
                 {"matmul", "", {"1x2xi8: 100 100", "2x1xi8: 2 1"}, {"1x1xi8: 44"}},
                 {"matmul", "", {"2x1x2xf64: 1 2 3 4", "2x1xf64: 1 10"}, {"2x1x1xf64: 21 43"}},
                 {"matmul", "", {"2x1x1x2xi32: 1 2 3 4", "2x2x1xi32: 1 10 100 1000"}, {"2x2x1x1xi32: 21 2100 43 4300"}},
                 {"matmul", "", {"2x0xf32:", "0x2xf32:"}, {"2x2xf32: 0 0 0 0"}},
                 {"matmul", "", {"0x2xf32:", "2x2xf32: 1 2 3 4"}, {"0x2xf32:"}},
                 // 2^24 + 1 - 2^24 keeps its 1 only in a wide accumulator; inf * 0 is not skipped.
                 {"matmul", "", {"1x3xf32: 16777216 1 -16777216", "3x1xf32: 1 1 1"}, {"1x1xf32: 1"}},
                 {"matmul", "", {"1x3xf16: 2048 1 -2048", "3x1xf16: 1 1 1"}, {"1x1xf16: 1"}},
                 {"matmul", "", {"1x2xf32: 0 1", "2x1xf32: inf 1"}, {"1x1xf32: nan"}},
                 // Two rows of the first group, none of the second, one of the third, one of none.
                 {"grouped_matmul",
                  "",
                  {"4x2xf32: 1 2 3 4 5 6 7 8", "3x2x1xf32: 1 1 9 9 10 100", "3xi64: 2 1 3"},
                  {"4x1xf32: 3 7 650 0"}},
                 {"grouped_matmul", "", {"2x1xf16: 2 3", "1x1x2xf16: 1 -1", "1xi64: 9"}, {"2x2xf16: 2 -2 3 -3"}},
                 {"grouped_matmul", "", {"2x0xf64:", "1x0x1xf64:", "1xi64: 2"}, {"2x1xf64: 0 0"}},
             });

std::string window1(const std::string &stride, const std::string &dilation, const std::string &low,
                    const std::string &high) {
  return "strides = array<i64: " + stride + ">, dilations = array<i64: " + dilation + ">, low = array<i64: " + low +
         ">, high = array<i64: " + high + ">";
}
const std::string plain = window1("1", "1", "0", "0"), plain2 = window1("1, 1", "1, 1", "0, 0", "0, 0");

const Family convolutions(
    "Conv",
    {
        {"conv",
         plain,
         {"1x1x3x{T}: 1 2 1", "1x1x2x{T}: 1 2"},
         {"1x1x2x{T}: 5 4"},
         "i4 i8 i16 i32 i64 " + kUnsigned + " " + kWideFloats},
        {"conv", plain, {"1x1x3x{T}: 1 2 1", "1x1x2x{T}: 1 1"}, {"1x1x2x{T}: 3 3"}, kFloats},
        {"conv", window1("2", "1", "1", "1"), {"1x1x4xi32: 1 2 3 4", "1x1x3xi32: 1 10 100"}, {"1x1x2xi32: 210 432"}},
        {"conv", window1("1", "2", "2", "0"), {"1x1x3xi32: 1 2 3", "1x1x2xi32: 1 10"}, {"1x1x3xi32: 10 20 31"}},
        {"conv", window1("1", "1", "-1", "0"), {"1x1x3xi32: 1 2 3", "1x1x1xi32: 1"}, {"1x1x2xi32: 2 3"}},
        {"conv", window1("3", "1", "0", "-1"), {"1x1x4xi32: 1 2 3 4", "1x1x2xi32: 1 10"}, {"1x1x1xi32: 21"}},
        // Two input channels, two outputs, 2-d.
        {"conv",
         plain2,
         {"1x2x2x2xf32: 1 2 3 4 5 6 7 8", "2x2x1x1xf32: 1 0 10 100"},
         {"1x2x2x2xf32: 1 2 3 4 510 620 730 840"}},
        {"conv", plain2, {"1x1x3x3xi64: 1 2 3 4 5 6 7 8 9", "1x1x2x2xi64: 1 0 0 1"}, {"1x1x2x2xi64: 6 8 12 14"}},
        {"conv",
         window1("1, 1", "1, 1", "1, 1", "1, 1"),
         {"1x1x2x2xf64: 1 2 3 4", "1x1x3x3xf64: 1 1 1 1 1 1 1 1 1"},
         {"1x1x2x2xf64: 10 10 10 10"}},
        // Groups: each output sees its own input channel.
        {"conv", plain + ", groups = 2", {"1x2x2xi32: 1 2 3 4", "2x1x1xi32: 10 100"}, {"1x2x2xi32: 10 20 300 400"}},
        {"conv",
         plain + ", groups = 2",
         {"2x2x1xi32: 1 2 3 4", "4x1x1xi32: 1 10 100 1000"},
         {"2x4x1xi32: 1 10 200 2000 3 30 400 4000"}},
        // Three spatial axes.
        {"conv",
         window1("1, 1, 1", "1, 1, 1", "0, 0, 0", "0, 0, 0"),
         {"1x1x2x2x2xi32: 1 2 3 4 5 6 7 8", "1x1x2x1x2xi32: 1 0 0 1"},
         {"1x1x1x2x1xi32: 7 11"}},
        {"conv", plain, {"1x1x1xi8: 100", "1x1x1xi8: 2"}, {"1x1x1xi8: -56"}},
        {"conv", plain, {"0x1x2xf32:", "1x1x1xf32: 1"}, {"0x1x2xf32:"}},
    });

const std::string two = "window = array<i64: 2>, ceilExtra = array<i64: 0>, ",
                  three = "window = array<i64: 3>, ceilExtra = array<i64: 0>, ";
const std::string twoByTwo = "window = array<i64: 2, 2>, ceilExtra = array<i64: 0, 0>, ";
const std::string stride2 = window1("2, 2", "1, 1", "0, 0", "0, 0");

const Family pools(
    "Pool",
    {
        {"pool max", two + plain, {"1x1x3x{T}: 1 3 2"}, {"1x1x2x{T}: 3 3"}, kNumbers},
        {"pool sum", two + plain, {"1x1x3x{T}: 1 3 1"}, {"1x1x2x{T}: 4 4"}, kNumbers},
        {"pool average", two + plain, {"1x1x3x{T}: 1 3 1"}, {"1x1x2x{T}: 2 2"}, kNumbers},
        {"pool max", twoByTwo + stride2, {"1x1x2x4xi32: 1 2 3 4 8 7 6 5"}, {"1x1x1x2xi32: 8 6"}},
        {"pool max",
         three + window1("1", "1", "1", "1"),
         {"1x2x3xi8: -1 -2 -3 -4 -5 -6"},
         {"1x2x3xi8: -1 -1 -2 -4 -4 -5"}},
        {"pool max", two + window1("1", "2", "0", "0"), {"1x1x4xf32: 1 5 2 0"}, {"1x1x2xf32: 2 5"}},
        {"pool max", two + plain, {"1x1x3xf32: 1 nan 2"}, {"1x1x2xf32: nan nan"}},
        {"pool max",
         "window = array<i64: 1>, ceilExtra = array<i64: 0>, " + window1("1", "1", "1", "0"),
         {"1x1x1xi4: 3"},
         {"1x1x2xi4: -8 3"}},
        {"pool max",
         "window = array<i64: 1>, ceilExtra = array<i64: 0>, " + window1("1", "1", "1", "0"),
         {"1x1x1xf32: 3"},
         {"1x1x2xf32: -inf 3"}},
        {"pool average", three + window1("1", "1", "1", "1"), {"1x1x3xf32: 2 4 6"}, {"1x1x3xf32: 3 4 5"}},
        {"pool average",
         three + window1("1", "1", "1", "1") + ", countPadding = true",
         {"1x1x3xf32: 3 6 9"},
         {"1x1x3xf32: 3 6 5"}},
        // A ceil mode lets the last window reach one past the padded input: that position does not count.
        {"pool average",
         "window = array<i64: 2>, ceilExtra = array<i64: 1>, " + window1("2", "1", "0", "1") + ", countPadding = true",
         {"1x1x3xf32: 2 4 6"},
         {"1x1x2xf32: 3 6"}},
        {"pool average",
         "window = array<i64: 2>, ceilExtra = array<i64: 0>, " + window1("2", "1", "0", "1") + ", countPadding = true",
         {"1x1x3xf32: 2 4 6"},
         {"1x1x2xf32: 3 3"}},
        {"pool average", two + plain, {"1x1x3xi32: -1 -2 -4"}, {"1x1x2xi32: -1 -3"}},
        {"pool average",
         "window = array<i64: 1>, ceilExtra = array<i64: 0>, " + window1("1", "1", "1", "0"),
         {"1x1x1xf32: 3"},
         {"1x1x2xf32: nan 3"}},
        {"pool average", twoByTwo + stride2, {"1x1x2x2xf64: 1 2 3 5"}, {"1x1x1x1xf64: 2.75"}},
        // A window far larger than the input sees each element once.
        {"pool average",
         "window = array<i64: 100000, 100000>, ceilExtra = array<i64: 0, 0>, " +
             window1("1, 1", "1, 1", "99999, 50000", "0, 49998"),
         {"1x1x1x2xf32: 1 2"},
         {"1x1x1x1xf32: 1.5"}},
        {"pool sum",
         "window = array<i64: 100000, 100000>, ceilExtra = array<i64: 0, 0>, " +
             window1("1, 1", "1, 1", "99999, 50000", "0, 49998"),
         {"1x1x1x2xi8: 1 2"},
         {"1x1x1x1xi8: 3"}},
        {"pool sum", two + window1("1", "1", "1", "0"), {"1x1x2xi8: 100 100"}, {"1x1x2xi8: 100 -56"}},
        {"arg_max_pool", "window = array<i64: 2>, " + plain, {"1x1x4x{T}: 1 3 3 2"}, {"1x1x3xi64: 1 1 2"}, kNumbers},
        {"arg_max_pool",
         "window = array<i64: 2, 2>, " + stride2,
         {"1x2x2x4xi32: 1 2 3 4 8 7 6 5 1 2 3 4 8 7 6 5"},
         {"1x2x1x2xi64: 4 6 12 14"}},
        {"arg_max_pool",
         "window = array<i64: 2, 2>, " + stride2 + ", columnMajor = true",
         {"1x2x2x4xi32: 1 2 3 4 8 7 6 5 1 2 3 4 8 7 6 5"},
         {"1x2x1x2xi64: 1 5 9 13"}},
        {"arg_max_pool",
         "window = array<i64: 2>, " + window1("1", "1", "1", "0"),
         {"1x1x3xf32: -5 nan nan"},
         {"1x1x3xi64: 0 1 1"}},
        {"arg_max_pool",
         "window = array<i64: 1>, " + window1("1", "1", "1", "0"),
         {"1x1x1xf32: 3"},
         {"1x1x2xi64: -1 0"}},
    });

const Family softmaxes("Softmax", {
                                      {"softmax", "axis = 0", {"2x{T}: 3 3"}, {"2x{T}: 0.5 0.5"}, kFloats},
                                      {"softmax",
                                       "axis = 0",
                                       {"3xf32: 0 1 2"},
                                       {"3xf32: 0.09003057317038046 0.24472847105479767 0.6652409557748219"}},
                                      {"softmax",
                                       "axis = 0",
                                       {"3xf64: 0 1 2"},
                                       {"3xf64: 0.09003057317038046 0.24472847105479767 0.6652409557748219"},
                                       "",
                                       1e-15},
                                      {"softmax",
                                       "axis = 0",
                                       {"3x{T}: 0 1 2"},
                                       {"3x{T}: 0.09003057317038046 0.24472847105479767 0.6652409557748219"},
                                       "f16 bf16 f8E5M2"},
                                      {"softmax", "axis = 0", {"2xf32: 10000 10000"}, {"2xf32: 0.5 0.5"}},
                                      {"softmax", "axis = 0", {"2x2xf32: 0 1 0 1"}, {"2x2xf32: 0.5 0.5 0.5 0.5"}},
                                      {"softmax", "axis = 1", {"2x2xf32: 0 -inf 5 5"}, {"2x2xf32: 1 0 0.5 0.5"}},
                                      {"softmax", "axis = 0", {"2xf32: -inf -inf"}, {"2xf32: nan nan"}},
                                      {"softmax", "axis = 0", {"2xf32: nan 1"}, {"2xf32: nan nan"}},
                                      {"softmax",
                                       "axis = 0, log = true",
                                       {"3xf32: 0 1 2"},
                                       {"3xf32: -2.4076059644443806 -1.4076059644443806 -0.4076059644443805"}},
                                      {"softmax", "axis = 0, log = true", {"2xf64: -1000 0"}, {"2xf64: -1000 0"}},
                                      {"softmax", "axis = 0", {"0x2xf32:"}, {"0x2xf32:"}},
                                  });

const Family normalisations(
    "Normalize",
    {
        {"normalize standard", "axes = array<i64: 0>, epsilon = 0.0 : f64", {"2x{T}: 1 3"}, {"2x{T}: -1 1"}, kFloats},
        {"normalize rms", "axes = array<i64: 0>, epsilon = 0.0 : f64", {"2x{T}: 2 -2"}, {"2x{T}: 1 -1"}, kFloats},
        {"normalize standard",
         "axes = array<i64: 1>, epsilon = 0.0 : f64",
         {"2x2xf32: 1 3 10 30"},
         {"2x2xf32: -1 1 -1 1"}},
        {"normalize standard",
         "axes = array<i64: 0, 1>, epsilon = 5.0 : f64",
         {"2x2xf32: 0 2 4 6"},
         {"2x2xf32: -0x1.e5b9d2p-1 -0x1.43d136p-2 0x1.43d136p-2 0x1.e5b9d2p-1"}},
        {"normalize rms",
         "axes = array<i64: 0>, epsilon = 12.0 : f64",
         {"2x2xf64: 2 6 2 6"},
         {"2x2xf64: 0.5 0x1.bb67ae8584caap-1 0.5 0x1.bb67ae8584caap-1"},
         "",
         1e-15},
        {"normalize standard", "axes = array<i64: 0>, epsilon = 1.0 : f64", {"2xf32: 7 7"}, {"2xf32: 0 0"}},
        {"normalize standard", "axes = array<i64>, epsilon = 1.0 : f64", {"2xf32: 7 -7"}, {"2xf32: 0 0"}},
        {"normalize rms", "axes = array<i64: 1>, epsilon = 0.0 : f64", {"2x0xf32:"}, {"2x0xf32:"}},
    });

} // namespace

} // namespace dmxc::reference::test
