//===- CudaOps.td - kernels of warpgroups and slots, as text ----*- tablegen -*-===//
#ifndef DMXC_TARGETS_CUDA_OPS
#define DMXC_TARGETS_CUDA_OPS

include "dmxc/Dialect/DLIR/DeviceInterfaces.td"
include "dmxc/Dialect/DMIR/DMIRBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Cuda_Dialect : Dialect {
  let name = "cuda";
  let cppNamespace = "::dmxc::cuda";
  let summary = "How a product's kernel is made of warpgroups and slots";
  let description = [{
    A `cuda.pipeline` stands before the product of a `dlir.kernel` and says how the kernel computes it; the code is made of that text. What is computed, and
    what follows the product on its sums, is what the kernel's other ops say. What fits neither machine nor product is refused with the op and what it may be.
  }];
  let dependentDialects = ["::dmxc::dlir::DLIRDialect"];
  let extraClassDeclaration = [{
    const ::dmx::cuda::Machine &getMachine() const;
    void setMachine(const ::dmx::cuda::Machine &given);

  private:
    std::shared_ptr<const ::dmx::cuda::Machine> machine;
  }];
}

class Cuda_Op<string mnemonic, list<Trait> traits = []> : Op<Cuda_Dialect, mnemonic, traits>;
/// A task of a warpgroup.
class Cuda_Task<string mnemonic, string engine, string parent>
    : Cuda_Op<mnemonic, [HasParent<parent>, DLIR_DeviceTaskInterface]> {
  let extraClassDeclaration = "::llvm::StringRef getEngine() { return \"" # engine # "\"; }";
}

def Cuda_PipelineOp : Cuda_Op<"pipeline", [HasParent<"::dmxc::dlir::KernelOp">, SymbolTable, SingleBlock, NoTerminator]> {
  let summary = "how blocks compute tiles of a product: what each of their warpgroups does";
  let description = [{
    `cuda.pipeline tile 128 x 256 raster 8 {..}`: a block computes 128 rows and 256 columns of the result at a time, then those that many blocks further on;
    tiles go down `raster` rows of them, then on to the next column. It has roles and the program of a block, a `dlir.device_program`: a ring of slots in
    shared memory, where a slot has a tile of each operand, and queues of the engines `multiply` and `copy`, which are the roles. Tiles of all slots stand one
    behind the other, operand by operand; behind them a barrier a slot says that it is full (its bytes are there, and who stored some has arrived), and one
    that it is empty (each warp that read it has arrived). What a run brings are the program's arguments: `tiles` of the block in register 0, and where the
    product has an open number of terms `steps` in register 1.
    C1: it holds roles, no two of one name, and a program.
  }];
  let arguments = (ins I64Attr:$rows, I64Attr:$columns, I64Attr:$raster);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`tile` $rows `x` $columns `raster` $raster attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

def Cuda_RoleOp : Cuda_Op<"role", [HasParent<"PipelineOp">]> {
  let summary = "warpgroups of a block that work off a queue";
  let description = [{
    `cuda.role "multiply" warpgroups 2 registers 240`. Roles are warpgroups of a block in their order. `registers`: what each of their threads takes or keeps at
    the beginning (setmaxnreg); without it they have what the launch gives them.
  }];
  let arguments = (ins StrAttr:$name, I64Attr:$warpgroups, OptionalAttr<I64Attr>:$registers);
  let assemblyFormat = "$name `warpgroups` $warpgroups (`registers` $registers^)? attr-dict";
}

def Cuda_CopyOp : Cuda_Task<"copy", "copy", "::dmxc::dlir::FillOp"> {
  let summary = "an operand's tile into the slot: by a tensor map, or by the role's threads";
  let description = [{
    `cuda.copy "left" map of <"256", "128"> strides <"512"> box [64, 128]`: elements of each axis, the innermost one first, bytes from one to the next, and what a
    copy reaches over; `at`: bytes into the operand. `cuda.copy "right" threads 8 because ".."`: a thread loads so many pairs of terms before it stores the
    first; why no map does it is for readers.
  }];
  let arguments = (ins StrAttr:$side, OptionalAttr<DMIR_DimsAttr>:$sizes, OptionalAttr<DMIR_DimsAttr>:$strides,
                       OptionalAttr<DenseI64ArrayAttr>:$box, OptionalAttr<DMIR_DimsAttr>:$offset,
                       OptionalAttr<I64Attr>:$pairs, OptionalAttr<StrAttr>:$why);
  let assemblyFormat = [{
    $side (`map` `of` $sizes^ `strides` $strides `box` $box (`at` $offset^)?)? (`threads` $pairs^ (`because` $why^)?)? attr-dict
  }];
  let hasVerifier = 1;
}

def Cuda_MultiplyOp : Cuda_Task<"multiply", "multiply", "::dmxc::dlir::DrainOp"> {
  let summary = "the slot's tiles multiplied and added to the sums of a warpgroup";
  let description = [{
    `cuda.multiply 64 x 128 x 16 behind 1`: rows, columns and terms of one wgmma; `behind`: products of so many steps run on while the next ones are started, so
    that slots are given back that many steps later.
  }];
  let arguments = (ins I64Attr:$rows, I64Attr:$columns, I64Attr:$terms, I64Attr:$behind);
  let assemblyFormat = "$rows `x` $columns `x` $terms `behind` $behind attr-dict";
}

def Cuda_WriteOp : Cuda_Task<"write", "multiply", "::dmxc::dlir::TaskGroupOp"> {
  let summary = "what follows the product on its sums, and the stores: so many columns are evaluated before they are stored";
  let arguments = (ins I64Attr:$columns);
  let assemblyFormat = "`columns` $columns attr-dict";
}

#endif // DMXC_TARGETS_CUDA_OPS
