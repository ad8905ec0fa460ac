//===- DLIROps.td - schedule-level IR, common to all targets ----*- tablegen -*-===//
#ifndef DMXC_DIALECT_DLIR_OPS
#define DMXC_DIALECT_DLIR_OPS

include "dmxc/Dialect/DLIR/DLIRBase.td"

def DLIR_BufferKind : I32EnumAttr<"BufferKind", "where a buffer lives", [
    I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"output", 1>, I32EnumAttrCase<"constant", 2>,
    I32EnumAttrCase<"arena", 3>, I32EnumAttrCase<"alias", 4>, I32EnumAttrCase<"state", 5>]> {
  let cppNamespace = "::dmxc::dlir";
}

def DLIR_ProgramOp : DLIR_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "one entry point: its buffers, queues and tasks in issue order";
  let description = [{
    `inputs`/`outputs`: array of {name, type}; `arenas`: array of {size, lower_bound} in bytes, or in units of `unit`
    (`#dmir.dims` of one) bytes where sizes depend on symbols. `constraints`: what symbols must hold
    (Dialect/DMIR/Constraints.h).
    C1: buffers come before tasks. C2: no two arena buffers that are live at the same time overlap. C3: every pair of
    tasks that access overlapping bytes, one of them writing, is ordered by tokens.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$inputs, ArrayAttr:$outputs, ArrayAttr:$arenas,
                       OptionalAttr<ArrayAttr>:$constraints);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def DLIR_BufferOp : DLIR_Op<"buffer", [HasParent<"ProgramOp">]> {
  let summary = "a range of bytes and the tensor in it";
  let description = [{
    `index`: the number of the input, output, arena or state. `offset`, `size` in bytes (arena, alias), or in units of
    `unit` bytes (`#dmir.dims` of one); buffers of one arena, and an alias and its base, have one unit. A constant has the `data` it
    is made of (a DMIR constant value), and the packed `form` with its size when the kernel wants one. An alias names its `base`, never another alias.
    C1: arena offsets are multiples of 64. C2: an alias lies inside its base.
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

def DLIR_DispatchOp : DLIR_Op<"dispatch", [HasParent<"ProgramOp">, AttrSizedOperandSegments]> {
  let summary = "a kernel call over a range of work items";
  let description = [{
    `operands` are read, `results` written; `after` are the tokens of the tasks it waits for. `nodes` are the
    model nodes it computes. Where `work` .. `bytes` depend on symbols, `dims` has all five.
    A dispatch with `symbols` returns their values, each in `[0, max]`. C1: the kernel exists and takes as many buffers. C2: a task waits only for earlier ones.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<DLIR_BufferType>:$inputs, Variadic<DLIR_BufferType>:$outputs,
                       Variadic<DLIR_TokenType>:$after, StrAttr:$queue, StrArrayAttr:$nodes, I64Attr:$work,
                       DefaultValuedAttr<I64Attr, "1">:$grain, DefaultValuedAttr<I64Attr, "0">:$scratch,
                       DefaultValuedAttr<I64Attr, "0">:$flops, DefaultValuedAttr<I64Attr, "0">:$bytes,
                       OptionalAttr<AnyAttr>:$dims, OptionalAttr<StrArrayAttr>:$symbols, OptionalAttr<AnyAttr>:$max);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = "$kernel `(` $inputs `)` `->` `(` $outputs `)` (`after` $after^)? attr-dict";
}

def DLIR_CopyOp : DLIR_Op<"copy_buffer", [HasParent<"ProgramOp">]> {
  let summary = "a copy of bytes between buffers";
  let description = "`size` as of a buffer.";
  let arguments = (ins DLIR_BufferType:$source, DLIR_BufferType:$target, Variadic<DLIR_TokenType>:$after, StrAttr:$queue,
                       StrArrayAttr:$nodes, I64Attr:$size, OptionalAttr<AnyAttr>:$unit);
  let results = (outs DLIR_TokenType:$done);
  let assemblyFormat = "$source `to` $target (`after` $after^)? attr-dict";
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
