//===- SampleBundle.cpp - small bundles for tests -------------------------===//
#include "SampleBundle.h"

namespace dmxc::bundle::test {

namespace {
const Expr batch = Expr::dim("batch");

BufferDesc tensor(BufferKind kind, std::vector<Expr> shape) {
  BufferDesc buffer;
  buffer.kind = kind;
  buffer.shape = std::move(shape);
  buffer.size = denseBytes(buffer.dtype, buffer.shape);
  return buffer;
}

TaskDesc copy(int64_t src, int64_t dst, Expr size, std::vector<int64_t> deps) {
  TaskDesc task;
  task.kind = TaskKind::Copy;
  task.name = "copy" + std::to_string(dst);
  task.src = src;
  task.dst = dst;
  task.size = std::move(size);
  task.deps = std::move(deps);
  return task;
}
} // namespace

void sampleWeights(WeightsWriter &weights) {
  Tensor w(DType::F32, {3, 5});
  for (int i = 0; i < 15; ++i)
    w.as<float>()[i] = 0.5f * static_cast<float>(i);
  ASSERT_TRUE(weights.add("w", w));
  ASSERT_TRUE(weights.add("w.half", Tensor(DType::F16, {7}), "panel16"));
}

GraphFile sampleGraph(WeightsWriter &weights) {
  GraphDesc g;
  g.name = "main";
  g.dims.push_back({"batch", 1, 64, 0, 0, std::nullopt});
  g.dims.push_back({"d1", 0, 0, -1, -1, Expr::binary(Expr::Op::Mul, batch, 12)});
  g.arenas.push_back({Expr::binary(Expr::Op::Mul, batch, 64), Expr::dim("d1"), 64});
  g.queues.push_back({"cpu", "cpu"});
  g.buffers.push_back(tensor(BufferKind::Input, {batch, 3}));
  g.buffers.push_back(tensor(BufferKind::Output, {batch, 3}));
  g.buffers.push_back(tensor(BufferKind::Output, {3, 5}));
  g.buffers.back().index = 1;
  BufferDesc constant = tensor(BufferKind::Const, {3, 5});
  constant.entry = "weights/model.safetensors";
  constant.tensor = "w";
  constant.offset = static_cast<int64_t>(weights.offsetOf("w"));
  g.buffers.push_back(constant);
  g.buffers.push_back(tensor(BufferKind::Arena, {batch, 3}));
  BufferDesc alias = tensor(BufferKind::Alias, {Expr::binary(Expr::Op::Mul, batch, 3)});
  alias.of = 4;
  g.buffers.push_back(alias);
  Expr bytes = g.buffers[0].size;
  g.tasks.push_back(copy(0, 4, bytes, {}));
  g.tasks.push_back(copy(5, 1, bytes, {0}));
  g.tasks.push_back(copy(3, 2, 60, {}));
  GraphFile file;
  file.graphs.push_back(std::move(g));
  return file;
}

Manifest sampleManifest() {
  Manifest m;
  m.modelName = "sample";
  m.modelSha256 = std::string(64, 'a');
  m.modelSource = "onnx";
  m.modelMetadata = {{"producer", "a test"}};
  m.options = {{"opt", int64_t(2)}, {"numerics", std::string("strict")}, {"fast", false}};
  m.targets.push_back({"cpu", "x86-64-v3", "code/cpu/x86-64-v3/kernels.bin", {"avx2", "fma"}});
  m.entryPoints.push_back({"main",
                           {{"x", DType::F32, {batch, 3}}},
                           {{"y", DType::F32, {batch, 3}}, {"w", DType::F32, {3, 5}}},
                           {{"batch", 1, 64}}});
  m.placement.push_back({"cpu", 3, ""});
  return m;
}

void writeSample(const std::string &path, BundleFormat format,
                 const std::function<void(GraphFile &, Manifest &)> &change) {
  auto writer = Writer::create(path, format);
  ASSERT_TRUE(writer) << writer.error().message;
  WeightsWriter weights;
  sampleWeights(weights);
  GraphFile graph = sampleGraph(weights);
  Manifest manifest = sampleManifest();
  change(graph, manifest);
  ASSERT_TRUE((*writer)->addStream("weights/model.safetensors", weights.size(), weights.producer()));
  ASSERT_TRUE((*writer)->addEntry("graph.json", toJson(graph)));
  ASSERT_TRUE((*writer)->addEntry("code/cpu/x86-64-v3/kernels.bin", "no kernel is called"));
  ASSERT_TRUE((*writer)->addEntry("tests/note.txt", "hello"));
  (*writer)->setManifest(manifest);
  Status done = (*writer)->finish();
  ASSERT_TRUE(done) << done.error().message;
}

void writeSample(const std::string &path, BundleFormat format) {
  writeSample(path, format, [](GraphFile &, Manifest &) {});
}

} // namespace dmxc::bundle::test
