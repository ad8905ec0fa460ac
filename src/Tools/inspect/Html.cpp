//===- Html.cpp - pieces of dmx-inspect's page ----------------------------===//
#include "Html.h"

#include <cstdio>

namespace dmxc::tools::html {

const char *const style = R"(
body{font:14px/1.4 system-ui,sans-serif;margin:2em;color:#222;background:#fff}
table{border-collapse:collapse;margin:.5em 0 2em}
th,td{border:1px solid #ccc;padding:.15em .5em;text-align:left;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
th{background:#f2f2f2;position:sticky;top:0}
svg{background:#fafafa;border:1px solid #ccc;font:10px system-ui,sans-serif;display:block}
pre{background:#fafafa;border:1px solid #ccc;padding:.5em;overflow:auto;max-height:60em}
rect.b{stroke:#fff;stroke-width:.5}
rect.b:hover{stroke:#000;stroke-width:1.5}
rect.input{fill:#4c8bd6}rect.output{fill:#3fa06b}rect.state{fill:#b56fc2}rect.const{fill:#c9a227}rect.resident{fill:#8a7a4a}
rect.limit{fill:#e4e4e4}
b.key{font-weight:normal;color:#fff;padding:0 .4em;margin-right:.3em}
b.input{background:#4c8bd6}b.output{background:#3fa06b}b.state{background:#b56fc2}b.const{background:#c9a227}
b.resident{background:#8a7a4a}
svg text{pointer-events:none}
line{stroke:#bbb}
polyline{fill:none;stroke:#555}
summary{cursor:pointer}
)";

std::string escaped(const std::string &content) {
  std::string out;
  for (char c : content) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string heading(int level, const std::string &content) {
  std::string tag = "h" + std::to_string(level);
  return "<" + tag + ">" + escaped(content) + "</" + tag + ">\n";
}

std::string cell(const Json &value) {
  bool numeric = value.is_number();
  std::string text = value.is_string() ? value.get<std::string>() : "";
  if (value.is_array())
    for (const Json &item : value)
      text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
  else if (!value.is_string())
    text = value.dump();
  return (numeric ? "<td class=\"n\">" : "<td>") + escaped(text) + "</td>";
}

std::string tableHtml(const Table &table, int level) {
  std::string html = heading(level, table.name) + "<table><tr>";
  for (const std::string &column : table.columns)
    html += "<th>" + escaped(column) + "</th>";
  html += "</tr>\n";
  for (const std::vector<Json> &row : table.rows) {
    html += "<tr>";
    for (const Json &value : row)
      html += cell(value);
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string details(const std::string &summary, const std::string &body) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + body + "</details>\n";
}

std::string svg(double width, double height, const std::string &shapes) {
  return "<svg width=\"" + number(width) + "\" height=\"" + number(height) + "\" role=\"img\">\n" + shapes + "</svg>\n";
}

std::string rect(double x, double y, double width, double height, const std::string &kind, const std::string &fill,
                 const std::string &title) {
  return "<rect class=\"b" + (kind.empty() ? "" : " " + kind) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
         "\" width=\"" + number(width) + "\" height=\"" + number(height) +
         (fill.empty() ? "\"" : "\" fill=\"" + fill + "\"") + "><title>" + escaped(title) + "</title></rect>\n";
}

std::string line(double x1, double y1, double x2, double y2) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" + number(y2) +
         "\"/>\n";
}

std::string text(double x, double y, const std::string &anchor, const std::string &content) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + escaped(content) +
         "</text>\n";
}

std::string fitting(const std::string &content, double width) {
  constexpr double perCharacter = 5.6;
  double room = width / perCharacter - 1;
  if (room < 3)
    return "";
  if (static_cast<double>(content.size()) <= room)
    return content;
  size_t end = static_cast<size_t>(room) - 1;
  while (end && (static_cast<unsigned char>(content[end]) & 0xC0) == 0x80) // not inside a character
    --end;
  return content.substr(0, end) + "…";
}

std::string colourOf(const std::string &name) {
  uint32_t hash = 2166136261u; // FNV-1a
  for (char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return "hsl(" + std::to_string(hash % 360) + " 55% " + std::to_string(58 + hash / 360 % 3 * 7) + "%)";
}

} // namespace dmxc::tools::html
