//===- RunProduct.cpp - a product on the device, and by the rule ----------===//
#include "RunProduct.h"

#include "runtime/devices/Device.h"
#include "schemas/aie/Border.h"
#include "targets/aie/lower/Lower.h"
#include "targets/aie/passes/Passes.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;

namespace aietest {
using dmxc::aie::Part;

float rounded(float value) {
  int exponent = 0;
  double fraction = std::frexp(static_cast<double>(value), &exponent);
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

MLIRContext &context() {
  static auto made = [] {
    DialectRegistry registry;
    dmxc::aie::insertDialects(registry);
    dmxc::aie::registerDevice(registry, *hw::machineOf("npu1"));
    registry.insert<dmxc::dlir::DLIRDialect, dmxc::dmir::DMIRDialect>();
    auto made = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *made;
}

namespace {

std::string print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  op->print(out);
  return text;
}

OwningOpRef<ModuleOp> placed(const dmxc::aie::Mapping &mapping, const char *machine, bool place = true) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context()));
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto program = dmxc::aie::writeProgram(builder, module->getLoc(), *hw::machineOf(machine), "product", mapping);
  if (place)
    EXPECT_TRUE(succeeded(dmxc::aie::place(program)));
  return module;
}

LogicalResult lower(dmxc::aie::DeviceOp device) {
  return success(succeeded(dmxc::aie::routeFlows(device)) && succeeded(dmxc::aie::lowerControl(device)));
}

} // namespace

dmxc::aie::Mapping mappingOf(const Sizes &sizes, const Form &form) {
  dmxc::aie::Mapping out;
  Builder b(&context());
  Type element = form.integers ? Type(b.getI32Type()) : Type(b.getF32Type());
  auto tensor = [&](int64_t rows, int64_t columns) { return RankedTensorType::get({rows, columns}, element); };
  out.numbers = form.integers ? dmxc::aie::kI32 : dmxc::aie::kBf16;
  out.herd = form.herd;
  out.m = sizes.m;
  out.k = sizes.k;
  out.n = sizes.n;
  out.macs = sizes.m * sizes.k * sizes.n;
  out.relu = form.relu;
  out.operands = {{Part::A, tensor(sizes.m, sizes.k)}, {Part::B, tensor(sizes.k, sizes.n), form.packed}};
  if (form.swapped)
    std::swap(out.operands[0], out.operands[1]);
  if (form.bias)
    out.operands.push_back({Part::Bias, RankedTensorType::get({sizes.n}, element)});
  out.operands.push_back({Part::C, tensor(sizes.m, sizes.n)});
  return out;
}

std::string textOf(const Sizes &sizes, const Form &form, Stage stage) {
  return textOf(mappingOf(sizes, form), stage, form.machine);
}

std::string textOf(const dmxc::aie::Mapping &mapping, Stage stage, const char *machine) {
  OwningOpRef<ModuleOp> module = placed(mapping, machine, stage != Stage::Program);
  if (stage == Stage::Control)
    EXPECT_TRUE(succeeded(lower(*module->getOps<dmxc::aie::DeviceOp>().begin())));
  return print(*module);
}

hw::Image imageOf(const Sizes &sizes, const Form &form) { return imageOf(mappingOf(sizes, form), form.machine); }

hw::Image imageOf(const dmxc::aie::Mapping &mapping, const char *machine) {
  OwningOpRef<ModuleOp> module = placed(mapping, machine);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  hw::Image image;
  auto device = *module->getOps<dmxc::aie::DeviceOp>().begin();
  EXPECT_TRUE(succeeded(lower(device)) && succeeded(dmxc::aie::encode(device, image)));
  EXPECT_EQ(hw::verify(image), "");
  return image;
}

hw::Image imageOf(const std::string &text, std::string &error) {
  ScopedDiagnosticHandler handler(&context(), [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && error.empty())
      error = diagnostic.str();
    return success();
  });
  hw::Image image;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context());
  if (!module)
    return image;
  for (auto program : llvm::make_early_inc_range(module->getOps<dmxc::dlir::DeviceProgramOp>()))
    if (failed(dmxc::aie::place(program)))
      return image;
  for (auto device : module->getOps<dmxc::aie::DeviceOp>())
    if (failed(lower(device)) || failed(dmxc::aie::encode(device, image)))
      return image;
  error = hw::verify(image);
  return image;
}

Matrices randomMatrices(const Sizes &sizes, uint64_t seed, const Form &form) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Matrices out;
  out.a.resize(static_cast<size_t>(sizes.m * sizes.k));
  out.b.resize(static_cast<size_t>(sizes.k * sizes.n));
  out.bias.resize(form.bias ? static_cast<size_t>(sizes.n) : 0);
  for (std::vector<uint32_t> *matrix : {&out.a, &out.b, &out.bias})
    for (uint32_t &value : *matrix)
      value = form.integers ? static_cast<uint32_t>(random()) : std::bit_cast<uint32_t>(normal(random));
  return out;
}

