//===- DLIROps.td - schedule-level IR, common to all targets ----*- tablegen -*-===//
#ifndef DMXC_DIALECT_DLIR_OPS
#define DMXC_DIALECT_DLIR_OPS

include "dmxc/Dialect/DLIR/DLIRBase.td"

def DLIR_BufferKind : I32EnumAttr<"BufferKind", "where a buffer lives", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>, I32EnumAttrCase<"constant", 2>,
    I32EnumAttrCase<"arena", 3>, I32EnumAttrCase<"alias", 4>, I32EnumAttrCase<"state", 5>,
    I32EnumAttrCase<"result", 6>]> {
  let cppNamespace = "::dmxc::dlir";
}

def DLIR_TaskInterface : OpInterface<"TaskInterface"> {
  let cppNamespace = "::dmxc::dlir";
  let description = "A task of a program: what it reads and writes, what it waits for, where it runs.";
  let methods = [
    InterfaceMethod<"buffers that are read", "::llvm::SmallVector<::mlir::Value>", "reads">,
    InterfaceMethod<"buffers that are written", "::llvm::SmallVector<::mlir::Value>", "writes">,
    InterfaceMethod<"tokens of the tasks it waits for", "::mlir::OperandRange", "getAfter">,
    InterfaceMethod<"the same, to change them", "::mlir::MutableOperandRange", "getAfterMutable">,
    InterfaceMethod<"where it runs", "::llvm::StringRef", "getQueue">,
    InterfaceMethod<"the model nodes it computes", "::mlir::ArrayAttr", "getNodes">
  ];
}

def DLIR_ProgramOp : DLIR_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "one graph: its buffers, queues and tasks in issue order";
  let description = [{
    `inputs`/`outputs`: array of {name, type, description}, where nothing is said without the last; `arenas`: array of {size, lower_bound} in bytes, or in units of `unit`
    (`#dmir.dims` of one) bytes where sizes depend on symbols. `constraints`: what symbols must hold
    (Dialect/DMIR/Constraints.h). An `owned` program is a graph of one `dlir.if` or `dlir.while`, the others are entry points.
    C1: buffers come before tasks. C2: no two arena buffers that are live at the same time overlap. C3: every pair of
    tasks that access overlapping bytes, one of them writing, is ordered by tokens. C4: inputs, outputs and arenas are as said.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$inputs, ArrayAttr:$outputs, ArrayAttr:$arenas,
                       OptionalAttr<ArrayAttr>:$constraints, UnitAttr:$owned);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def DLIR_BufferOp : DLIR_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "a range of bytes and the tensor in it";
  let description = [{
    `index`: the number of the input, output, arena or state; of a result, which one of the task that has it as an output. `offset`, `size` in bytes (arena, alias), or in units of
    `unit` bytes (`#dmir.dims` of one); buffers of one arena, and an alias and its base, have one unit. A constant has the `data` it
    is made of (a DMIR constant value), and the packed `form` with its size when the kernel wants one. An alias names its `base`, never another alias.
    C1: arena offsets are multiples of 64. C2: an alias lies inside its base. C3: the type is one that a bundle has; a constant has `data` of
    that type, and its size where it has no `form`.
  }];
  let arguments = (ins DLIR_BufferKind:$kind, TypeAttr:$tensor, DefaultValuedAttr<I64Attr, "0">:$index,
                       DefaultValuedAttr<I64Attr, "0">:$offset, I64Attr:$size, OptionalAttr<TypedAttrInterface>:$data,
                       OptionalAttr<DictionaryAttr>:$form, StrAttr:$name, Optional<DLIR_BufferType>:$base,
                       OptionalAttr<AnyAttr>:$unit);
  let results = (outs DLIR_BufferType:$result);
  let assemblyFormat = "$kind $name (`of` $base^)? `:` $tensor attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The offset and the size in bytes.
    ::dmxc::Dim getOffsetDim();
    ::dmxc::Dim getSizeDim();
  }];
}

