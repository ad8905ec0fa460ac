//===- DeviceOps.td - what the queues of a device do ------------*- tablegen -*-===//
//
// A kernel as a program for the queues of a device's units. The ops are a copy or an order of tasks; a target has its
// engines' tasks in a dialect of its own. What memories, moves and scopes there are says the target's table
// (DeviceModel in Device.h); which numbers fit an instruction is the target's encoder's knowledge.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_DIALECT_DLIR_DEVICEOPS
#define DMXC_DIALECT_DLIR_DEVICEOPS

include "dmxc/Dialect/DLIR/DLIRBase.td"
include "dmxc/Dialect/DLIR/DeviceTask.td"

def DLIR_ArgumentRole : I32EnumAttr<"ArgumentRole", "what the host does with an argument", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>, I32EnumAttrCase<"state", 2>,
    I32EnumAttrCase<"constant", 3>, I32EnumAttrCase<"scalar", 4>]> {
  let cppNamespace = "::dmxc::dlir";
}

//===--- The program and what it works on ---------------------------------------------===//

def DLIR_DeviceProgramOp : DLIR_Op<"device_program", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
                                                      DLIR_DeviceProgramInterface]> {
  let summary = "a kernel: its arguments, its buffers and the schedules of the device's queues";
  let description = [{
    `dlir.device_program @name on "device" {..}`: the target whose kernel it is and whose table its texts are checked by.
    `dim_registers`: the register of each symbolic dim of the task, or of each size in `dlir.dims` (`#dmir.dims`, expressions that the runtime computes), -1 of one
    that has none; the values of such a register are the most that it gets.
    C1: it holds arguments, memories, pieces, descriptors, channels, functions of the target and scheduled graphs. C2: no two arguments and
    no two memories have the same name. C3: at most one graph "init" and one "main". C4: permanent memories at fixed addresses
    do not overlap. C5: the device is a target of this build. C6: what is put into a channel is got out of it, and what is got is put. C7: rings are
    filled as often as they are drained, by what their queues do in a run and what channels bring them.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$device, OptionalAttr<DenseI64ArrayAttr>:$dim_registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `on` $device attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = "std::vector<::dmxc::dlir::DeviceArgument> deviceArguments();";
}

def DLIR_ArgumentOp : DLIR_Op<"argument", [HasParent<"DeviceProgramOp">]> {
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

def DLIR_MemoryOp : DLIR_Op<"memory", [HasParent<"DeviceProgramOp">]> {
  let summary = "a buffer in a memory of the device, at one address in all units of that memory";
  let description = [{
    `dlir.memory "GM" "x" size 64`: the buffer "x" in the memory GM. Permanent buffers keep their bytes from dispatch to dispatch; temporary ones
    share room where their uses allow. C1: the size is positive. C2: a fixed address is a multiple of the memory's alignment. C3: the device has the
    memory. C4: the buffer fits it.
  }];
  let arguments = (ins StrAttr:$kind, StrAttr:$name, I64Attr:$size, OptionalAttr<I64Attr>:$address,
                       UnitAttr:$permanent);
  let results = (outs DLIR_MemoryType:$result);
  let assemblyFormat = "$kind $name `size` $size (`at` $address^)? (`permanent` $permanent^)? attr-dict";
  let hasVerifier = 1;
}

def DLIR_PieceOp : DLIR_Op<"piece", [HasParent<"DeviceProgramOp">]> {
  let summary = "a box of an argument and where in a buffer it lies";
  let description = [{
    `unit` of the buffer's memory. `strides`: bytes a dimension; of tiled forms two: from band to band and from tile to tile along
    the blocks; of constants, whose box is of bytes, none.
    C1: the argument exists and has pieces. C2: begin and extent have one number a dimension. C3: it lies inside the buffer's size.
    C4: the memory has that unit.
  }];
  let arguments = (ins DLIR_MemoryType:$memory, StrAttr:$argument, I64Attr:$unit, I64Attr:$offset,
                       DenseI64ArrayAttr:$begin, DenseI64ArrayAttr:$extent, DenseI64ArrayAttr:$strides);
  let assemblyFormat = [{
    $argument `unit` $unit `in` $memory `offset` $offset `begin` $begin `extent` $extent `strides` $strides attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_DescriptorOp : DLIR_Op<"descriptor", [HasParent<"DeviceProgramOp">]> {
  let summary = "what a copy walks over, by which steps, into what it is converted";
  let description = [{
    `dims` items, the outermost first; item (i0, i1, ..) goes from sum i*source to sum i*target. An item is `unit` elements (bytes of
    tiled kinds), or with `source_rows`, `target_rows` a row of a tile. `source_unit_step`, `source_subunit_step`, `target_unit_step`: bytes added for each
    of the units that a copy reaches. Other keys as the device's descriptor has them.
    C1: no more dims than the device's descriptors have, none negative or larger than they count. C2: one source and one target step a dim, none
    larger than the device's. C3: `low` and `high`, the items that exist, have one number a dim and low <= high. C4: unit is positive.
  }];
  let arguments = (ins StrAttr:$kind, OptionalAttr<StrAttr>:$to, I64Attr:$unit, DenseI64ArrayAttr:$dims,
                       DenseI64ArrayAttr:$source, DenseI64ArrayAttr:$target, OptionalAttr<DenseI64ArrayAttr>:$low,
                       OptionalAttr<DenseI64ArrayAttr>:$high, OptionalAttr<I64Attr>:$tail,
                       OptionalAttr<I64Attr>:$source_unit_step, OptionalAttr<I64Attr>:$target_unit_step,
                       OptionalAttr<I64Attr>:$source_subunit_step, UnitAttr:$source_rows, UnitAttr:$target_rows,
                       OptionalAttr<I64Attr>:$source_band, OptionalAttr<I64Attr>:$target_band,
                       OptionalAttr<I64Attr>:$element_stride, UnitAttr:$retype, OptionalAttr<StrAttr>:$index_kind,
                       OptionalAttr<I64Attr>:$index_pitch, OptionalAttr<I64Attr>:$index_range,
                       OptionalAttr<DictionaryAttr>:$window);
  let results = (outs DLIR_DescriptorType:$result);
  let assemblyFormat = [{
    $kind (`to` $to^)? `unit` $unit `dims` $dims `source` $source `target` $target attr-dict
  }];
  let hasVerifier = 1;
}

def DLIR_ChannelOp : DLIR_Op<"channel", [Symbol, HasParent<"DeviceProgramOp">]> {
  let summary = "a way from what is put into it to those that get it";
  let description = [{
    Each get, in each unit that has it, receives all that is put, in order (a broadcast); what several units put comes in the order of the units, a put
    of each in turn (a join). `depth` puts may be ahead of the slowest get. `dlir.channel @a [4, 2] depth 2` is an array of such ways, and each end says by its
    unit's place which element it has; without extents there is one, which all units share.
    C1: the device has channels. C2: the depth is positive. C3: the extents are, there are at most three, and the device has arrays of channels.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "1">:$depth,
                       OptionalAttr<DenseI64ArrayAttr>:$extents);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===--- Schedules ----------------------------------------------------------------------===//

def DLIR_ScheduledGraphOp : DLIR_Op<"scheduled_graph", [HasParent<"DeviceProgramOp">, SingleBlock, NoTerminator]> {
  let summary = "what the queues of each unit do: once (init) or at every dispatch (main)";
  let description = [{
    `dlir.scheduled_graph "main" units 4x2 (%x, %y) {..}`: a grid of units; %x and %y are the place of the one that runs it.
    C1: the name is "init" or "main", there is a unit, and an index a dim. C2: it holds tokens, rings, registers and queues, and no two queues of
    one engine have one index. C3: a token that is waited for is signalled or has credits. C4: a register has one value, or one for each
    unit; no two ops name the same. C5: there are no more tokens than their unit holds; a ring takes two.
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$units);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// How many units there are.
    int64_t unitCount();
  }];
}

def DLIR_TokenOp : DLIR_Op<"token", [HasParent<"ScheduledGraphOp">]> {
  let summary = "a counter that orders groups of different queues of a unit";
  let description = [{
    `dlir.token credits 4 on "core"`: credits are there at the start; its home is the class of the units whose bank holds it, without
    one the device's first. C1: the device has such units, and they hold tokens. C2: credits are not negative.
  }];
  let arguments = (ins DefaultValuedAttr<I64Attr, "0">:$credits, OptionalAttr<StrAttr>:$home);
  let results = (outs DLIR_TokenType:$result);
  let assemblyFormat = "(`credits` $credits^)? (`on` $home^)? attr-dict";
  let hasVerifier = 1;
}

def DLIR_RegisterOp : DLIR_Op<"register", [HasParent<"ScheduledGraphOp">]> {
  let summary = "a register and what the launch puts into it, per unit";
  let arguments = (ins I64Attr:$number, DenseI64ArrayAttr:$values);
  let results = (outs Index:$result);
  let assemblyFormat = "$number $values attr-dict";
}

def DLIR_DispatchQueueOp : DLIR_Op<"dispatch_queue", [HasParent<"ScheduledGraphOp">, SingleBlock, NoTerminator]> {
  let summary = "groups that one queue of each unit works off in order";
  let description = [{
    `dlir.dispatch_queue "core" "dma" 1 {..}`: the class of the units, the engine whose queue it is, and which of them, from 0. All units of the graph
    have it; with `units 4 (%x)` those of a grid of its own, the first ones of their class, and %x is the place of the one that runs it.
    C1: it holds groups, fills and drains, and loops of these. C2: the device has such units, they have the engine, and it has so many queues. C3: a grid of its own has
    one dim or more, an index a dim, and the device has such grids.
  }];
  let arguments = (ins StrAttr:$unit, StrAttr:$engine, I64Attr:$index, OptionalAttr<DenseI64ArrayAttr>:$units);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The extents of the grid whose units have it.
    ::llvm::ArrayRef<int64_t> grid();
  }];
}

def DLIR_TaskGroupOp : DLIR_Op<"task_group", [AttrSizedOperandSegments, SingleBlock, NoTerminator]> {
  let summary = "tasks in order, after its tokens have come; then its own tokens are signalled";
  let description = [{
    `dlir.task_group "x" wait(%a, %b >= 2) signal(%c += 3) {..}` waits for one %a and two %b, takes them, and gives three %c. C1: it stands in a queue, not in a
    group. C2: it holds tasks, fills, drains and loops of these. C3: counts are positive.
  }];
  let arguments = (ins StrAttr:$name, Variadic<DLIR_TokenType>:$wait, Variadic<DLIR_TokenType>:$signal,
                       OptionalAttr<DenseI64ArrayAttr>:$wait_counts, OptionalAttr<DenseI64ArrayAttr>:$signal_counts);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name (`wait` `(` custom<Waits>($wait, $wait_counts)^ `)`)? (`signal` `(` custom<Signals>($signal, $signal_counts)^ `)`)?
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    std::vector<::dmxc::dlir::TokenCount> waits();
    std::vector<::dmxc::dlir::TokenCount> signals();
  }];
}

def DLIR_LoopOp : DLIR_Op<"loop", [SingleBlock, NoTerminator]> {
  let summary = "repeats groups, or tasks of a group; code is that of one trip";
  let description = [{
    `dlir.loop %i times[%n] {..}`: %i counts from 0; 4294967295 trips are without an end, and what stands before such a loop in its queue is done once. C1: it stands in a queue, a group, a fill or a drain. C2: where
    the device's code names slots by address, its trips go round whole rings, or it has no end.
  }];
  let arguments = (ins Variadic<Index>:$indices, AffineMapAttr:$times);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

//===--- Rings --------------------------------------------------------------------------===//

def DLIR_RingOp : DLIR_Op<"ring", [HasParent<"ScheduledGraphOp">]> {
  let summary = "slots of a unit's memory that queues fill and others drain, in turn and again and again";
  let description = [{
    `%a = dlir.ring "L1" "a" slots 2 size 4096 on "core" from "S2MM" 0 to "compute" 0`: each unit of the class has so many slots of so many bytes, which
    its producers (queues by engine and number) fill and its consumers drain; all slots are empty at first. A slot is full when each producer has filled
    it, and empty again when each consumer has drained it. Within `dlir.fill` and `dlir.drain` the ring's value is the slot whose turn it is.
    C1: `slots` is from 1 to what the memory holds of `size`. C2: the device has the memory, and `size` is positive. C3: the device has such units, and they
    hold tokens. C4: producers and consumers are one or more queues that such units have, none of them twice at one end; what is at both keeps something for itself. C5: each of them fills or drains it
    somewhere, and all are queues of the same units. C6: no two have the same name. With `{uses = 4}` what one fill brings is drained so many times before its
    slot is empty. C8: that is of rings of one slot.
  }];
  let arguments = (ins StrAttr:$kind, StrAttr:$name, I64Attr:$slots, I64Attr:$size, StrAttr:$home, StrArrayAttr:$producers,
                       DenseI64ArrayAttr:$producer_queues, StrArrayAttr:$consumers, DenseI64ArrayAttr:$consumer_queues,
                       DefaultValuedAttr<I64Attr, "1">:$uses);
  let results = (outs DLIR_MemoryType:$result);
  let assemblyFormat = [{
    $kind $name `slots` $slots `size` $size `on` $home `from` custom<Queues>($producers, $producer_queues)
    `to` custom<Queues>($consumers, $consumer_queues) attr-dict
  }];
  let hasVerifier = 1;
}

class DLIR_RingUse<string mnemonic> : DLIR_Op<mnemonic, [SingleBlock, NoTerminator]> {
  let arguments = (ins Variadic<DLIR_MemoryType>:$rings);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$rings attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def DLIR_FillOp : DLIR_RingUse<"fill"> {
  let summary = "waits for an empty slot of each ring, in their order; then its tasks; then the slots are full";
  let description = [{
    `dlir.fill %a {..}`. C1: it stands in a queue, a group, a fill or a drain, or in loops there. C2: it names one ring or more, none twice and none that is
    held already. C3: its queue is a producer of each. C4: it holds tasks, fills, drains and loops of these.
  }];
}

def DLIR_DrainOp : DLIR_RingUse<"drain"> {
  let summary = "waits for a full slot of each ring, in their order; then its tasks, which read it; then the slots are empty";
  let description = "`dlir.drain %a, %b {..}`. C1, C2, C4 as of fill. C3: its queue is a consumer of each. C5: no task of it writes into the slot.";
}

//===--- Tasks --------------------------------------------------------------------------===//

def DLIR_DmaCopyOp : DLIR_DeviceTask<DLIR_Dialect, "copy", "dma", "0", "1", (ins StrAttr:$from, StrAttr:$to,
    OptionalAttr<I64Attr>:$units, OptionalAttr<I64Attr>:$subunits, OptionalAttr<AffineMapAttr>:$rows,
    OptionalAttr<AffineMapAttr>:$count, OptionalAttr<AffineMapAttr>:$peers)> {
  let summary = "moves items between two memories, by a descriptor";
  let description = [{
    `dlir.copy GM -> IB %x[%i * 33280] to %ib[0] with %d units 15`. `units`, `subunits`: masks of those of the memory's units, and of their parts, that
    take part; `peers`: mask of the graph's units whose memory is written; `rows`: first rows at source and target where the descriptor walks rows of tiles;
    `count` replaces its first dim. C1: the device can move between these memories. C2: the buffers lie in them. C3: there is a descriptor.
    C4: `subunits` go with memories that have them, `peers` with moves that reach other units of the graph. C5: places and the descriptor's
    steps are multiples of what each memory cannot divide. C6: the descriptor is one that copies of each memory walk.
  }];
}

class DLIR_ChannelEnd<string mnemonic, string reads, string writes> : DLIR_DeviceTask<DLIR_Dialect, mnemonic, "dma",
    reads, writes, (ins FlatSymbolRefAttr:$channel, OptionalAttr<AffineMapAttr>:$element, OptionalAttr<I64Attr>:$units,
    OptionalAttr<AffineMapAttr>:$count)>;

def DLIR_PutOp : DLIR_ChannelEnd<"put", "0", ""> {
  let summary = "the source end of a copy: items into a channel";
  let description = [{
    `dlir.put @a %x[%i * 4096] with %d`, of an array `dlir.put @a[%y] %x[..]`: its descriptor's target steps are not used. C1: the channel exists. C2: it has
    one buffer and a descriptor. C3: the device can move to the memory of each get. C4: of an array it names an element, by the unit's place alone, and the
    array has it. C5, C6 as of copy.
  }];
}

def DLIR_GetOp : DLIR_ChannelEnd<"get", "", "0"> {
  let summary = "the target end of a copy: items out of a channel";
  let description = "`dlir.get @a %y[0] with %d`: its descriptor's source steps are not used. C1, C2, C4 as of put; C5, C6 as of copy.";
}

def DLIR_TaskBarrierOp : DLIR_Op<"task_barrier", [AttrSizedOperandSegments, DLIR_DeviceTaskInterface]> {
  let summary = "waits inside a group: for tokens, or for queues that meet";
  let description = [{
    `dlir.task_barrier wait(%a) signal(%b)` takes and gives tokens, as a group does; `over "card" id 0 queues [0]` meets these queues of all units in the
    scope. C1: it stands in a group. C2: it waits, signals or meets; who meets is named. C3: counts are positive. C4: the device has the scope.
  }];
  let arguments = (ins Variadic<DLIR_TokenType>:$wait, Variadic<DLIR_TokenType>:$signal,
                       OptionalAttr<DenseI64ArrayAttr>:$wait_counts, OptionalAttr<DenseI64ArrayAttr>:$signal_counts,
                       OptionalAttr<StrAttr>:$scope, OptionalAttr<I64Attr>:$id,
                       OptionalAttr<DenseI64ArrayAttr>:$queues);
  let assemblyFormat = [{
    (`wait` `(` custom<Waits>($wait, $wait_counts)^ `)`)? (`signal` `(` custom<Signals>($signal, $signal_counts)^ `)`)?
    (`over` $scope^)? (`id` $id^)? (`queues` $queues^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getEngine() { return "queue"; }
    std::vector<::dmxc::dlir::TokenCount> waits();
    std::vector<::dmxc::dlir::TokenCount> signals();
  }];
}

#endif // DMXC_DIALECT_DLIR_DEVICEOPS
