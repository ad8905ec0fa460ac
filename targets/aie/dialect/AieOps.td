//===- AieOps.td - what an array is configured to ---------------*- tablegen -*-===//
#ifndef DMXC_TARGETS_AIE_OPS
#define DMXC_TARGETS_AIE_OPS

include "dmxc/Dialect/DLIR/DeviceInterfaces.td"
include "dmxc/Dialect/DLIR/DeviceTask.td"
include "targets/aie/dialect/AieBase.td"

class AIE_Op<string mnemonic, list<Trait> traits = []> : Op<AIE_Dialect, mnemonic, traits>;
class AIE_Named<string mnemonic, list<Trait> traits = []>
    : AIE_Op<mnemonic, !listconcat(traits, [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>])>;

//===--- In a dlir.device_program, which aie-place makes a device of ----------------===//

def AIE_CallOp : DLIR_DeviceTask<AIE_Dialect, "call", "compute", "0, 1, 2", "", (ins StrAttr:$kernel,
                                OptionalAttr<DenseI64ArrayAttr>:$part)> {
  let summary = "a call of the cores' library";
  let description = [{
    `aie.call "matmul_bf16_f32" %a0[0] and %b0[0] and %c0[0]`: the library is schemas/aie/Kernels.h; the last matrix is the result, and a kernel that takes
    parameters has the core's. C1: the library has the kernel, and it takes so many. C2: they begin where buffers of L1 do.
    `aie.call "argmax" %x0[0] and %y0[0] part [0, 512]` is of a user's function (`aie.function` of the program), and says from where to where
    it computes. C3: such a call has a part, and no other.
  }];
  let extraClassDeclaration = [{
    ::llvm::StringRef getEngine() { return "compute"; }
    ::llvm::SmallVector<::mlir::Value> memoriesRead() { return ::llvm::to_vector(getBuffers()); }
    ::llvm::SmallVector<::mlir::Value> memoriesWritten();
  }];
}

//===--- The array ------------------------------------------------------------------===//

def AIE_DeviceOp : AIE_Op<"device", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
                                     DLIR_DeviceProgramInterface]> {
  let summary = "a kernel: the configuration of an array, and what its controller does";
  let description = [{
    Stands in the kernel's place from the schedule phase on. Its runtime sequence says what a dispatch brings.
    C1: each tile is there once. C2: buffers do not overlap; locks are there once, with values that they hold. C3: a BD moves whole words of a buffer of its tile with at most one lock taken and one given, of its tile;
    its number is the channel's to use and there once. C4: a channel has one program. C5: there is one runtime sequence. `dlir.dims` are sizes that a dispatch brings, `aie.most` the most of each. What the
    machine does not have (tiles, locks, bytes, channels, BDs) is refused by the stages, with count and limit.
  }];
  let arguments = (ins AIE_Device:$machine, SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $machine `)` $sym_name $body attr-dict";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getDevice() { return "aie"; }
    std::vector<::dmxc::dlir::DeviceArgument> deviceArguments();
    /// The machine's table.
    ::dmx::aie::Machine table();
    /// Null where there is none.
    ::dmxc::aie::RuntimeSequenceOp sequence();
  }];
}

def AIE_TileOp : AIE_Named<"tile", [HasParent<"DeviceOp">]> {
  let summary = "a tile: row 0 has the shims, then memory tiles, then cores";
  let arguments = (ins I32Attr:$col, I32Attr:$row);
  let results = (outs Index:$result);
  let assemblyFormat = "`(` $col `,` $row `)` attr-dict";
  let extraClassDeclaration = [{
    ::dmx::aie::Tile tile() { return {static_cast<uint32_t>(getCol()), static_cast<uint32_t>(getRow())}; }
  }];
}

def AIE_BufferOp : AIE_Named<"buffer", [HasParent<"DeviceOp">]> {
  let summary = "a range of a tile's memory, from `address` (bytes) on";
  let arguments = (ins Index:$tile, StrAttr:$sym_name, I32Attr:$address);
  let results = (outs AnyStaticShapeMemRef:$buffer);
  let assemblyFormat = "`(` $tile `)` attr-dict `:` type($buffer)";
  let extraClassDeclaration = "int64_t bytes();";
}

def AIE_LockOp : AIE_Named<"lock", [HasParent<"DeviceOp">]> {
  let summary = "a counting lock and its first value";
  let arguments = (ins Index:$tile, I32Attr:$lockID, DefaultValuedAttr<I32Attr, "0">:$init, StrAttr:$sym_name);
  let results = (outs Index:$result);
  let assemblyFormat = "`(` $tile `,` $lockID `)` attr-dict";
}

def AIE_FlowOp : AIE_Op<"flow", [HasParent<"DeviceOp">]> {
  let summary = "a stream; several from one source are one stream with several sinks";
  let arguments = (ins Index:$source, AIE_WireBundle:$source_bundle, I32Attr:$source_channel,
                       Index:$dest, AIE_WireBundle:$dest_bundle, I32Attr:$dest_channel);
  let assemblyFormat = [{
    `(` $source `,` $source_bundle `:` $source_channel `,` $dest `,` $dest_bundle `:` $dest_channel `)` attr-dict
  }];
}

def AIE_ShimDMAAllocationOp : AIE_Op<"shim_dma_allocation", [Symbol, HasParent<"DeviceOp">]> {
  let summary = "the name of a shim's channel for the runtime sequence";
  let arguments = (ins SymbolNameAttr:$sym_name, Index:$tile, AIE_ChannelDir:$channel_dir, I32Attr:$channel_index);
  let assemblyFormat = "$sym_name `(` $tile `,` $channel_dir `,` $channel_index `)` attr-dict";
}