def DLIR_DispatchOp : DLIR_Op<"dispatch", [HasParent<"ProgramOp">, AttrSizedOperandSegments, DLIR_TaskInterface]> {
  let summary = "a kernel call over a range of work items";
  let description = [{
    `operands` are read, `results` written; `after` are the tokens of the tasks it waits for. `nodes` are the
    model nodes it computes. Where `work` .. `bytes` depend on symbols, `dims` has all five.
    A dispatch with `symbols` returns their values, each in `[0, max]`. C1: the kernel exists and takes such buffers. C2: a task waits only for earlier ones. C5: `dims` and `max` are `#dmir.dims` of as many.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<DLIR_BufferType>:$inputs, Variadic<DLIR_BufferType>:$outputs,
                       Variadic<DLIR_TokenType>:$after, StrAttr:$queue, StrArrayAttr:$nodes, I64Attr:$work,
                       DefaultValuedAttr<I64Attr, "1">:$grain, DefaultValuedAttr<I64Attr, "0">:$scratch,
                       DefaultValuedAttr<I64Attr, "0">:$flops, DefaultValuedAttr<I64Attr, "0">:$bytes,
                       OptionalAttr<AnyAttr>:$dims, OptionalAttr<StrArrayAttr>:$symbols, OptionalAttr<AnyAttr>:$max);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = "$kernel `(` $inputs `)` `->` `(` $outputs `)` (`after` $after^)? attr-dict";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> reads() { return ::llvm::to_vector(getInputs()); }
    ::llvm::SmallVector<::mlir::Value> writes() { return ::llvm::to_vector(getOutputs()); }
  }];
}

def DLIR_CopyOp : DLIR_Op<"copy_buffer", [HasParent<"ProgramOp">, DLIR_TaskInterface]> {
  let summary = "a copy of bytes between buffers";
  let description = "`size` as of a buffer.";
  let arguments = (ins DLIR_BufferType:$source, DLIR_BufferType:$target, Variadic<DLIR_TokenType>:$after, StrAttr:$queue,
                       StrArrayAttr:$nodes, I64Attr:$size, OptionalAttr<AnyAttr>:$unit);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = "$source `to` $target (`after` $after^)? attr-dict";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> reads() { return {getSource()}; }
    ::llvm::SmallVector<::mlir::Value> writes() { return {getTarget()}; }
  }];
}

def DLIR_IfOp : DLIR_Op<"if", [HasParent<"ProgramOp">, AttrSizedOperandSegments, DLIR_TaskInterface]> {
  let summary = "runs one of two owned programs, by a condition";
  let description = [{
    `inputs` are those of both programs. `outputs`: a result buffer an output. Symbols that are dims of result buffers and that no input or earlier task
    defines have their values from them.
  }];
  let arguments = (ins DLIR_BufferType:$condition, FlatSymbolRefAttr:$thenGraph, FlatSymbolRefAttr:$elseGraph,
                       Variadic<DLIR_BufferType>:$inputs, Variadic<DLIR_BufferType>:$outputs,
                       Variadic<DLIR_TokenType>:$after, StrAttr:$queue, StrArrayAttr:$nodes);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = "$condition `then` $thenGraph `else` $elseGraph `(` $inputs `)` `->` `(` $outputs `)` (`after` $after^)? attr-dict";
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> reads();
    ::llvm::SmallVector<::mlir::Value> writes() { return ::llvm::to_vector(getOutputs()); }
  }];
}

def DLIR_WhileOp : DLIR_Op<"while", [HasParent<"ProgramOp">, AttrSizedOperandSegments, DLIR_TaskInterface]> {
  let summary = "runs an owned program again and again";
  let description = [{
    As `dmir.loop` says; `inputs` are its captures, `outputs` result buffers as of `dlir.if`: the carried values, then the scanned ones.
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Optional<DLIR_BufferType>:$tripCount, Optional<DLIR_BufferType>:$condition,
                       Variadic<DLIR_BufferType>:$carried, Variadic<DLIR_BufferType>:$inputs,
                       Variadic<DLIR_BufferType>:$outputs, Variadic<DLIR_TokenType>:$after, StrAttr:$queue,
                       StrArrayAttr:$nodes);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = [{
    $body (`trips` $tripCount^)? (`if` $condition^)? `carries` `(` $carried `)` `(` $inputs `)` `->` `(` $outputs `)`
    (`after` $after^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> reads();
    ::llvm::SmallVector<::mlir::Value> writes() { return ::llvm::to_vector(getOutputs()); }
  }];
}

def DLIR_KernelOp : DLIR_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "the body of dispatches: a DMIR region outlined from the programs, shared by equal ones";
  let description = "The block's arguments are the operands' tensors; `dmir.yield` gives the results. `strategy` as on dmir.region.";
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$device, DictionaryAttr:$strategy);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `on` $device attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
}

#endif // DMXC_DIALECT_DLIR_OPS
