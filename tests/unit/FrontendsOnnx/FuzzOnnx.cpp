//===- FuzzOnnx.cpp - fuzz entry of the ONNX frontend ---------------------===//
//
// Takes any bytes as a model; must end with a module or an error. Build it with
// -fsanitize=fuzzer, or link FuzzMain.cpp, which runs it over the files given
// and over mutations of them.
//
//===----------------------------------------------------------------------===//
#include "ModelBuilder.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static dmxc::test::TempDir dir;
  std::string path = dir.write("f.onnx", std::string(reinterpret_cast<const char *>(data), size));
  dmxc::test::ImportRun run(dmxc::test::optionsFor(path));
  if (!run.imported && run.diagnostics.errorCount() == 0)
    std::abort(); // a refusal without an error
  return 0;
}
