//===- CudaBundle.cpp - bundles for GPUs, made by tests -------------------===//

#include "CudaBundle.h"

#include <dlfcn.h>

namespace dmxtest {
namespace {

struct Kernel {
  std::string name;
  int buffers, outputs, results, scratch;
  std::string work, body; // words of the contract; instructions between the addresses and the end
};

/// What each has: %d0.. addresses of its buffers, %r1 the thread's number, %d10 n, %d11 4 * the number; done: the end.
const Kernel kKernels[] = {
    {"plus", 3, 1, 0, 0, "1, 0", R"(
	ld.global.b32 %r2, [%d0];
	ld.global.b32 %r3, [%d1];
	add.rn.f32 %r2, %r2, %r3;
	st.global.b32 [%d2], %r2;)"},
    {"collect", 3, 2, 0, 0, "1, 0", R"(
	ld.global.b32 %r2, [%d0];
	ld.global.b32 %r3, [%d1];
	add.rn.f32 %r2, %r2, %r3;
	st.global.b32 [%d1], %r2;
	st.global.b32 [%d2], %r2;)"},
    {"strict", 2, 1, 0, 0, "1, 0", R"(
	ld.global.b32 %r2, [%d0];
	st.global.b32 [%d1], %r2;
	setp.ge.f32 %p1, %r2, 0f00000000;
	@%p1 bra done;
	atom.relaxed.gpu.global.cas.b32 %r4, [%d15], 0, 3;)"},
    {"count", 1, 0, 1, 0, "0, 1", R"(
	ld.global.b32 %r2, [%d0];
	cvt.rzi.s64.f32 %d16, %r2;
	st.global.b64 [%d14], %d16;)"},
    {"shift", 2, 1, 0, 8, "1, 0", R"(
	cvt.u64.u32 %d16, %r1;
	mad.lo.s64 %d16, %d16, %d13, %d12;
	ld.global.b32 %r2, [%d0];
	st.global.b32 [%d16+4], %r2;
	ld.global.b32 %r3, [%d16+4];
	st.global.b32 [%d1], %r3;)"},
};

std::string entryOf(const Kernel &kernel) {
  std::string parameters, loads;
  auto parameter = [&](const std::string &name, int number) {
    parameters += (parameters.empty() ? "" : ", ") + (".param .u64 " + name);
    loads += "\tld.param.b64 %d" + std::to_string(number) + ", [" + name + "];\n";
  };
  for (int i = 0; i < kernel.buffers; ++i)
    parameter(kernel.name + "_" + std::to_string(i), i);
  parameter(kernel.name + "_n", 10);
  const char *tail[] = {"scratch", "share", "results", "status"};
  for (int i = 0; i < 4; ++i)
    parameter(kernel.name + "_" + tail[i], 12 + i);
  bool single = kernel.work == "0, 1";
  std::string out = ".visible .entry " + kernel.name + "(" + parameters + ")\n.reqntid " + (single ? "1" : "32") +
                    "\n{\n\t.reg .pred %p<4>;\n\t.reg .b32 %r<8>;\n\t.reg .b64 %d<20>;\n" + loads +
                    R"(	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.s32 %r1, %r1, %r2, %r3;
	cvt.u64.u32 %d11, %r1;
	setp.ge.s64 %p0, %d11, %d10;
	@%p0 bra done;
	shl.b64 %d11, %d11, 2;
)";
  for (int i = 0; i < kernel.buffers; ++i)
    out += "\tadd.s64 %d" + std::to_string(i) + ", %d" + std::to_string(i) + ", %d11;\n";
  return out + kernel.body + "\ndone:\n\tret;\n}\n";
}

std::string tableOf(const Kernel &kernel) {
  std::string words = std::to_string(kernel.buffers) + ", " + std::to_string(kernel.outputs) + ", 1, " +
                      std::to_string(kernel.results) + ", " + kernel.work + ", 0, " + std::to_string(kernel.scratch);
  for (int i = 0; i < kernel.buffers; ++i)
    words += ", 4, 0, 4, 1, 0";
  int count = 1 + 4 + 2 + 2 + 5 * kernel.buffers;
  bool single = kernel.work == "0, 1";
  return R"({"name": ")" + kernel.name + R"(", "nodes": ["node_)" + kernel.name + R"("], "dims": ["n"], "block": )" +
         (single ? "1, \"grid\": 1" : R"(32, "grid": ["floordiv", ["add", "n", 31], 32])") + R"(, "contract": [)" +
         std::to_string(count) + ", " + words + "]}";
}

/// A block a tile of 128 words, by TMA in both directions; n: the number of tiles.
const char *const kTiled = R"(
.extern .shared .align 1024 .b8 room[];
.visible .entry tiles(.param .u64 a, .param .u64 b, .param .u64 n, .param .u64 scratch, .param .u64 share,
  .param .u64 results, .param .u64 status, .param .align 64 .b8 from[128], .param .align 64 .b8 to[128])
.reqntid 32
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %d<8>;
	.shared .align 8 .b8 bar[8];
	mov.u32 %r0, %tid.x;
	setp.ne.s32 %p0, %r0, 0;
	@%p0 bra done;
	mbarrier.init.shared.b64 [bar], 1;
	fence.proxy.async;
	mov.u32 %r1, %ctaid.x;
	mov.b64 %d1, from;
	mov.b64 %d2, to;
	cvta.param.u64 %d1, %d1;
	cvta.param.u64 %d2, %d2;
	mbarrier.arrive.expect_tx.shared.b64 _, [bar], 512;
	mov.b32 %r2, 0;
	cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [room], [%d1, {%r2, %r1}], [bar];
again:
	mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
	@!%p1 bra again;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d2, {%r2, %r1}], [room];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
