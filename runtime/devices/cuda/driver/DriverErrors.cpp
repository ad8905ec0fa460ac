//===- DriverErrors.cpp - what the driver's codes mean ------------------------===//
//
// The numbers of CUresult. Sentences say what it means for a bundle that runs, and what to do where something can be
// done.
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

namespace dmxrt::cuda {

const DriverError *findDriverError(DriverCode code) {
  static constexpr DriverError errors[] = {
      {1, "CUDA_ERROR_INVALID_VALUE", "the driver refuses an argument; this is a bug of dmxrt, please report it",
       false},
      {2, "CUDA_ERROR_OUT_OF_MEMORY", "the GPU's memory does not suffice; end other programs that use it", false},
      {3, "CUDA_ERROR_NOT_INITIALIZED", "the driver was not started; this is a bug of dmxrt, please report it", false},
      {4, "CUDA_ERROR_DEINITIALIZED", "the driver has shut down: the process is ending", true},
      {34, "CUDA_ERROR_STUB_LIBRARY",
       "the library is a stub for linking, no driver; leave the toolkit's folder stubs out of the library path", false},
      {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the driver is too old; install one of CUDA 12.0 or later", false},
      {46, "CUDA_ERROR_DEVICE_UNAVAILABLE",
       "another process has the GPU for itself; end it, or set the GPU's compute mode to default", false},
      {100, "CUDA_ERROR_NO_DEVICE", "the driver finds no GPU", false},
      {101, "CUDA_ERROR_INVALID_DEVICE", "there is no GPU of this number", false},
      {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the virtual GPU has no license", false},
      {200, "CUDA_ERROR_INVALID_IMAGE", "the driver cannot read the kernels", false},
      {201, "CUDA_ERROR_INVALID_CONTEXT", "the GPU's context is not usable; the device was reset under the process",
       true},
      {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
       "the kernels are not for this GPU: they are for compute capability 9.0 (H100, H200)", false},
      {214, "CUDA_ERROR_ECC_UNCORRECTABLE",
       "the GPU's memory has an error that cannot be corrected; restart the GPU, and replace it if that happens again",
       true},
      {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "another thread has the GPU's context for itself", false},
      {218, "CUDA_ERROR_INVALID_PTX", "the driver's compiler refuses the kernels", false},
      {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "a link between GPUs has an error that cannot be corrected", true},
      {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
       "the driver's compiler is missing; install libnvidia-ptxjitcompiler.so.1 of the same driver", false},
      {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
       "the driver is too old for PTX 8.0; install one of CUDA 12.0 or later (525.60 or later)", false},
      {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "the driver's compiler is switched off; unset CUDA_DISABLE_PTX_JIT",
       false},
      {226, "CUDA_ERROR_CONTAINED", "the GPU's memory has an error that was contained; run again", true},
      {300, "CUDA_ERROR_INVALID_SOURCE", "the driver cannot read the kernels", false},
      {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a library of the driver lacks a function; install it anew",
       false},
      {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a library of the driver does not start; install it anew", false},
      {304, "CUDA_ERROR_OPERATING_SYSTEM",
       "the system refuses a call of the driver; see its log (dmesg), and whether /dev/nvidia* may be opened", false},
      {400, "CUDA_ERROR_INVALID_HANDLE", "the driver refuses a handle; this is a bug of dmxrt, please report it",
       false},
      {401, "CUDA_ERROR_ILLEGAL_STATE", "something of the driver is in no state to be used", false},
      {500, "CUDA_ERROR_NOT_FOUND", "the compiled kernels lack one that the launch table has", false},
      {600, "CUDA_ERROR_NOT_READY", "the GPU is still at work", false},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS",
       "a kernel read or wrote memory that is none; the simulator (cuda.sim=on) says where", true},
      {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "a kernel needs more registers than a block of its size can have",
       false},
      {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran longer than the system allows; use a GPU that shows no picture",
       true},
      {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the GPU's context is in use with other flags", false},
      {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the GPU's context was destroyed by other code of this process", true},
      {710, "CUDA_ERROR_ASSERT", "an assertion in a kernel failed", true},
      {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "a kernel's stack is damaged; the simulator (cuda.sim=on) may say why",
       true},
      {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "the GPU does not know an instruction of a kernel", true},
      {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel's access is not aligned; the simulator (cuda.sim=on) says where",
       true},
      {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "a kernel used an address in another memory than it is of", true},
      {718, "CUDA_ERROR_INVALID_PC", "a kernel jumped to where there is no code", true},
      {719, "CUDA_ERROR_LAUNCH_FAILED",
       "a kernel failed on the GPU; the system's log (dmesg, Xid) and the simulator (cuda.sim=on) may say why", true},
      {800, "CUDA_ERROR_NOT_PERMITTED", "the driver does not permit it to this process", false},
      {801, "CUDA_ERROR_NOT_SUPPORTED", "this GPU or driver cannot do it", false},
      {802, "CUDA_ERROR_SYSTEM_NOT_READY",
       "the GPU's system is not ready; start its services (nvidia-fabricmanager), then run again", false},
      {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
       "the driver's library and its kernel module are of two versions; restart the machine, or install one of both",
       false},
      {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
       "the compatibility library does not support this GPU; leave it out of the library path", false},
      {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "the GPU's sharing service (MPS) cannot be reached; start it", false},
      {806, "CUDA_ERROR_MPS_RPC_FAILURE", "the GPU's sharing service (MPS) does not answer", false},
      {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the GPU's sharing service (MPS) is not ready; run again later", false},
      {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the GPU's sharing service (MPS) has no room for another process",
       false},
      {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED",
       "the GPU's sharing service (MPS) has no room for another connection", false},
      {999, "CUDA_ERROR_UNKNOWN",
       "the driver does not say why; see the system's log (dmesg), and restart the machine if that does not help",
       true},
  };
  for (const DriverError &each : errors)
    if (each.code == code)
      return &each;
  return nullptr;
}

} // namespace dmxrt::cuda
