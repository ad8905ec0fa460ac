//===- CudaFuzzer.cpp - hostile kernels for the simulated GPU -------------===//
//
// An input is an entry as a bundle has it, a launch table and PTX, and is loaded as a session does. What is accepted is
// run on buffers of kBufferBytes each, with few instructions and few blocks, so that AddressSanitizer sees what the
// simulator itself touches. Mutations change the table as JSON, and numbers and lines of the text.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Engine.h"

#include "runtime/bundle/Contract.h"
#include "runtime/devices/cuda/CudaImage.h"
#include "tests/runtime/cuda/CudaBody.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

using dmxfuzz::Arithmetic;
using dmxfuzz::promise;

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kBufferBytes = 4096;
constexpr uint32_t kMostBlocks = 2, kMostThreads = 256, kMostBuffers = 16, kMostDims = 8, kMostResults = 64;

//===--- inputs -----------------------------------------------------------------------===//

/// The launch table and what stands behind it.
struct Entry {
  std::string table, code;
  std::string text() const { return "// " + table + "\n" + code; }
};

Entry split(std::string_view text) {
  Entry entry;
  while (text.starts_with("//")) {
    size_t end = std::min(text.find('\n'), text.size());
    entry.table += text.substr(2, end - 2);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  entry.code = text;
  return entry;
}

/// A kernel of two buffers and one dim; `body` has %d0, what it writes, and %d1, what it reads, and %r0, the thread.
std::string entryOf(int threads, const std::string &launch, int maps, const std::string &body) {
  std::string parameters;
  for (int i = 0; i < maps; ++i)
    parameters += ", .param .align 64 .b8 map" + std::to_string(i) + "[128]";
  return R"(// {"launch_table": 2, "level": "sm_90a", "kernels": [{"name": "k", "nodes": ["n"], "dims": ["n"], "block": )" +
         std::to_string(threads) + R"(, "grid": 1, "item": "block", )" + launch +
         R"(, "contract": [16, 2, 1, 1, 0, 0, 1, 0, 64, 0, 4096, 0, 4096]}]}
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 room[];
.visible .entry k(.param .u64 from, .param .u64 to, .param .u64 n, .param .u64 scratch, .param .u64 share,
  .param .u64 results, .param .u64 status)" +
         parameters + ")\n.reqntid " + std::to_string(threads) + R"(
{
	.reg .pred %p<16>;
	.reg .b16 %h<16>;
	.reg .b32 %r<100>;
	.reg .b64 %d<40>;
	ld.param.b64 %d1, [from];
	ld.param.b64 %d0, [to];
	ld.param.b64 %d2, [n];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %d30, %r0, 4;
	add.s64 %d30, %d0, %d30;
	mov.b32 %r30, 0;
	mov.b32 %r31, 0;
	mov.b32 %r32, 0;
	mov.b32 %r33, 0;
)" + body +
         "\n\tret;\n}\n";
}

/// Rows of `bytes` are loaded to the end of shared memory and stored from there.
std::string boxes(int type, int rows, int swizzle, int place) {
  std::string map = R"("type": ")" + std::string(type == 2 ? "bf16" : "f32") + R"(", "sizes": [)" +
                    std::to_string(64 / type) + ", 8], \"strides\": [64], \"box\": [" + std::to_string(16 / type) +
                    ", " + std::to_string(rows) + "], \"swizzle\": " + std::to_string(swizzle) + "}";
  return entryOf(32,
                 R"("shared": )" + std::to_string(place + 16 * rows) + R"(, "maps": [{"buffer": 0, )" + map +
                     R"(, {"buffer": 1, )" + map + "]",
                 2,
                 R"(	.shared .align 8 .b8 bar[8];
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra $end;
	mbarrier.init.shared.b64 [bar], 1;
	fence.mbarrier_init.release.cluster;
	mov.b64 %d10, map0;
	mov.b64 %d11, map1;
	mbarrier.arrive.expect_tx.shared.b64 _, [bar], )" +
                     std::to_string(16 * rows) + R"(;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room+)" +
                     std::to_string(place) + R"(], [%d10, {0, 0}], [bar];
$wait:
	mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
	@!%p1 bra $wait;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d11, {0, 0}], [room+)" +
                     std::to_string(place) + R"(];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
$end:)");
}

