//===- HerdOps.td - a product on cores, before it has tiles -----*- tablegen -*-===//
#ifndef DMXC_TARGETS_AIE_HERD_OPS
#define DMXC_TARGETS_AIE_HERD_OPS

include "targets/aie/dialect/AieBase.td"

def Herd_Dialect : Dialect {
  let name = "herd";
  let cppNamespace = "::dmxc::herd";
  let summary = "Cores that compute together: channels between levels of memory, what one core does, blocks of tasks";
  let description = [{
    Nothing in it has a place: `aie-place` gives out tiles, buffers, locks, DMA channels and BDs.
  }];
  let dependentDialects = ["::dmxc::aie::AIEDialect", "::dmxc::aiex::AIEXDialect"];
}

class Herd_Op<string mnemonic, list<Trait> traits = []> : Op<Herd_Dialect, mnemonic, traits>;

def Herd_ProgramOp : Herd_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "a kernel on rows x columns of cores";
  let description = [{
    `herd.program(npu1) @name 4 by 4 {..}` holds channels, relays, declarations of kernels, one `herd.cores` and one `herd.sequence`.
  }];
  let arguments = (ins AIE_Device:$machine, SymbolNameAttr:$sym_name, I64Attr:$rows, I64Attr:$columns);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $machine `)` $sym_name $rows `by` $columns $body attr-dict";
}

def Herd_ChannelOp : Herd_Op<"channel", [Symbol, HasParent<"ProgramOp">]> {
  let summary = "a way for matrices of one type from a level to another, an element a column, a row or a core";
  let description = [{
    Between DDR and memory: one a column. Into cores by rows or columns: an element's matrices go to all cores of its row or column
    (broadcast). Out of cores: one a core.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Herd_Level:$from, Herd_Level:$to, Herd_By:$by, TypeAttr:$matrix);
  let assemblyFormat = "$sym_name $from `to` $to `by` $by `:` $matrix attr-dict";
}

def Herd_RelayOp : Herd_Op<"relay", [HasParent<"ProgramOp">]> {
  let summary = "a memory tile takes matrices of one channel and gives them to another, for ever";
  let description = [{
    `in` and `out`: the order in which a matrix is written and read, as `aie.dma_bd` has it. Elements of a side that has more of them than a
    column are in the memory tile of their column (cores), or dealt to the columns (rows): then the other side brings or takes
    them in turn.
  }];
  let arguments = (ins FlatSymbolRefAttr:$source, FlatSymbolRefAttr:$dest, OptionalAttr<AIE_BDDims>:$in,
                       OptionalAttr<AIE_BDDims>:$out);
  let assemblyFormat = "$source `to` $dest (`in` $in^)? (`out` $out^)? attr-dict";
}

def Herd_CoresOp : Herd_Op<"cores", [HasParent<"ProgramOp">, SingleBlock, NoTerminator]> {
  let summary = "what each core does: loops, matrices taken and given, calls of the library";
  let description = [{
    A loop whose body takes or gives an odd number of a channel's matrices is done twice a trip, once for each buffer.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
}

def Herd_ParameterOp : Herd_Op<"parameter"> {
  let summary = "a number that the sequence gives to all cores: how often a loop runs";
  let arguments = (ins I64Attr:$number);
  let results = (outs Index:$result);
  let assemblyFormat = "$number attr-dict";
}

def Herd_AcquireOp : Herd_Op<"acquire"> {
  let summary = "waits for the next matrix of a channel into the core, or for room for one out of it";
  let arguments = (ins FlatSymbolRefAttr:$channel);
  let results = (outs AnyStaticShapeMemRef:$matrix);
  let assemblyFormat = "$channel attr-dict `:` type($matrix)";
}

def Herd_ReleaseOp : Herd_Op<"release"> {
  let summary = "the core needs the matrix no more, or has written it";
  let arguments = (ins FlatSymbolRefAttr:$channel);
  let assemblyFormat = "$channel attr-dict";
}

def Herd_SequenceOp : Herd_Op<"sequence", [HasParent<"ProgramOp">, SingleBlock, NoTerminator]> {
  let summary = "a run: the cores' parameters, then blocks of moves, each of which ends with what it takes out of the array";
  let description = "Arguments and `operands` as of `aie.runtime_sequence`.";
  let arguments = (ins ArrayAttr:$operands, DenseI64ArrayAttr:$parameters);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
}

def Herd_BlockOp : Herd_Op<"block", [HasParent<"SequenceOp">, SingleBlock, NoTerminator]> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
}

def Herd_MoveOp : Herd_Op<"move", [HasParent<"BlockOp">]> {
  let summary = "words between DDR and a column's memory tile: an offset, and four sizes and strides as of npu.dma_memcpy_nd";
  let arguments = (ins AnyStaticShapeMemRef:$memref, I64Attr:$offset, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides, FlatSymbolRefAttr:$channel, I64Attr:$column);
  let assemblyFormat = [{
    $memref `[` $offset `]` `` $sizes `` $strides `:` type($memref) `by` $channel `[` $column `]` attr-dict
  }];
}

#endif // DMXC_TARGETS_AIE_HERD_OPS
