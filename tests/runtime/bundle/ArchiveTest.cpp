//===- ArchiveTest.cpp - the archive layer and checksums ------------------===//

#include "runtime/bundle/Archive.h"
#include "../RuntimeTest.h"
#include "runtime/bundle/Sha256.h"
#include "runtime/bundle/Zip.h"

using namespace dmxtest;
using namespace dmxrt;

namespace {

std::span<const std::byte> bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

const std::string kComment = "dmx-manifest-sha256:" + std::string(64, 'a');

/// The message when `text` is refused, "" when it is read.
std::string zipError(const std::string &text) {
  AlignedBytes bytes(text);
  auto archive = Archive::openMemory({bytes.get(), bytes.size()}, nullptr);
  return archive ? "" : archive.error().message;
}

template <typename T> std::string patched(std::string text, size_t offset, T value) {
  std::memcpy(text.data() + offset, &value, sizeof value);
  return text;
}

} // namespace

TEST(Checksum, Sha256KnownAnswers) {
  for (auto hash : {sha256Hex, sha256HexPortable}) {
    EXPECT_EQ(hash(bytesOf("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(hash(bytesOf("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hash(bytesOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hash(bytesOf(std::string(1000000, 'a'))),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Checksum, Crc32KnownAnswers) {
  EXPECT_EQ(crc32(bytesOf("")), 0u);
  EXPECT_EQ(crc32(bytesOf("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytesOf("The quick brown fox jumps over the lazy dog")), 0x414FA339u);
}

TEST(Archive, ReadsEntriesInPlace) {
  AlignedBytes bytes(
      storedZip({{"manifest.json", "{}"}, {"weights/a", std::string(100, 'w')}, {"code/x", ""}}, kComment));
  auto archive = Archive::openMemory({bytes.get(), bytes.size()}, nullptr);
  ASSERT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive->manifestSha256(), std::string(64, 'a'));
  EXPECT_EQ(archive->entries().size(), 3u);
  const Archive::Entry *weights = archive->find("weights/a");
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->data.size(), 100u);
  EXPECT_EQ((weights->data.data() - bytes.get()) % 4096, 0);
  EXPECT_GE(weights->data.data(), bytes.get());
  EXPECT_LT(weights->data.data(), bytes.get() + bytes.size());
  EXPECT_EQ(archive->find("code/x")->data.size(), 0u);
  EXPECT_FALSE(archive->find("nothing"));
}

TEST(Archive, EntryNames) {
  for (const char *good : {"a", "weights/model.safetensors", "code/cpu/x86-64-v3/kernels.so", "a/..b", "A_9+-"})
    EXPECT_TRUE(isEntryName(good)) << good;
  for (const char *bad : {"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a/.", "a b", "a\\b", "a:b", "\xc3\xa4"})
    EXPECT_FALSE(isEntryName(bad)) << bad;
}

TEST(Archive, RefusesWrongNamesAndOrder) {
  EXPECT_NE(zipError(storedZip({{"graph.json", ""}, {"manifest.json", ""}}, kComment)).find("first entry"),
            std::string::npos);
  EXPECT_NE(zipError(storedZip({}, kComment)).find("first entry"), std::string::npos);
  EXPECT_NE(zipError(storedZip({{"manifest.json", ""}, {"../x", ""}}, kComment)).find("unsafe name"),
            std::string::npos);
  EXPECT_NE(zipError(storedZip({{"manifest.json", ""}, {"x", ""}, {"x", ""}}, kComment)).find("two entries"),
            std::string::npos);
  std::string otherComment(84, 'c');
  EXPECT_NE(zipError(storedZip({{"manifest.json", ""}}, otherComment)).find("comment"), std::string::npos);
}

TEST(Archive, RefusesMisalignedMemory) {
  std::string text = storedZip({{"manifest.json", "{}"}}, kComment);
  AlignedBytes bytes(" " + text);
  auto archive = Archive::openMemory({bytes.get() + 1, text.size()}, nullptr);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().status, DMX_STATUS_INVALID_ARGUMENT);
  EXPECT_NE(archive.error().message.find("64-byte aligned"), std::string::npos);
}

/// Every byte outside the entries' data has one value; each other one is found.
TEST(Archive, FindsEveryChangedByteOutsideData) {
  std::string manifest = "{\"x\": 1}", weights(70, 'w');
  std::string text = storedZip({{"manifest.json", manifest}, {"weights/w", weights}}, kComment);
  size_t first = text.find(manifest), second = text.find(weights);
  ASSERT_EQ(zipError(text), "");
  for (size_t i = 0; i < text.size(); ++i) {
    bool inData = (i >= first && i < first + manifest.size()) || (i >= second && i < second + weights.size());
    bool inDigest = i >= text.size() - 64; // its change is found by comparing it
    if (inData || inDigest)
      continue;
    for (int bit : {0, 3, 5, 7}) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      // A letter of a name may become another valid letter in both readings; not in one.
      EXPECT_NE(zipError(flipped), "") << "byte " << i << " bit " << bit;
    }
  }
}

TEST(Archive, FindsEveryTruncation) {
  std::string text = storedZip({{"manifest.json", "{\"x\": 1}"}, {"weights/w", std::string(70, 'w')}}, kComment);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(zipError(text.substr(0, size)), "") << "first " << size << " bytes";
  EXPECT_NE(zipError(text + "x"), "");
  EXPECT_NE(zipError("x" + text), "");
}

TEST(Archive, HostileNumbers) {
  std::string text = storedZip({{"manifest.json", "{\"x\": 1}"}, {"weights/w", std::string(70, 'w')}}, kComment);
  size_t end64 = text.rfind("PK\x06\x06"), central = text.find("PK\x01\x02");
  ASSERT_NE(end64, std::string::npos);
  uint64_t wild[] = {0,
                     1,
                     63,
                     0x7FFFFFFF,
                     0xFFFFFFFE,
                     0xFFFFFFFF,
                     0x100000000,
                     uint64_t(INT64_MAX),
                     UINT64_MAX - 45,
                     UINT64_MAX - 1,
                     UINT64_MAX,
                     text.size(),
                     text.size() - 1,
                     text.size() + 1};
  // Refused unless the value is the right one.
  auto expectRefused = [&](const std::string &changed, const std::string &what) {
    EXPECT_EQ(zipError(changed).empty(), changed == text) << what;
  };
  size_t extra = central + 46 + 13 + 4; // ZIP64 field of the first central record
  for (uint64_t value : wild) {
    std::string is = " = " + std::to_string(value);
    for (size_t field : {24, 32, 40, 48}) // counts, size and offset of the directory
      expectRefused(patched(text, end64 + field, value), "end record " + std::to_string(field) + is);
    // Count changed in both places, so that only its bounds can tell.
    expectRefused(patched(patched(text, end64 + 24, value), end64 + 32, value), "both counts" + is);
    for (size_t field : {0, 8, 16})
      expectRefused(patched(text, extra + field, value), "central ZIP64 field " + std::to_string(field) + is);
    expectRefused(patched(patched(text, extra, value), extra + 8, value), "both sizes" + is);
    for (size_t field : {28, 30, 32}) // name, extra and comment length
      expectRefused(patched(text, central + field, static_cast<uint16_t>(value)),
                    "length" + std::to_string(field) + is);
  }
}

/// A plain ZIP without ZIP64 records, as other tools write them, is read too.
TEST(Archive, ReadsZip32) {
  std::string text, name = "manifest.json", data = "{}";
  auto put16 = [&](uint16_t v) { text.append(reinterpret_cast<char *>(&v), 2); };
  auto put32 = [&](uint32_t v) { text.append(reinterpret_cast<char *>(&v), 4); };
  auto common = [&] {
    for (uint16_t v : {10, 0, 0, 0, 0x0021})
      put16(v);
    put32(crc32(bytesOf(data)));
    put32(2);
    put32(2);
    put16(13);
  };
  put32(0x04034b50);
  common();
  put16(21); // 30 + 13 + 21 = 64
  text += name;
  put16(0x4D44);
  put16(17);
  text.append(17, '\0');
  text += data;
  uint32_t central = static_cast<uint32_t>(text.size());
  put32(0x02014b50);
  put16(0x032D);
  common();
  put16(0);
  put16(0);
  put32(0);
  put32(0x81A40000);
  put32(0);
  text += name;
  uint32_t size = static_cast<uint32_t>(text.size()) - central;
  put32(0x06054b50);
  put32(0);
  put16(1);
  put16(1);
  put32(size);
  put32(central);
  put16(84);
  text += kComment;
  EXPECT_EQ(zipError(text), "");
}