/// Runs a kernel of a loaded entry. What it ends in has a name.
void run(dmxrt::Device &device, const dmxrt::CodeImage &code, const dmxrt::cuda::KernelLaunch &kernel) {
  using namespace dmxrt;
  const KernelContract *contract = code.contracts()->find(kernel.name);
  promise(contract, "a kernel that was loaded has a contract");
  if (kernel.block > kMostThreads || kernel.buffers > kMostBuffers || kernel.dims > kMostDims ||
      kernel.results > kMostResults)
    return;
  std::vector<std::vector<std::byte>> buffers(kernel.buffers, std::vector<std::byte>(kBufferBytes, std::byte(0x3f)));
  std::vector<void *> pointers;
  for (std::vector<std::byte> &buffer : buffers)
    pointers.push_back(buffer.data());
  std::vector<uint64_t> sizes(kernel.buffers, kBufferBytes);
  std::vector<int64_t> dims(kernel.dims, 2), results(kernel.results + 1);
  DeviceTask task;
  task.kernel = &kernel;
  task.buffers = pointers.data();
  task.bufferBytes = sizes;
  task.dims = dims.data();
  task.dimCount = kernel.dims;
  task.work = int64_t(1) << 40; // with scratch there may be fewer threads than that
  task.scratch = 64;
  task.results = kernel.results ? results.data() : nullptr;
  task.written = contract->outputs;
  auto blocks = kernel.image->blocksOf(task);
  if (!blocks || *blocks > kMostBlocks)
    return;
  const Segment segment{0, 1};
  device.setProgramCount(1);
  if (Status status = device.prepare({&task, 1}, {&segment, 1}); !status) {
    promise(!status.error().message.empty(), "a task is prepared, or refused with a sentence");
    return;
  }
  device.startRun();
  device.enqueue(0);
  RunOutcome outcome = device.fence();
  promise(outcome.code != kDeviceFault || outcome.detail.find(": ") != std::string::npos, "a fault has a name");
}

std::unique_ptr<dmxrt::Device> makeDevice() {
  const std::string target = "cuda";
  dmxrt::DeviceOptions options;
  options.threads = 1;
  options.settings = {"cuda.sim=on", "cuda.sim_steps=2000"};
  auto devices = dmxrt::createDevices({&target, 1}, options);
  promise(static_cast<bool>(devices), "the simulator is there");
  return std::move(devices->front());
}

//===--- mutations --------------------------------------------------------------------===//

/// One of a list; of one that is empty, or none, what cannot be changed is an exception.
Json &pick(Json &list, Arithmetic &arithmetic) { return list.at(arithmetic.below(std::max<size_t>(list.size(), 1))); }

/// Numbers of a map, or of what else the table has.
void changeMap(Json &map, Arithmetic &arithmetic) {
  Json &sizes = map.at("sizes"), &strides = map.at("strides"); // what is put in moves the others
  switch (arithmetic.below(7)) {
  case 0: { // an axis whose elements reach once around
    size_t axis = 1 + arithmetic.below(std::max<size_t>(sizes.size(), 2) - 1);
    std::vector<uint64_t> factors = arithmetic.wrapping(2, 41);
    sizes[axis] = std::min(factors[0], factors[1]) + 1;
    strides[axis - 1] = std::max(factors[0], factors[1]);
    break;
  }
  case 1:
    pick(strides, arithmetic) = static_cast<int64_t>(arithmetic.stride(16));
    break;
  case 2:
    pick(sizes, arithmetic) = static_cast<int64_t>(arithmetic.edge());
    break;
  case 3:
    map["offset"] = static_cast<int64_t>(arithmetic.nearEnd(kBufferBytes, 16 * arithmetic.below(64)));
    break;
  case 4:
    map["swizzle"] = 32 << arithmetic.below(3);
    break;
  case 5:
    map.at("box").at(0) = 4 << arithmetic.below(4);
    break;
  default:
    pick(map.at("box"), arithmetic) = 1 + arithmetic.below(arithmetic.oneIn(4) ? 300 : 32);
  }
}

