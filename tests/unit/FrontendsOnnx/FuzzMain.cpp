//===- FuzzMain.cpp - runs the fuzz entry over mutated models -------------===//
//
// FrontendsOnnxFuzz ROUNDS PATH...: PATH is a model or a folder of cases (every
// model.onnx below it). Two kinds of mutants: broken bytes, and models that are
// well-formed protobuf with other shapes, types, attributes and edges.
// Deterministic, so that a failure can be repeated. Each seed runs in a child
// process; exit 1 names the seeds whose child died. Without seeds: exit 0 with
// a note.
//
//===----------------------------------------------------------------------===//
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Random = std::mt19937;
namespace fs = std::filesystem;

void breakBytes(std::string &bytes, Random &random) {
  if (bytes.empty())
    return;
  size_t at = random() % bytes.size();
  switch (random() % 5) {
  case 0:
    bytes[at] = static_cast<char>(random());
    break;
  case 1:
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
    break;
  case 2:
    bytes.erase(at, 1 + random() % 8);
    break;
  case 3:
    bytes.insert(at, std::string(bytes, random() % bytes.size(), 1 + random() % 16));
    break;
  case 4:
    bytes.resize(at);
    break;
  }
}

int64_t oddNumber(Random &random) {
  static const int64_t numbers[] = {0,   1,    -1,    2,       3,       -2,        5,         7,        16,
                                    100, -100, 65536, INT_MAX, INT_MIN, INT64_MAX, INT64_MIN, 1LL << 40};
  // Mostly small ones: they reach further into the importer.
  return numbers[random() % (random() % 3 ? 8 : std::size(numbers))];
}

void changeType(onnx::ValueInfoProto &info, Random &random) {
  auto &tensor = *info.mutable_type()->mutable_tensor_type();
  auto &shape = *tensor.mutable_shape();
  switch (random() % 4) {
  case 0:
    tensor.set_elem_type(static_cast<int>(random() % 25));
    break;
  case 1:
    shape.add_dim()->set_dim_value(oddNumber(random));
    break;
  case 2:
    if (shape.dim_size())
      shape.mutable_dim()->RemoveLast();
    break;
  case 3:
    if (shape.dim_size())
      shape.mutable_dim(static_cast<int>(random() % shape.dim_size()))->set_dim_value(oddNumber(random));
    break;
  }
}

void changeAttribute(onnx::AttributeProto &attribute, Random &random) {
  switch (random() % 6) {
  case 0:
    attribute.set_i(oddNumber(random));
    break;
  case 1:
    attribute.set_f(static_cast<float>(oddNumber(random)) / 3);
    break;
  case 2:
    if (attribute.ints_size())
      attribute.set_ints(static_cast<int>(random() % attribute.ints_size()), oddNumber(random));
    break;
  case 3:
    attribute.add_ints(oddNumber(random));
    break;
  case 4:
    attribute.set_s(random() % 2 ? "linear" : "");
    break;
  case 5:
    attribute.set_type(static_cast<onnx::AttributeProto::AttributeType>(1 + random() % 10));
    break;
  }
}

void changeTensor(onnx::TensorProto &tensor, Random &random) {
  switch (random() % 4) {
  case 0:
    tensor.set_data_type(static_cast<int>(random() % 25));
    break;
  case 1:
    for (int64_t &value : *tensor.mutable_int64_data())
      value = oddNumber(random);
    break;
  case 2: // other numbers in the same bytes
    if (tensor.raw_data().size() >= 8) {
      int64_t value = oddNumber(random);
      tensor.mutable_raw_data()->replace(random() % (tensor.raw_data().size() / 8) * 8, 8,
                                         reinterpret_cast<char *>(&value), 8);
    }
    break;
  case 3:
    tensor.add_dims(1);
    break;
  }
}

void changeNode(onnx::NodeProto &node, onnx::GraphProto &graph, Random &random) {
  switch (random() % 5) {
  case 0:
    if (node.input_size())
      node.set_input(static_cast<int>(random() % node.input_size()),
                     graph.input_size() && random() % 3
                         ? graph.input(static_cast<int>(random() % graph.input_size())).name()
                         : "");
    break;
  case 1:
    if (node.input_size())
      node.mutable_input()->RemoveLast();
    break;
  case 2:
    if (node.attribute_size())
      node.mutable_attribute()->DeleteSubrange(static_cast<int>(random() % node.attribute_size()), 1);
    break;
  default:
    if (node.attribute_size())
      changeAttribute(*node.mutable_attribute(static_cast<int>(random() % node.attribute_size())), random);
  }
}

