//===- Passes.td - from DMIR to a kernel over quads -------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def AssignFormats : Pass<"corsair-assign-formats", "::mlir::ModuleOp"> {
  let summary = "Give every value its format: block floating point into matrix products, f16 elsewhere";
  let description = [{
    The BASIC rules: operands of dmir.matmul are BFP16_64 (R, C), its bias BFP32_1, everything else that is f32, bf16 or
    f64 is f16. Inputs and outputs of functions take the format they are used in; the module attributes
    dm.model_inputs.type and dm.model_outputs.type keep what the user gave, dm.model_constants.type lists what
    the quantized constants have become.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect", "::dmxc::lldmir::LLDMIRDialect", "::mlir::tensor::TensorDialect"];
}

def KernelFunctions : Pass<"corsair-kernel-functions", "::mlir::ModuleOp"> {
  let summary = "Kernels whose ops all have stages to functions";
  let description = [{
    The function has the kernel's ops with what partition decided of them, the forms of its packed constants
    (`lldmir.form`), the host's types (`lldmir.type`) and the size of its team (`lldmir.quads`). An input that crosses as tiles
    has the number of rows that begin at a tile of their own (`lldmir.tiles`): those of a quad, or all. A kernel with an op that the
    stages do not know stays one; `lldmir.unstaged` names the node.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect", "::dmxc::lldmir::LLDMIRDialect"];
}

def TileProducts : Pass<"corsair-tile-products", "::mlir::func::FuncOp"> {
  let summary = "Products of a kernel's function to affine loops over 64x64 results";
  let description = [{
    A product that is dealt has a loop over quads around the loops over its part's tiles. Columns are the outer loop where
    weights stay in the arrays while rows pass. Of weights that have zeros (`lldmir.kept`) columns whose rounds take the same
    blocks along K have loops of their own in each row of tiles, whose products name them (`lldmir.blocks`). What an op needs
    of other quads is gathered before it.
  }];
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect", "::dmxc::lldmir::LLDMIRDialect",
                           "::mlir::affine::AffineDialect", "::mlir::tensor::TensorDialect"];
}

def Bufferize : Pass<"corsair-bufferize", "::mlir::func::FuncOp"> {
  let summary = "Tensors of a kernel's function to buffers";
  let description = [{
    Values are buffers in GM; where a product reads or writes one, a grid of tiles is a view of it. Packed weights are
    tiles in ST. Ops on whole values become lldmir.simd from buffer to buffer, several of them one where the vector device has
    a function for them: fma, affine, clip, leaky_relu, hard_sigmoid, reduce_sum_square, rope, rope_interleaved.
  }];
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect", "::dmxc::lldmir::LLDMIRDialect",
                           "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def FuseEpilogues : Pass<"corsair-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "Functions of what a product made into the loops that make it, tile by tile";
  let description = [{
    An elementwise lldmir.simd of a whole buffer that loops over tiles fill is one of each tile, behind the store of that tile. What
    else it reads is there before the loops: broadcast, or a quad's part of it, it is a view of the result's shape. Left as they are: what
    bands compute, what needs more tiles at once than the vector device's memory holds, and functions of a result that others need too.
  }];
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect", "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def DropUnread : Pass<"corsair-drop-unread", "::mlir::func::FuncOp"> {
  let summary = "Buffers that loops over tiles fill and nothing reads";
  let description = "Their stores and views go with them, and loops that have none left: behind affine-tile-scalrep what is fused is read as values.";
}

def LowerTiles : Pass<"corsair-lower-tiles", "::mlir::func::FuncOp"> {
  let summary = "Products of tile arrays to lldmir.matmul over the cores of a slice";
  let description = [{
    Each tile along k, or of its `lldmir.blocks`, is a core's, `num_imc` of the plan at once. More tiles are chunks in increasing k, each added to what the
    output buffer holds: the order is part of the result's bits.
  }];
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect", "::mlir::affine::AffineDialect"];
}

def OutlineSpmd : Pass<"corsair-outline-spmd", "::mlir::ModuleOp"> {
  let summary = "A kernel's function to one program for all quads: a thread is a quad";
  let description = [{
    Every quad runs the same program with its number. Loops over quads are their trip for that number, and an op that is dealt
    computes the quad's part. Quads meet after they sent their parts to the others.
  }];
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect", "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
                           "::mlir::gpu::GPUDialect"];
}

def BandRows : Pass<"corsair-band-rows", "::mlir::ModuleOp"> {
  let summary = "Scores, their softmax and what it weighs in one loop over bands of 64 rows";
  let description = [{
    Of each softmax with `lldmir.bands` in its parameters. Nothing of rows times columns is left in GM: scores and weights are
    strips of 64 rows. A mask by diagonals counts its rows from the band's first one on.
  }];
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect", "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def BandTransfers : Pass<"corsair-band-transfers", "::mlir::ModuleOp"> {
  let summary = "Rows of arguments and results that cross while others are computed";
  let description = [{
    `lldmir.bands` of an argument: its rows come from DDR band after band, each before the loops that alone read it load it first. Of a result: its
    rows go there when the loops that alone fill it have stored their last column. A quad has all rows or its own, and loops go over whole rows, whose columns may be
    several loops, or whole columns of tiles; of a result that leaves, all columns of a band are there before the next is begun.
  }];
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect"];
}

def EncodeProgram : Pass<"corsair-encode", "::mlir::ModuleOp"> {
  let summary = "Write the programs of a module as an image of the DMX ISA";
  let description = "All dlir.device_program of the module, a kernel each. The module stays what it is.";
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect"];
  let options = [
    Option<"file", "file", "std::string", "", "Write the .dmxisa container to this file">,
    Option<"text", "text", "std::string", "", "Write the assembly to this file">,
    Option<"keepConfigs", "keep-configs", "bool", "false", "A CONFIG before every instruction that needs one">,
    Option<"order", "order", "bool", "false", "Refuse programs whose queues do not wait for what they need">];
}
