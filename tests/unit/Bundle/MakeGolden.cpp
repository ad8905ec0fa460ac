//===- MakeGolden.cpp - writes a golden bundle ----------------------------===//
//
//   make-golden KERNELS.so COMMON.so OUT.bundle
//
// Rows 2 x + s w that start with a positive number, by a kernel that counts them; a branch negates them or not, a loop
// doubles them; a state has room for the rows of all runs, and an output for more than it has: those of
// an input with x behind them. Sample inputs and outputs are inside. See
// schemas/golden/make_golden.sh.
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

constexpr int64_t kWidth = 5, kRoom = 1000;
constexpr const char *codeEntry = "code/cpu/x86-64-v2/kernels.so";
constexpr const char *commonEntry = "code/cpu/common/kernels.so";
constexpr const char *weightsEntry = "weights/model.safetensors";

Expr rowsOf(const char *dim) { return Expr::binary(Expr::Op::Mul, Expr::dim(dim), 4 * kWidth); }

BufferDesc buffer(BufferKind kind, std::vector<Expr> shape, int64_t index = 0, DType dtype = DType::F32) {
  BufferDesc b;
  b.kind = kind;
  b.dtype = dtype;
  b.shape = std::move(shape);
  b.index = index;
  b.size = denseBytes(b.dtype, b.shape);
  return b;
}

BufferDesc result(int64_t task, int64_t output, std::vector<Expr> shape, DType dtype = DType::F32) {
  BufferDesc b = buffer(BufferKind::Result, std::move(shape), output, dtype);
  b.task = task;
  return b;
}

TaskDesc copy(const char *name, int64_t src, int64_t dst, Expr size, std::vector<int64_t> deps = {}) {
  TaskDesc task;
  task.kind = TaskKind::Copy;
  task.name = name;
  task.src = src;
  task.dst = dst;
  task.size = std::move(size);
  task.deps = std::move(deps);
  return task;
}

TaskDesc dispatch(const char *name, const char *kernel, std::vector<int64_t> buffers, std::vector<Expr> dims,
                  Expr work) {
  TaskDesc task;
  task.name = name;
  task.kernel = kernel;
  task.nodes = {name};
  task.buffers = std::move(buffers);
  task.dims = std::move(dims);
  task.work = std::move(work);
  return task;
}

GraphDesc graphNamed(const char *name) {
  GraphDesc g;
  g.name = name;
  g.queues.push_back({"cpu", "cpu"});
  return g;
}

DimDesc inputDim(const char *name, int64_t min, int64_t input) {
  DimDesc dim;
  dim.name = name;
  dim.min = min;
  dim.max = 64;
  dim.input = input;
  dim.axis = 0;
  return dim;
}

DimDesc returnedDim(const char *name, int64_t task, Expr upper) {
  DimDesc dim;
  dim.name = name;
  dim.task = task;
  dim.upper = std::move(upper);
  return dim;
}

/// A branch: its input as it is, or negated.
GraphDesc branch(const char *name, bool negated) {
  GraphDesc g = graphNamed(name);
  g.dims.push_back(inputDim("n", 0, 0));
  g.buffers.push_back(buffer(BufferKind::Input, {Expr::dim("n"), kWidth}));
  g.buffers.push_back(buffer(BufferKind::Output, {Expr::dim("n"), kWidth}));
  g.tasks.push_back(negated ? dispatch("Neg_1", "k1_negate", {0, 1}, {kWidth}, Expr::dim("n"))
                            : copy("copy then", 0, 1, rowsOf("n")));
  return g;
}

/// Doubles the carried rows; scans the iteration's number.
GraphDesc loopBody() {
  GraphDesc g = graphNamed("body");
  g.dims.push_back(inputDim("n", 0, 2));
  g.buffers.push_back(buffer(BufferKind::Input, {}, 0, DType::I64));
  g.buffers.push_back(buffer(BufferKind::Input, {Expr::dim("n"), kWidth}, 2));
  g.buffers.push_back(buffer(BufferKind::Output, {}, 0, DType::Bool));
  g.buffers.push_back(buffer(BufferKind::Output, {Expr::dim("n"), kWidth}, 1));
  g.buffers.push_back(buffer(BufferKind::Output, {}, 2, DType::I64));
  g.tasks.push_back(dispatch("Add_3", "k2_twice", {1, 3}, {kWidth}, Expr::dim("n")));
  g.tasks.push_back(dispatch("Constant_4", "k3_yes", {2}, {}, 1));
  g.tasks.push_back(copy("copy number", 0, 4, 8));
  return g;
}

