//===- CorsairOps.td - tasks of the device's engines ------------*- tablegen -*-===//
//
// What a quad's queues do beside copies and barriers of DLIR: one instruction each. They stand in groups of a
// dlir.device_program; which numbers fit is the encoder's knowledge.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_TARGETS_CORSAIR_CORSAIR_OPS
#define DMXC_TARGETS_CORSAIR_CORSAIR_OPS

include "dmxc/Dialect/DLIR/DeviceTask.td"

def Corsair_Dialect : Dialect {
  let name = "corsair";
  let cppNamespace = "::dmxc::corsair::engine";
  let summary = "What the engines of a quad do: arrays, vector device, reshape engine, CPU, mailboxes";
  let dependentDialects = ["::dmxc::dlir::DLIRDialect"];
  let hasOperationAttrVerify = 1;
}

class Corsair_Task<string mnemonic, string engine, string reads, string writes, dag attributes, list<Trait> traits = []>
    : DLIR_DeviceTask<Corsair_Dialect, mnemonic, engine, reads, writes, attributes, traits>;

def Corsair_CpuFunctionOp : Op<Corsair_Dialect, "cpu_function", [Symbol, HasParent<"::dmxc::dlir::DeviceProgramOp">]> {
  let summary = "a function of the quad's CPU, an instruction a line";
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$code);
  let assemblyFormat = "$sym_name $code attr-dict";
}

class Corsair_ProductOp<string mnemonic, dag attributes> : Corsair_Task<mnemonic, "array", "0, 1, 3", "2", !con((ins I64Attr:$num_imc,
    I64Attr:$ppr_mode, OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$core, OptionalAttr<I64Attr>:$slices,
    StrAttr:$activation_kind, StrAttr:$weight_kind, OptionalAttr<AffineMapAttr>:$rows, OptionalAttr<AffineMapAttr>:$k0,
    OptionalAttr<AffineMapAttr>:$accumulate, OptionalAttr<AffineMapAttr>:$steps, UnitAttr:$accumulate_steps,
    OptionalAttr<I64Attr>:$chunks, OptionalAttr<I64Attr>:$result_row, OptionalAttr<I64Attr>:$result_group,
    OptionalAttr<I64Attr>:$result_step, OptionalAttr<I64Attr>:$stash_chunk, OptionalAttr<I64Attr>:$stash_group,
    OptionalAttr<I64Attr>:$stash_step), attributes)>;

def Corsair_MatmulOp : Corsair_ProductOp<"matmul", (ins OptionalAttr<AffineMapAttr>:$row,
    OptionalAttr<I64Attr>:$activation_chunk, OptionalAttr<I64Attr>:$activation_step)> {
  let summary = "activation tiles times weight tiles, num_imc cores a result tile, into OB";
  let description = [{
    `corsair.matmul %ib[0] x %wb[0] to %ob[0] num_imc 8 ppr_mode 3 groups 2 ..`; with `from %st[..]` each step's weights
    are streamed from the stash while the step before computes. C1: activations lie in IB, weights in WB, the result in OB, a stash in ST.
    C2: 1 <= num_imc <= 2^ppr_mode. C3: groups is positive. C4: rows, where constant, are 1 to 64. C5: from row on there are so many in a tile.
    C6: k0 and steps, where constant, are not negative.
  }];
}

def Corsair_ConvOp : Corsair_ProductOp<"conv", (ins OptionalAttr<AffineMapAttr>:$image_row,
    AffineMapAttr:$pixel, OptionalAttr<I64Attr>:$image_band, OptionalAttr<I64Attr>:$image_chunk,
    OptionalAttr<I64Attr>:$image_blocks, OptionalAttr<I64Attr>:$pixel_slice, OptionalAttr<I64Attr>:$pixels,
    DictionaryAttr:$window)> {
  let summary = "as matmul, with activation rows taken from the windows of an image in GM or IB";
  let description = "C1: the image lies in GM or IB; the rest as in matmul. C2, C3, C4, C6 as there. C5: the pixel, where constant, is not negative.";
}

