//===- Passes.td - passes of the partition phase ----------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def PlaceKernels : Pass<"dmir-place-kernels", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createPlaceKernelsPass(context)";
  let summary = "Put kernels that users wrote in the place of ops that they declare to compute";
  let description = [{
    An op that `match.dmir` of a kernel file names, with the attributes that it names, becomes `dmir.extern` where its operands have the declared
    types and dims and its results are the kernel's. Other such ops stay as they are.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def CheckSupport : Pass<"dmir-check-support", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createCheckSupportPass(context)";
  let summary = "Report every op that no target of this compile computes, with each target's reason";
  let description = [{
    All such ops of the function are reported in one run, each at its node. Nothing is changed.
  }];
}

def FoldScaling : Pass<"dmir-fold-scaling", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createFoldScalingPass(context)";
  let summary = "Fold per-channel scaling after a convolution or matmul (batch norm) into its weights";
  let description = [{
    `conv(x, W) * s` with a constant `s` per output channel becomes `conv(x, W * s)`, and `(y + b) * s` with constants
    becomes `y * s + b * s`. The constant arithmetic stays for dmir-fold-constants. Floats only: roundings move.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def GroupHeads : Pass<"dmir-group-heads", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createGroupHeadsPass(context)";
  let summary = "Multiply the heads of a group by the keys and values that they share, instead of by repeats of them";
  let description = [{
    `x . repeat(y)`, where each matrix of y's batch is repeated for neighbours, becomes a product over one batch axis more,
    `[.., heads, group, m, k] . [.., heads, 1, k, n]`, for targets that have such products. Transposes and casts on the way are
    done to y as it is; a number that the repeat was multiplied with scales x, as does one that a
    cache is multiplied with, an input with rows behind it.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def JoinProducts : Pass<"dmir-join-products", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createJoinProductsPass(context)";
  let summary = "Make one product of projections of one operand into heads";
  let description = [{
    For targets whose products of few rows wait for their constant matrices (`waitsForMatrix`). Products of one operand whose results are split into
    heads of one size become one, of whose heads each is a slice.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RepeatNorms : Pass<"dmir-repeat-norms", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRepeatNormsPass(context)";
  let summary = "Compute a norm again for each of the products of few rows that read it";
  let description = [{
    A norm, and what is elementwise behind it, that several products alone read which wait for their constant matrices (`waitsForMatrix`) is cloned
    for each, whose kernel may compute it then.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def OwnWeights : Pass<"dmir-own-weights", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createOwnWeightsPass(context)";
  let summary = "Give each product that reads weights of few bits a dmir.dequantize of its own";
  let description = [{
    Where the product's target reads the bits (`fusesProducer` of the `dmir.dequantize` of constants and of the views behind it). Simplifying makes equal ones
    one, and a kernel would write what several products read to memory in each run. The constants stay one.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RoundProducts : Pass<"dmir-round-products", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRoundProductsPass(context)";
  let summary = "Round the operands of f32 products to the shorter floats that a mode of --numerics multiplies";
  let description = [{
    The op's target gives the type. Operands are cast where their values are made, below transposes and reshapes, so that
    the producer writes the shorter numbers; constants are left to dmir-fold-constants; the result is the f32 sum.
    What a kernel computes on its way to its last product (the weights of an attention) is rounded there where the target
    says so (`roundsComputed`), else it is multiplied as it is, in f32, by the rounded other operand, which is cast back. Where such a kernel is not alone in reading a value, or that is an
    argument or joined from parts (a cache), the cast stands at the kernel's operand, to be computed where it is read. Functions
    with products of integers, which round to these what such a kernel makes, have these kernels in f32. A cast of weights is marked, so that the
    constant that it becomes says its error (`dmir.rounded`). Products that `--keep-precision` names are marked and stay, with all that their kernel multiplies.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RoundWeights : Pass<"dmir-round-weights", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRoundWeightsPass(context)";
  let summary = "Keep constant weights as integers of few bits with a scale a block, as a mode of --numerics asks";
  let description = [{
    The op's target says how (`roundsWeights`). A constant that is the right operand of a product becomes `dmir.dequantize` of constants, with blocks along
    k, and the product is computed in f32; of a table whose rows are gathered the rows of these constants are, and become floats then. What several ops
    read is rounded once. `dmir.rounded` has the error. Weights of nodes that `--keep-precision` names, with an error above `--max-error` or a number that
    is not finite stay; where the latter leaves none that is an error.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RoundRows : Pass<"dmir-round-rows", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRoundRowsPass(context)";
  let summary = "Round the rows that products by integers in blocks read to such ones, as a mode of --numerics asks";
  let description = [{
    The op's target says how long blocks are (`roundsRows`). Each product gets a `dmir.round_blocks` of its own, which its kernel computes, so this comes
    behind what makes equal ops one.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def AssignLayouts : Pass<"dmir-assign-layouts", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createAssignLayoutsPass(context)";
  let summary = "Give values the layouts the target prefers and insert dmir.relayout where neighbours disagree";
  let description = [{
    One forward walk. The target of an op says in which layout its result is best, seeing those of its operands, and in
    which it can read each operand. Arguments and results of functions are row-major.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def CutConcats : Pass<"dmir-cut-concats", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createCutConcatsPass(context)";
  let summary = "Join concatenations of more parts than a kernel of their target is given from neighbours' concatenations";
  let description = [{
    Of a target that computes whole graphs nothing is cut: it has its own way with operands.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def FormRegions : Pass<"dmir-form-regions", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createFormRegionsPass(context)";
  let summary = "Group ops into dmir.region: a root, the producers it can pull in, the consumers it can write through";
  let description = [{
    What may be fused is the target's answer; the pass keeps the graph sound: a value that something outside reads is a
    result of its region, and no region needs more arguments than a kernel of its target is given. Targets that compute whole graphs get one region for all that no other target's op separates.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def KeepForms : Pass<"dmir-keep-forms", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createKeepFormsPass(context)";
  let summary = "Leave what two regions of a target hand over in the form that the target has it in";
  let description = [{
    Of a region's one result that another region of the same target alone reads that target is asked for a form (`preferredResultLayout` and `acceptsLayout`
    of the regions), which becomes the encoding of its type: neither of the two brings it into the host's order. Not of targets that run on the host.
  }];
}

def ChooseStrategies : Pass<"dmir-choose-strategies", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createChooseStrategiesPass(context)";
  let summary = "Ask each region's target how it will be computed and record it as the region's strategy";
  let description = [{
    A strategy that a region has already, from text or a script, keeps the choices it makes. What follows from them is
    derived again: keys that are missing are added, those that differ are errors.
  }];
}
