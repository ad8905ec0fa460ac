//===- WriterTest.cpp - writing bundles and reading them back -------------===//
#include "SampleBundle.h"
#include "dmxc/Bundle/Diff.h"
#include "dmxc/Bundle/Validate.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/OutputFile.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <sys/resource.h>
#include <sys/wait.h>

namespace dmxc::bundle::test {
namespace {

std::string problemsOf(const Bundle &bundle) {
  std::string text;
  for (const Problem &problem : validate(bundle, CheckLevel::Everything))
    text += problem.where + ": " + problem.message + "\n";
  return text;
}

class WriterTest : public testing::TestWithParam<BundleFormat> {
protected:
  ScratchDir scratch;
};

TEST_P(WriterTest, WhatIsWrittenIsRead) {
  std::string path = scratch.path("m.bundle");
  writeSample(path, GetParam());
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(problemsOf(*bundle), "");
  EXPECT_EQ(bundle->manifest().modelName, "sample");
  EXPECT_EQ(bundle->find("tests/note.txt")->text(), "hello");
  WeightsWriter weights;
  sampleWeights(weights);
  EXPECT_EQ(toJson(bundle->graphs()), toJson(sampleGraph(weights)));
  EXPECT_EQ(toJson(bundle->manifest()), bundle->entries()[0].text());
  auto tensors = readWeights(bundle->find("weights/model.safetensors")->bytes);
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 2u);
  EXPECT_EQ((*tensors)[0].name, "w");
  EXPECT_EQ((*tensors)[0].offset % 64, 0u);
  EXPECT_EQ((*tensors)[1].packing, "panel16");
  EXPECT_EQ((*tensors)[1].offset % 64, 0u);
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"m.bundle"});
}

TEST_P(WriterTest, OverwritesABundle) {
  std::string path = scratch.path("m.bundle");
  writeSample(path, GetParam(), [](GraphFile &, Manifest &m) { m.modelName = "old"; });
  writeSample(path, GetParam());
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->manifest().modelName, "sample");
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"m.bundle"});
}

TEST_P(WriterTest, AFailingProducerLeavesNothing) {
  {
    auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->addStream("weights/a.safetensors", 5,
                                     [](ByteSink &) -> Status { return ioError("the model file vanished"); }));
    Status done = (*writer)->finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "the model file vanished");
  }
  EXPECT_TRUE(scratch.names().empty());
}

TEST_P(WriterTest, AFailingCheckLeavesWhatWasThere) {
  std::string path = scratch.path("m.bundle");
  writeSample(path, GetParam(), [](GraphFile &, Manifest &m) { m.modelName = "old"; });
  for (bool fails : {true, false}) {
    auto writer = Writer::create(path, GetParam());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->addEntry("debug/a", "12345"));
    std::string seen;
    (*writer)->setCheck([&](const std::string &written) -> Status {
      // All of it is there, under another name than its own.
      EXPECT_EQ(Bundle::open(path)->manifest().modelName, "old");
      if (GetParam() == BundleFormat::Zip) {
        auto file = MappedFile::open(written);
        seen = file ? "archive" : file.error().message;
      } else {
        seen = std::filesystem::exists(written + "/debug/a") ? "archive" : "nothing";
      }
      return fails ? Status(Error{ErrorKind::Internal, "not sound"}) : Status::ok();
    });
    Status done = (*writer)->finish();
    EXPECT_EQ(seen, "archive");
    EXPECT_EQ(static_cast<bool>(done), !fails);
    EXPECT_EQ(fails ? Bundle::open(path)->manifest().modelName : "", fails ? "old" : "");
  }
  EXPECT_EQ(scratch.names(), std::vector<std::string>{"m.bundle"});
}

TEST_P(WriterTest, AProducerIsHeldToItsSize) {
  for (std::string bytes : {"1234", "123456"}) {
    auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->addStream("debug/a", 5, [=](ByteSink &sink) { return sink.write(bytes); }));
    Status done = (*writer)->finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::Internal);
    EXPECT_NE(done.error().message.find("debug/a"), std::string::npos);
  }
  EXPECT_TRUE(scratch.names().empty());
}

/// Bytes that tell their places.
std::string variedBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  return bytes;
}

/// A tensor of its own of some of the bytes.
Tensor partOf(const std::string &bytes, size_t at, size_t size) {
  Tensor part(DType::U8, {static_cast<int64_t>(size)});
  std::memcpy(part.mutableData(), bytes.data() + at, size);
  return part;
}