done:
	ret;
}
)";
const char *const kTiledTable = R"(
//   {"name": "tiles", "nodes": ["node_tiles"], "dims": ["n"], "block": 32, "grid": "n", "shared": 65536, "item": "block",
//    "maps": [{"buffer": 0, "type": "f32", "sizes": [128, "n"], "strides": [512], "box": [128, 1], "swizzle": 0},
//             {"buffer": 1, "type": "f32", "sizes": [128, "n"], "strides": [512], "box": [128, 1], "swizzle": 0}],
//    "contract": [19, 2, 1, 1, 0, 1, 0, 0, 0, 4, 0, 512, 1, 0, 4, 0, 512, 1, 0]})";

} // namespace

std::string cudaKernels() {
  std::string table, entries;
  for (const Kernel &kernel : kKernels) {
    table += (table.empty() ? "" : ",") + ("\n//   " + tableOf(kernel));
    entries += entryOf(kernel);
  }
  table += std::string(",") + kTiledTable;
  entries += kTiled;
  return R"(// {"launch_table": 2, "level": "sm_90a", "kernels": [)" + table +
         "\n// ]}\n.version 8.0\n.target sm_90a\n.address_size 64\n" + entries;
}

FakeCuda &fakeCuda() {
  static FakeCuda &fake = *[] {
    void *library = dlopen(DMX_TEST_FAKE_CUDA, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::abort();
    }
    return reinterpret_cast<FakeCuda *(*)()>(dlsym(library, "dmxFakeCuda"))();
  }();
  fake.reset();
  return fake;
}

TestBundle cudaBundle(const ModelBuilder &builder, bool mixed) {
  TestBundle bundle = builder.finish();
  const char *entry = "code/cuda/sm_90a/kernels.ptx";
  Json code = {{"target", "cuda"}, {"arch", "sm_90a"}, {"entry", entry}, {"features", Json::array()}};
  bundle.files[entry] = cudaKernels();
  if (mixed) {
    bundle.manifest["targets"].push_back(code);
    bundle.graph["graphs"][0]["queues"].push_back({{"name", "gpu"}, {"target", "cuda"}});
    return bundle;
  }
  bundle.manifest["targets"] = Json::array({code});
  bundle.files.erase("code/cpu/x86-64/kernels.so");
  bundle.graph["graphs"][0]["queues"][0]["target"] = "cuda";
  return bundle;
}

CudaSession::CudaSession(const dmx_bundle *bundle, std::vector<std::string> settings) {
  settings.insert(settings.begin(), "cuda.driver=" DMX_TEST_FAKE_CUDA);
  std::vector<const char *> texts;
  for (const std::string &each : settings)
    texts.push_back(each.c_str());
  dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
  options.threads = 1;
  options.device_options = texts.data();
  options.device_option_count = static_cast<uint32_t>(texts.size());
  dmx_session *made = nullptr;
  status = dmx_session_create(bundle, nullptr, &options, &made, &error);
  session.reset(made);
}

std::string CudaSession::machine() const {
  dmx_session_info info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(dmx_session_get_info(session.get(), &info, nullptr), DMX_OK);
  return info.machine;
}

} // namespace dmxtest
