//===- AiexOps.td - what the array's controller does ------------*- tablegen -*-===//
#ifndef DMXC_TARGETS_AIEX_OPS
#define DMXC_TARGETS_AIEX_OPS

include "targets/aie/dialect/AieBase.td"

def AIEX_Dialect : Dialect {
  let name = "aiex";
  let cppNamespace = "::dmxc::aiex";
  let summary = "What the array's controller does: DMA tasks, and the register writes that they become";
  let dependentDialects = ["::dmxc::aie::AIEDialect"];
}

class AIEX_Op<string mnemonic, list<Trait> traits = []>
    : Op<AIEX_Dialect, mnemonic, !listconcat(traits, [HasParent<"::dmxc::aie::RuntimeSequenceOp">])>;

//===--- Of a runtime sequence as aie-control reads it ------------------------------===//

def AIEX_NpuDmaMemcpyNdOp : AIEX_Op<"npu.dma_memcpy_nd"> {
  let summary = "a task of a shim's channel: a walk over a matrix in DDR";
  let description = [{
    Offsets, sizes and strides in elements, the outermost of four dims first; that one is how often the task runs, and its stride what the BD's iteration adds each time. `id`: the BD.
    C1: four of each. C2: whole words. C3: what a BD of a shim and its queue hold.
  }];
  let arguments = (ins AnyStaticShapeMemRef:$memref, DenseI64ArrayAttr:$static_offsets, DenseI64ArrayAttr:$static_sizes,
                       DenseI64ArrayAttr:$static_strides, FlatSymbolRefAttr:$metadata, I64Attr:$id,
                       DefaultValuedAttr<BoolAttr, "false">:$issue_token);
  let assemblyFormat = [{
    `(` $memref `` $static_offsets `` $static_sizes `` $static_strides `)` attr-dict `:` type($memref)
  }];
  let hasVerifier = 1;
}

def AIEX_NpuDmaWaitOp : AIEX_Op<"npu.dma_wait"> {
  let summary = "waits for a finished task of a channel";
  let arguments = (ins FlatSymbolRefAttr:$symbol);
  let assemblyFormat = "attr-dict";
}

def AIEX_NpuWriteRTPOp : AIEX_Op<"npu.rtp_write"> {
  let summary = "writes a word of a buffer in a core's memory";
  let arguments = (ins FlatSymbolRefAttr:$buffer, UI32Attr:$index, I32Attr:$value);
  let assemblyFormat = "`(` $buffer `,` $index `,` $value `)` attr-dict";
}

def AIEX_SetLockOp : AIEX_Op<"set_lock"> {
  let summary = "sets a lock's value";
  let arguments = (ins Index:$lock, I32Attr:$value);
  let assemblyFormat = "`(` $lock `,` $value `)` attr-dict";
}

//===--- What aie-control makes of it: ops of the control stream --------------------===//

def AIEX_NpuWrite32Op : AIEX_Op<"npu.write32"> {
  let arguments = (ins UI32Attr:$address, UI32Attr:$value);
  let assemblyFormat = "attr-dict";
}
def AIEX_NpuMaskWrite32Op : AIEX_Op<"npu.maskwrite32"> {
  let arguments = (ins UI32Attr:$address, UI32Attr:$value, UI32Attr:$mask);
  let assemblyFormat = "attr-dict";
}
def AIEX_NpuBlockWriteOp : AIEX_Op<"npu.blockwrite"> {
  let summary = "writes the words of a global from a register on";
  let arguments = (ins AnyStaticShapeMemRef:$data, UI32Attr:$address);
  let assemblyFormat = "`(` $data `)` attr-dict `:` type($data)";
}
def AIEX_NpuAddressPatchOp : AIEX_Op<"npu.address_patch"> {
  let summary = "adds an argument's address, and an offset in bytes, to a shim's BD";
  let arguments = (ins UI32Attr:$addr, I32Attr:$arg_idx, I64Attr:$arg_plus);
  let assemblyFormat = "attr-dict";
}
def AIEX_NpuSyncOp : AIEX_Op<"npu.sync"> {
  let summary = "waits for a token of each of some tiles' channels";
  let arguments = (ins I32Attr:$column, I32Attr:$row, I32Attr:$direction, I32Attr:$channel, I32Attr:$column_num,
                       I32Attr:$row_num);
  let assemblyFormat = "attr-dict";
}

#endif // DMXC_TARGETS_AIEX_OPS