static std::vector<uint32_t> ofIntegers(const Sizes &sizes, const Matrices &of, const Form &form) {
  auto [m, k, n] = sizes;
  std::vector<uint32_t> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      uint32_t sum = form.bias ? of.bias[static_cast<size_t>(j)] : 0;
      for (int64_t q = 0; q < k; ++q)
        sum += of.a[static_cast<size_t>(i * k + q)] * of.b[static_cast<size_t>(q * n + j)];
      c[static_cast<size_t>(i * n + j)] = form.relu && sum >> 31 ? 0 : sum;
    }
  return c;
}

std::vector<uint32_t> byTheRule(const Sizes &sizes, const Matrices &of, const Form &form) {
  if (form.integers)
    return ofIntegers(sizes, of, form);
  auto [m, k, n] = sizes;
  std::vector<uint32_t> c(static_cast<size_t>(m * n));
  std::vector<float> a, b;
  for (auto [from, to] : {std::pair(&of.a, &a), {&of.b, &b}})
    for (uint32_t value : *from)
      to->push_back(rounded(std::bit_cast<float>(value)));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t q = 0; q < k; ++q) {
        volatile float product = a[static_cast<size_t>(i * k + q)] * b[static_cast<size_t>(q * n + j)];
        sum += product;
      }
      if (form.bias)
        sum += std::bit_cast<float>(of.bias[static_cast<size_t>(j)]);
      c[static_cast<size_t>(i * n + j)] = std::bit_cast<uint32_t>(form.relu && sum < 0 ? 0.0f : sum);
    }
  return c;
}

Outcome run(const std::vector<std::byte> &code, const Sizes &sizes, const Matrices &of, const Form &form,
            const std::vector<std::string> &settings) {
  std::vector<std::vector<uint32_t>> inputs = {of.a, of.b};
  if (form.packed) {
    const dmxc::aie::Mapping mapping = mappingOf(sizes, form);
    auto [rows, pitch] = mapping.formOf(Part::B);
    auto operand = llvm::find_if(mapping.operands, [](const auto &one) { return one.part == Part::B; });
    hw::Argument b{"b",
                   false,
                   false,
                   form.integers ? hw::Element::I32 : hw::Element::Bf16,
                   mapping.axesOf(*operand),
                   static_cast<uint32_t>(rows),
                   static_cast<uint32_t>(pitch)};
    inputs[1].resize(b.ddrBytes() / 4);
    hw::toDevice(b, reinterpret_cast<const std::byte *>(of.b.data()), reinterpret_cast<std::byte *>(inputs[1].data()));
  }
  if (form.swapped)
    std::swap(inputs[0], inputs[1]);
  if (form.bias)
    inputs.push_back(of.bias);
  return run(code, std::move(inputs), static_cast<size_t>(sizes.m * sizes.n), settings,
             2 * static_cast<uint64_t>(sizes.m * sizes.k * sizes.n));
}

Outcome run(const std::vector<std::byte> &code, std::vector<std::vector<uint32_t>> inputs, size_t results,
            const std::vector<std::string> &settings, uint64_t operations) {
  using namespace dmxrt;
  Outcome outcome;
  auto failed = [&](const Error &error) {
    outcome.error = error.message;
    return outcome;
  };
  DeviceOptions options;
  options.settings = settings;
  const std::string target = "aie";
  auto devices = createDevices({&target, 1}, options);
  if (!devices)
    return failed(devices.takeError());
  Device &device = *devices->front();
  auto image = device.loadCode(code);
  if (!image)
    return failed(image.takeError());
  outcome.c.assign(results, UINT32_MAX);
  std::vector<void *> buffers;
  std::vector<uint64_t> bytes;
  for (std::vector<uint32_t> &input : inputs) {
    buffers.push_back(input.data());
    bytes.push_back(4 * input.size());
  }
  buffers.push_back(outcome.c.data());
  bytes.push_back(4 * outcome.c.size());
  DeviceTask task;
  task.kernel = (*image)->findKernel("product");
  task.buffers = buffers.data();
  task.work = 1;
  task.operations = operations;
  task.bufferBytes = bytes;
  task.written = 1;
  const Segment segment{0, 1};
  device.setProgramCount(1);
  if (Status status = device.prepare({&task, 1}, {&segment, 1}); !status)
    return failed(status.takeError());
  device.startRun();
  device.enqueue(0);
  if (RunOutcome ran = device.fence(); ran.code)
    outcome.error = ran.detail;
  else if (Status status = device.endRun(); !status)
    return failed(status.takeError());
  return outcome;
}

} // namespace aietest
