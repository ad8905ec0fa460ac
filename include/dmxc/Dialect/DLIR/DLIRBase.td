//===- DLIRBase.td - dialect and types of DLIR ------------------*- tablegen -*-===//
#ifndef DMXC_DIALECT_DLIR_BASE
#define DMXC_DIALECT_DLIR_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def DLIR_Dialect : Dialect {
  let name = "dlir";
  let cppNamespace = "::dmxc::dlir";
  let summary = "Schedule-level IR: buffers with places, queues, tasks ordered by tokens, kernels";
  let description = [{
    A module in DLIR holds one `dlir.program` an entry point and the `dlir.kernel`s they dispatch. graph.json
    (schemas/FORMAT.md) is its serialisation, field by field. Two verifiers run on every program: no two live buffers overlap in an arena, and every pair
    of conflicting accesses is ordered by tokens.

    What a device's queues do inside a kernel is a `dlir.device_program` (DeviceOps.td); a target has ops of its own
    engines in a dialect of its own, and tells this one of its memories (Device.h).
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
  let useDefaultTypePrinterParser = 1;
  let extraClassDeclaration = [{
    void addDeviceOps();
    /// What programs of a device may name; null: no target of this name was registered.
    const DeviceModel *findDevice(::llvm::StringRef name) const;
    void addDevice(DeviceModel model);

  private:
    std::vector<std::shared_ptr<const DeviceModel>> devices;

  public:
  }];
}

class DLIR_Type<string name, string typeMnemonic, string text> : TypeDef<DLIR_Dialect, name> {
  let mnemonic = typeMnemonic;
  let summary = text;
}
def DLIR_BufferType : DLIR_Type<"Buffer", "buffer", "bytes with a place: an input, output, constant, arena range or alias">;
def DLIR_TokenType : DLIR_Type<"Token", "token", "the completion of a task">;
def DLIR_MemoryType : DLIR_Type<"Memory", "memory", "a range of a device's memory, the same in all its units">;
def DLIR_DescriptorType : DLIR_Type<"Descriptor", "descriptor", "what a copy walks over and converts">;

class DLIR_Op<string mnemonic, list<Trait> traits = []> : Op<DLIR_Dialect, mnemonic, traits>;

#endif // DMXC_DIALECT_DLIR_BASE
