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
    : Op<AIEX_Dialect, mnemonic,
         !listconcat(traits, [ParentOneOf<["::dmxc::aie::RuntimeSequenceOp", "::dmxc::aiex::WhenOp"]>])>;

//===--- Sizes that a dispatch brings, by their number in the device's `dlir.dims` ---===//

def AIEX_WhenOp : Op<AIEX_Dialect, "when", [HasParent<"::dmxc::aie::RuntimeSequenceOp">, SingleBlock, NoTerminator]> {
  let summary = "ops of the control stream that a dispatch has where its sizes are large enough";
  let description = [{
    `aiex.when dims [0, 1] above [2, 0] {..}`: where size 0 is above 2 and size 1 above 0; else the runtime leaves them out of the stream. C1: as many numbers as sizes.
    C2: the device has the sizes.
  }];
  let arguments = (ins DenseI64ArrayAttr:$dims, DenseI64ArrayAttr:$above);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`dims` $dims `above` $above $body attr-dict";
  let hasVerifier = 1;
}

//===--- Of a runtime sequence as aie-control reads it ------------------------------===//

def AIEX_NpuDmaMemcpyNdOp : AIEX_Op<"npu.dma_memcpy_nd"> {
  let summary = "a task of a shim's channel: a walk over a matrix in DDR";
  let description = [{
    Offsets, sizes and strides in elements, the outermost of four dims first; that one is how often the task runs, and its stride what the BD's iteration adds each time. `id`: the BD.
    With `dim` the first of the three sizes behind that which is not 1 is as often `factor` as that size of the dispatch says; what stands is the most.
    C1: four of each. C2: whole words. C3: what a BD of a shim and its queue hold.
  }];
  let arguments = (ins AnyStaticShapeMemRef:$memref, DenseI64ArrayAttr:$static_offsets, DenseI64ArrayAttr:$static_sizes,
                       DenseI64ArrayAttr:$static_strides, FlatSymbolRefAttr:$metadata, I64Attr:$id,
                       DefaultValuedAttr<BoolAttr, "false">:$issue_token, OptionalAttr<I64Attr>:$dim,
                       OptionalAttr<I64Attr>:$factor);
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
  let summary = "writes a word of a buffer in a core's memory; with `dim` that size of the dispatch, of which the value is the most";
  let arguments = (ins FlatSymbolRefAttr:$buffer, UI32Attr:$index, I32Attr:$value, OptionalAttr<I64Attr>:$dim);
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
def AIEX_NpuDimWordOp : AIEX_Op<"npu.dim_word"> {
  let summary = "what was written last to a register is a size of the dispatch times a factor";
  let arguments = (ins UI32Attr:$address, I64Attr:$dim, I64Attr:$factor);
  let assemblyFormat = "attr-dict";
}
def AIEX_NpuSyncOp : AIEX_Op<"npu.sync"> {
  let summary = "waits for a token of each of some tiles' channels";
  let arguments = (ins I32Attr:$column, I32Attr:$row, I32Attr:$direction, I32Attr:$channel, I32Attr:$column_num,
                       I32Attr:$row_num);
  let assemblyFormat = "attr-dict";
}

#endif // DMXC_TARGETS_AIEX_OPS
