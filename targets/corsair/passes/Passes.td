//===- Passes.td - from DMIR to a kernel over quads -------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

//===--- The stages ---------------------------------------------------------------===//

def AssignFormats : Pass<"corsair-assign-formats", "::mlir::ModuleOp"> {
  let summary = "Give every value its format: block floating point into matrix products, f16 elsewhere";
  let description = [{
    The BASIC rules: operands of dmir.matmul are BFP16_64 (R, C), its bias BFP32_1, everything else that is f32, bf16 or
    f64 is f16. Inputs and outputs of functions take the format they are used in; the module attributes
    dm.model_inputs.type and dm.model_outputs.type keep what the user gave, dm.model_constants.type lists what
    the quantized constants have become.
  }];
  let options = [
    ListOption<"rules", "rules", "std::string",
               "GLOB=FORMAT: the operand format of products whose node name matches; the last match wins">,
    Option<"print", "print", "bool", "false", "Print a table of nodes and formats to standard error">];
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
    weights stay in the arrays while rows pass. What an op needs of other quads is gathered before it.
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

def TileMatmul : Pass<"corsair-tile-matmul", "::mlir::func::FuncOp"> {
  let summary = "Products of block_fp tensors to affine loops over 64x64 results";
  let description = [{
    Operands that are ragged are continued with zeros to whole tiles, and the result is cut to its size. A bias and a cast
    that only read the product are computed on its tiles.
  }];
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect", "::mlir::affine::AffineDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BufferizeTiles : Pass<"corsair-bufferize-tiles", "::mlir::func::FuncOp"> {
  let summary = "Tensors to memrefs of tiles";
  let description = [{
    A loop that carries a tensor writes to its memref in place. Ops on whole tensors become lldmir.simd and
    lldmir.reshape from memref to memref.
  }];
  let dependentDialects = ["::dmxc::affine_ext::AffineExtDialect", "::dmxc::lldmir::LLDMIRDialect",
                           "::mlir::affine::AffineDialect", "::mlir::memref::MemRefDialect"];
}

def LowerTiles : Pass<"corsair-lower-tiles", "::mlir::func::FuncOp"> {
  let summary = "Products of tile arrays to lldmir.matmul over the cores of a slice";
  let description = [{
    Each tile along k is a core's. More tiles than cores are chunks in increasing k, each added to what the output buffer
    holds: the order is part of the result's bits.
  }];
  let options = [Option<"cores", "cores", "int64_t", "0", "Tiles along k of one product (0 = the cores of a slice)">];
  let dependentDialects = ["::dmxc::lldmir::LLDMIRDialect", "::mlir::affine::AffineDialect"];
}

def OutlineSpmd : Pass<"corsair-outline-spmd", "::mlir::ModuleOp"> {
  let summary = "One loop of each product's nest to the threads of a kernel: a thread is a quad";
  let description = [{
    Every quad runs the same program with its number. Of more trips than quads a quad takes every quads-th.
  }];
  let options = [
    Option<"split", "split", "std::string", "\"auto\"", "The loop that is split: auto (by cost), rows, columns, batch">,
    Option<"quads", "quads", "int64_t", "8", "Threads at most">];
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

def BuildDlir : Pass<"corsair-build-dlir", "::mlir::ModuleOp"> {
  let summary = "The kernel over quads to a dlir.device_program: what each queue of a quad does";
  let description = [{
    A function with one product becomes a program. Constant weights go to the stash in "init", each quad's share; in "main" one
    queue moves between DDR and the chip, one fetches operands for the arrays, one computes, one takes the sums away. The cores' groups and
    what the slices share are chosen here; num_imc, ppr_mode and the split over quads stay what they are.
  }];
  let options = [Option<"resident", "resident", "bool", "false",
                        "Compute only after all operands are on the chip: reports show the arrays by themselves">];
  let dependentDialects = ["::dmxc::dlir::DLIRDialect", "::dmxc::corsair::engine::CorsairDialect",
                           "::dmxc::lldmir::LLDMIRDialect"];
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

//===--- Affine passes --------------------------------------------------------------===//

def AffinePermuteTrip : Pass<"affine-permute-trip", "::mlir::func::FuncOp"> {
  let summary = "Order the loops of perfect nests by trip count, the largest outermost, where dependences allow";
  let description = [{
    Only of loops with constant bounds whose bodies access memory by affine maps; loops of equal trips keep their order.
  }];
}

def AffinePromoteSingle : Pass<"affine-promote-single", "::mlir::func::FuncOp"> {
  let summary = "Replace innermost loops of one trip by their body";
  let description = [{
    Outer loops of one trip stay: they are what is split over quads and cores, and a later stage counts on them.
  }];
}

def AffineNormalizeFuse : Pass<"affine-normalize-fuse", "::mlir::func::FuncOp"> {
  let summary = "Normalize loops to 0, 1, 2 .. and fuse producers with consumers";
  let description = [{
    Neighbouring loops of equal bounds are fused where each trip of the consumer needs trips of the producer that no other
    one needs, and all of them are needed: nothing is computed twice.
  }];
  let options = [Option<"normalize", "normalize", "bool", "true", "Normalize before fusing">];
}

def AffineTileScalrep : Pass<"affine-tile-scalrep", "::mlir::func::FuncOp"> {
  let summary = "Store-to-load forwarding, redundant loads, dead stores of memrefs of tiles";
  let description = [{
    The rules are MLIR's, which ask the effects of every op between; ops on memrefs of tiles tell theirs.
  }];
}
