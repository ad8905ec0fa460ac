//===- Passes.td - stages of an aie.device ----------------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def AiePlace : Pass<"aie-place", "::mlir::ModuleOp"> {
  let summary = "Each dlir.device_program of the array to an aie.device: tiles, buffers, locks, DMA channels and BDs";
  let description = [{
    Each unit of a grid is a tile, each ring of it buffers and two locks; each begins at a bank of its own. A DMA queue is a channel, its fills and drains
    a ring of BDs; a channel of the program is flows from the unit that puts to those that get. Compute queues are cores' programs, registers
    words of their memories. Shims' queues become tasks, which get BDs and wait for tokens before those are used again, or a queue is full.
  }];
  let dependentDialects = ["::dmxc::aie::AIEDialect", "::dmxc::aiex::AIEXDialect"];
}

def AieRoute : Pass<"aie-route", "::mlir::ModuleOp"> {
  let summary = "Flows of each aie.device to circuits of its switchboxes";
  let description = [{
    Shortest paths with a price for wires that several flows want, until each has its own (negotiated congestion). What cannot be routed
    names the cut that is too narrow.
  }];
  let dependentDialects = ["::dmxc::aie::AIEDialect"];
}

def AieControl : Pass<"aie-control", "::mlir::ModuleOp"> {
  let summary = "The runtime sequence to ops of the control stream: register writes, patches of addresses, waits for tokens";
  let description = [{
    A task becomes a block write of its BD's words, a patch of its address and a start of its channel; a wait a sync; parameters and
    locks are written. Names of shims' channels end here.
  }];
  let dependentDialects = ["::dmxc::aie::AIEDialect", "::dmxc::aiex::AIEXDialect"];
}

def AieEncode : Pass<"aie-encode", "::mlir::ModuleOp"> {
  let summary = "Write a kernel's register words: its configuration as a CDO, its control stream as hex words";
  let description = "The module stays what it is. Of several kernels one is named.";
  let options = [
    Option<"kernel", "kernel", "std::string", "", "Whose words cdo and insts are; not needed where there is one">,
    Option<"cdo", "cdo", "std::string", "", "Write the initial configuration to this file">,
    Option<"insts", "insts", "std::string", "", "Write the control stream to this file, a word a line">,
    Option<"image", "image", "std::string", "", "Write all kernels as .aiebin to this file">];
  let dependentDialects = ["::dmxc::aie::AIEDialect", "::dmxc::aiex::AIEXDialect"];
}