Expr rowsSoFar() { return Expr::binary(Expr::Op::Add, Expr::dim("past"), Expr::dim("batch")); }

std::vector<DimDesc> mainDims() {
  DimDesc both, chosen = returnedDim("chosen", 1, Expr::dim("kept")), kept = returnedDim("kept", 0, Expr::dim("both"));
  both.name = "both";
  both.expr = Expr::binary(Expr::Op::Broadcast, Expr::dim("batch"), Expr::dim("rows"));
  kept.result = 0;
  chosen.output = chosen.axis = 0;
  DimDesc trips = returnedDim("trips", 2, 100);
  trips.result = 0;
  DimDesc seen;
  seen.name = "seen";
  seen.next = Expr::binary(Expr::Op::Add, Expr::dim("batch"), Expr::dim("seen"));
  seen.max = kRoom;
  DimDesc room;
  room.name = "room";
  room.expr = rowsSoFar();
  room.isRoom = true;
  return {
      inputDim("batch", 1, 0), inputDim("rows", 1, 1), inputDim("past", 0, 4), seen, room, both, kept, chosen, trips};
}

std::vector<BufferDesc> mainBuffers(WeightsWriter &weights) {
  BufferDesc w = buffer(BufferKind::Const, {kWidth}), part = buffer(BufferKind::Alias, {Expr::dim("kept"), kWidth});
  w.entry = weightsEntry;
  w.tensor = "w";
  w.offset = static_cast<int64_t>(weights.offsetOf("w"));
  part.of = 5;
  BufferDesc state = buffer(BufferKind::State, {kRoom, kWidth});
  state.length = "seen";
  BufferDesc all = buffer(BufferKind::Output, {rowsSoFar(), kWidth}, 2);
  all.room = "room";
  all.past = 4;
  Expr chosen = Expr::dim("chosen"), trips = Expr::dim("trips");
  return {buffer(BufferKind::Input, {Expr::dim("batch"), kWidth}),
          buffer(BufferKind::Input, {Expr::dim("rows")}, 1),
          buffer(BufferKind::Input, {}, 2, DType::Bool),
          buffer(BufferKind::Input, {}, 3, DType::I64),
          w,
          buffer(BufferKind::Arena, {Expr::dim("both"), kWidth}),
          part,
          result(1, 0, {chosen, kWidth}),
          result(2, 0, {chosen, kWidth}),
          result(2, 1, {trips}, DType::I64),
          buffer(BufferKind::Output, {chosen, kWidth}),
          buffer(BufferKind::Output, {trips}, 1, DType::I64),
          state,
          buffer(BufferKind::Input, {Expr::dim("past"), kWidth}, 4),
          all};
}

std::vector<TaskDesc> mainTasks() {
  TaskDesc affine = dispatch("Add_0", "k0_affine", {0, 1, 4, 5},
                             {Expr::dim("batch"), Expr::dim("rows"), Expr::dim("both"), kWidth}, 1);
  affine.results = 1;
  affine.flops = Expr::binary(Expr::Op::Mul, Expr::dim("both"), 3 * kWidth);
  TaskDesc choose;
  choose.kind = TaskKind::If;
  choose.name = "If_1";
  choose.nodes = {"If_1"};
  choose.cond = 2;
  choose.thenGraph = "then";
  choose.elseGraph = "else";
  choose.buffers = {6};
  choose.deps = {0};
  TaskDesc loop;
  loop.kind = TaskKind::Loop;
  loop.name = "Loop_2";
  loop.nodes = {"Loop_2"};
  loop.body = "body";
  loop.tripCount = 3;
  loop.carried = {7};
  loop.scans = 1;
  loop.deps = {1};
  TaskDesc append = copy("copy x", 0, 14, rowsOf("batch"));
  append.dstOffset = rowsOf("past");
  return {affine,
          choose,
          loop,
          copy("copy y", 8, 10, rowsOf("chosen"), {2}),
          copy("copy z", 9, 11, Expr::binary(Expr::Op::Mul, Expr::dim("trips"), 8), {2}),
          append};
}

GraphFile makeGraph(WeightsWriter &weights) {
  GraphDesc g = graphNamed("main");
  g.dims = mainDims();
  g.constraints.push_back({Relation::Divides, Expr::dim("rows"), Expr::dim("both"), "node 'Add_0': s is repeated"});
  g.arenas.push_back({rowsOf("both"), rowsOf("both"), 64});
  g.buffers = mainBuffers(weights);
  g.tasks = mainTasks();
  GraphFile file;
  file.graphs = {g, branch("then", false), branch("else", true), loopBody()};
  return file;
}

