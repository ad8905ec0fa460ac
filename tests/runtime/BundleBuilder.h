//===- BundleBuilder.h - bundles made by tests ------------------*- C++ -*-===//
//
// Builds small bundles in memory, independent of the compiler's writer, so that the
// runtime is tested against the format's text and every field can be made wrong.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dmxtest {

using Json = nlohmann::ordered_json;

/// Bytes at a 64-byte aligned address, as dmx_bundle_open_memory wants them. Exactly `size`
/// bytes are readable, so that a sanitizer sees a read past the end.
class AlignedBytes {
public:
  explicit AlignedBytes(std::string_view text) : count(text.size()) {
    void *memory = nullptr;
    if (posix_memalign(&memory, 64, count ? count : 1) != 0)
      std::abort();
    std::memcpy(memory, text.data(), count);
    data.reset(static_cast<std::byte *>(memory));
  }
  std::byte *get() { return data.get(); }
  size_t size() const { return count; }

private:
  struct Free {
    void operator()(std::byte *memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> data;
  size_t count;
};

/// A bundle before it is written: JSON that a test may change at will.
struct TestBundle {
  Json manifest, graph;
  std::map<std::string, std::string> files; // all other entries
  std::string manifestText, graphText;      // when set, used instead of the JSON above
  std::string signature;                    // when set, the text of manifest.sig

  /// The archive's bytes, with sizes and checksums of the entries filled in.
  std::string zip() const;
  /// Of the manifest as it is written: what a signature names.
  std::string manifestSha256() const;
  /// The same tree in a directory.
  void writeDirectory(const std::string &path) const;

private:
  std::vector<std::pair<std::string, std::string>> finish() const;
};

/// Entries in order, stored, without any meaning: the archive layer alone.
std::string storedZip(const std::vector<std::pair<std::string, std::string>> &entries, const std::string &comment);

/// Adds what graphs are made of, one call each; returns positions.
class ModelBuilder {
public:
  ModelBuilder();
  void dim(const std::string &name, int64_t min, int64_t max, uint32_t input, uint32_t axis);
  void computedDim(const std::string &name, Json expr);
  void returnedDim(const std::string &name, int task, int result, Json min, Json max);
  /// An extent of what an if or loop gives.
  void extentDim(const std::string &name, int task, int output, int axis, Json min = 0, Json max = INT64_MAX);
  void constraint(const std::string &relation, Json lhs, Json rhs, const std::string &text);
  int input(const std::string &name, const std::string &dtype, Json shape);
  int output(const std::string &name, const std::string &dtype, Json shape);
  int constant(const std::string &bytes, const std::string &dtype, Json shape);
  /// At the end of arena 0, which grows; `size` is an integer.
  int arena(int64_t size, const std::string &dtype, Json shape);
  /// A new arena of that size, and a buffer that is all of it.
  int arenaOf(Json size, const std::string &dtype, Json shape);
  int result(int task, int output, const std::string &dtype, Json shape);
  int alias(int of, Json offset, Json size, const std::string &dtype, Json shape);
  int state(int64_t size, const std::string &dtype, Json shape);
  /// `more` is merged over the task's defaults ("dims", "grain", "scratch", "nodes", ...).
  int dispatch(const std::string &kernel, std::vector<int> buffers, int outputs, Json work, std::vector<int> deps = {},
               Json more = Json::object());
  int copy(int src, int dst, Json size, std::vector<int> deps = {}, Json more = Json::object());
  int branch(int condition, const std::string &then, const std::string &otherwise, std::vector<int> inputs, int outputs,
             std::vector<int> deps = {});
  /// `more`: "trip_count", "cond", "scans".
  int loop(const std::string &body, std::vector<int> carried, std::vector<int> inputs, std::vector<int> deps = {},
           Json more = Json::object());
  TestBundle finish() const;
  /// The graph alone, for tasks of others.
  Json graphNamed(const std::string &name) const;

private:
  int addBuffer(Json buffer);
  int addTask(Json task);
  Json inputs = Json::array(), outputs = Json::array(), dims = Json::array();
  Json graph;
  Json tensors = Json::object(); // of the weights' header
  std::string weights;
  int64_t arenaEnd = 0;
};

/// Text of the compiled kernels.c; `variant` is "" or a name in CMakeLists.txt.
const std::string &kernelObject(const std::string &variant = "");

/// f32 y = a + b over n elements: the smallest useful bundle.
TestBundle addModel(int64_t n);
/// The same over a symbolic "batch" x 4 with constant b, through an arena: y = (x + c) * batch.
TestBundle batchModel();
/// i64 y = positions of x's nonzero elements, each plus itself; the second stage has an arena of n elements of its own.
ModelBuilder nonzeroBuilder();

/// Writes a file or ends the test program.
void writeFile(const std::string &path, std::string_view bytes);

} // namespace dmxtest