/// Hashed and written by threads: in pieces of all sizes, copied and kept.
TEST_P(WriterTest, ALargeEntryIsWhatWasProduced) {
  const std::string all = variedBytes(100 << 20);
  auto produce = [&](ByteSink &sink) -> Status {
    size_t at = 0;
    for (size_t size : {1u, 4096u, 3u << 20, 5u << 20, 70u << 20, 999u, (1u << 20) - 1, 1u << 20, 2u << 20}) {
      Status done = at % 2 ? sink.take(partOf(all, at, size)) : sink.write(std::string_view(all).substr(at, size));
      if (!done)
        return done;
      at += size;
    }
    return sink.write(std::string_view(all).substr(at));
  };
  std::string path = scratch.path("m.bundle");
  auto writer = Writer::create(path, GetParam());
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->addStream("debug/large", all.size(), produce));
  ASSERT_TRUE((*writer)->addEntry("graph.json", toJson(GraphFile())));
  ASSERT_TRUE((*writer)->addEntry("debug/small", "small"));
  ASSERT_TRUE((*writer)->finish());
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(bundle->find("debug/large")->text() == all);
  EXPECT_EQ(bundle->find("debug/small")->text(), "small");
  for (const Problem &problem : validate(*bundle, CheckLevel::Everything))
    EXPECT_TRUE(problem.message.find("sha256") == std::string::npos && problem.message.find("CRC") == std::string::npos)
        << problem.where << ": " << problem.message;
}

TEST_P(WriterTest, ALargeEntryThatFailsLeavesNothing) {
  const std::string all = variedBytes(6 << 20);
  for (size_t size : {5 << 20, 7 << 20}) { // more and fewer bytes than announced
    auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->addStream("debug/a", size, [&](ByteSink &sink) -> Status {
      Status done = sink.take(partOf(all, 0, 2 << 20));
      return done ? sink.take(partOf(all, 2 << 20, 4 << 20)) : std::move(done);
    }));
    Status done = (*writer)->finish();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().kind, ErrorKind::Internal);
    EXPECT_NE(done.error().message.find("debug/a"), std::string::npos);
  }
  EXPECT_TRUE(scratch.names().empty());
}

TEST_P(WriterTest, ASignalLeavesNothing) {
  pid_t child = fork();
  if (child == 0) {
    installInterruptCleanup();
    auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
    (void)(*writer)->addEntry("debug/first", std::string(3 << 20, 'x'));
    (void)(*writer)->addStream("debug/second", 1, [](ByteSink &) -> Status {
      raise(SIGINT);
      return Status::ok();
    });
    (void)(*writer)->finish();
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_TRUE(scratch.names().empty());
}

TEST_P(WriterTest, RefusesBadNamesAndPaths) {
  auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
  ASSERT_TRUE(writer);
  for (const char *name : {"", "/etc/passwd", "debug/../x", "debug//x", "debug/", "other/x", "manifest.json",
                           "debug/a b", "debug/\n", "weights/../../x"})
    EXPECT_FALSE((*writer)->addEntry(name, "")) << name;
  EXPECT_TRUE((*writer)->addEntry("debug/a", ""));
  EXPECT_FALSE((*writer)->addEntry("debug/a", ""));
  auto bad = Writer::create(scratch.path("no/such/dir/m.bundle"), GetParam());
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().kind, ErrorKind::IO);
  EXPECT_NE(bad.error().message.find("No such file"), std::string::npos) << bad.error().message;
}

