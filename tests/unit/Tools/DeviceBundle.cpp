//===- DeviceBundle.cpp - bundles of a device from assembly ---------------===//
#include "DeviceBundle.h"

#include "BundleBuilder.h"
#include "schemas/corsair/text/Assembler.h"

#include <cstdio>

namespace dmxc::tools::test {

namespace isa = dmx::corsair;

std::string deviceBundle(const std::string &assembly) {
  std::string error;
  auto image = isa::assemble(assembly, isa::builtinMachine(), error);
  if (!image) {
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(1);
  }
  dmxtest::ModelBuilder builder;
  std::vector<int> deps;
  for (const isa::Kernel &kernel : image->kernels) {
    std::vector<int> buffers;
    int outputs = 0;
    for (const isa::Argument &argument : kernel.arguments) {
      std::string type(isa::nameOf(argument.type));
      if (argument.role == isa::Role::Const) {
        std::string bytes;
        for (uint64_t i = 0; i < argument.hostBytes(); ++i)
          bytes += static_cast<char>(i < 64 ? 0 : i * 37 % 11);
        buffers.push_back(builder.constant(bytes, type, argument.shape));
      } else if (argument.role == isa::Role::State) {
        buffers.push_back(builder.state(argument.hostBytes(), type, argument.shape));
      } else if (argument.role == isa::Role::Output) {
        buffers.push_back(builder.output(argument.name, type, argument.shape));
      } else {
        buffers.push_back(builder.input(argument.name, type, argument.shape));
      }
      outputs += argument.role == isa::Role::Output || argument.role == isa::Role::State;
    }
    deps = {builder.dispatch(kernel.name, buffers, outputs, 1, deps)};
  }
  dmxtest::TestBundle bundle = builder.finish();
  bundle.graph["graphs"][0]["queues"][0]["target"] = "corsair";
  const std::string entry = "code/corsair/corsair-like/kernels.dmxisa";
  bundle.manifest["targets"] = {
      {{"target", "corsair"}, {"arch", "corsair-like"}, {"entry", entry}, {"features", dmxtest::Json::array()}}};
  bundle.files.erase("code/cpu/x86-64/kernels.so");
  std::vector<uint8_t> bytes = isa::write(*image);
  bundle.files[entry] = {bytes.begin(), bytes.end()};
  return bundle.zip();
}

} // namespace dmxc::tools::test
