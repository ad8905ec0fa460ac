//===- Cases.cpp - table-driven tests of the interpreter ------------------===//
#include "Cases.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Support/Half.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <sstream>

namespace dmxc::reference::test {

namespace {

std::vector<Family> &families() {
  static std::vector<Family> list;
  return list;
}

uint8_t encodeE5M2(double value) { return doubleToNarrow(DType::F8E5M2, value, std::isfinite(value)); }

std::string replaceAll(std::string text, const std::string &what, const std::string &with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string typeText(const std::string &literal) { return "tensor<" + literal.substr(0, literal.find(':')) + ">"; }

std::string commaList(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string valueText(const Tensor &tensor, int64_t i) {
  if (!isFloat(tensor.dtype()))
    return tensor.dtype() == DType::U64 ? std::to_string(static_cast<uint64_t>(tensor.asInt(i)))
                                        : std::to_string(tensor.asInt(i));
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", tensor.asDouble(i));
  return text;
}

std::string tensorText(const Tensor &tensor) {
  std::string text = shapeString(tensor.shape()) + " " + std::string(dtypeName(tensor.dtype())) + ":";
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    text += " " + valueText(tensor, i);
  return text;
}

bool sameValue(const Tensor &a, const Tensor &b, int64_t i, double tolerance) {
  if (!isFloat(a.dtype()))
    return a.asInt(i) == b.asInt(i);
  double x = a.asDouble(i), y = b.asDouble(i);
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) && std::isnan(y);
  if (tolerance > 0 && std::isfinite(y))
    return std::fabs(x - y) <= tolerance * std::max(std::fabs(y), 1e-30);
  return x == y && std::signbit(x) == std::signbit(y);
}

std::string moduleText(const Case &testCase, const std::vector<std::string> &inputs,
                       const std::vector<std::string> &outputs) {
  std::vector<std::string> parameters, names, inTypes, outTypes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    names.push_back("%a" + std::to_string(i));
    inTypes.push_back(typeText(inputs[i]));
    parameters.push_back(names[i] + ": " + inTypes[i]);
  }
  for (const std::string &output : outputs)
    outTypes.push_back(typeText(output));
  std::string count = ":" + std::to_string(outputs.size());
  std::string results;
  for (size_t i = 0; i < outputs.size(); ++i)
    results += (i ? ", %r#" : "%r#") + std::to_string(i);
  return "func.func @main(" + commaList(parameters) + ") -> (" + commaList(outTypes) + ") {\n  %r" + count +
         " = dmir." + testCase.op + " " + commaList(names) + " {" + testCase.attributes + "} : (" + commaList(inTypes) +
         ") -> (" + commaList(outTypes) + ") loc(\"the_node\")\n  return " + results + " : " + commaList(outTypes) +
         "\n}\n";
}

void runCaseOf(const Case &testCase, const std::string &type) {
  std::vector<std::string> inputs, outputs;
  for (const std::string &input : testCase.inputs)
    inputs.push_back(replaceAll(input, "{T}", type));
  for (const std::string &output : testCase.outputs)
    outputs.push_back(replaceAll(output, "{T}", type));
  std::string text = moduleText(testCase, inputs, outputs);
  SCOPED_TRACE(text);
  Result<std::vector<Tensor>> results = runText(text, inputs);
  if (!testCase.error.empty()) {
    ASSERT_FALSE(results) << "an error was expected";
    EXPECT_NE(results.error().message.find(testCase.error), std::string::npos) << results.error().message;
    EXPECT_NE(results.error().message.find("the_node"), std::string::npos) << results.error().message;
    return;
  }
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    expectTensor((*results)[i], tensorOf(outputs[i]), testCase.tolerance);
}

} // namespace

Family::Family(std::string name, std::vector<Case> cases) : name(std::move(name)), cases(std::move(cases)) {
  families().push_back(*this);
}

const std::vector<Family> &Family::all() { return families(); }

mlir::MLIRContext &context() {
  static mlir::MLIRContext &instance = *[] {
    auto *context = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    context->loadDialect<dmir::DMIRDialect, mlir::func::FuncDialect>();
    return context;
  }();
  return instance;
}

mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text) {
  return mlir::parseSourceString<mlir::ModuleOp>(text, mlir::ParserConfig(&context()));
}

Tensor tensorOf(const std::string &literal) {
  auto type = llvm::cast<mlir::RankedTensorType>(mlir::parseType(typeText(literal), &context()));
  Tensor tensor(*dmir::dtypeOf(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end()));
  std::istringstream stream(literal.substr(literal.find(':') + 1));
  std::string word;
  int64_t count = 0;
  for (; stream >> word; ++count) {
    if (count >= tensor.numElements())
      break;
    if (word == "true" || word == "false")
      tensor.setInt(count, word == "true");
    else if (tensor.dtype() == DType::F8E5M2) // setDouble saturates, but here inf means inf
      tensor.as<uint8_t>()[count] = encodeE5M2(std::strtod(word.c_str(), nullptr));
    else if (isFloat(tensor.dtype()))
      tensor.setDouble(count, std::strtod(word.c_str(), nullptr));
    else
      tensor.setInt(count, word[0] == '-' ? std::strtoll(word.c_str(), nullptr, 10)
                                          : static_cast<int64_t>(std::strtoull(word.c_str(), nullptr, 10)));
  }
  EXPECT_EQ(count, tensor.numElements()) << "a literal with a wrong number of values: " << literal;
  return tensor;
}

void expectTensor(const Tensor &got, const Tensor &want, double tolerance) {
  ASSERT_EQ(got.dtype(), want.dtype()) << "got " << tensorText(got);
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.numElements(); ++i)
    if (!sameValue(got, want, i, tolerance)) {
      ADD_FAILURE() << "element " << i << "\n  got  " << tensorText(got) << "\n  want " << tensorText(want);
      return;
    }
}

void runCase(const Case &testCase) {
  if (testCase.types.empty())
    return runCaseOf(testCase, "");
  std::istringstream stream(testCase.types);
  for (std::string type; stream >> type;)
    runCaseOf(testCase, type);
}

Result<std::vector<Tensor>> runText(const std::string &text, const std::vector<std::string> &inputs,
                                    const OpObserver &observer) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(text);
  if (!module)
    return Error{ErrorKind::Internal, "the test's module does not parse"};
  std::vector<Tensor> tensors;
  for (const std::string &input : inputs)
    tensors.push_back(tensorOf(input));
  return evaluateFunction(module->lookupSymbol<mlir::func::FuncOp>("main"), tensors, observer);
}

class ReferenceCases : public testing::TestWithParam<Family> {};

TEST_P(ReferenceCases, AllHold) {
  for (const Case &testCase : GetParam().cases)
    runCase(testCase);
}

INSTANTIATE_TEST_SUITE_P(Families, ReferenceCases, testing::ValuesIn(Family::all()),
                         [](const auto &info) { return info.param.name; });

void PrintTo(const Family &family, std::ostream *os) { *os << family.name; }

} // namespace dmxc::reference::test
