//===- Signature.cpp - the text of signatures -----------------------------===//
#include "dmxc/Bundle/Signature.h"

#include "WriterImpl.h"
#include "dmxc/Support/OutputFile.h"

#include <array>
#include <charconv>
#include <filesystem>

namespace dmxc::bundle {

namespace {

constexpr std::string_view magic = "dmx-bundle-signature ";

struct Line {
  std::string_view word;
  size_t digits;
  std::string Signature::*field;
};
/// The lines after the first, in order.
constexpr std::array<Line, 3> lines = {{{"manifest-sha256 ", 64, &Signature::manifestSha256},
                                        {"key ", 64, &Signature::key},
                                        {"signature ", 128, &Signature::value}}};

std::string firstLine(int64_t version) { return std::string(magic) + std::to_string(version) + "\n"; }

std::string lineText(const Line &line, const Signature &signature) {
  return std::string(line.word) + signature.*line.field + "\n";
}

} // namespace

std::string signedText(const Signature &signature) {
  std::string text = firstLine(signature.version);
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    text += lineText(lines[i], signature);
  return text;
}

std::string toText(const Signature &signature) { return signedText(signature) + lineText(lines.back(), signature); }

std::optional<Signature> parseSignature(std::string_view text) {
  if (!text.starts_with(magic))
    return std::nullopt;
  Signature signature;
  std::string_view number = text.substr(magic.size(), text.find('\n') - magic.size());
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), signature.version);
  constexpr int64_t most = 999999999;
  if (error != std::errc() || signature.version < 1 || signature.version > most ||
      !text.starts_with(firstLine(signature.version)))
    return std::nullopt;
  if (signature.version != signatureVersion)
    return signature;
  // Every byte of this version has its place: take the fields out, and see whether they give the same text.
  size_t at = firstLine(signature.version).size();
  for (const Line &line : lines) {
    if (text.size() < at + line.word.size() + line.digits)
      return std::nullopt;
    signature.*line.field = text.substr(at + line.word.size(), line.digits);
    if ((signature.*line.field).find_first_not_of("0123456789abcdef") != std::string::npos)
      return std::nullopt;
    at += line.word.size() + line.digits + 1;
  }
  return toText(signature) == text ? std::optional(signature) : std::nullopt;
}

Status attachSignature(const std::string &path, const std::string &text) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return attachToZip(path, text);
  return writeFile(path + "/" + std::string(signatureName), text, Durability::Disk);
}

} // namespace dmxc::bundle
