//===- ModelBuilder.h - small ONNX models for tests -------------*- C++ -*-===//
#pragma once

#include "onnx/OnnxFrontend.h"
#include "onnx/reader/TensorReader.h"

#include "dmxc/Reference/Interpreter.h"

#include "mlir/IR/MLIRContext.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace dmxc::test {

/// Builds a ModelProto node by node.
struct ModelBuilder {
  onnx::ModelProto model;
  explicit ModelBuilder(int64_t opset = 17) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(opset);
    model.mutable_graph()->set_name("test");
  }
  onnx::GraphProto &graph() { return *model.mutable_graph(); }

  /// Dims: "2,n,3"; "" for rank 0.
  static void setType(onnx::ValueInfoProto &info, const std::string &name, const std::string &dims, int type = 1) {
    info.set_name(name);
    auto &tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (size_t at = 0; at < dims.size();) {
      size_t comma = std::min(dims.find(',', at), dims.size());
      std::string dim = dims.substr(at, comma - at);
      auto &proto = *tensor.mutable_shape()->add_dim();
      if (!dim.empty() && std::isdigit(static_cast<unsigned char>(dim[0])))
        proto.set_dim_value(std::stoll(dim));
      else if (dim != "?")
        proto.set_dim_param(dim);
      at = comma + 1;
    }
  }
  ModelBuilder &input(const std::string &name, const std::string &dims, int type = 1) {
    setType(*graph().add_input(), name, dims, type);
    return *this;
  }
  ModelBuilder &output(const std::string &name) {
    graph().add_output()->set_name(name);
    return *this;
  }
  onnx::NodeProto &node(const std::string &op, const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs, const std::string &name = "") {
    onnx::NodeProto &node = *graph().add_node();
    node.set_op_type(op);
    node.set_name(name);
    for (const std::string &input : inputs)
      node.add_input(input);
    for (const std::string &output : outputs)
      node.add_output(output);
    return node;
  }
  static onnx::AttributeProto &attribute(onnx::NodeProto &node, const std::string &name,
                                         onnx::AttributeProto::AttributeType type) {
    auto &attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }
  static void setInt(onnx::NodeProto &node, const std::string &name, int64_t value) {
    attribute(node, name, onnx::AttributeProto::INT).set_i(value);
  }
  static void setFloat(onnx::NodeProto &node, const std::string &name, float value) {
    attribute(node, name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  static void setString(onnx::NodeProto &node, const std::string &name, const std::string &value) {
    attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
  }
  static void setInts(onnx::NodeProto &node, const std::string &name, const std::vector<int64_t> &values) {
    auto &list = attribute(node, name, onnx::AttributeProto::INTS);
    for (int64_t value : values)
      list.add_ints(value);
  }
  static void setFloats(onnx::NodeProto &node, const std::string &name, const std::vector<float> &values) {
    auto &list = attribute(node, name, onnx::AttributeProto::FLOATS);
    for (float value : values)
      list.add_floats(value);
  }
  /// Imports a further domain.
  ModelBuilder &domain(const std::string &name, int64_t version) {
    auto &import = *model.add_opset_import();
    import.set_domain(name);
    import.set_version(version);
    return *this;
  }
  /// A float initializer in raw form.
  onnx::TensorProto &weights(const std::string &name, const std::vector<int64_t> &dims, float value = 1) {
    onnx::TensorProto &tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(1);
    int64_t count = 1;
    for (int64_t dim : dims) {
      tensor.add_dims(dim);
      count *= dim;
    }
    std::vector<float> data(count, value);
    tensor.set_raw_data(data.data(), count * sizeof(float));
    return tensor;
  }
  std::string bytes() const { return model.SerializeAsString(); }
};

/// A folder that goes away with the object.
struct TempDir {
  std::filesystem::path path;
  TempDir() {
    static int counter = 0;
    path = std::filesystem::temp_directory_path() /
           ("dmxc-onnx-" + std::to_string(getpid()) + "-" + std::to_string(counter++));
    std::filesystem::create_directories(path);
  }
  ~TempDir() {
    std::error_code code;
    std::filesystem::remove_all(path, code);
  }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
};

/// What an import left behind.
struct ImportRun {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  Diagnostics diagnostics;
  std::optional<ImportedModel> imported;

  explicit ImportRun(ImportOptions options) {
    if (!options.fold)
      options.fold = [](mlir::Operation *op, llvm::ArrayRef<Tensor> operands,
                        std::string &why) -> std::optional<std::vector<Tensor>> {
        Result<std::vector<Tensor>> results = reference::evaluateOp(op, operands);
        if (results)
          return std::move(*results);
        why = results.error().message;
        return std::nullopt;
      };
    imported = onnxFrontend().import(context, options, diagnostics);
  }
  std::string text() const {
    std::string all;
    for (const Diagnostic &diagnostic : diagnostics.all())
      all += renderText(diagnostic, false) + "\n";
    return all;
  }
  size_t count(const std::string &id) const {
    size_t n = 0;
    for (const Diagnostic &diagnostic : diagnostics.all())
      n += diagnostic.id == id;
    return n;
  }
  std::string ir() {
    std::string text;
    llvm::raw_string_ostream os(text);
    (*imported->module)->print(os);
    return text;
  }
};

inline ImportOptions optionsFor(const std::string &path) {
  ImportOptions options;
  options.path = path;
  return options;
}

/// What the interpreter makes of an imported model; an error with all messages where the import fails.
inline Result<std::vector<Tensor>> evaluate(const ModelBuilder &builder, const std::vector<Tensor> &inputs,
                                            ImportOptions options = {}) {
  TempDir dir;
  options.path = dir.write("m.onnx", builder.bytes());
  ImportRun run(std::move(options));
  if (!run.imported)
    return modelError(run.text());
  auto function = *run.imported->module->getOps<mlir::func::FuncOp>().begin();
  return reference::evaluateFunction(function, inputs);
}

inline Tensor floatTensor(Shape shape, const std::vector<float> &values) {
  Tensor tensor(DType::F32, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

inline std::vector<double> numbersOf(const Tensor &tensor) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    numbers.push_back(tensor.asDouble(i));
  return numbers;
}

} // namespace dmxc::test
