//===- HostileCodeTest.cpp - code that reaches beyond its memory ----------===//
//
// Bundles whose code is right in all but its arithmetic: sizes that come back as small numbers where they wrap, boxes
// at the end of a memory. dmx-inspect --check refuses them, so do --verify and a session; what only a run can know is
// named in the run. Runs are on memory whose last byte is the last one before a page that nobody may touch.
//
//===----------------------------------------------------------------------===//
#include "BundleBuilder.h"
#include "TestDir.h"
#include "dmx/dmx.h"
#include "dmxc/Tools/Check.h"
#include "schemas/aie/Image.h"

#include "gtest/gtest.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/mman.h>

namespace dmxc::tools::test {
namespace {

namespace hw = dmx::aie;
using dmxtest::Json;
using dmxtest::ModelBuilder;
using dmxtest::TestBundle;

/// Bytes that end with a page.
class Guarded {
public:
  explicit Guarded(uint64_t size) : room((size + kPage - 1) / kPage * kPage) {
    base = static_cast<std::byte *>(
        mmap(nullptr, room + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_NE(base, MAP_FAILED);
    EXPECT_EQ(mprotect(base + room, kPage, PROT_NONE), 0);
    data = base + room - size;
  }
  ~Guarded() { munmap(base, room + kPage); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;
  std::byte *data;

private:
  static constexpr uint64_t kPage = 4096;
  uint64_t room;
  std::byte *base;
};

/// What each way of looking at a bundle says first; "" where it takes it.
struct Verdict {
  std::string check, verify, session, run;
};

/// Runs on guarded inputs and outputs.
std::string runOn(dmx_session *session, const dmx_bundle *bundle) {
  dmx_error error = DMX_ERROR_INIT;
  std::vector<std::unique_ptr<Guarded>> memory;
  for (dmx_io io : {DMX_INPUT, DMX_OUTPUT})
    for (uint32_t i = 0; i < dmx_bundle_tensor_count(bundle, nullptr, io); ++i) {
      dmx_tensor_info info{};
      info.struct_size = sizeof info;
      if (dmx_bundle_tensor_info(bundle, nullptr, io, i, &info, &error) != DMX_OK)
        return error.message;
      std::vector<int64_t> dims;
      for (uint32_t axis = 0; axis < info.rank; ++axis)
        dims.push_back(info.dims[axis].min);
      memory.push_back(
          std::make_unique<Guarded>(static_cast<uint64_t>(dmx_tensor_bytes(info.dtype, info.rank, dims.data()))));
      dmx_tensor_view view{info.dtype, info.rank, dims.data(), memory.back()->data};
      if (dmx_session_bind(session, io, i, &view, &error) != DMX_OK)
        return error.message;
    }
  return dmx_session_run(session, &error) == DMX_OK ? "" : error.message;
}

Verdict judge(const std::string &path, std::vector<const char *> options = {}) {
  Verdict verdict;
  auto bundle = bundle::Bundle::open(path);
  if (!bundle)
    return {bundle.error().message, bundle.error().message, bundle.error().message, ""};
  for (bool everything : {false, true}) {
    auto problems = checkBundle(*bundle, everything);
    std::string first = !problems ? problems.error().message : problems->empty() ? "" : problems->front().message;
    (everything ? verdict.verify : verdict.check) = first;
  }
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *opened = nullptr;
  if (dmx_bundle_open(path.c_str(), &opened, &error) != DMX_OK)
    return {verdict.check, verdict.verify, error.message, ""};
  dmx_session_options settings = DMX_SESSION_OPTIONS_INIT;
  settings.threads = 1;
  settings.device_options = options.data();
  settings.device_option_count = static_cast<uint32_t>(options.size());
  dmx_session *session = nullptr;
  if (dmx_session_create(opened, nullptr, &settings, &session, &error) != DMX_OK)
    verdict.session = error.message;
  else
    verdict.run = runOn(session, opened);
  dmx_session_destroy(session);
  dmx_bundle_close(opened);
  return verdict;
}

Verdict judge(const TestBundle &bundle, std::vector<const char *> options = {}) {
  TestDir dir;
  std::string path = dir.path("hostile.bundle");
  dmxtest::writeFile(path, bundle.zip());
  return judge(path, std::move(options));
}

void expectRefused(const Verdict &verdict, const std::string &words) {
  for (const std::string *said : {&verdict.check, &verdict.verify, &verdict.session})
    EXPECT_NE(said->find(words), std::string::npos) << "'" << *said << "' does not say '" << words << "'";
}

/// A bundle of one task on a device; `builder` has its graph.
TestBundle bundleOf(const ModelBuilder &builder, const std::string &target, const std::string &arch,
                    const std::string &file, const std::string &code) {
  TestBundle bundle = builder.finish();
  std::string entry = "code/" + target + "/" + arch + "/" + file;
  bundle.graph["graphs"][0]["queues"][0]["target"] = target;
  bundle.manifest["targets"] = {{{"target", target}, {"arch", arch}, {"entry", entry}, {"features", Json::array()}}};
  bundle.files.erase("code/cpu/x86-64/kernels.so");
  bundle.files[entry] = code;
  return bundle;
}

// --- the array ------------------------------------------------------------------------

/// The product of 64 x 64 x 64 that the fuzzer of such images starts from, without the byte that is the fuzzer's.
hw::Image product() {
  std::ifstream file(DMXC_AIE_IMAGE, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}}, error;
  EXPECT_GT(bytes.size(), 1u);
  auto image = hw::readImage(std::as_bytes(std::span(bytes).subspan(1)), error);
  EXPECT_TRUE(image) << error;
  return image ? *image : hw::Image();
}

/// Of the sound image's tensors, whatever the image says now.
TestBundle arrayBundle(const hw::Image &image) {
  const hw::Image sound = product();
  ModelBuilder builder;
  std::vector<int> buffers;
  int outputs = 0;
  for (const hw::Argument &argument : sound.kernels[0].arguments) {
    Json shape = Json::array();
    for (const hw::Axis &axis : argument.axes)
      shape.push_back(axis.extent);
    auto bytes = static_cast<int64_t>(argument.hostBytes());
    buffers.push_back(argument.packed   ? builder.constant(std::string(argument.hostBytes(), '\0'), "u8", {bytes})
                      : argument.output ? builder.output(argument.name, "f32", shape)
                                        : builder.input(argument.name, "f32", shape));
    outputs += argument.output;
  }
  builder.dispatch(sound.kernels[0].name, buffers, outputs, 1);
  std::vector<std::byte> code = hw::write(image);
  return bundleOf(builder, "aie", image.machine, "kernels.aiebin",
                  {reinterpret_cast<const char *>(code.data()), code.size()});
}

TEST(HostileCode, FormsOfTheArrayThatWrap) {
  Verdict sound = judge(arrayBundle(product()));
  EXPECT_EQ(sound.check + sound.verify + sound.session + sound.run, "");
  // Each of these has as many numbers, modulo 2^64, as a buffer of the graph has room for.
  for (size_t which = 0; which < product().kernels[0].arguments.size(); ++which) {
    hw::Image image = product();
    hw::Argument &argument = image.kernels[0].arguments[which];
    argument.packed = false;
    argument.axes = {{279040, 0, 1, 0, 0}, {246241, 0, 1, 0, 0}, {268468226, 0, 1, 0, 0}};
    ASSERT_EQ(uint64_t(279040) * 246241 * 268468226, 1024u);
    expectRefused(judge(arrayBundle(image)), "argument '" + argument.name + "' has a dim of 268468226");
  }
  hw::Image image = product();
  for (hw::ControlOp &op : image.kernels[0].control)
    if (op.kind == hw::ControlOp::Kind::Patch)
      op.offset += uint64_t(1) << 36;
  expectRefused(judge(arrayBundle(image)), "(patch) patches in byte 68719476736");
}

// --- GPUs -----------------------------------------------------------------------------

/// y = x, 2048 f32, by a box of one row of 16 bytes, or none of it; shared memory ends `room` bytes behind its begin.
TestBundle gpuBundle(const std::string &map, int room, int place, const std::string &copies) {
  std::string text = R"(// {"launch_table": 2, "level": "sm_90a", "kernels": [
//   {"name": "k", "nodes": ["n"], "dims": [], "block": 32, "grid": 1, "item": "block", "shared": )" +
                     std::to_string(room) + R"(, "maps": [{)" + map +
                     R"(}], "contract": [13, 2, 1, 0, 0, 0, 1, 0, 0, 0, 8192, 0, 8192]}
// ]}
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 room[];
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 scratch, .param .u64 share, .param .u64 results,
  .param .u64 status, .param .align 64 .b8 map[128])
.reqntid 32
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %d<8>;
	ld.param.b64 %d0, [x];
	ld.param.b64 %d1, [y];
	mov.u32 %r0, %tid.x;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra $copy;
	mbarrier.init.shared.b64 [room], 1;
	fence.mbarrier_init.release.cluster;
	fence.proxy.async;
	mbarrier.arrive.expect_tx.shared.b64 _, [room], 16;
	mov.b64 %d2, map;
	mov.b32 %r1, 0;
	)" + copies + R"( [room+)" +
                     std::to_string(place) + R"(], [%d2, {%r1, %r1}], [room];
$wait:
	mbarrier.try_wait.parity.shared.b64 %p1, [room], 0;
	@!%p1 bra $wait;
$copy:
	mov.b32 %r2, 0;
	mul.wide.u32 %d3, %r0, 256;
	add.s64 %d0, %d0, %d3;
	add.s64 %d1, %d1, %d3;
$next:
	ld.global.b32 %r3, [%d0];
	st.global.b32 [%d1], %r3;
	add.s64 %d0, %d0, 4;
	add.s64 %d1, %d1, 4;
	add.s32 %r2, %r2, 1;
	setp.lt.s32 %p2, %r2, 64;
	@%p2 bra $next;
	ret;
}
)";
  ModelBuilder builder;
  int x = builder.input("x", "f32", {2048}), y = builder.output("y", "f32", {2048});
  builder.dispatch("k", {x, y}, 1, 1);
  return bundleOf(builder, "cuda", "sm_90a", "kernels.ptx", text);
}

const std::string kLoad = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes";

TEST(HostileCode, MapsOfGpusThatWrap) {
  auto bundle = [](const std::string &sizes, const std::string &strides) {
    return gpuBundle(R"("buffer": 0, "type": "f32", "sizes": )" + sizes + R"(, "strides": )" + strides +
                         R"(, "box": [4, 1], "swizzle": 0)",
                     1024, 896, kLoad);
  };
  Verdict sound = judge(bundle("[64, 32]", "[256]"), {"cuda.sim=on"});
  EXPECT_EQ(sound.check + sound.verify + sound.session + sound.run, "");
  // (2147483649 - 1) * 2^33 is 2^64, which would leave the 256 bytes of one row.
  expectRefused(judge(bundle("[64, 2147483649]", "[8589934592]"), {"cuda.sim=on"}),
                "map 0 of its launch: its elements reach over more than 2^63 bytes");
  Verdict wide = judge(bundle("[64, 33]", "[256]"), {"cuda.sim=on"});
  EXPECT_NE(wide.check.find("it reaches over bytes 0 to 8448 of buffer 0, which has 8192"), std::string::npos)
      << wide.check;
  EXPECT_NE(wide.session + wide.run, "");
}

TEST(HostileCode, BoxesOfGpusAtTheEndOfSharedMemory) {
  const std::string map =
      R"("buffer": 0, "type": "f32", "sizes": [64, 32], "strides": [256], "box": [4, 1], "swizzle": 128)";
  Verdict sound = judge(gpuBundle(map, 1024, 896, kLoad), {"cuda.sim=on"});
  EXPECT_EQ(sound.check + sound.verify + sound.session + sound.run, "");
  // Row 7 of a pattern begins with its last 16 bytes, 112 bytes behind the box.
  Verdict short16 = judge(gpuBundle(map, 912, 896, kLoad), {"cuda.sim=on"});
  EXPECT_NE(short16.run.find("bounds: the box of a bulk load is bytes 2032 to 2048 of shared memory"),
            std::string::npos)
      << short16.run;
}

// --- what others found ----------------------------------------------------------------

/// Where the data beside the checkout has them.
TEST(HostileCode, BundlesThatWereTakenOnce) {
  const std::filesystem::path folder = DMXC_REPRODUCERS;
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "there is no " << folder;
  expectRefused(judge((folder / "aie-wrap-out.bundle").string()),
                "it is no image of version 4"); // it is one of version 2
  expectRefused(judge((folder / "span1-load.bundle").string(), {"cuda.sim=on"}), "more than 2^63 bytes");
  Verdict load = judge((folder / "tma-load.bundle").string(), {"cuda.sim=on"});
  EXPECT_NE(load.run.find("bounds: the box of a bulk load is bytes"), std::string::npos) << load.run;
}

} // namespace
} // namespace dmxc::tools::test
