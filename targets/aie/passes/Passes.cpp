//===- Passes.cpp - stages of an aie.device -------------------------------===//
#include "Passes.h"

#include "targets/aie/lower/Lower.h"
#include "targets/aie/place/Place.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace dmxc {
#define GEN_PASS_DEF_AIEPLACE
#define GEN_PASS_DEF_AIEROUTE
#define GEN_PASS_DEF_AIECONTROL
#define GEN_PASS_DEF_AIEENCODE
#define GEN_PASS_REGISTRATION
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
using namespace dmxc::aie;

std::string aie::cdoOf(const hw::Overlay &overlay) {
  std::vector<uint32_t> words = hw::encodeCdo(overlay.initial);
  return {reinterpret_cast<const char *>(words.data()), 4 * words.size()};
}

std::string aie::instsOf(const hw::Image &image, const hw::KernelCode &kernel) {
  std::string text;
  for (uint32_t word : hw::encode(hw::headerOf(*hw::machineOf(image.machine)), kernel.control))
    text += llvm::utohexstr(word, /*LowerCase=*/false, /*Width=*/8) + "\n";
  return text;
}

bool aie::writeFile(StringRef path, StringRef content) {
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  if (!error) {
    out << content;
    out.close();
    error = out.error();
  }
  out.clear_error();
  return !error;
}

void aie::insertDialects(DialectRegistry &registry) {
  registry.insert<AIEDialect, aiex::AIEXDialect, arith::ArithDialect, func::FuncDialect, memref::MemRefDialect,
                  scf::SCFDialect>();
}

void dmxc::registerAiePasses(DialectRegistry &registry) {
  insertDialects(registry);
  registerDevice(registry, *hw::machineOf("npu4")); // the largest; aie-place looks at a program's own
  registry.insert<dmir::DMIRDialect, dlir::DLIRDialect>();
  registerAiePasses();
}

namespace {

struct AiePlace : dmxc::impl::AiePlaceBase<AiePlace> {
  void runOnOperation() override {
    for (auto program : llvm::make_early_inc_range(getOperation().getOps<dlir::DeviceProgramOp>()))
      if (program.getDevice() == kDevice && failed(place(program)))
        return signalPassFailure();
  }
};

struct AieRoute : dmxc::impl::AieRouteBase<AieRoute> {
  void runOnOperation() override {
    for (auto device : getOperation().getOps<DeviceOp>())
      if (failed(routeFlows(device)))
        return signalPassFailure();
  }
};

struct AieControl : dmxc::impl::AieControlBase<AieControl> {
  void runOnOperation() override {
    for (auto device : getOperation().getOps<DeviceOp>())
      if (failed(lowerControl(device)))
        return signalPassFailure();
  }
};

struct AieEncode : dmxc::impl::AieEncodeBase<AieEncode> {
  using AieEncodeBase::AieEncodeBase;

  void runOnOperation() override {
    hw::Image all;
    for (auto device : getOperation().getOps<DeviceOp>())
      if (failed(aie::encode(device, all)))
        return signalPassFailure();
    std::string wrong = all.kernels.empty() ? "there is no aie.device" : hw::verify(all);
    if (!wrong.empty()) {
      getOperation().emitError("has no sound words for the array: ") << wrong;
      return signalPassFailure();
    }
    const hw::KernelCode *one = all.kernels.size() == 1 && kernel.empty() ? &all.kernels[0] : nullptr;
    for (const hw::KernelCode &each : all.kernels)
      one = each.name == kernel.getValue() ? &each : one;
    if (!one && (!cdo.empty() || !insts.empty())) {
      getOperation().emitError("has ") << all.kernels.size() << " kernels; the option kernel says which of them";
      return signalPassFailure();
    }
    std::vector<std::byte> bytes = hw::write(all);
    if ((!cdo.empty() && !store(cdo, cdoOf(all.overlays[one->overlay]))) ||
        (!insts.empty() && !store(insts, instsOf(all, *one))) ||
        (!image.empty() && !store(image, {reinterpret_cast<const char *>(bytes.data()), bytes.size()})))
      signalPassFailure();
  }

  bool store(StringRef path, StringRef content) {
    if (writeFile(path, content))
      return true;
    getOperation().emitError("cannot write '") << path << "'";
    return false;
  }
};

} // namespace
