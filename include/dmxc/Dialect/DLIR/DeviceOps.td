//===- DeviceOps.td - what the queues of a device do ------------*- tablegen -*-===//
//
// A kernel as a program for the queues of a device's quads. The ops are one instruction each, or a group, a loop, an
// order of such; which numbers fit is the encoder's knowledge, which things go together is checked here.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_DIALECT_DLIR_DEVICEOPS
#define DMXC_DIALECT_DLIR_DEVICEOPS

include "dmxc/Dialect/DLIR/DLIRBase.td"

def DLIR_MemoryKind : I32EnumAttr<"MemoryKind", "a memory of the device, an endpoint of copies", [
    I32EnumAttrCase<"DDR", 0>, I32EnumAttrCase<"GM", 1>, I32EnumAttrCase<"ST", 2>, I32EnumAttrCase<"OB", 3>,
    I32EnumAttrCase<"WB", 4>, I32EnumAttrCase<"IB", 5>, I32EnumAttrCase<"DRE", 6>, I32EnumAttrCase<"SIMD", 7>]> {
  let cppNamespace = "::dmxc::dlir";
}
def DLIR_ArgumentRole : I32EnumAttr<"ArgumentRole", "what the host does with an argument", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>, I32EnumAttrCase<"state", 2>,
    I32EnumAttrCase<"constant", 3>, I32EnumAttrCase<"scalar", 4>]> {
  let cppNamespace = "::dmxc::dlir";
}
def DLIR_BarrierScope : I32EnumAttr<"BarrierScope", "who takes part in a barrier", [
    I32EnumAttrCase<"queues", 0>, I32EnumAttrCase<"quad", 1>, I32EnumAttrCase<"chiplet", 2>,
    I32EnumAttrCase<"card", 3>]> {
  let cppNamespace = "::dmxc::dlir";
}

//===--- The program and what it works on ---------------------------------------------===//