TEST_P(WriterTest, AFullDiskIsExplained) {
  // A file-size limit makes write() fail as a full disk does.
  pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {2 << 20, 2 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto writer = Writer::create(scratch.path("m.bundle"), GetParam());
    (void)(*writer)->addStream("debug/big", 200 << 20, [](ByteSink &sink) -> Status {
      Tensor tensor(DType::U8, {1 << 20});
      for (int i = 0; i < 200; ++i)
        if (Status done = sink.take(tensor); !done)
          return done;
      return Error{ErrorKind::Internal, "nobody said that the disk is full"};
    });
    Status done = (*writer)->finish();
    bool good =
        !done && done.error().kind == ErrorKind::IO && done.error().message.find("File too large") != std::string::npos;
    writer = ioError("");
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(scratch.names().empty());
}

INSTANTIATE_TEST_SUITE_P(Formats, WriterTest, testing::Values(BundleFormat::Zip, BundleFormat::Directory),
                         [](auto &info) { return info.param == BundleFormat::Zip ? "Zip" : "Directory"; });

TEST(WriterPath, RefusesWhatIsNotABundle) {
  ScratchDir scratch;
  std::filesystem::create_directories(scratch.path("d/inner"));
  auto zip = Writer::create(scratch.path("d"), BundleFormat::Zip);
  ASSERT_FALSE(zip);
  EXPECT_NE(zip.error().message.find("is a directory"), std::string::npos);
  auto dir = Writer::create(scratch.path("d"), BundleFormat::Directory);
  ASSERT_FALSE(dir);
  EXPECT_NE(dir.error().message.find("not a bundle"), std::string::npos);
  auto device = Writer::create("/dev/null", BundleFormat::Zip);
  ASSERT_FALSE(device);
  EXPECT_NE(device.error().message.find("not a regular file"), std::string::npos);
}

TEST(WriterBytes, AreEqualForEqualInput) {
  ScratchDir scratch;
  writeSample(scratch.path("a"));
  writeSample(scratch.path("b"));
  EXPECT_EQ(readFile(scratch.path("a")), readFile(scratch.path("b")));
}

TEST(WriterBytes, EntriesAreAlignedAndOrdered) {
  ScratchDir scratch;
  auto writer = Writer::create(scratch.path("m"), BundleFormat::Zip);
  ASSERT_TRUE(writer);
  for (const char *name : {"tests/t", "debug/z", "debug/a", "code/cpu/x86-64-v3/kernels.bin", "graph.json"})
    ASSERT_TRUE((*writer)->addEntry(name, name == std::string("graph.json") ? "{\"graphs\":[]}" : "12345"));
  WeightsWriter weights;
  sampleWeights(weights);
  ASSERT_TRUE((*writer)->addStream("weights/b.safetensors", weights.size(), weights.producer()));
  (*writer)->setManifest(sampleManifest());
  ASSERT_TRUE((*writer)->finish());
  auto bundle = Bundle::open(scratch.path("m"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  std::vector<std::string> names;
  for (const BundleEntry &entry : bundle->entries()) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.offset % (entry.name.starts_with("weights/") ? 4096 : 64), 0u) << entry.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"manifest.json", "graph.json", "weights/b.safetensors",
                                             "code/cpu/x86-64-v3/kernels.bin", "debug/a", "debug/z", "tests/t"}));
  EXPECT_EQ(bundle->fileSize(), (*writer)->bytesWritten());
}

TEST(WriterBytes, StreamingNeedsLittleMemory) {
  // 256 MiB of weights under a 128 MiB address-space limit.
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer reserves address space";
#endif
  ScratchDir scratch;
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {128 << 20, 128 << 20};
    setrlimit(RLIMIT_AS, &limit);
    WeightsWriter weights;
    for (int i = 0; i < 8; ++i)
      (void)weights.add("w" + std::to_string(i), DType::F32, {8 << 20},
                        [](ByteSink &sink) { return sink.writeZeros(32 << 20); });
    auto writer = Writer::create(scratch.path("m"), BundleFormat::Zip);
    (void)(*writer)->addStream("weights/m.safetensors", weights.size(), weights.producer());
    (void)(*writer)->addEntry("graph.json", "{\"graphs\":[]}");
    _exit((*writer)->finish() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  auto bundle = Bundle::open(scratch.path("m"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_GT(bundle->fileSize(), uint64_t(256) << 20);
}

TEST(Diff, NamesWhatChanged) {
  ScratchDir scratch;
  writeSample(scratch.path("a"));
  writeSample(scratch.path("b"), BundleFormat::Directory, [](GraphFile &g, Manifest &m) {
    m.options[0].second = int64_t(3);
    g.graphs[0].tasks[2].size = 56;
    g.graphs[0].arenas[0].size = 8192;
  });
  auto a = Bundle::open(scratch.path("a")), b = Bundle::open(scratch.path("b"));
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(diff(*a, *a).empty());
  std::map<std::string, std::string> found;
  for (const Difference &d : diff(*a, *b))
    found[d.what + " " + d.name] = d.a + " -> " + d.b;
  EXPECT_EQ(found["manifest options.opt"], "2 -> 3");
  EXPECT_EQ(found["task main/task/copy2.size"], "60 -> 56");
  EXPECT_EQ(found["graph main/arena/[0].size"], "[\"mul\",\"batch\",64] -> 8192");
  EXPECT_TRUE(found.count("entry graph.json"));
  EXPECT_EQ(found.size(), 4u);
}

} // namespace
} // namespace dmxc::bundle::test
