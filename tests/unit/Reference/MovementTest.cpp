//===- MovementTest.cpp - ops that move elements --------------------------===//
#include "Cases.h"

namespace dmxc::reference::test {

namespace {

const Family views("Views",
                   {
                       {"reshape", "", {"2x3x{T}: 0 1 0 1 1 0"}, {"3x2x{T}: 0 1 0 1 1 0"}, kAll},
                       {"reshape", "", {"f32: 5"}, {"1x1xf32: 5"}},
                       {"reshape", "", {"0x3xi8:"}, {"2x0xi8:"}},
                       {"relayout", "", {"2x2x{T}: 0 1 1 0"}, {"2x2x{T}: 0 1 1 0"}, kAll},
                       {"broadcast", "", {"3x{T}: 0 1 0"}, {"2x3x{T}: 0 1 0 0 1 0"}, kAll},
                       {"broadcast", "", {"2x1x{T}: 0 1"}, {"2x3x{T}: 0 0 0 1 1 1"}, kAll},
                       {"broadcast", "", {"f32: -0"}, {"2x1xf32: -0 -0"}},
                       {"broadcast", "", {"2x1x2xi32: 1 2 3 4"}, {"2x2x2x2xi32: 1 2 1 2 3 4 3 4 1 2 1 2 3 4 3 4"}},
                       {"broadcast", "", {"1xi32: 1"}, {"0x1xi32:"}},
                       {"iota", "axis = 0", {}, {"4x{T}: 0 1 2 3"}, kNumbers},
                       {"iota", "axis = 0", {}, {"2x3x{T}: 0 0 0 1 1 1"}, kNumbers},
                       {"iota", "axis = 1", {}, {"2x3x{T}: 0 1 2 0 1 2"}, kNumbers},
                       {"iota", "axis = 1", {}, {"1x3x2xi64: 0 0 1 1 2 2"}},
                       {"iota", "axis = 0", {}, {"9xi4: 0 1 2 3 4 5 6 7 -8"}},
                   });

const Family transposes(
    "Transpose",
    {
        {"transpose", "permutation = array<i64: 1, 0>", {"2x3x{T}: 0 1 1 0 0 1"}, {"3x2x{T}: 0 0 1 0 1 1"}, kAll},
        {"transpose", "permutation = array<i64: 2, 0, 1>", {"1x2x3xi32: 1 2 3 4 5 6"}, {"3x1x2xi32: 1 4 2 5 3 6"}},
        {"transpose",
         "permutation = array<i64: 0, 2, 1>",
         {"2x2x2xi8: 1 2 3 4 5 6 7 8"},
         {"2x2x2xi8: 1 3 2 4 5 7 6 8"}},
        {"transpose",
         "permutation = array<i64: 2, 1, 0>",
         {"2x2x2xf16: 1 2 3 4 5 6 7 8"},
         {"2x2x2xf16: 1 5 3 7 2 6 4 8"}},
        {"transpose",
         "permutation = array<i64: 1, 0, 2>",
         {"2x2x2xf64: 1 2 3 4 5 6 7 8"},
         {"2x2x2xf64: 1 2 5 6 3 4 7 8"}},
        {"transpose", "permutation = array<i64>", {"f32: nan"}, {"f32: nan"}},
        {"transpose", "permutation = array<i64: 1, 0>", {"0x3xf32:"}, {"3x0xf32:"}},
    });

const Family
    slices("Slice",
           {
               {"slice",
                "starts = array<i64: 1>, sizes = array<i64: 2>, steps = array<i64: 1>",
                {"4x{T}: 0 1 0 1"},
                {"2x{T}: 1 0"},
                kAll},
               {"slice",
                "starts = array<i64: 3>, sizes = array<i64: 4>, steps = array<i64: -1>",
                {"4x{T}: 0 0 0 1"},
                {"4x{T}: 1 0 0 0"},
                kAll},
               {"slice",
                "starts = array<i64: 1, 2>, sizes = array<i64: 2, 2>, steps = array<i64: 1, -2>",
                {"3x3xi32: 1 2 3 4 5 6 7 8 9"},
                {"2x2xi32: 6 4 9 7"}},
               {"slice",
                "starts = array<i64: 0, 1>, sizes = array<i64: 2, 1>, steps = array<i64: 2, 1>",
                {"3x2xui16: 1 2 3 4 5 6"},
                {"2x1xui16: 2 6"}},
               {"slice",
                "starts = array<i64: 0>, sizes = array<i64: 0>, steps = array<i64: 1>",
                {"4xf32: 1 2 3 4"},
                {"0xf32:"}},
               {"slice", "starts = array<i64>, sizes = array<i64>, steps = array<i64>", {"f32: 4"}, {"f32: 4"}},
           });

const std::string noInterior1 = ", interior = array<i64: 0>", noInterior2 = ", interior = array<i64: 0, 0>";
const Family
    pads("Pad",
         {
             {"pad",
              "low = array<i64: 1>, high = array<i64: 2>" + noInterior1,
              {"2x{T}: 0 1", "{T}: 1"},
              {"5x{T}: 1 0 1 1 1"},
              kAll},
             {"pad",
              "low = array<i64: 0>, high = array<i64: 1>, interior = array<i64: 2>",
              {"2xi32: 7 8", "i32: -1"},
              {"5xi32: 7 -1 -1 8 -1"}},
             {"pad",
              "low = array<i64: 1, 0>, high = array<i64: 0, 1>" + noInterior2,
              {"2x2xf32: 1 2 3 4", "f32: nan"},
              {"3x3xf32: nan nan nan 1 2 nan 3 4 nan"}},
             {"pad",
              "low = array<i64: 2>, high = array<i64: 2>" + noInterior1 + ", mode = #dmir<pad_mode edge>",
              {"3x{T}: 0 0 1", "{T}: 0"},
              {"7x{T}: 0 0 0 0 1 1 1"},
              kAll},
             {"pad",
              "low = array<i64: 2>, high = array<i64: 2>" + noInterior1 + ", mode = #dmir<pad_mode reflect>",
              {"3xi32: 1 2 3", "i32: 0"},
              {"7xi32: 3 2 1 2 3 2 1"}},
             {"pad",
              "low = array<i64: 4>, high = array<i64: 4>" + noInterior1 + ", mode = #dmir<pad_mode wrap>",
              {"3xi32: 1 2 3", "i32: 0"},
              {"11xi32: 3 1 2 3 1 2 3 1 2 3 1"}},
             {"pad",
              "low = array<i64: 1, 1>, high = array<i64: 0, 1>" + noInterior2 + ", mode = #dmir<pad_mode reflect>",
              {"2x2xi8: 1 2 3 4", "i8: 0"},
              {"3x4xi8: 4 3 4 3 2 1 2 1 4 3 4 3"}},
             {"pad", "low = array<i64: 1>, high = array<i64: 1>" + noInterior1, {"0xf32:", "f32: 3"}, {"2xf32: 3 3"}},
             {"pad", "low = array<i64>, high = array<i64>, interior = array<i64>", {"f32: 2", "f32: 3"}, {"f32: 2"}},
         });

const Family concats(
    "Concat",
    {
        {"concat", "axis = 0", {"1x{T}: 0", "2x{T}: 1 0"}, {"3x{T}: 0 1 0"}, kAll},
        {"concat", "axis = 1", {"2x1x{T}: 0 1", "2x2x{T}: 1 0 0 1", "2x0x{T}:"}, {"2x3x{T}: 0 1 0 1 0 1"}, kAll},
        {"concat", "axis = 1", {"2x1x2xi64: 1 2 3 4", "2x1x2xi64: 5 6 7 8"}, {"2x2x2xi64: 1 2 5 6 3 4 7 8"}},
    });

const Family
    gathers("Gather",
            {
                {"gather", "axis = 0", {"3x{T}: 0 1 0", "2xi64: -2 0"}, {"2x{T}: 1 0"}, kAll},
                {"gather", "axis = 1", {"2x3xi32: 1 2 3 4 5 6", "2x2xi32: 0 2 -1 1"}, {"2x2x2xi32: 1 3 3 2 4 6 6 5"}},
                {"gather", "axis = 0", {"3x2xf32: 1 2 3 4 5 6", "i64: 1"}, {"2xf32: 3 4"}},
                {"gather", "axis = 0", {"0x2xf32:", "0xi64:"}, {"0x2xf32:"}},
                {"gather",
                 "axis = 0",
                 {"3xf32: 1 2 3", "2xi64: 0 3"},
                 {"2xf32: 0 0"},
                 "",
                 0,
                 "index 3 (element 1 of the indices) is out of range for a dim of 3"},
                {"gather", "axis = 0", {"3xf32: 1 2 3", "i32: -4"}, {"f32: 0"}, "", 0, "index -4"},
                {"gather_elements", "axis = 1", {"2x2x{T}: 0 1 1 0", "2x2xi64: 0 0 1 0"}, {"2x2x{T}: 0 0 0 1"}, kAll},
                {"gather_elements",
                 "axis = 0",
                 {"3x3xi32: 1 2 3 4 5 6 7 8 9", "2x3xi32: 1 2 0 -1 0 0"},
                 {"2x3xi32: 4 8 3 7 2 3"}},
                {"gather_elements", "axis = 1", {"3x2xi32: 1 2 3 4 5 6", "2x1xi64: 1 0"}, {"2x1xi32: 2 3"}},
                {"gather_elements", "axis = 0", {"2xi8: 1 2", "1xi64: 2"}, {"1xi8: 0"}, "", 0, "out of range"},
                {"gather_nd", "", {"2x2x{T}: 0 1 1 0", "2x2xi64: 0 0 1 -2"}, {"2x{T}: 0 1"}, kAll},
                {"gather_nd", "", {"2x2xi32: 1 2 3 4", "2x1xi64: 1 0"}, {"2x2xi32: 3 4 1 2"}},
                {"gather_nd", "batchDims = 1", {"2x2x2xi32: 1 2 3 4 5 6 7 8", "2x1xi64: 1 0"}, {"2x2xi32: 3 4 5 6"}},
                {"gather_nd", "batchDims = 1", {"2x3xi32: 1 2 3 4 5 6", "2x2x1xi32: 2 0 1 1"}, {"2x2xi32: 3 1 5 5"}},
                {"gather_nd", "", {"2xi32: 1 2", "3x0xi64:"}, {"3x2xi32: 1 2 1 2 1 2"}},
                {"gather_nd", "", {"2x2xi32: 1 2 3 4", "1x2xi64: 0 2"}, {"1xi32: 0"}, "", 0, "index 2"},
            });

const std::string add = "mode = #dmir<scatter_mode add>", mul = "mode = #dmir<scatter_mode mul>",
                  max = "mode = #dmir<scatter_mode max>", min = "mode = #dmir<scatter_mode min>";
const Family scatters(
    "Scatter",
    {
        {"scatter_elements", "axis = 0", {"3x{T}: 0 0 1", "2xi64: 1 -1", "2x{T}: 1 0"}, {"3x{T}: 0 1 0"}, kAll},
        {"scatter_elements",
         "axis = 0, " + add,
         {"3x{T}: 1 2 3", "2xi64: 1 1", "2x{T}: 1 3"},
         {"3x{T}: 1 6 3"},
         kNumbers},
        {"scatter_elements",
         "axis = 0, " + mul,
         {"3x{T}: 1 2 3", "2xi64: 0 1", "2x{T}: 3 3"},
         {"3x{T}: 3 6 3"},
         kNumbers},
        {"scatter_elements",
         "axis = 0, " + max,
         {"3x{T}: 1 2 3", "2xi64: 0 1", "2x{T}: 3 1"},
         {"3x{T}: 3 2 3"},
         kNumbers},
        {"scatter_elements",
         "axis = 0, " + min,
         {"3x{T}: 1 2 3", "2xi64: 0 1", "2x{T}: 3 1"},
         {"3x{T}: 1 1 3"},
         kNumbers},
        {"scatter_elements", "axis = 0, " + add, {"3xi1: 0 1 0", "3xi64: 0 1 2", "3xi1: 1 1 0"}, {"3xi1: 1 1 0"}},
        {"scatter_elements",
         "axis = 1",
         {"2x3xi32: 1 2 3 4 5 6", "2x2xi32: 2 0 0 1", "2x2xi32: 10 20 30 40"},
         {"2x3xi32: 20 2 10 30 40 6"}},
        {"scatter_elements",
         "axis = 0",
         {"3x2xi32: 1 2 3 4 5 6", "1x1xi64: 2", "1x1xi32: 9"},
         {"3x2xi32: 1 2 3 4 9 6"}},
        {"scatter_elements", "axis = 0, " + max, {"2xf32: 1 nan", "2xi64: 0 1", "2xf32: nan 1"}, {"2xf32: nan nan"}},
        {"scatter_elements", "axis = 0", {"2xi8: 1 2", "1xi64: 2", "1xi8: 1"}, {"2xi8: 0 0"}, "", 0, "index 2"},
        {"scatter_elements", "axis = 0", {"2xi8: 1 2", "0xi64:", "0xi8:"}, {"2xi8: 1 2"}},
        {"scatter_nd", "", {"3x{T}: 0 0 1", "2x1xi64: 1 -1", "2x{T}: 1 0"}, {"3x{T}: 0 1 0"}, kAll},
        {"scatter_nd", add, {"2x2x{T}: 1 2 3 1", "2x1xi64: 0 0", "2x2x{T}: 1 1 1 3"}, {"2x2x{T}: 3 6 3 1"}, kNumbers},
        {"scatter_nd", mul, {"2xi8: 100 3", "2x1xi64: 0 0", "2xi8: 2 2"}, {"2xi8: -112 3"}},
        {"scatter_nd", max, {"2xui8: 100 3", "2x1xi64: 0 1", "2xui8: 2 200"}, {"2xui8: 100 200"}},
        {"scatter_nd", min, {"2xf64: 100 3", "2x1xi64: 0 1", "2xf64: 2 200"}, {"2xf64: 2 3"}},
        {"scatter_nd", "", {"2x2xi32: 1 2 3 4", "1x2xi64: 1 0", "1xi32: 9"}, {"2x2xi32: 1 2 9 4"}},
        {"scatter_nd", add, {"2xi32: 1 2", "2x0xi64:", "2x2xi32: 10 20 30 40"}, {"2xi32: 41 62"}},
        {"scatter_nd", "", {"2x2xi32: 1 2 3 4", "1x2xi64: 1 -3", "1xi32: 9"}, {"2x2xi32: 0 0 0 0"}, "", 0, "index -3"},
    });

/// Values by hand: the bits of the bytes, less the zero, times the scale.
const Family dequantizes(
    "Dequantize",
    {
        {"dequantize",
         "bits = 8, axis = 0, block = 2, zero = 0",
         {"4xi8: -2 3 4 -5", "2xf32: 0.5 2"},
         {"4xf32: -1 1.5 8 -10"}},
        {"dequantize",
         "bits = 8, axis = 0, block = 3, zero = 128",
         {"4xui8: 0 129 200 255", "2xf32: 1 0.5"},
         {"4xf32: -128 1 72 63.5"}},
        // 0x21, 0x8f: elements 1 2 15 8
        {"dequantize",
         "bits = 4, axis = 1, block = 2, zero = 8",
         {"1x2xui8: 33 143", "1x2xf32: 1 2"},
         {"1x4xf32: -7 -6 14 0"}},
        {"dequantize", "bits = 4, axis = 1, block = 4", {"1x2xi8: 33 -113", "1x1xf32: 1"}, {"1x4xf32: 1 2 -1 -8"}},
        // 0xe4: 0 1 2 3
        {"dequantize", "bits = 2, axis = 0, block = 3", {"1xui8: 228", "2xf32: 1 10"}, {"4xf32: 0 1 2 30"}},
        {"dequantize", "bits = 2, axis = 0, block = 3", {"1xi8: -28", "2xf32: 1 10"}, {"4xf32: 0 1 -2 -10"}},
        // An odd row leaves half a byte; blocks along the first axis; zero points 1 2 3, packed.
        {"dequantize",
         "bits = 4, axis = 0, block = 2",
         {"2x2xui8: 33 3 84 6", "1x3xf32: 1 2 4", "1x2xui8: 33 3"},
         {"2x3xf32: 0 0 0 3 6 12"}},
        {"dequantize",
         "bits = 4, axis = 1, block = 4",
         {"2x2xui8: 33 143 16 50", "2x1xf32: 1 2", "2x1xf32: 0.5 1.5"},
         {"2x4xf32: 0.5 1.5 14.5 7.5 -3 -1 1 3"}},
        {"dequantize", "bits = 8, axis = 0, block = 1", {"2xi8: 1 3", "1xf16: 0.5"}, {"2xf16: 0.5 1.5"}},
        {"dequantize",
         "bits = 8, axis = 0, block = 1",
         {"2xui8: 1 3", "2xf64: 0.5 0.1", "2xf64: 1 0.5"},
         {"2xf64: 0 0.25"}},
        {"dequantize", "bits = 4, axis = 0, block = 2", {"0xui8:", "0xf32:"}, {"0xf32:"}},
    });

/// The greatest magnitude of a block is 127 steps of 1, 2, 0.5; ties go to the even one.
const Family roundedBlocks(
    "RoundBlocks",
    {
        {"round_blocks", "block = 3", {"6xf32: 127 0.5 -1.5 -254 3 4.9"}, {"6xf32: 127 0 -2 -254 4 4"}},
        {"round_blocks", "block = 2", {"1x3xf32: 0.2 -63.5 254"}, {"1x3xf32: 0 -63.5 254"}},
        {"round_blocks", "block = 2", {"2x3xf32: 127 1.4 254 -127 2.5 0"}, {"2x3xf32: 127 1 254 -127 2 0"}},
        {"round_blocks", "block = 2", {"4xf32: inf 1 nan 2"}, {"4xf32: nan nan nan nan"}},
        {"round_blocks", "block = 2", {"4xf32: 1e-40 0 1e-36 0"}, {"4xf32: 0 0 0 0"}},
        {"round_blocks", "block = 2", {"0x4xf32:"}, {"0x4xf32:"}},
        {"round_blocks", "block = 2", {"3x0xf32:"}, {"3x0xf32:"}},
    });

} // namespace

} // namespace dmxc::reference::test
