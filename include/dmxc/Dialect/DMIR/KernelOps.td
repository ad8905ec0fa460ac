//===- KernelOps.td - kernels that users wrote ---------------------*- tablegen -*-===//
//
// Beside DMIROps.td, as few files need it.
//
#ifndef DMXC_DIALECT_DMIR_KERNEL_OPS
#define DMXC_DIALECT_DMIR_KERNEL_OPS

include "dmxc/Dialect/DMIR/DMIRBase.td"

def DMIR_ExternOp : DMIR_BaseOp<"extern", [Pure]> {
  let summary = "what a kernel computes that a user wrote";
  let description = [{
    `dmir.extern "acme.argmax"(%x) {...}`: a declaration of a kernel file (`--kernels`), bound to these operands. Each of `bodies` says which
    `target` has code of it: a `file` with its `sha256`, the `symbol` in it, its `abi` ("plain" or "args"), and the `features` that it needs.
    Where blocks of threads run it, `launch` says which: the `grid` of blocks, threads of a `block`, bytes of `shared` memory that each has,
    blocks of a `cluster`, and the `maps` by which boxes of operands and results (`buffer`: which) are copied. Where cores with memories of
    their own run it, `core` says which part of them a call has: cores share `rows` out, and one core goes along `steps` call after call; how many
    `cycles` it takes, and the `library` of a real machine.
    `counts` are the work items of the task, the fewest worth a thread, and the bytes of scratch of a thread; `scalars` are the sizes that a
    kernel gets. Operands are whole tensors in memory, row by row. `reference` says what it computes, to the interpreter alone: `functions` of a `file`
    with that `sha256`, of which the one is meant that takes these types, and the `numbers` that the node brought. Without it nothing is
    known of the results but their types.
    C1: each body is such a dictionary of texts, `features` an array of them. C2: counts are three. C3: counts, scalars and launches mention
    dims of the operands' and results' types alone. C4: a reference is {file, sha256, functions, numbers}. C5: a map's buffer is one.
    C6: what of a core's is cut are axes of operands and results.
  }];
  let arguments = (ins StrAttr:$kernel, Variadic<DMIR_Tensor>:$inputs, ArrayAttr:$bodies, DMIR_DimsAttr:$counts,
                       OptionalAttr<DMIR_DimsAttr>:$scalars, OptionalAttr<DictionaryAttr>:$reference);
  let results = (outs Variadic<DMIR_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Its bodies for a target.
    ::llvm::SmallVector<::mlir::DictionaryAttr> bodiesFor(::llvm::StringRef target);
    /// C6.
    ::llvm::LogicalResult verifyCores();
  }];
}

#endif // DMXC_DIALECT_DMIR_KERNEL_OPS
