//===- ReduceTest.cpp - reductions, scans, selections ---------------------===//
#include "Cases.h"

namespace dmxc::reference::test {

namespace {

const std::string all1 = "axes = array<i64: 0>", drop1 = all1 + ", keepDims = false";

const Family reductions(
    "Reduce",
    {
        {"greedy_select", "", {"1x3xi1: 1 1 1", "1x3x3xi1: 0 1 0 0 0 1 0 0 0", "i64: 9"}, {"1x3xi1: 1 0 1"}},
        {"greedy_select", "", {"2x2xi1: 1 1 0 1", "2x2x2xi1: 0 0 0 0 0 1 0 0", "i64: 1"}, {"2x2xi1: 1 0 0 1"}},
        {"reduce sum", drop1, {"3x{T}: 1 2 3"}, {"{T}: 6"}, kNumbers},
        {"reduce mean", drop1, {"3x{T}: 1 2 3"}, {"{T}: 2"}, kNumbers},
        {"reduce prod", drop1, {"3x{T}: 1 2 3"}, {"{T}: 6"}, kNumbers},
        {"reduce max", drop1, {"3x{T}: 1 3 2"}, {"{T}: 3"}, kNumbers},
        {"reduce min", drop1, {"3x{T}: 2 1 3"}, {"{T}: 1"}, kNumbers},
        {"reduce sum", all1, {"2xi1: 1 1"}, {"1xi1: 1"}},
        {"reduce prod", all1, {"2xi1: 1 0"}, {"1xi1: 0"}},
        {"reduce mean", all1, {"2xi1: 1 0"}, {"1xi1: 0"}},
        {"reduce max", all1, {"2xi1: 1 0"}, {"1xi1: 1"}},
        {"reduce min", all1, {"2xi1: 1 0"}, {"1xi1: 0"}},
        {"reduce sum", "axes = array<i64: 1>", {"2x3xi32: 1 2 3 4 5 6"}, {"2x1xi32: 6 15"}},
        {"reduce sum", "axes = array<i64: 0>", {"2x3xi32: 1 2 3 4 5 6"}, {"1x3xi32: 5 7 9"}},
        {"reduce sum", "axes = array<i64: 0, 2>, keepDims = false", {"2x2x2xf32: 1 2 3 4 5 6 7 8"}, {"2xf32: 14 22"}},
        {"reduce max", "axes = array<i64: 1>, keepDims = false", {"2x2x2xi8: 1 -2 3 4 -5 6 7 -8"}, {"2x2xi8: 3 4 7 6"}},
        {"reduce sum", "axes = array<i64>", {"2xf32: 1 -0"}, {"2xf32: 1 0"}},
        {"reduce sum", drop1, {"2xi8: 100 100"}, {"i8: -56"}},
        {"reduce mean", drop1, {"2xi8: 100 101"}, {"i8: 100"}},
        {"reduce mean", drop1, {"2xi32: -1 -2"}, {"i32: -1"}},
        {"reduce mean", drop1, {"2xui64: 4 7"}, {"ui64: 5"}},
        // The order of partial sums does not show: 2^24 + 1 + 1, and f16 sums past 2048.
        {"reduce sum", drop1, {"3xf32: 16777216 1 1"}, {"f32: 16777218"}},
        {"reduce sum", drop1, {"4xf16: 2048 1 1 1"}, {"f16: 2052"}},
        {"reduce mean", drop1, {"2xf16: 65504 65504"}, {"f16: 65504"}},
        {"reduce sum", drop1, {"3xf32: inf 1 -inf"}, {"f32: nan"}},
        {"reduce max", drop1, {"3x{T}: 1 nan 2"}, {"{T}: nan"}, kWideFloats},
        {"reduce min", drop1, {"3x{T}: 1 nan 2"}, {"{T}: nan"}, kWideFloats},
        {"reduce max", drop1, {"2xf32: -0 0"}, {"f32: 0"}},
        {"reduce max", drop1, {"2xui64: 18446744073709551615 1"}, {"ui64: 18446744073709551615"}},
        // Empty reductions.
        {"reduce sum", drop1, {"0x{T}:"}, {"{T}: 0"}, kNumbers},
        {"reduce prod", drop1, {"0x{T}:"}, {"{T}: 1"}, kNumbers},
        {"reduce mean", drop1, {"0x{T}:"}, {"{T}: nan"}, kWideFloats},
        {"reduce mean", drop1, {"0x{T}:"}, {"{T}: 0"}, kInts},
        {"reduce max", drop1, {"0x{T}:"}, {"{T}: -inf"}, kWideFloats},
        {"reduce min", drop1, {"0x{T}:"}, {"{T}: inf"}, kWideFloats},
        {"reduce max", drop1, {"0xi4:"}, {"i4: -8"}},
        {"reduce min", drop1, {"0xi4:"}, {"i4: 7"}},
        {"reduce min", drop1, {"0xui4:"}, {"ui4: 15"}},
        {"reduce max", drop1, {"0xi32:"}, {"i32: -2147483648"}},
        {"reduce min", drop1, {"0xi64:"}, {"i64: 9223372036854775807"}},
        {"reduce max", drop1, {"0xi64:"}, {"i64: -9223372036854775808"}},
        {"reduce min", drop1, {"0xui64:"}, {"ui64: 18446744073709551615"}},
        {"reduce max", drop1, {"0xui8:"}, {"ui8: 0"}},
        {"reduce max", drop1, {"0xi1:"}, {"i1: 0"}},
        {"reduce min", drop1, {"0xi1:"}, {"i1: 1"}},
        {"reduce sum", "axes = array<i64: 0>", {"0x2xf32:"}, {"1x2xf32: 0 0"}},
        {"reduce sum", "axes = array<i64: 1>", {"0x2xf32:"}, {"0x1xf32:"}},
    });

const Family
    arguments("ArgReduce",
              {
                  {"arg_reduce max", "axis = 0", {"4x{T}: 1 3 2 3"}, {"1xi64: 1"}, kNumbers},
                  {"arg_reduce min", "axis = 0", {"4x{T}: 1 3 1 3"}, {"1xi64: 0"}, kNumbers},
                  {"arg_reduce max", "axis = 0, selectLast = true", {"4x{T}: 1 3 2 3"}, {"1xi64: 3"}, kNumbers},
                  {"arg_reduce min", "axis = 0, selectLast = true", {"4x{T}: 1 3 1 3"}, {"1xi64: 2"}, kNumbers},
                  {"arg_reduce max", "axis = 1, keepDims = false", {"2x3xi32: 1 5 2 9 -8 9"}, {"2xi64: 1 0"}},
                  {"arg_reduce min", "axis = 0, keepDims = false", {"2x3xi32: 1 5 2 9 -8 2"}, {"3xi64: 0 1 0"}},
                  {"arg_reduce max", "axis = 0", {"4xf32: 1 nan inf nan"}, {"1xi64: 1"}},
                  {"arg_reduce min", "axis = 0", {"4xf32: 1 nan -inf nan"}, {"1xi64: 1"}},
                  {"arg_reduce max", "axis = 0, selectLast = true", {"4xf32: nan 1 nan 2"}, {"1xi64: 2"}},
                  {"arg_reduce max", "axis = 0", {"2xf32: -0 0"}, {"1xi64: 0"}},
                  {"arg_reduce max", "axis = 0", {"2xui8: 1 255"}, {"1xi64: 1"}},
                  {"arg_reduce max", "axis = 1, keepDims = false", {"0x3xf32:"}, {"0xi64:"}},
              });

const Family topK(
    "TopK",
    {
        {"top_k", "k = 2, axis = 0", {"4x{T}: 1 3 2 3"}, {"2x{T}: 3 3", "2xi64: 1 3"}, kNumbers},
        {"top_k", "k = 2, axis = 0, largest = false", {"4x{T}: 2 1 3 1"}, {"2x{T}: 1 1", "2xi64: 1 3"}, kNumbers},
        {"top_k", "k = 3, axis = 0", {"3xi8: -1 5 -128"}, {"3xi8: 5 -1 -128", "3xi64: 1 0 2"}},
        {"top_k", "k = 1, axis = 1", {"2x3xf32: 1 4 2 8 5 7"}, {"2x1xf32: 4 8", "2x1xi64: 1 0"}},
        {"top_k", "k = 1, axis = 0", {"2x3xf32: 1 4 2 8 3 7"}, {"1x3xf32: 8 4 7", "1x3xi64: 1 0 1"}},
        {"top_k", "k = 0, axis = 0", {"3xf32: 1 2 3"}, {"0xf32:", "0xi64:"}},
        {"top_k", "k = 2, axis = 0", {"3xf32: 1 nan inf"}, {"2xf32: nan inf", "2xi64: 1 2"}},
        {"top_k", "k = 3, axis = 0, largest = false", {"3xf32: 1 nan -inf"}, {"3xf32: -inf 1 nan", "3xi64: 2 0 1"}},
    });

const Family sums("CumSum",
                  {
                      {"cumsum", "axis = 0", {"3x{T}: 1 2 3"}, {"3x{T}: 1 3 6"}, kNumbers},
                      {"cumsum", "axis = 0, exclusive = true", {"3x{T}: 1 2 3"}, {"3x{T}: 0 1 3"}, kNumbers},
                      {"cumsum", "axis = 0, reverse = true", {"3x{T}: 3 2 1"}, {"3x{T}: 6 3 1"}, kNumbers},
                      {"cumsum", "axis = 0, reverse = true, exclusive = true", {"3xi32: 5 2 1"}, {"3xi32: 3 1 0"}},
                      {"cumsum", "axis = 0", {"2x3xi32: 1 2 3 4 5 6"}, {"2x3xi32: 1 2 3 5 7 9"}},
                      {"cumsum", "axis = 1", {"2x3xf64: 1 2 3 4 5 6"}, {"2x3xf64: 1 3 6 4 9 15"}},
                      {"cumsum", "axis = 0", {"3xi8: 127 1 1"}, {"3xi8: 127 -128 -127"}},
                      {"cumsum", "axis = 0", {"3xf32: 16777216 1 1"}, {"3xf32: 16777216 16777216 16777218"}},
                      {"cumsum", "axis = 0", {"0xf32:"}, {"0xf32:"}},
                  });

} // namespace

} // namespace dmxc::reference::test