def Corsair_SimdOp : Corsair_Task<"simd", "vector", "1, 2, 3", "0", (ins StrAttr:$function, DenseI64ArrayAttr:$dims,
    StrAttr:$to_kind, DenseI64ArrayAttr:$to_strides, OptionalAttr<StrAttr>:$a_kind,
    OptionalAttr<DenseI64ArrayAttr>:$a_strides, OptionalAttr<StrAttr>:$b_kind,
    OptionalAttr<DenseI64ArrayAttr>:$b_strides, OptionalAttr<StrAttr>:$c_kind,
    OptionalAttr<DenseI64ArrayAttr>:$c_strides, OptionalAttr<I64Attr>:$slices, OptionalAttr<I64Attr>:$inner,
    OptionalAttr<I64Attr>:$split, OptionalAttr<I64Attr>:$causal, UnitAttr:$count_pad, OptionalAttr<F32Attr>:$imm0,
    OptionalAttr<F32Attr>:$imm1, OptionalAttr<AffineMapAttr>:$index, OptionalAttr<AffineMapAttr>:$count,
    OptionalAttr<DictionaryAttr>:$window)> {
  let summary = "a function of the vector device over up to four dims";
  let description = [{
    `corsair.simd "add" to %y[0] a %x[0] b %z[0] dims [..] ..`; steps in bytes, 0 broadcasts.
    C1: operands lie in GM, SIMD or OB. C2: one to four dims, the innermost last, and as many steps of each operand. C3: an operand
    that is there has kind and steps, another none.
  }];
}

def Corsair_ReshapeOp : Corsair_Task<"reshape", "reshape", "0, 2", "1", (ins StrAttr:$function, OptionalAttr<StrAttr>:$rule,
    OptionalAttr<I64Attr>:$slice, OptionalAttr<AffineMapAttr>:$pixel, OptionalAttr<AffineMapAttr>:$count,
    OptionalAttr<AffineMapAttr>:$rows, OptionalAttr<AffineMapAttr>:$columns, OptionalAttr<AffineMapAttr>:$batch,
    OptionalAttr<I64Attr>:$element, OptionalAttr<I64Attr>:$source_pitch, OptionalAttr<I64Attr>:$target_pitch,
    OptionalAttr<I64Attr>:$source_batch, OptionalAttr<I64Attr>:$target_batch)> {
  let summary = "moves elements by the reshape engine: extract, insert, transpose";
  let description = [{
    `corsair.reshape "extract" %x[0] to %y[0] with %d rule "gather" ..`, `indices %i[0]` for gather and scatter.
    C1: the function is extract, insert or transpose. C2: extract and insert have a descriptor, transpose rows and columns. C3: extract has no
    scatter, insert no gather and no window; indices come with gather and scatter only.
  }];
}

def Corsair_CpuOp : Corsair_Task<"cpu", "cpu", "", "", (ins FlatSymbolRefAttr:$function)> {
  let summary = "calls a function of the quad's CPU";
  let description = "C1: the function is one of the program's.";
}

def Corsair_SignalRemoteOp : Corsair_Task<"signal_remote", "queue", "", "", (ins AffineMapAttr:$quads, I64Attr:$token,
                                                                            OptionalAttr<I64Attr>:$amount)> {
  let summary = "adds tokens at other quads";
}
def Corsair_WaitRemoteOp : Corsair_Task<"wait_remote", "queue", "", "", (ins AffineMapAttr:$quad, I64Attr:$token,
                                                                        OptionalAttr<I64Attr>:$amount)> {
  let summary = "takes tokens that one other quad signalled";
}
def Corsair_SendOp : Corsair_Task<"send", "queue", "", "", (ins AffineMapAttr:$quad, I64Attr:$first,
                                                           OptionalAttr<I64Attr>:$amount)> {
  let summary = "puts registers into the mailbox to another quad";
}
def Corsair_ReceiveOp : Corsair_Task<"receive", "queue", "", "", (ins AffineMapAttr:$quad, I64Attr:$first,
                                                                 OptionalAttr<I64Attr>:$amount)> {
  let summary = "takes registers from the mailbox from another quad";
}
def Corsair_ResetOp : Corsair_Task<"reset", "queue", "", "", (ins I64Attr:$units, OptionalAttr<I64Attr>:$slices)> {
  let summary = "makes the contents of units undefined";
}
def Corsair_NopOp : Corsair_Task<"nop", "queue", "", "", (ins OptionalAttr<I64Attr>:$clocks)> {
  let summary = "waits";
}

#endif // DMXC_TARGETS_CORSAIR_CORSAIR_OPS
