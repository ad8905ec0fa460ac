//===- SampleModels.cpp - models that use all of the format ---------------===//
#include "SampleModels.h"

using namespace dmxtest;

TestBundle dmxtest::everyBuffer() {
  ModelBuilder builder;
  builder.dim("n", 1, 64, 0, 0);
  builder.computedDim("m", Json::array({"ceildiv", Json::array({"add", "n", 3}), 4}));
  int x = builder.input("x", "f32", {"n", 4}), unused = builder.input("u", "i64", {"m"});
  int c = builder.constant(std::string(1024, '\1'), "f32", {256});
  int sum = builder.arena(1024, "f32", {Json::array({"mul", "n", 4})}), part = builder.alias(sum, 0, 16, "f32", {4});
  int state = builder.state(64, "f32", {16});
  int y = builder.output("y", "f32", {"n", 4}), z = builder.output("z", "f32", {4});
  int add = builder.dispatch("add", {x, c, sum}, 1, Json::array({"mul", "n", 4}), {},
                             {{"scratch", Json::array({"mul", "m", 64})}});
  int scale =
      builder.dispatch("scale", {sum, y}, 1, Json::array({"mul", "n", 4}), {add}, {{"dims", {"n", "m"}}, {"grain", 8}});
  builder.copy(part, z, 16, {add});
  builder.dispatch("accumulate", {part, state, sum}, 2, 4, {scale, 2});
  (void)unused;
  return builder.finish();
}

TestBundle dmxtest::everyControl() {
  ModelBuilder body;
  body.dim("k", 0, 64, 2, 0);
  body.computedDim("k1", Json::array({"add", "k", 1}));
  body.returnedDim("r", 0, 0, 0, "k1");
  int step = body.input("i", "i64", Json::array());
  body.input("c", "bool", Json::array());
  int list = body.input("l", "i64", {"k"}), go = body.output("go", "bool", Json::array());
  int longer = body.output("longer", "i64", {"k1"}), scan = body.output("scan", "i64", Json::array());
  body.dispatch("is_true", {go}, 1, 1, {}, {{"results", 1}});
  body.dispatch("append", {list, step, longer}, 1, 1, {}, {{"dims", {"k"}}});
  body.copy(step, scan, 8, {}, {{"size", Json::array({"sub", 8, Json::array({"mul", "r", 0})})}});
  auto branch = [](const std::string &name) {
    ModelBuilder builder;
    builder.dim("n", 0, 64, 0, 0);
    int x = builder.input("x", "i64", {"n"}), y = builder.output("y", "i64", {"n"});
    builder.copy(x, y, Json::array({"mul", "n", 8}));
    return builder.graphNamed(name);
  };
  ModelBuilder builder;
  builder.dim("m", 0, 64, 0, 0);
  builder.returnedDim("n", 0, 0, 0, "m");
  builder.computedDim("b", Json::array({"broadcast", "n", 1}));
  builder.extentDim("e", 1, 0, 0, 0, 100);
  builder.returnedDim("trips", 2, 0, 0, 50);
  builder.extentDim("f", 2, 0, 0, "trips");
  builder.constraint("le", "b", Json::array({"add", "m", 1}), "grows");
  builder.constraint("divides", 1, "m", "whole");
  int x = builder.input("x", "f32", {"m"}), flag = builder.input("flag", "bool", {1});
  int count = builder.input("count", "i64", Json::array());
  int room = builder.arenaOf(Json::array({"mul", "m", 8}), "i64", {"m"});
  int part = builder.alias(room, 0, Json::array({"mul", "b", 8}), "i64", {"b"});
  int chosen = builder.result(1, 0, "i64", {"e"}), last = builder.result(2, 0, "i64", {"f"});
  int stacked = builder.result(2, 1, "i64", {"trips"});
  int y = builder.output("y", "i64", {"f"}), z = builder.output("z", "i64", {"trips"});
  builder.dispatch("nonzero", {x, room}, 1, 1, {}, {{"dims", {"m"}}, {"results", 1}});
  builder.branch(flag, "then", "else", {part}, 1, {0});
  builder.loop("body", {chosen}, {}, {1}, {{"trip_count", count}, {"cond", flag}, {"scans", 1}});
  builder.copy(last, y, Json::array({"mul", "f", 8}), {2});
  builder.copy(stacked, z, Json::array({"mul", "trips", 8}), {2});
  TestBundle model = builder.finish();
  for (const Json &graph : {body.graphNamed("body"), branch("then"), branch("else")})
    model.graph["graphs"].push_back(graph);
  model.manifest["format"]["minor"] = 1;
  model.manifest["required"] = {"broadcast", "constraints", "control-flow", "returned-dims"};
  return model;
}
