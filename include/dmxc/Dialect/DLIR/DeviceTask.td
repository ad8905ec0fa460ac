//===- DeviceTask.td - what tasks of all dialects have in common *- tablegen -*-===//
//
// A dialect with engine ops of its own includes this, its header Device.h and its source TaskSyntax.h.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_DIALECT_DLIR_DEVICETASK
#define DMXC_DIALECT_DLIR_DEVICETASK

include "dmxc/Dialect/DLIR/DLIRBase.td"
include "dmxc/Dialect/DLIR/DeviceInterfaces.td"

/// A task: buffers with places (affine in loop counters, registers and the unit's place), a descriptor, and clauses,
/// which are attributes: `name value` or, of affine values, `name[expression]`, in the order of the op's TaskSyntax.
/// `reads` and `writes` are the numbers of the buffers that it reads and writes.
class DLIR_DeviceTask<Dialect dialect, string mnemonic, string engine, string reads, string writes, dag attributes,
                      list<Trait> traits = []>
    : Op<dialect, mnemonic, !listconcat([AttrSizedOperandSegments, DLIR_DeviceTaskInterface], traits)> {
  let arguments = !con((ins Variadic<DLIR_MemoryType>:$buffers, Optional<DLIR_DescriptorType>:$descriptor,
                            Variadic<Index>:$indices, AffineMapArrayAttr:$places), attributes);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::StringRef getEngine() { return "}] # engine # [{"; }
    ::llvm::SmallVector<::mlir::Value> memoriesRead() {
      return ::dmxc::dlir::buffersAt(getBuffers(), {}] # reads # [{});
    }
    ::llvm::SmallVector<::mlir::Value> memoriesWritten() {
      return ::dmxc::dlir::buffersAt(getBuffers(), {}] # writes # [{});
    }
  }];
}

#endif // DMXC_DIALECT_DLIR_DEVICETASK
