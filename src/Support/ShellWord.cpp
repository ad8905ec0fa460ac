//===- ShellWord.cpp - texts as a shell takes them ------------------------===//
#include "dmxc/Support/ShellWord.h"

#include <algorithm>
#include <cctype>
#include <string_view>

std::string dmxc::shellWord(const std::string &text) {
  bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_./=:+,@%-").find(c) != std::string::npos;
  });
  if (plain)
    return text;
  std::string quoted = "'";
  for (char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}
