//===- Stars.h - patterns of names ------------------------------*- C++ -*-===//
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc {

/// What the stars of a pattern stand for in a text, those in front as short as they can be; nothing where the text is
/// none of the pattern's. A pattern without one is the text.
std::optional<std::vector<std::string>> starsOf(std::string_view pattern, std::string_view text);
/// The pattern with these texts for its stars; nothing where there are more or fewer of them.
std::optional<std::string> withStars(std::string_view pattern, const std::vector<std::string> &stars);

} // namespace dmxc
