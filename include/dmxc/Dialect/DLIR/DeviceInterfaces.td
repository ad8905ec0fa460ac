//===- DeviceInterfaces.td - programs and tasks of any device ---*- tablegen -*-===//
#ifndef DMXC_DIALECT_DLIR_DEVICEINTERFACES
#define DMXC_DIALECT_DLIR_DEVICEINTERFACES

include "mlir/IR/OpBase.td"

def DLIR_DeviceProgramInterface : OpInterface<"DeviceProgramOpInterface"> {
  let cppNamespace = "::dmxc::dlir";
  let description = "A kernel that is a program for a device's queues, and what the host hands to it.";
  let methods = [
    InterfaceMethod<"the target whose kernel it is", "::llvm::StringRef", "getDevice">,
    InterfaceMethod<"what a dispatch has to bring, in order", "::std::vector<::dmxc::dlir::DeviceArgument>",
                    "deviceArguments">
  ];
}

def DLIR_DeviceTaskInterface : OpInterface<"DeviceTaskOpInterface"> {
  let cppNamespace = "::dmxc::dlir";
  let description = [{
    What stands in a group of a queue: the engine that does it, the memories that it reads and writes, the tokens that it takes and
    gives. A target's own engine ops have it too; they may stand wherever a task may.
  }];
  let methods = [
    InterfaceMethod<"the engine that does it", "::llvm::StringRef", "getEngine">,
    InterfaceMethod<"buffers that are read", "::llvm::SmallVector<::mlir::Value>", "memoriesRead", (ins), "", "return {};">,
    InterfaceMethod<"buffers that are written", "::llvm::SmallVector<::mlir::Value>", "memoriesWritten", (ins), "",
                    "return {};">,
    InterfaceMethod<"tokens that are waited for and taken", "::std::vector<::dmxc::dlir::TokenCount>", "waits", (ins), "",
                    "return {};">,
    InterfaceMethod<"tokens that are given at the end", "::std::vector<::dmxc::dlir::TokenCount>", "signals", (ins), "",
                    "return {};">
  ];
}

#endif // DMXC_DIALECT_DLIR_DEVICEINTERFACES