Manifest makeManifest(const GraphFile &graphs) {
  Manifest m;
  m.modelName = "golden";
  m.modelSha256 = std::string(64, '0');
  m.modelSource = "onnx";
  m.modelMetadata = {{"origin", "make-golden"}};
  m.options = {{"opt", int64_t(2)}, {"numerics", std::string("strict")}};
  m.targets.push_back({"cpu", "x86-64-v2", codeEntry, {"sse4.2", "popcnt"}, commonEntry});
  m.entryPoints.push_back({"main",
                           {{"x", DType::F32, {Expr::dim("batch"), kWidth}, "rows of which the positive ones count"},
                            {"s", DType::F32, {Expr::dim("rows")}},
                            {"flag", DType::Bool, {}},
                            {"count", DType::I64, {}},
                            {"past", DType::F32, {Expr::dim("past"), kWidth}}},
                           {{"y", DType::F32, {Expr::dim("chosen"), kWidth}, "2 x + s w, doubled"},
                            {"z", DType::I64, {Expr::dim("trips")}},
                            {"all", DType::F32, {rowsSoFar(), kWidth}}},
                           {{"batch", 1, 64}, {"rows", 1, 64}, {"past", 0, 64}, {"seen", 0, kRoom}}});
  m.placement.push_back({"cpu", 4, ""});
  m.userCode.push_back({"acme.affine", "cpu", "x86-64-v2", "affine.o", "affine", std::string(64, 'a')});
  requireFeaturesOf(graphs, m);
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

/// The sample: three rows of which the first is dropped, negated and doubled twice.
std::vector<std::pair<const char *, Tensor>> sample(const Tensor &w) {
  Tensor x(DType::F32, {3, kWidth}), s(DType::F32, {1}), flag(DType::Bool, {}), count(DType::I64, {});
  Tensor y(DType::F32, {2, kWidth}), z(DType::I64, {2}), past(DType::F32, {2, kWidth}), all(DType::F32, {5, kWidth});
  s.as<float>()[0] = 0.5f;
  count.setInt(0, 2);
  z.setInt(1, 1);
  for (int64_t i = 0; i < 2 * kWidth; ++i)
    all.as<float>()[i] = past.as<float>()[i] = static_cast<float>(100 + i);
  for (int64_t i = 0; i < 3 * kWidth; ++i) {
    all.as<float>()[2 * kWidth + i] = x.as<float>()[i] = static_cast<float>(i) - 3;
    if (i >= kWidth)
      y.as<float>()[i - kWidth] = -4 * (2 * x.as<float>()[i] + 0.5f * w.as<float>()[i % kWidth]);
  }
  return {{"tests/in_count.npy", count}, {"tests/in_flag.npy", flag}, {"tests/in_past.npy", past},
          {"tests/in_s.npy", s},         {"tests/in_x.npy", x},       {"tests/out_all.npy", all},
          {"tests/out_y.npy", y},        {"tests/out_z.npy", z}};
}

Status writeGolden(const std::string &kernels, const std::string &common, const std::string &path) {
  Tensor w(DType::F32, {kWidth});
  for (int i = 0; i < kWidth; ++i)
    w.as<float>()[i] = 0.25f * static_cast<float>(i);
  WeightsWriter weights;
  if (Status done = weights.add("w", w); !done)
    return done;
  auto writer = Writer::create(path, BundleFormat::Zip);
  if (!writer)
    return writer.takeError();
  GraphFile graphs = makeGraph(weights);
  if (Status done = (*writer)->addEntry("graph.json", toJson(graphs)); !done)
    return done;
  if (Status done = (*writer)->addEntry(codeEntry, readAll(kernels)); !done)
    return done;
  if (Status done = (*writer)->addEntry(commonEntry, readAll(common)); !done)
    return done;
  for (auto &[name, tensor] : sample(w))
    if (Status done = (*writer)->addEntry(name, npyBytes(tensor)); !done)
      return done;
  if (Status done = (*writer)->addStream(weightsEntry, weights.size(), weights.producer()); !done)
    return done;
  (*writer)->setManifest(makeManifest(graphs));
  return (*writer)->finish();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make-golden KERNELS.so COMMON.so OUT.bundle\n");
    return 2;
  }
  Status done = writeGolden(argv[1], argv[2], argv[3]);
  if (!done)
    std::fprintf(stderr, "make-golden: %s\n", done.error().message.c_str());
  return done ? 0 : exitCodeOf(done.error().kind);
}