class AIE_DmaProgram<string mnemonic> : AIE_Op<mnemonic, [HasParent<"DeviceOp">]> {
  let arguments = (ins Index:$tile);
  let results = (outs Index:$result);
  let regions = (region AnyRegion:$body);
  let assemblyFormat = "`(` $tile `)` $body attr-dict";
}
def AIE_MemOp : AIE_DmaProgram<"mem"> { let summary = "the DMA channels of a core's tile"; }
def AIE_MemTileDMAOp : AIE_DmaProgram<"memtile_dma"> { let summary = "the DMA channels of a memory tile"; }

def AIE_DMAStartOp : AIE_Op<"dma_start", [Terminator, ParentOneOf<["MemOp", "MemTileDMAOp"]>]> {
  let summary = "starts a channel with the BD of the first block, and goes on with the second";
  let arguments = (ins AIE_ChannelDir:$channel_dir, I32Attr:$channel_index);
  let results = (outs I1:$valid);
  let successors = (successor AnySuccessor:$dest, AnySuccessor:$chain);
  let assemblyFormat = "`(` $channel_dir `,` $channel_index `,` $dest `,` $chain `)` attr-dict";
}

def AIE_DMABDOp : AIE_Op<"dma_bd", [ParentOneOf<["MemOp", "MemTileDMAOp"]>]> {
  let summary = "a BD: `len` elements of a buffer from `offset` on, in the order of its dims, the outermost first";
  let arguments = (ins AnyStaticShapeMemRef:$buffer, I32Attr:$offset, I32Attr:$len,
                       OptionalAttr<AIE_BDDims>:$dimensions, I32Attr:$bd_id);
  let assemblyFormat = [{
    `(` $buffer `:` type($buffer) `,` $offset `,` $len (`,` $dimensions^)? `)` attr-dict
  }];
}

def AIE_NextBDOp : AIE_Op<"next_bd", [Terminator, ParentOneOf<["MemOp", "MemTileDMAOp"]>]> {
  let summary = "the channel goes on with the BD of a block, or ends with `aie.end`";
  let successors = (successor AnySuccessor:$dest);
  let assemblyFormat = "$dest attr-dict";
}

def AIE_UseLockOp : AIE_Op<"use_lock"> {
  let summary = "waits for a lock's value and takes it (until at least that, until exactly that), or adds to it";
  let arguments = (ins Index:$lock, AIE_LockAction:$action, DefaultValuedAttr<I32Attr, "1">:$value);
  let assemblyFormat = "`(` $lock `,` $action `,` $value `)` attr-dict";
}

def AIE_EndOp : AIE_Op<"end", [Terminator]> {
  let assemblyFormat = "attr-dict";
}

def AIE_CoreOp : AIE_Op<"core", [HasParent<"DeviceOp">]> {
  let summary = "what a core does: locks, loops, calls of the library";
  let description = [{
    A loop's bound is a constant, or a word of a buffer (`memref.load` of a constant index); a loop of 2^32 - 1 trips is one without an
    end. Kernels of the library are called by name (schemas/aie/Kernels.h) with buffers; their sizes are those of the buffers.
  }];
  let arguments = (ins Index:$tile, OptionalAttr<StrAttr>:$link_with);
  let results = (outs Index:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $tile `)` $body attr-dict";
}

class AIE_Switch<string mnemonic> : AIE_Op<mnemonic, [HasParent<"DeviceOp">, SingleBlockImplicitTerminator<"EndOp">]> {
  let arguments = (ins Index:$tile);
  let results = (outs Index:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $tile `)` $body attr-dict";
}
def AIE_SwitchboxOp : AIE_Switch<"switchbox"> { let summary = "the circuits through a tile's switch"; }
def AIE_ShimMuxOp : AIE_Switch<"shim_mux"> { let summary = "what joins a shim's DMA to its switch, seen from the DMA"; }

def AIE_ConnectOp : AIE_Op<"connect", [ParentOneOf<["SwitchboxOp", "ShimMuxOp"]>]> {
  let arguments = (ins AIE_WireBundle:$source_bundle, I32Attr:$source_channel, AIE_WireBundle:$dest_bundle,
                       I32Attr:$dest_channel);
  let assemblyFormat = "`<` $source_bundle `:` $source_channel `,` $dest_bundle `:` $dest_channel `>` attr-dict";
}

def AIE_RuntimeSequenceOp : AIE_Op<"runtime_sequence", [HasParent<"DeviceOp">, SingleBlock, NoTerminator]> {
  let summary = "what the controller does in a run, in order";
  let description = [{
    The block's arguments are the matrices in the array's DDR, in the form that they have there. `operands` says of each what the host has:
    `{name, role = "input" | "constant" | "output", tensor = type}`; a constant comes in its form already. Rows of the tensor are rows of the matrix, or with
    `border = {strides, first, split, phase}`, one number a dim, its number i lies (i + first) / split * stride + (i + first) % split * phase elements from the begin. Where dims of
    the tensor are one, `extents` says of how many numbers; where a dispatch brings some, `sizes` (`#dmir.dims`) has all, and extents are the most.
  }];
  let arguments = (ins ArrayAttr:$operands);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // DMXC_TARGETS_AIE_OPS
