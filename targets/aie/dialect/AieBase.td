//===- AieBase.td - dialects, enums and attributes --------------*- tablegen -*-===//
//
// Names and spellings are those of mlir-aie, so that a text goes there.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_TARGETS_AIE_BASE
#define DMXC_TARGETS_AIE_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def AIE_Dialect : Dialect {
  let name = "aie";
  let cppNamespace = "::dmxc::aie";
  let summary = "An array of AI Engines: tiles, buffers, locks, DMA programs, flows, switches, cores";
  let description = [{
    The ops of mlir-aie's dialect that the target uses, in its names and spellings. What a text says is checked where it is read
    (C1.. of `aie.device`); `aie-route` makes switchboxes of flows, `aie-encode` register words of all.
  }];
  let dependentDialects = ["::dmxc::dlir::DLIRDialect", "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
}

class AIE_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::dmxc::aie";
}
def AIE_Device : AIE_Enum<"AIEDevice", "a machine", [
    I32EnumAttrCase<"npu1", 0>, I32EnumAttrCase<"npu1_1col", 1>, I32EnumAttrCase<"npu1_2col", 2>,
    I32EnumAttrCase<"npu1_3col", 3>, I32EnumAttrCase<"npu1_4col", 4>, I32EnumAttrCase<"npu2", 5>]>;
def AIE_WireBundle : AIE_Enum<"WireBundle", "where streams enter and leave a switch", [
    I32EnumAttrCase<"Core", 0>, I32EnumAttrCase<"DMA", 1>, I32EnumAttrCase<"TileControl", 2>,
    I32EnumAttrCase<"FIFO", 3>, I32EnumAttrCase<"South", 4>, I32EnumAttrCase<"West", 5>, I32EnumAttrCase<"North", 6>,
    I32EnumAttrCase<"East", 7>]>;
def AIE_ChannelDir : AIE_Enum<"DMAChannelDir", "of a DMA channel", [
    I32EnumAttrCase<"S2MM", 0>, I32EnumAttrCase<"MM2S", 1>]>;
def AIE_LockAction : AIE_Enum<"LockAction", "what is done with a lock", [
    I32EnumAttrCase<"Acquire", 0>, I32EnumAttrCase<"Release", 1>, I32EnumAttrCase<"AcquireGreaterEqual", 2>]>;

def AIE_BDDimLayout : AttrDef<AIE_Dialect, "BDDimLayout"> {
  let mnemonic = "bd_dim_layout";
  let summary = "a dim of a BD: how many, and how many elements from one to the next";
  let parameters = (ins "int64_t":$size, "int64_t":$stride);
  let assemblyFormat = "`<` `size` `=` $size `,` `stride` `=` $stride `>`";
}
def AIE_BDDims : ArrayOfAttr<AIE_Dialect, "BDDimLayoutArray", "bd_dim_layout_array", "BDDimLayoutAttr">;

#endif // DMXC_TARGETS_AIE_BASE
