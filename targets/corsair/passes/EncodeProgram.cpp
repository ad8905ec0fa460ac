//===- EncodeProgram.cpp - DLIR to files of the DMX ISA -------------------===//
#include "Passes.h"

#include "schemas/corsair/text/Assembler.h"
#include "targets/corsair/dialect/LLDMIR/LLDMIR.h"
#include "targets/corsair/encode/Encode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace dmxc {
#define GEN_PASS_DEF_ENCODEPROGRAM
#include "Passes.h.inc"
} // namespace dmxc

using namespace mlir;
using namespace dmxc;
namespace hw = dmx::corsair;

namespace {

struct EncodeProgram : dmxc::impl::EncodeProgramBase<EncodeProgram> {
  using EncodeProgramBase::EncodeProgramBase;

  void runOnOperation() override {
    SmallVector<dlir::DeviceProgramOp> programs;
    for (auto program : getOperation().getOps<dlir::DeviceProgramOp>())
      if (program.getDevice() == "corsair")
        programs.push_back(program);
    if (programs.empty()) {
      getOperation().emitError("has no dlir.device_program to encode");
      return signalPassFailure();
    }
    corsair::EncodeOptions options;
    options.removeConfigs = !keepConfigs;
    options.verifyOrder = order;
    FailureOr<hw::Image> image = corsair::encode(programs, lldmir::machineOf(&getContext()), options);
    if (failed(image))
      return signalPassFailure();
    std::vector<uint8_t> bytes = hw::write(*image);
    if (failed(store(file, {reinterpret_cast<const char *>(bytes.data()), bytes.size()})) ||
        failed(store(text, hw::disassemble(*image))))
      return signalPassFailure();
  }

  LogicalResult store(StringRef path, StringRef content) {
    if (path.empty())
      return success();
    std::error_code error;
    llvm::raw_fd_ostream out(path, error);
    if (!error) {
      out << content;
      out.close();
      error = out.error();
    }
    if (!error)
      return success();
    out.clear_error();
    return getOperation().emitError() << "cannot write '" << path << "': " << error.message();
  }
};

} // namespace
