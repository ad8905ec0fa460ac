//===- Inspect.cpp - what dmx-inspect does --------------------------------===//
#include "dmxc/Tools/Inspect.h"

#include "../Report.h"
#include "InspectHtml.h"
#include "InspectView.h"
#include "dmxc/Support/OutputFile.h"
#include "dmxc/Support/Visible.h"
#include "dmxc/Tools/Check.h"
#include "dmxc/Tools/CommandLine.h"

#include <ostream>

namespace dmxc::tools {

using namespace bundle;

const std::vector<std::string> &inspectViews() {
  static const std::vector<std::string> views = {"summary", "tensors", "dims",  "tasks",
                                                 "memory",  "kernels", "sizes", "masks"};
  return views;
}

std::string jsonText(const Json &json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

namespace {

std::string cellText(const Json &cell) {
  if (cell.is_string())
    return visible(cell.get<std::string>());
  if (!cell.is_array())
    return cell.dump();
  std::string text;
  for (const Json &item : cell)
    text += (text.empty() ? "" : ", ") + cellText(item);
  constexpr size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

/// Columns as code points, so that names in UTF-8 line up.
size_t width(const std::string &text) {
  size_t count = 0;
  for (char c : text)
    count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

std::string padded(const std::string &text, size_t to, bool right) {
  std::string space(to > width(text) ? to - width(text) : 0, ' ');
  return right ? space + text : text + space;
}

std::string tableText(const Table &table) {
  size_t columns = table.columns.size();
  std::vector<size_t> widths(columns);
  std::vector<bool> right(columns, true);
  std::vector<std::vector<std::string>> cells{table.columns};
  for (const std::vector<Json> &row : table.rows) {
    cells.emplace_back();
    for (size_t c = 0; c < columns; ++c) {
      cells.back().push_back(cellText(row[c]));
      right[c] = right[c] && row[c].is_number();
    }
  }
  for (const auto &row : cells)
    for (size_t c = 0; c < columns; ++c)
      widths[c] = std::max(widths[c], width(row[c]));
  std::string text = visible(table.name) + "\n";
  for (const auto &row : cells) {
    std::string line = "  ";
    for (size_t c = 0; c < columns; ++c)
      line += padded(row[c], widths[c], right[c] && !table.rows.empty()) + "  ";
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

Status report(const std::string &path, const std::vector<Problem> &problems, const InspectOptions &options,
              std::ostream &out) {
  if (options.json) {
    Json list = Json::array();
    for (const Problem &problem : problems)
      list.push_back({{"where", problem.where}, {"message", problem.message}});
    out << jsonText({{"ok", problems.empty()}, {"problems", std::move(list)}});
  } else {
    for (const Problem &problem : problems)
      out << visible(problem.where) << ": " << visible(problem.message) << "\n";
    if (problems.empty())
      out << path << ": " << (options.verify ? "verified" : "checked") << ", no problems\n";
  }
  if (problems.empty())
    return Status::ok();
  return Error{ErrorKind::Mismatch, "'" + path + "' is not sound: " + std::to_string(problems.size()) +
                                        (problems.size() == 1 ? " problem" : " problems")};
}

} // namespace

std::string viewText(const View &view) {
  std::string text;
  size_t widest = 0;
  for (const auto &[name, value] : view.facts)
    widest = std::max(widest, name.size());
  for (const auto &[name, value] : view.facts)
    text += padded(visible(name), widest, false) + "  " + cellText(value) + "\n";
  for (const Table &table : view.tables)
    if (!table.rows.empty())
      text += (text.empty() ? "" : "\n") + tableText(table);
  for (const auto &[entry, code] : view.code)
    text += "\n; " + visible(entry) + "\n" + visibleLines(code);
  return text;
}

Json viewJson(const View &view) {
  Json root = Json::object();
  for (const auto &[name, value] : view.facts)
    root[name] = value;
  for (const Table &table : view.tables) {
    if (table.textOnly)
      continue;
    Json rows = Json::array();
    for (const std::vector<Json> &row : table.rows) {
      Json object = Json::object();
      for (size_t c = 0; c < table.columns.size(); ++c)
        object[table.columns[c]] = row[c];
      rows.push_back(std::move(object));
    }
    root[table.name] = std::move(rows);
  }
  for (const auto &[name, value] : view.data)
    root[name] = value;
  return root;
}

Status inspectBundle(const InspectOptions &options, std::ostream &out) {
  bool examined = options.check || options.verify;
  if (isTuningDatabase(options.bundle)) {
    if (examined || !options.what.empty() || !options.diffWith.empty() || !options.htmlFile.empty())
      return usageError("'" + options.bundle + "' is a tuning database, which has one view; leave all but --json away");
    auto view = tuningView(options.bundle);
    if (view)
      out << (options.json ? jsonText(viewJson(*view)) : viewText(*view));
    return view ? Status::ok() : Status(view.takeError());
  }
  auto bundle = Bundle::open(options.bundle);
  if (!bundle) {
    // To --check, a file that is no bundle is one more finding.
    Error error = bundle.takeError();
    if (std::string model = modelTakenForBundle(options.bundle); error.kind == ErrorKind::Model && !model.empty())
      error.message = model;
    if (examined && error.kind == ErrorKind::Model)
      return report(options.bundle, {{"bundle", error.message}}, options, out);
    return error;
  }
  bool other = examined || !options.diffWith.empty() || !options.htmlFile.empty();
  if (!options.what.empty() || !other) {
    auto view = makeView(*bundle, options.what.empty() ? "summary" : options.what, options.kernel);
    if (!view)
      return view.takeError();
    out << (options.json ? jsonText(viewJson(*view)) : viewText(*view));
  }
  if (!options.htmlFile.empty()) {
    auto page = inspectHtml(*bundle, options.reportFiles);
    if (!page)
      return page.takeError();
    if (Status done = writeFile(options.htmlFile, *page); !done)
      return done;
  }
  if (examined) {
    auto problems = checkBundle(*bundle, options.verify);
    if (!problems)
      return problems.takeError();
    if (Status done = report(options.bundle, *problems, options, out); !done)
      return done;
  }
  return options.diffWith.empty() ? Status::ok() : printDiff(*bundle, options, out);
}

} // namespace dmxc::tools
