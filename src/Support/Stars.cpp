//===- Stars.cpp - patterns of names --------------------------------------===//
#include "dmxc/Support/Stars.h"

#include <algorithm>

namespace dmxc {

std::optional<std::vector<std::string>> starsOf(std::string_view pattern, std::string_view text) {
  std::vector<std::string> stars;
  size_t star = pattern.find('*');
  if (!text.starts_with(pattern.substr(0, star)))
    return std::nullopt;
  if (star == std::string_view::npos)
    return text == pattern ? std::optional(stars) : std::nullopt;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  // What stands between two stars is taken where it comes first, which leaves most for what follows.
  for (star = pattern.find('*'); star != std::string_view::npos; star = pattern.find('*')) {
    size_t at = text.find(pattern.substr(0, star));
    if (at == std::string_view::npos)
      return std::nullopt;
    stars.emplace_back(text.substr(0, at));
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  if (!text.ends_with(pattern))
    return std::nullopt;
  stars.emplace_back(text.substr(0, text.size() - pattern.size()));
  return stars;
}

std::optional<std::string> withStars(std::string_view pattern, const std::vector<std::string> &stars) {
  if (std::count(pattern.begin(), pattern.end(), '*') != static_cast<std::ptrdiff_t>(stars.size()))
    return std::nullopt;
  std::string text;
  auto next = stars.begin();
  for (char c : pattern)
    if (c == '*')
      text += *next++;
    else
      text += c;
  return text;
}

} // namespace dmxc
