//===- InspectView.h - facts and tables of a bundle -------------*- C++ -*-===//
//
// Private to the Tools room. A view is built once and printed as text, JSON or
// HTML.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Bundle/Reader.h"
#include "dmxc/Support/JsonDepth.h"

#include <nlohmann/json.hpp>

#include <map>

namespace dmxc::tools {

using Json = nlohmann::ordered_json;

struct Table {
  std::string name; ///< key in JSON, heading in text
  std::vector<std::string> columns;
  std::vector<std::vector<Json>> rows; ///< strings, numbers or lists of strings
  bool textOnly = false;               ///< JSON has the same in another form
  void add(std::vector<Json> row) { rows.push_back(std::move(row)); }
};

struct View {
  std::vector<std::pair<std::string, Json>> facts;
  std::vector<Table> tables;
  std::vector<std::pair<std::string, std::string>> code; ///< text only: entry and its disassembly
  std::vector<std::pair<std::string, Json>> data;        ///< JSON only
};

/// `what` is one of inspectViews(); a kernel's name limits "kernels" to it. Code that cannot be read is an
/// ErrorKind::Model where it is to be shown.
Result<View> makeView(const bundle::Bundle &bundle, const std::string &what, const std::string &kernel = "");
std::string viewText(const View &view);
Json viewJson(const View &view);

/// The life of an arena buffer at given dims: tasks [first, last] that touch it
/// (aliases included), and its bytes in the arena.
struct Lifetime {
  size_t buffer = 0;
  int64_t arena = 0, offset = 0, size = 0;
  int64_t first = -1, last = -1; ///< -1: never touched
};
std::vector<Lifetime> lifetimes(const bundle::GraphDesc &graph, const bundle::DimValues &dims);

/// What the model calls a buffer: an input, an output or a constant; empty for the others.
std::string tensorName(const bundle::Bundle &bundle, const bundle::GraphDesc &graph, const bundle::BufferDesc &buffer);

/// "dims": the dim tables, constraints, and which task owns which graph.
View dimsView(const bundle::Bundle &bundle);
/// "masks": the rule of each masked attention, or what is no rule in it.
Result<View> masksView(const bundle::Bundle &bundle);
/// Whether a bundle's debug entry is an object with the array `key`, which is for people: its rows, or none.
Result<Json> debugRows(const bundle::Bundle &bundle, const char *entry, const char *key);
/// By node: "matmul bf16 bf16 -> f32" of what is computed in other numbers than its tensors have.
using FormatsByNode = std::map<std::string, std::vector<std::string>>;
Result<FormatsByNode> formatsByNode(const bundle::Bundle &bundle);
/// Those of a task's nodes, each once.
std::vector<std::string> arithmeticOf(const bundle::TaskDesc &task, const FormatsByNode &formats);
/// Of each task; empty when the graph has one stage, or none that are right.
std::vector<size_t> taskStages(const bundle::GraphDesc &graph);

/// As files have it: two blanks a level, a line's end at the end.
std::string jsonText(const Json &json);
/// "1.50 MiB", "12 B".
std::string humanBytes(double bytes);
/// An integer when it is one, else the expression as text.
Json exprJson(const bundle::Expr &expr);

} // namespace dmxc::tools
