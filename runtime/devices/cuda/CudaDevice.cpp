//===- CudaDevice.cpp - GPUs of NVIDIA, or a simulator of them ----------------===//
//
// Which of the two a session gets.
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"
#include "driver/GpuDevice.h"

namespace dmxrt::cuda {
namespace {

constexpr SettingSpec kSettings[] = {{"sim", "auto|on|off"},
                                     {"device", "N", 1023},
                                     {"blocking", "0|1", 1},
                                     {"driver", "FILE"},
                                     {"sim_seed", "N", UINT64_MAX},
                                     {"sim_checks", "0|1", 1},
                                     {"sim_steps", "N", UINT64_MAX},
                                     {"sim_blocks", "N", UINT32_MAX},
                                     {"sim_machine", "FILE"},
                                     {"report", "FILE"},
                                     {"trace", "FILE"}};

struct Choice {
  std::string sim, file = Driver::kFile;
  std::optional<uint64_t> number;
  bool blocking = false, clocks = false; ///< clocks: a report or a trace is wanted, which are the simulator's
  std::vector<Setting> simulator;        ///< for it
};

Choice read(const DeviceOptions &options, std::span<const Setting> settings) {
  Choice choice;
  choice.sim = options.simulates ? "auto" : "off"; // a caller that knows of no simulator must not wait for one
  for (const Setting &setting : settings) {
    if (setting.key == "sim")
      choice.sim = setting.text;
    else if (setting.key == "device")
      choice.number = setting.number;
    else if (setting.key == "blocking")
      choice.blocking = setting.number == 1;
    else if (setting.key == "driver")
      choice.file = setting.text;
    else {
      choice.simulator.push_back(setting);
      choice.clocks |= setting.key == "report" || setting.key == "trace" || setting.key == "sim_blocks";
    }
  }
  return choice;
}

Result<std::shared_ptr<Gpu>> findGpu(const Choice &choice) {
  auto driver = Driver::open(choice.file);
  if (!driver)
    return driver.takeError();
  return Gpu::find(**driver, choice.number);
}

Result<std::unique_ptr<Device>> createDevice(const DeviceOptions &options, std::span<const Setting> settings) {
  Choice choice = read(options, settings);
  Error none;
  if (choice.clocks && choice.sim == "off" && options.simulates)
    return fail(DMX_STATUS_INVALID_ARGUMENT,
                "cuda.report, cuda.trace and cuda.sim_blocks are of the simulator's clock: cuda.sim=on, not off");
  if (choice.clocks)
    choice.sim = "on";
  if (choice.sim != "on") {
    auto gpu = findGpu(choice);
    if (gpu)
      return GpuDevice::create(options, std::move(*gpu), choice.blocking);
    none = gpu.takeError();
    // Who names a GPU wants that one.
    if (choice.sim == "off" || choice.number)
      return fail(none.status, "there is no GPU to run on: ", none.message,
                  "; run on the simulator (device option cuda.sim=on), or compile the model for cpu");
    choice.simulator.push_back({"why", none.message, 0});
  }
  auto simulator = cudaPart("sim");
  if (simulator)
    return (*simulator)->create(options, choice.simulator);
  if (choice.sim == "on")
    return fail(DMX_STATUS_UNSUPPORTED, "there is no simulator of GPUs: ", simulator.error().message);
  return fail(DMX_STATUS_UNSUPPORTED, "there is neither a GPU to run on (", none.message, ") nor a simulator of one (",
              simulator.error().message,
              "); install the driver of such a GPU or the simulator's library, or compile the model for cpu");
}

/// The simulator knows every instruction; without it the driver's compiler has to say what it does not know.
Result<std::shared_ptr<const CodeImage>> inspect(std::span<const std::byte> bytes) {
  auto simulator = cudaPart("sim");
  return simulator ? (*simulator)->inspect(bytes) : CudaImage::load(bytes);
}

Status check(std::span<const std::byte> bytes, int32_t &contracts) {
  contracts = 1;
  auto loaded = inspect(bytes);
  return loaded ? Status() : Status(loaded.takeError());
}

} // namespace
} // namespace dmxrt::cuda

const dmxrt::DeviceKind &dmxrt::cudaDevice() {
  static constexpr DeviceKind kind{"cuda",      /*runsOnHost=*/false, cuda::kSettings, cuda::createDevice,
                                   cuda::check, cuda::inspect};
  return kind;
}