bool changeTable(std::string &table, Arithmetic &arithmetic) {
  Json json = Json::parse(table, nullptr, false);
  if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_array() || json["kernels"].empty())
    return false;
  Json &kernel = pick(json["kernels"], arithmetic);
  try { // an earlier mutation may have put something else there
    if (kernel.contains("maps") && !kernel["maps"].empty() && !arithmetic.oneIn(3)) {
      changeMap(pick(kernel["maps"], arithmetic), arithmetic);
    } else if (arithmetic.oneIn(2)) {
      auto shared = static_cast<uint64_t>(kernel.value("shared", int64_t(0)));
      kernel["shared"] = arithmetic.oneIn(4) ? static_cast<int64_t>(arithmetic.edge())
                                             : static_cast<int64_t>(arithmetic.nearEnd(shared));
    } else {
      pick(kernel["contract"], arithmetic) = static_cast<int64_t>(arithmetic.edge());
    }
  } catch (const Json::exception &) {
    return false;
  }
  table = json.dump();
  return true;
}

/// A matrix descriptor without its address: strides of all kinds, also to a last pattern at the end, each swizzle.
uint64_t descriptor(uint64_t room, Arithmetic &arithmetic) {
  auto step = [&] {
    return (arithmetic.oneIn(2) ? arithmetic.stride(16) : arithmetic.nearEnd(room, 1024)) >> 4 & 0x3fff;
  };
  uint64_t leading = step(), stride = step();
  return (arithmetic.oneIn(2) ? 1 : arithmetic.below(4)) << 62 | stride << 32 | leading << 16;
}

/// Another number in the text, by what the one there looks like.
void changeNumber(std::string &code, uint64_t room, Arithmetic &arithmetic) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t i = code.find('{'); i < code.size(); ++i)
    if (isDigit(code[i]) && !std::isalnum(static_cast<unsigned char>(code[i - 1])) && code[i - 1] != '_' &&
        code[i - 1] != '%' && code[i - 1] != '$') {
      size_t end = i;
      while (end < code.size() && isDigit(code[end]))
        ++end;
      places.emplace_back(i, end - i);
      i = end;
    }
  if (places.empty())
    return;
  auto isDescriptor = [](const std::pair<size_t, size_t> &place) { return place.second >= 19; };
  if (arithmetic.oneIn(4) && std::ranges::any_of(places, isDescriptor))
    std::erase_if(places, [&](const auto &place) { return !isDescriptor(place); });
  auto [at, length] = arithmetic.pick(places);
  uint64_t now = length < 19 ? std::strtoull(code.substr(at, length).c_str(), nullptr, 10) : 0;
  uint64_t made = length >= 19          ? descriptor(room, arithmetic)
                  : arithmetic.oneIn(3) ? arithmetic.edge()
                  : arithmetic.oneIn(2) ? arithmetic.nearEnd(room, 16 * arithmetic.below(64))
                  : arithmetic.oneIn(2) ? now + 16 * arithmetic.below(9)
                                        : arithmetic.stride(16);
  code.replace(at, length, std::to_string(made));
}

