//===- Html.h - pieces of dmx-inspect's page --------------------*- C++ -*-===//
//
// Private to the Tools room. Everything is text made here: no scripts, no outside
// files, no clock, so equal bundles give equal bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "InspectView.h"

namespace dmxc::tools::html {

/// The page's style sheet.
extern const char *const style;

std::string escaped(const std::string &text);
/// Two digits behind the point.
std::string number(double value);
/// "0x1000"
std::string hex(uint64_t value);
std::string heading(int level, const std::string &text);
std::string cell(const Json &value);
/// The rows alone, under a heading of this level.
std::string tableHtml(const Table &table, int level = 2);
/// What is folded until it is asked for.
std::string details(const std::string &summary, const std::string &body);

/// A figure of these pixels around its shapes.
std::string svg(double width, double height, const std::string &shapes);
/// A rectangle that tells its title under the pointer. `fill` is a colour or empty for the class' own.
std::string rect(double x, double y, double width, double height, const std::string &kind, const std::string &fill,
                 const std::string &title);
std::string line(double x1, double y1, double x2, double y2);
/// `anchor`: start, middle or end.
std::string text(double x, double y, const std::string &anchor, const std::string &content);
/// As much of a text as fits so many pixels; empty when that is next to nothing.
std::string fitting(const std::string &content, double width);
/// A colour of a name: the same on every page, far from its neighbours'.
std::string colourOf(const std::string &name);

} // namespace dmxc::tools::html