void changeModel(onnx::ModelProto &model, Random &random) {
  onnx::GraphProto &graph = *model.mutable_graph();
  switch (random() % 5) {
  case 0:
  case 1:
    if (graph.input_size())
      return changeType(*graph.mutable_input(static_cast<int>(random() % graph.input_size())), random);
    break;
  case 2:
    if (graph.initializer_size())
      return changeTensor(*graph.mutable_initializer(static_cast<int>(random() % graph.initializer_size())), random);
    break;
  case 3:
    if (model.opset_import_size() && random() % 4 == 0)
      return model.mutable_opset_import(0)->set_version(random() % 30);
    break;
  }
  if (graph.node_size())
    changeNode(*graph.mutable_node(static_cast<int>(random() % graph.node_size())), graph, random);
}

/// Inputs that follow the first become initializers with small numbers, so that
/// shape operands are known.
void freezeInputs(onnx::ModelProto &model, Random &random) {
  onnx::GraphProto &graph = *model.mutable_graph();
  for (int i = random() % 2; i < graph.input_size(); ++i) {
    const auto &type = graph.input(i).type().tensor_type();
    int64_t count = 1;
    for (const auto &dim : type.shape().dim())
      count = dim.dim_value() > 0 && dim.dim_value() < 64 ? count * dim.dim_value() : 0;
    if (count == 0 || count > 64 || (type.elem_type() != 7 && type.elem_type() != 1))
      continue;
    onnx::TensorProto &tensor = *graph.add_initializer();
    tensor.set_name(graph.input(i).name());
    tensor.set_data_type(type.elem_type());
    for (const auto &dim : type.shape().dim())
      tensor.add_dims(dim.dim_value());
    for (int64_t k = 0; k < count; ++k)
      type.elem_type() == 7 ? tensor.add_int64_data(oddNumber(random))
                            : tensor.add_float_data(static_cast<float>(oddNumber(random)));
  }
}

void runSeed(const std::string &seed, unsigned number, int rounds) {
  Random random(number);
  onnx::ModelProto original;
  bool parsed = original.ParseFromString(seed);
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = seed;
    if (parsed && round % 4) {
      onnx::ModelProto model = original;
      if (random() % 2)
        freezeInputs(model, random);
      for (int k = 0; k < 1 + round % 3; ++k)
        changeModel(model, random);
      bytes = model.SerializeAsString();
    } else {
      for (int k = 0; k < 1 + round % 6; ++k)
        breakBytes(bytes, random);
    }
    if (const char *keep = std::getenv("DMXC_FUZZ_KEEP")) // the mutant that runs now
      std::ofstream(keep, std::ios::binary) << bytes;
    alarm(60); // a mutant that takes longer is a finding
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  }
}

std::vector<fs::path> seedsOf(int argc, char **argv) {
  std::vector<fs::path> seeds;
  for (int i = 2; i < argc; ++i) {
    if (fs::is_regular_file(argv[i]))
      seeds.push_back(argv[i]);
    else if (fs::is_directory(argv[i]))
      for (const auto &entry : fs::recursive_directory_iterator(argv[i]))
        if (entry.path().filename() == "model.onnx")
          seeds.push_back(entry.path());
  }
  std::sort(seeds.begin(), seeds.end());
  return seeds;
}

} // namespace

int main(int argc, char **argv) {
  std::vector<fs::path> seeds = seedsOf(argc, argv);
  int rounds = argc > 1 ? std::atoi(argv[1]) : 0, failures = 0;
  if (seeds.empty()) {
    std::puts("SKIPPED: no seed models; usage: FrontendsOnnxFuzz ROUNDS PATH...");
    return 0;
  }
  for (size_t i = 0; i < seeds.size(); ++i) {
    std::ifstream stream(seeds[i], std::ios::binary);
    std::string seed((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    pid_t child = fork();
    if (child == 0) {
      runSeed(seed, static_cast<unsigned>(i), rounds);
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
      ++failures;
      std::printf("seed %s dies: %s %d\n", seeds[i].c_str(), WIFSIGNALED(status) ? "signal" : "exit",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
  }
  std::printf("%zu seeds, %d mutants each, %d died\n", seeds.size(), rounds, failures);
  return failures != 0;
}
