//===- HashingSink.cpp - an entry's bytes, hashed and written -------------===//
#include "WriterImpl.h"

#include "dmxc/Support/WorkCount.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <system_error>

namespace dmxc::bundle {

static_assert(std::endian::native == std::endian::little, "bundles are written and read in place, little-endian");

uint32_t updateCrc32(uint32_t crc, std::span<const std::byte> bytes) {
  if (bytes.empty()) // where no address means something else
    return crc;
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

Lane::Lane() {
  try {
    thread = std::thread([this] { run(); });
  } catch (const std::system_error &) { // no more threads for this user
  }
}

void Lane::add(std::function<void()> job) {
  if (!thread.joinable())
    return job();
  {
    std::lock_guard lock(mutex);
    jobs.push_back(std::move(job));
  }
  more.notify_one();
}

void Lane::run() {
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex);
      more.wait(lock, [this] { return ended || !jobs.empty(); });
      if (jobs.empty())
        return;
      job = std::move(jobs.front());
      jobs.pop_front();
    }
    try {
      if (!thrown)
        job();
    } catch (...) {
      thrown = std::current_exception();
    }
  }
}

void Lane::end() {
  {
    std::lock_guard lock(mutex);
    ended = true;
  }
  more.notify_one();
  if (thread.joinable())
    thread.join();
}

void Lane::finish() {
  end();
  if (thrown)
    std::rethrow_exception(std::exchange(thrown, nullptr));
}

//===----------------------------------------------------------------------===//
// HashingSink
//===----------------------------------------------------------------------===//

namespace {
/// Entries from this size on have lanes: threads take longer to start than less takes to hash.
constexpr uint64_t laneBytes = 4 << 20;
/// Smaller writes become one piece.
constexpr size_t gatherBytes = 1 << 20;
/// As much may wait for the lanes before a producer waits for them; what waits is memory.
constexpr uint64_t mostWaiting = 64 << 20;
/// What is shown at once of the progress in a large tensor.
constexpr size_t stepBytes = 16 << 20;

Error misuse(std::string message) { return {ErrorKind::Internal, std::move(message)}; }
} // namespace

struct HashingSink::Lanes {
  std::mutex mutex;
  std::condition_variable lessWaits;
  uint64_t waiting = 0;         ///< bytes that some lane has yet to read
  std::optional<Error> failure; ///< of the first write that failed
  Lane hashing, writing;        // last: their jobs use the others

  std::optional<Error> failed() {
    std::lock_guard lock(mutex);
    return failure;
  }
};

/// What both lanes read, until the last of them has.
class HashingSink::Piece {
public:
  Piece(Lanes &lanes, Tensor tensor) : lanes(lanes), tensor(std::move(tensor)) {
    std::lock_guard lock(lanes.mutex);
    lanes.waiting += bytes().size();
  }
  Piece(const Piece &) = delete;
  ~Piece() {
    uint64_t size = bytes().size();
    tensor = Tensor();
    std::lock_guard lock(lanes.mutex);
    lanes.waiting -= size;
    lanes.lessWaits.notify_one();
  }
  std::span<const std::byte> bytes() const { return tensor.raw(); }

private:
  Lanes &lanes;
  Tensor tensor;
};

HashingSink::HashingSink(ByteFile &file, std::string entry, uint64_t expected)
    : file(file), entry(std::move(entry)), expected(expected),
      lanes(expected < laneBytes ? nullptr : std::make_unique<Lanes>()) {}

HashingSink::~HashingSink() = default;

Status HashingSink::admit(size_t size) {
  if (size > expected - count)
    return misuse("bundle entry '" + entry + "': more than the announced " + std::to_string(expected) +
                  " bytes were written");
  count += size;
  return Status::ok();
}

void HashingSink::hashPiece(std::span<const std::byte> bytes) {
  WorkTimer timer("write", "hashing");
  hash.update(bytes);
}

Status HashingSink::writePiece(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::span<const std::byte> step = bytes.first(std::min(stepBytes, bytes.size()));
    WorkTimer timer("write", "writing");
    crc = updateCrc32(crc, step); // beside the slower hash
    if (Status done = file.write(step); !done)
      return done;
    advanceWork(step.size());
    bytes = bytes.subspan(step.size());
  }
  return Status::ok();
}

/// Gives both lanes a piece, and waits until not too much waits for them.
Status HashingSink::pass(const Tensor &tensor) {
  auto piece = std::make_shared<Piece>(*lanes, tensor);
  lanes->hashing.add([this, piece] { hashPiece(piece->bytes()); });
  lanes->writing.add([this, piece] {
    if (lanes->failed())
      return;
    if (Status done = writePiece(piece->bytes()); !done) {
      std::lock_guard lock(lanes->mutex);
      lanes->failure = done.takeError();
    }
  });
  piece.reset();
  std::unique_lock lock(lanes->mutex);
  lanes->lessWaits.wait(lock, [this] { return lanes->waiting <= mostWaiting; });
  return lanes->failure ? Status(*lanes->failure) : Status::ok();
}

Status HashingSink::passGathered() {
  if (!gathered)
    return Status::ok();
  std::shared_ptr<std::vector<std::byte>> all = std::move(gathered);
  return pass(Tensor(DType::U8, {static_cast<int64_t>(all->size())}, all->data(), all));
}

Status HashingSink::write(std::span<const std::byte> bytes) {
  if (Status done = admit(bytes.size()); !done)
    return done;
  if (!lanes) {
    hashPiece(bytes);
    return writePiece(bytes);
  }
  while (!bytes.empty()) {
    if (!gathered) {
      gathered = std::make_shared<std::vector<std::byte>>();
      gathered->reserve(gatherBytes);
    }
    std::span<const std::byte> part = bytes.first(std::min(gatherBytes - gathered->size(), bytes.size()));
    gathered->insert(gathered->end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (gathered->size() == gatherBytes)
      if (Status done = passGathered(); !done)
        return done;
  }
  return Status::ok();
}

Status HashingSink::take(const Tensor &tensor) {
  if (!lanes || tensor.byteSize() < gatherBytes)
    return write(tensor.raw());
  if (Status done = admit(tensor.byteSize()); !done)
    return done;
  if (Status done = passGathered(); !done)
    return done;
  return pass(tensor);
}

Status HashingSink::finish() {
  if (lanes) {
    if (Status done = passGathered(); !done)
      return done;
    lanes->hashing.finish();
    lanes->writing.finish();
    if (std::optional<Error> failure = lanes->failed())
      return *failure;
  }
  if (count == expected)
    return Status::ok();
  return misuse("bundle entry '" + entry + "': " + std::to_string(count) + " bytes were written, " +
                std::to_string(expected) + " announced");
}

} // namespace dmxc::bundle