def DLIR_DmmqOp : DLIR_Op<"dmmq", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "a kernel: its arguments, its buffers and the schedules of the device's queues";
  let description = [{
    `device`: the target whose kernel it is. `dim_registers`: the register of each symbolic dim of the task.
    C1: it holds arguments, memories, pieces, descriptors, CPU functions and scheduled graphs. C2: no two arguments and
    no two memories have the same name. C3: at most one graph "init" and one "main". C4: permanent memories at fixed addresses
    do not overlap.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$device,
                       OptionalAttr<DenseI64ArrayAttr>:$dim_registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`on` $device^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def DLIR_ArgumentOp : DLIR_Op<"argument", [HasParent<"DmmqOp">]> {
  let summary = "a buffer of the dispatch, in order";
  let description = [{
    `tensor` is what the host has; `form` the kind of its elements on the device, into which the host's numbers are
    converted; a constant's bytes are in that form already. `perm`: device dimension i is host dimension perm[i]. `data` is
    what a constant holds, for those who pack it. C1: a scalar, and nothing else, goes to a register. C2: only a constant has data.
  }];
  let arguments = (ins DLIR_ArgumentRole:$role, StrAttr:$name, TypeAttr:$tensor, StrAttr:$form,
                       OptionalAttr<I64Attr>:$to_register, OptionalAttr<DenseI64ArrayAttr>:$perm,
                       OptionalAttr<TypedAttrInterface>:$data);
  let assemblyFormat = [{
    $role $name `:` $tensor `as` $form (`register` $to_register^)? (`perm` $perm^)? (`data` `(` $data^ `)`)? attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_MemoryOp : DLIR_Op<"memory", [HasParent<"DmmqOp">]> {
  let summary = "a buffer in a memory of the device, at one address in all units of that memory";
  let description = [{
    Permanent buffers keep their bytes from dispatch to dispatch; temporary ones share room where their uses allow. C1: the size is
    positive. C2: a fixed address is a multiple of 64.
  }];
  let arguments = (ins DLIR_MemoryKind:$kind, StrAttr:$name, I64Attr:$size, OptionalAttr<I64Attr>:$address,
                       UnitAttr:$permanent);
  let results = (outs DLIR_MemoryType:$result);
  let assemblyFormat = "$kind $name `size` $size (`at` $address^)? (`permanent` $permanent^)? attr-dict";
  let hasVerifier = 1;
}

def DLIR_PieceOp : DLIR_Op<"piece", [HasParent<"DmmqOp">]> {
  let summary = "a box of an argument and where in a buffer it lies";
  let description = [{
    `unit` of the buffer's memory. `strides`: bytes a dimension; of tiled forms two: from band to band and from tile to tile along
    the blocks; of constants, whose box is of bytes, none.
    C1: the argument exists and has pieces. C2: begin and extent have one number a dimension. C3: it lies inside the buffer's size.
  }];
  let arguments = (ins DLIR_MemoryType:$memory, StrAttr:$argument, I64Attr:$unit, I64Attr:$offset,
                       DenseI64ArrayAttr:$begin, DenseI64ArrayAttr:$extent, DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $argument `unit` $unit `in` $memory `offset` $offset `begin` $begin `extent` $extent `strides` $strides attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_DmaConfigOp : DLIR_Op<"dma_config", [HasParent<"DmmqOp">]> {
  let summary = "a descriptor of copies: what is copied, by which steps, into what it is converted";
  let description = [{
    `dims` items, the outermost first; item (i0, i1, ..) goes from sum i*source to sum i*target. An item is `unit` elements (bytes of
    tiled kinds), or with `source_rows`, `target_rows` a row of a tile. Other keys as the device's descriptor has them.
    C1: at most four dims, none negative. C2: one source and one target step a dim. C3: `low` and `high`, the items that exist, have one
    number a dim and low <= high. C4: unit is positive.
  }];
  let arguments = (ins StrAttr:$kind, OptionalAttr<StrAttr>:$to, I64Attr:$unit, DenseI64ArrayAttr:$dims,
                       DenseI64ArrayAttr:$source, DenseI64ArrayAttr:$target, OptionalAttr<DenseI64ArrayAttr>:$low,
                       OptionalAttr<DenseI64ArrayAttr>:$high, OptionalAttr<I64Attr>:$tail,
                       OptionalAttr<I64Attr>:$source_slice, OptionalAttr<I64Attr>:$target_slice,
                       OptionalAttr<I64Attr>:$source_core, UnitAttr:$source_rows, UnitAttr:$target_rows,
                       OptionalAttr<I64Attr>:$source_band, OptionalAttr<I64Attr>:$target_band,
                       OptionalAttr<I64Attr>:$element_stride, UnitAttr:$retype, OptionalAttr<StrAttr>:$index_kind,
                       OptionalAttr<I64Attr>:$index_pitch, OptionalAttr<I64Attr>:$index_range,
                       OptionalAttr<DictionaryAttr>:$window);
  let results = (outs DLIR_ConfigType:$result);
  let assemblyFormat = [{
    $kind (`to` $to^)? `unit` $unit `dims` $dims `source` $source `target` $target attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_CpuFunctionOp : DLIR_Op<"cpu_function", [Symbol, HasParent<"DmmqOp">]> {
  let summary = "a function of the quad's CPU, an instruction a line";
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$code);
  let assemblyFormat = "$sym_name $code attr-dict";
}

//===--- Schedules ----------------------------------------------------------------------===//

def DLIR_ScheduledGraphOp : DLIR_Op<"scheduled_graph", [HasParent<"DmmqOp">, SingleBlock, NoTerminator]> {
  let summary = "what the queues of each quad do: once (init) or at every dispatch (main)";
  let description = [{
    `dlir.scheduled_graph "main" quads 8 (%q) {..}`: %q is the number of the quad that runs it.
    C1: the name is "init" or "main", there is a quad. C2: it holds tokens, registers and queues, and no two queues of one
    number. C3: a token that is waited for is signalled or has credits. C4: a register has one value, or one for each
    quad; no two ops name the same.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$quads);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def DLIR_TokenOp : DLIR_Op<"token", [HasParent<"ScheduledGraphOp">]> {
  let summary = "a counter that orders groups of different queues of a quad";
  let description = "Credits are there at the start.";
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$credits);
  let results = (outs DLIR_TokenType:$result);
  let assemblyFormat = "(`credits` $credits^)? attr-dict";
}

def DLIR_RegisterOp : DLIR_Op<"register", [HasParent<"ScheduledGraphOp">]> {
  let summary = "a CPU register and what the launch puts into it, per quad";
  let arguments = (ins I64Attr:$number, DenseI64ArrayAttr:$values);
  let results = (outs Index:$result);
  let assemblyFormat = "$number $values attr-dict";
}

def DLIR_DispatchQueueOp : DLIR_Op<"dispatch_queue", [HasParent<"ScheduledGraphOp">, SingleBlock, NoTerminator]> {
  let summary = "groups that one queue of the quad works off in order";
  let description = "C1: it holds groups and loops of groups. C2: the number is not negative.";
  let arguments = (ins I64Attr:$number);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$number attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def DLIR_TaskGroupOp : DLIR_Op<"task_group", [AttrSizedOperandSegments, SingleBlock, NoTerminator]> {
  let summary = "tasks in order, after its tokens have come; then its own tokens are signalled";
  let description = "C1: it stands in a queue, not in a group. C2: it holds tasks and loops of tasks.";
  let arguments = (ins StrAttr:$name, Variadic<DLIR_TokenType>:$wait, Variadic<DLIR_TokenType>:$signal);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name (`wait` `(` $wait^ `)`)? (`signal` `(` $signal^ `)`)? attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def DLIR_LoopOp : DLIR_Op<"loop", [SingleBlock, NoTerminator]> {
  let summary = "repeats groups, or tasks of a group; code is that of one trip";
  let description = [{
    `dlir.loop %i times[%n] {..}`: %i counts from 0. C1: it stands in a queue or a group.
  }];
  let arguments = (ins Variadic<Index>:$indices, AffineMapAttr:$times);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===--- Tasks --------------------------------------------------------------------------===//

/// A task: buffers with places (affine in loop counters, registers and the quad's number), a descriptor, and clauses,
/// which are attributes: `name value` or, of affine values, `name[expression]`. DeviceSyntax.cpp has their order.
class DLIR_TaskOp<string mnemonic, dag attributes, list<Trait> traits = []>
    : DLIR_Op<mnemonic, !listconcat([AttrSizedOperandSegments], traits)> {
  let arguments = !con((ins Variadic<DLIR_MemoryType>:$buffers, Optional<DLIR_ConfigType>:$config,
                            Variadic<Index>:$indices, AffineMapArrayAttr:$places), attributes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def DLIR_DmaCopyOp : DLIR_TaskOp<"copy", (ins StrAttr:$endpoints, OptionalAttr<I64Attr>:$slices,
    OptionalAttr<I64Attr>:$cores, OptionalAttr<AffineMapAttr>:$rows, OptionalAttr<AffineMapAttr>:$count,
    OptionalAttr<AffineMapAttr>:$quads)> {
  let summary = "moves items between two memories, by a descriptor";
  let description = [{
    `dlir.copy GM2IB %x[%i * 33280] to %ib[0] with %d slices 15`. `slices`, `cores`: masks of those that take part; `quads`: mask of those whose
    GM is written; `rows`: first rows at source and target where the descriptor walks rows of tiles; `count` replaces its
    first dim. C1: the device can move between these memories. C2: the buffers lie in them. C3: there is a descriptor. C4: `cores` go with WB,
    `quads` with a copy from DDR or GM to GM.
  }];
}

class DLIR_ProductOp<string mnemonic, dag attributes> : DLIR_TaskOp<mnemonic, !con((ins I64Attr:$num_imc,
    I64Attr:$ppr_mode, OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$core, OptionalAttr<I64Attr>:$slices,
    StrAttr:$activation_kind, StrAttr:$weight_kind, OptionalAttr<AffineMapAttr>:$rows, OptionalAttr<AffineMapAttr>:$k0,
    OptionalAttr<AffineMapAttr>:$accumulate, OptionalAttr<AffineMapAttr>:$steps, UnitAttr:$accumulate_steps,
    OptionalAttr<I64Attr>:$chunks, OptionalAttr<I64Attr>:$result_row, OptionalAttr<I64Attr>:$result_group,
    OptionalAttr<I64Attr>:$result_step, OptionalAttr<I64Attr>:$stash_chunk, OptionalAttr<I64Attr>:$stash_group,
    OptionalAttr<I64Attr>:$stash_step), attributes)>;

def DLIR_DeviceMatmulOp : DLIR_ProductOp<"matmul", (ins OptionalAttr<AffineMapAttr>:$row,
    OptionalAttr<I64Attr>:$activation_chunk, OptionalAttr<I64Attr>:$activation_step)> {
  let summary = "activation tiles times weight tiles, num_imc cores a result tile, into OB";
  let description = [{
    `dlir.matmul %ib[0] x %wb[0] to %ob[0] num_imc 8 ppr_mode 3 groups 2 ..`; with `from %st[..]` each step's weights
    are streamed from the stash while the step before computes. C1: activations lie in IB, weights in WB, the result in OB, a stash in ST.
    C2: 1 <= num_imc <= 2^ppr_mode. C3: groups is positive. C4: rows, where constant, are 1 to 64.
  }];
}

def DLIR_DeviceConvOp : DLIR_ProductOp<"conv", (ins OptionalAttr<AffineMapAttr>:$image_row,
    AffineMapAttr:$pixel, OptionalAttr<I64Attr>:$image_band, OptionalAttr<I64Attr>:$image_chunk,
    OptionalAttr<I64Attr>:$image_blocks, OptionalAttr<I64Attr>:$pixel_slice, OptionalAttr<I64Attr>:$pixels,
    DictionaryAttr:$window)> {
  let summary = "as matmul, with activation rows taken from the windows of an image in GM or IB";
  let description = "C1: the image lies in GM or IB; the rest as in matmul. C2, C3, C4 as there.";
}

def DLIR_DeviceSimdOp : DLIR_TaskOp<"simd", (ins StrAttr:$function, DenseI64ArrayAttr:$dims,
    StrAttr:$to_kind, DenseI64ArrayAttr:$to_strides, OptionalAttr<StrAttr>:$a_kind,
    OptionalAttr<DenseI64ArrayAttr>:$a_strides, OptionalAttr<StrAttr>:$b_kind,
    OptionalAttr<DenseI64ArrayAttr>:$b_strides, OptionalAttr<StrAttr>:$c_kind,
    OptionalAttr<DenseI64ArrayAttr>:$c_strides, OptionalAttr<I64Attr>:$slices, OptionalAttr<I64Attr>:$inner,
    OptionalAttr<I64Attr>:$split, OptionalAttr<I64Attr>:$causal, UnitAttr:$count_pad, OptionalAttr<F32Attr>:$imm0,
    OptionalAttr<F32Attr>:$imm1, OptionalAttr<AffineMapAttr>:$index, OptionalAttr<AffineMapAttr>:$count,
    OptionalAttr<DictionaryAttr>:$window)> {
  let summary = "a function of the vector device over up to four dims";
  let description = [{
    `dlir.simd "add" to %y[0] a %x[0] b %z[0] dims [..] ..`; steps in bytes, 0 broadcasts.
    C1: operands lie in GM, SIMD or OB. C2: one to four dims, the innermost last, and as many steps of each operand. C3: an operand
    that is there has kind and steps, another none.
  }];
}

def DLIR_DeviceReshapeOp : DLIR_TaskOp<"reshape", (ins StrAttr:$function, OptionalAttr<StrAttr>:$rule,
    OptionalAttr<I64Attr>:$slice, OptionalAttr<AffineMapAttr>:$pixel, OptionalAttr<AffineMapAttr>:$count,
    OptionalAttr<AffineMapAttr>:$rows, OptionalAttr<AffineMapAttr>:$columns, OptionalAttr<AffineMapAttr>:$batch,
    OptionalAttr<I64Attr>:$element, OptionalAttr<I64Attr>:$source_pitch, OptionalAttr<I64Attr>:$target_pitch,
    OptionalAttr<I64Attr>:$source_batch, OptionalAttr<I64Attr>:$target_batch)> {
  let summary = "moves elements by the reshape engine: extract, insert, transpose";
  let description = [{
    `dlir.reshape "extract" %x[0] to %y[0] with %d rule "gather" ..`, `indices %i[0]` for gather and scatter.
    C1: the function is extract, insert or transpose. C2: extract and insert have a descriptor, transpose rows and columns. C3: extract has no
    scatter, insert no gather and no window; indices come with gather and scatter only.
  }];
}

// The processor that each quad has, not the target of that name.
def DLIR_CpuOp : DLIR_TaskOp<[{cpu}], (ins FlatSymbolRefAttr:$function)> {
  let summary = "calls a function of the quad's CPU";
  let description = "C1: the function is one of the program's.";
}

def DLIR_TaskBarrierOp : DLIR_Op<"task_barrier", [AttrSizedOperandSegments]> {
  let summary = "waits inside a group: for tokens, or for queues that meet";
  let description = [{
    `dlir.task_barrier wait(%a) signal(%b)` takes and gives tokens; `over chiplet id 0 queues [0]` meets these queues of all quads in the scope.
    C1: it stands in a group. C2: it waits, signals or meets; who meets is named.
  }];
  let arguments = (ins Variadic<DLIR_TokenType>:$wait, Variadic<DLIR_TokenType>:$signal,
                       OptionalAttr<DLIR_BarrierScope>:$scope, OptionalAttr<I64Attr>:$id,
                       OptionalAttr<DenseI64ArrayAttr>:$queues);
  let assemblyFormat = [{
    (`wait` `(` $wait^ `)`)? (`signal` `(` $signal^ `)`)? (`over` $scope^)? (`id` $id^)? (`queues` $queues^)? attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_SignalRemoteOp : DLIR_TaskOp<"signal_remote", (ins AffineMapAttr:$quads, I64Attr:$token,
                                                         OptionalAttr<I64Attr>:$amount)> {
  let summary = "adds tokens at other quads";
}
def DLIR_WaitRemoteOp : DLIR_TaskOp<"wait_remote", (ins AffineMapAttr:$quad, I64Attr:$token,
                                                     OptionalAttr<I64Attr>:$amount)> {
  let summary = "takes tokens that one other quad signalled";
}
def DLIR_SendOp : DLIR_TaskOp<"send", (ins AffineMapAttr:$quad, I64Attr:$first, OptionalAttr<I64Attr>:$amount)> {
  let summary = "puts registers into the mailbox to another quad";
}
def DLIR_ReceiveOp : DLIR_TaskOp<"receive", (ins AffineMapAttr:$quad, I64Attr:$first,
                                             OptionalAttr<I64Attr>:$amount)> {
  let summary = "takes registers from the mailbox from another quad";
}
def DLIR_ResetOp : DLIR_TaskOp<"reset", (ins I64Attr:$units, OptionalAttr<I64Attr>:$slices)> {
  let summary = "makes the contents of units undefined";
}
def DLIR_NopOp : DLIR_TaskOp<"nop", (ins OptionalAttr<I64Attr>:$clocks)> {
  let summary = "waits";
}

#endif // DMXC_DIALECT_DLIR_DEVICEOPS
