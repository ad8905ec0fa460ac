//===- Keys.cpp - files with keys for signatures --------------------------===//
#include "dmxc/Tools/Keys.h"

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/OutputFile.h"

#include <cstring>
#include <span>
#include <sys/stat.h>
#include <utility>

namespace dmxc::tools {

namespace {

constexpr std::string_view publicMagic = "dmx-public-key 1", secretMagic = "dmx-secret-key 1";
constexpr std::string_view keyWord = "key ", seedWord = "seed ";

/// explicit_bzero: a plain memset of memory that dies is left out by compilers.
void wipe(void *bytes, size_t size) { explicit_bzero(bytes, size); }

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/// Takes the end of a line off the front of `text`: as dmx-sign writes it, or as editors and mail leave it, which write
/// CRLF and drop the last one.
bool takeLineEnd(std::string_view &text) {
  if (!text.empty() && !text.starts_with('\n') && !text.starts_with("\r\n"))
    return false;
  text.remove_prefix(text.empty() ? 0 : text.find('\n') + 1);
  return true;
}

/// Takes a whole line that is `line`.
bool takeLine(std::string_view &text, std::string_view line) {
  if (!text.starts_with(line))
    return false;
  text.remove_prefix(line.size());
  return takeLineEnd(text);
}

/// Whether nothing but empty lines is left.
bool isEnd(std::string_view text) {
  while (!text.empty() && takeLineEnd(text)) {
  }
  return text.empty();
}

/// Takes a line of "word" and 64 digits.
bool takeKey(std::string_view &text, std::string_view word, KeyBytes &out) {
  if (!text.starts_with(word) || text.size() < word.size() + 2 * out.size())
    return false;
  text.remove_prefix(word.size());
  for (unsigned char &byte : out) {
    int high = digit(text[0]), low = digit(text[1]);
    if (high < 0 || low < 0)
      return false;
    byte = static_cast<unsigned char>(high << 4 | low);
    text.remove_prefix(2);
  }
  return takeLineEnd(text);
}

std::string_view textOf(const MappedFile &file) {
  return {reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size()};
}

Status writeKey(const std::string &path, std::string_view text, unsigned mode) {
  auto file = OutputFile::create(path);
  if (!file)
    return file.takeError();
  if (Status done = (*file)->setMode(mode); !done) // before there is anything to read
    return done;
  if (Status done = (*file)->write(text); !done)
    return done;
  return (*file)->commit(Durability::Disk);
}

} // namespace

SecretKey::SecretKey(SecretKey &&other) noexcept : key(other.key), seed(other.seed) {
  wipe(other.seed.data(), other.seed.size());
}

SecretKey::~SecretKey() { wipe(seed.data(), seed.size()); }

std::string hexText(const unsigned char *bytes, size_t size) {
  std::string text;
  text.reserve(2 * size); // no copies of a secret are left by growing
  for (unsigned char byte : std::span(bytes, size)) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Result<KeyBytes> readPublicKey(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  std::string_view text = textOf(**file);
  if (text.starts_with(secretMagic))
    return ioError("'" + path + "' is a secret key; give the public one, '" + path + ".pub'");
  KeyBytes key;
  if (!takeLine(text, publicMagic) || !takeKey(text, keyWord, key) || !isEnd(text))
    return ioError("'" + path +
                   "' is not a public key as 'dmx-sign keygen' writes it: the line 'dmx-public-key 1' and a "
                   "line 'key' with 64 hex digits");
  return key;
}

Result<SecretKey> readSecretKey(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077))
    return ioError("'" + path + "' may be read or written by others than its owner; 'chmod 600' it");
  std::string_view text = textOf(**file);
  if (text.starts_with(publicMagic))
    return ioError("'" + path + "' is a public key; to sign takes the secret one that was made with it");
  SecretKey key;
  if (!takeLine(text, secretMagic) || !takeKey(text, keyWord, key.key) || !takeKey(text, seedWord, key.seed) ||
      !isEnd(text))
    return ioError("'" + path + "' is not a secret key as 'dmx-sign keygen' writes it");
  return key;
}

Status writeKeyPair(const std::string &path, const SecretKey &key, bool force) {
  std::string publicPath = path + ".pub";
  struct stat info;
  for (const std::string &name : {path, publicPath})
    if (!force && lstat(name.c_str(), &info) == 0)
      return ioError("'" + name + "' exists; a key that is replaced is lost, so choose another name or give --force");
  std::string line = std::string(keyWord) + hexText(key.key.data(), key.key.size()) + "\n";
  std::string seed = hexText(key.seed.data(), key.seed.size()), secret;
  secret.reserve(secretMagic.size() + line.size() + seedWord.size() + seed.size() + 2);
  secret.append(secretMagic).append("\n").append(line).append(seedWord).append(seed).append("\n");
  Status done = writeKey(path, secret, 0600);
  wipe(seed.data(), seed.size());
  wipe(secret.data(), secret.size());
  return done ? writeKey(publicPath, std::string(publicMagic) + "\n" + line, 0644) : done;
}

} // namespace dmxc::tools