void changeLines(std::string &code, Arithmetic &arithmetic) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < code.size();) {
    size_t end = std::min(code.find('\n', at), code.size() - 1) + 1;
    lines.push_back(code.substr(at, end - at));
    at = end;
  }
  if (lines.size() < 2)
    return;
  auto at = lines.begin() + static_cast<ptrdiff_t>(arithmetic.below(lines.size()));
  std::string line = *at;
  switch (arithmetic.below(3)) {
  case 0:
    lines.erase(at);
    break;
  case 1:
    lines.insert(at, line);
    break;
  default:
    std::swap(*at, arithmetic.pick(lines));
  }
  code.clear();
  for (const std::string &each : lines)
    code += each;
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() {
  const std::string maps =
      R"("maps": [{"buffer": 0, "type": "bf16", "sizes": [64, 16], "strides": [128], "box": [64, 16], "swizzle": 128},)"
      R"( {"buffer": 1, "type": "u32", "sizes": [32, 16], "strides": [128], "box": [32, 16], "swizzle": 128}])";
  // A product of 16 columns whose operands are where shared memory ends with what was loaded.
  std::string product = dmxtest::kEveryFamily;
  auto replace = [&](const std::string &from, const std::string &to) {
    size_t at = product.find(from);
    promise(at != product.npos, "the body has what the seeds change in it");
    product.replace(at, from.size(), to);
  };
  replace("m64n8k16", "m64n16k16");
  replace("{%r20, %r21, %r22, %r23}", "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}");
  replace("\tmov.b32 %r23, 0;",
          "\tmov.b32 %r23, 0;\n\tmov.b32 %r24, 0;\n\tmov.b32 %r25, 0;\n\tmov.b32 %r26, 0;\n"
          "\tmov.b32 %r27, 0;\n\tshr.u64 %d17, %d14, 4;\n\tor.b64 %d17, %d17, 4611686018427387904;");
  size_t store = product.find("\tstmatrix");
  product.erase(store, product.find('\n', store) + 1 - store);
  const std::string ofRegisters = product;
  replace("{%r30, %r31, %r32, %r33}, %d15, %p3, 1, 1, 0;", "%d17, %d15, %p3, 1, 1, 0, 0;"); // 8 lines, 8 times
  return {entryOf(128, R"("shared": 16384, )" + maps, 2, dmxtest::kEveryFamily),
          entryOf(128, R"("shared": 4096, )" + maps, 2, ofRegisters),
          entryOf(128, R"("shared": 4096, )" + maps, 2, product),
          boxes(4, 3, 0, 896),
          boxes(4, 8, 128, 1024),
          boxes(2, 5, 0, 384),
          entryOf(32, R"("shared": 128)", 0, R"(	mov.b64 %d5, room;
	add.s64 %d6, %d5, %d30;
	sub.s64 %d6, %d6, %d0;
	st.shared.b32 [%d6], %r0;
	bar.sync 0;
	ld.shared.b32 %r3, [room+124];
	st.global.b32 [%d30], %r3;)")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace dmxrt;
  std::unique_ptr<Device> device = makeDevice();
  auto code = device->loadCode({reinterpret_cast<const std::byte *>(data), size});
  if (!code) {
    promise(!code.error().message.empty(), "an entry is loaded, or refused with a sentence");
    return 0;
  }
  for (const auto &kernel : static_cast<const cuda::CudaImage &>(**code).launches())
    run(*device, **code, *kernel);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  Arithmetic arithmetic(seed);
  Entry entry = split({reinterpret_cast<const char *>(data), size});
  if (entry.table.empty() || arithmetic.oneIn(64)) { // coverage has no corpus to start from
    static const std::vector<std::string> own = dmxfuzz::builtInSeeds();
    entry = split(arithmetic.pick(own));
  } else if (arithmetic.oneIn(32)) {
    return LLVMFuzzerMutate(data, size, capacity);
  }
  const std::string shared = "\"shared\":";
  size_t at = entry.table.find(shared);
  uint64_t room = at == std::string::npos ? 0 : std::strtoull(entry.table.c_str() + at + shared.size(), nullptr, 10);
  if (arithmetic.oneIn(2) || !changeTable(entry.table, arithmetic))
    arithmetic.oneIn(4) ? changeLines(entry.code, arithmetic) : changeNumber(entry.code, room, arithmetic);
  std::string text = entry.text();
  text.resize(std::min(text.size(), capacity));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
