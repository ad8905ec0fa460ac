//===- MakeGolden.cpp - writes a golden bundle ----------------------------===//
//
//   make-golden KERNELS.so OUT.bundle
//
// y = 2 x + w by a kernel, z = y flattened by copies, with sample inputs and
// outputs inside. See schemas/golden/make_golden.sh.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Bundle/Weights.h"
#include "dmxc/Bundle/Writer.h"
#include "dmxc/Support/MappedFile.h"
#include "dmxc/Tools/TensorFile.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace dmxc;
using namespace dmxc::bundle;

namespace {

const Expr batch = Expr::dim("batch");
const Expr flat = Expr::dim("flat");
constexpr const char *codeEntry = "code/cpu/x86-64-v2/kernels.so";
constexpr const char *weightsEntry = "weights/model.safetensors";

BufferDesc buffer(BufferKind kind, std::vector<Expr> shape, int64_t index = 0) {
  BufferDesc b;
  b.kind = kind;
  b.shape = std::move(shape);
  b.index = index;
  b.size = denseBytes(b.dtype, b.shape);
  return b;
}

TaskDesc copy(const char *name, int64_t src, int64_t dst, Expr size) {
  TaskDesc task;
  task.kind = TaskKind::Copy;
  task.name = name;
  task.src = src;
  task.dst = dst;
  task.size = std::move(size);
  task.deps = {0};
  return task;
}

GraphFile makeGraph(WeightsWriter &weights) {
  GraphDesc g;
  g.name = "main";
  g.dims.push_back({"batch", 1, 64, 0, 0, std::nullopt});
  g.dims.push_back({"flat", 0, 0, -1, -1, Expr::binary(Expr::Op::Mul, batch, 5)});
  Expr bytes = Expr::binary(Expr::Op::Mul, batch, 20);
  g.arenas.push_back({bytes, bytes, 64});
  g.queues.push_back({"cpu", "cpu"});
  g.buffers.push_back(buffer(BufferKind::Input, {batch, 5}));
  BufferDesc w = buffer(BufferKind::Const, {5});
  w.entry = weightsEntry;
  w.tensor = "w";
  w.offset = static_cast<int64_t>(weights.offsetOf("w"));
  g.buffers.push_back(w);
  g.buffers.push_back(buffer(BufferKind::Arena, {batch, 5}));
  BufferDesc alias = buffer(BufferKind::Alias, {flat});
  alias.of = 2;
  g.buffers.push_back(alias);
  g.buffers.push_back(buffer(BufferKind::Output, {batch, 5}, 0));
  g.buffers.push_back(buffer(BufferKind::Output, {flat}, 1));
  TaskDesc affine;
  affine.name = "affine";
  affine.kernel = "k0_affine";
  affine.nodes = {"Mul_0", "Add_1"};
  affine.buffers = {0, 1, 2};
  affine.dims = {5};
  affine.work = batch;
  affine.flops = Expr::binary(Expr::Op::Mul, batch, 10);
  affine.bytes = Expr::binary(Expr::Op::Mul, batch, 40);
  g.tasks.push_back(affine);
  g.tasks.push_back(copy("copy y", 2, 4, bytes));
  g.tasks.push_back(copy("copy z", 3, 5, bytes));
  GraphFile file;
  file.graphs.push_back(std::move(g));
  return file;
}

Manifest makeManifest() {
  Manifest m;
  m.modelName = "golden";
  m.modelSha256 = std::string(64, '0');
  m.modelSource = "onnx";
  m.modelMetadata = {{"origin", "make-golden"}};
  m.options = {{"opt", int64_t(2)}, {"numerics", std::string("strict")}};
  m.targets.push_back({"cpu", "x86-64-v2", codeEntry, {"sse4.2", "popcnt"}});
  m.entryPoints.push_back({"main",
                           {{"x", DType::F32, {batch, 5}}},
                           {{"y", DType::F32, {batch, 5}}, {"z", DType::F32, {Expr::binary(Expr::Op::Mul, batch, 5)}}},
                           {{"batch", 1, 64}}});
  m.placement.push_back({"cpu", 2, ""});
  return m;
}

std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A tensor as the bytes of an .npy file.
std::string npyBytes(const Tensor &tensor) {
  std::string path = (std::filesystem::temp_directory_path() / "make-golden.npy").string();
  Status done = tools::writeNpy(path, tensor);
  std::string bytes = done ? readAll(path) : "";
  std::filesystem::remove(path);
  return bytes;
}

Status writeGolden(const std::string &kernels, const std::string &path) {
  Tensor w(DType::F32, {5}), x(DType::F32, {3, 5}), y(DType::F32, {3, 5});
  for (int i = 0; i < 5; ++i)
    w.as<float>()[i] = 0.25f * static_cast<float>(i);
  for (int i = 0; i < 15; ++i) {
    x.as<float>()[i] = static_cast<float>(i) - 7;
    y.as<float>()[i] = 2 * x.as<float>()[i] + w.as<float>()[i % 5];
  }
  WeightsWriter weights;
  if (Status done = weights.add("w", w); !done)
    return done;
  auto writer = Writer::create(path, BundleFormat::Zip);
  if (!writer)
    return writer.takeError();
  std::pair<const char *, std::string> entries[] = {{"graph.json", toJson(makeGraph(weights))},
                                                    {codeEntry, readAll(kernels)},
                                                    {"tests/in_x.npy", npyBytes(x)},
                                                    {"tests/out_y.npy", npyBytes(y)},
                                                    {"tests/out_z.npy", npyBytes(y.reshaped({15}))}};
  for (auto &[name, bytes] : entries)
    if (Status done = (*writer)->addEntry(name, bytes); !done)
      return done;
  if (Status done = (*writer)->addStream(weightsEntry, weights.size(), weights.producer()); !done)
    return done;
  (*writer)->setManifest(makeManifest());
  return (*writer)->finish();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: make-golden KERNELS.so OUT.bundle\n");
    return 2;
  }
  Status done = writeGolden(argv[1], argv[2]);
  if (!done)
    std::fprintf(stderr, "make-golden: %s\n", done.error().message.c_str());
  return done ? 0 : exitCodeOf(done.error().kind);
}
