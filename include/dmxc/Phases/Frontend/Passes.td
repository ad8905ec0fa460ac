//===- Passes.td - passes of the frontend phase -----------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def IntegerProducts : Pass<"dmir-integer-products", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createIntegerProductsPass(context)";
  let summary = "Products of dequantised bytes become i32 products of the bytes and one multiplication by the scales";
  let description = [{
    Where the right operand is constant and the target computes products of bytes; of a matrix product of integers also where a run
    brings both and the target wants that, with sums of its rows and columns in each run. The left operand's zero point and scale may be
    those of a run; the zero point is corrected with sums of the weights, and padding is that zero point. Weights that do not
    fit s8 without their zero points are corrected with sums of the left operand's rows or windows. Integer sums are exact. A
    bias of multiples of the scales' product is part of them.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def IntegerPools : Pass<"dmir-integer-pools", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createIntegerPoolsPass(context)";
  let summary = "A max pool between a dequantisation and the same quantisation pools the bytes";
  let description = "Only for scales and zero points of one number. The results are the same.";
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def FoldConstants : Pass<"dmir-fold-constants", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createFoldConstantsPass(context)";
  let summary = "Evaluate ops whose operands are all constant with the reference interpreter";
  let description = [{
    Results over 1 GiB stay ops. A run-time error (division by zero, bad index) is reported at the node. Where all targets read
    the right operands of products as they are stored, weights of few bits stay packed, and a table whose rows are gathered is not turned
    round beside itself.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RecognizeSoftmax : Pass<"dmir-recognize-softmax", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRecognizeSoftmaxPass(context)";
  let summary = "Softmax that is spelt out becomes the op; between two products it is along the last axis";
  let description = [{
    exp(x) over its sum along an axis is a softmax of x, with the maximum along that axis taken off x or not, divided by or multiplied by the
    inverse, where nothing else reads the powers and the target that computes the formula computes the op. The op takes the maximum off, so
    where exp(x) overflowed and the formula gave NaN it gives the weights.

    Weights between a product of two values of the run and a product that reads them become queries by keys, on the left: scores whose softmax is
    along rows are computed from their operands exchanged, transposes between the products go, and a product with weights on its right is the
    transpose of the one with its operands exchanged. Elsewhere a softmax stays along the axis that it has.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RecognizeFunctions : Pass<"dmir-recognize-functions", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRecognizeFunctionsPass(context)";
  let summary = "Formulas become the functions that they are: logarithms to base 2, normalisation, activations";
  let description = [{
    log(x) / ln 2 and log(x) * (1 / ln 2) are log2(x), which is exact for powers of two; the constant must be the one that its element type
    has for ln 2 or 1 / ln 2. (x - mean) / sqrt(variance + epsilon) and x / sqrt(mean(x^2) + epsilon), however squares, means and
    the inverse root are spelt, are normalisation, which keeps squares and a small epsilon where a format of few bits would lose them. The target
    that computes the formula must compute the function. For targets with an instruction for it, silu, gelu, softplus, hard_swish and 1 / sqrt(x)
    are recognised however they are spelt: by what the formula gives at some places; a rotary embedding is computed half by half, from half the
    angles. Where values between ops are f16, x / sqrt(sum(x^2))
    is a normalisation too, and other roots of sums of squares are computed from x divided by its largest magnitude.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def Simplify : Pass<"dmir-simplify", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createSimplifyPass(context)";
  let summary = "Canonical form: folders and patterns of DMIR, explicit broadcasts that consumers do themselves removed, equal ops merged";
  let description = [{
    Patterns are applied until none fits. Ops that have no effect and no use go; equal ops of a function become the first one.
    Nothing is computed here that the interpreter would not compute to the same bits.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def BindStates : Pass<"dmir-bind-states", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createBindStatesPass(context)";
  let summary = "Make pairs of inputs and outputs states of the session (--state)";
  let description = [{
    Both get the attribute `dmir.state`. A pair whose output is its input and one row behind it becomes a cache of that many rows, with
    a counter; rows that are not there yet are masked before each softmax over them. What else reads them is an error.

    A pair whose rows and what a run adds are open becomes a state with a length: the argument is a tensor with room for as
    many rows as its dim may be, the result that tensor with the run's rows at the place where the others end, and what read the
    model's concatenation reads a slice of it. `dmir.lengths` has the dims that the session keeps, and `dmir.length` on an
    argument its dim and axis. Names with '*' stand for all pairs that match. With --state-type the argument has elements of that
    type: rows are cast before they are put there, and the slice that is read is cast back.

    Pairs of that form that stay inputs and outputs, and that the model reads, become caches of the caller where all targets run on
    the host: the same tensors, with room for as many rows as a dim of its own says, and with the attributes `dmir.cache` and
    `dmir.room` on both.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def NarrowDims : Pass<"dmir-narrow-dims", "::mlir::ModuleOp"> {
  let constructor = "::dmxc::createNarrowDimsPass(context)";
  let summary = "Dims become what they are in each run whose inputs fit the graph: min(256, past) is past where more than 256 is an error";
  let description = [{
    What a function's ops ask of dims that are known when it is called, and the bounds of symbols, order the operands of min and max.
    The conditions that dims were narrowed by stay, with the dims that the file has, as the attribute `dmir.assumed`, which
    `dmir-collect-constraints` takes over: a run that does not meet them is refused before anything is computed.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def CollectConstraints : Pass<"dmir-collect-constraints", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createCollectConstraintsPass(context)";
  let summary = "Write down what symbolic dims must hold for the ops to be valid";
  let description = "The function's attribute `dmir.constraints`; the runtime checks it when it knows the dims.";
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def RaiseSlices : Pass<"dmir-raise-slices", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createRaiseSlicesPass(context)";
  let summary = "Rows that nobody reads are not computed: slices of them move above products, softmax, normalisation and what is between";
  let description = [{
    `matmul(a, b)[rows]` is `matmul(a[rows], b)` where nothing else reads the product: the last row of a prefill's head, and of all layers behind the
    last attention. Slices and gathers of one known row, of at most half of a value, go up through products (rows and matrices, not columns),
    softmax and normalisation along other axes, reductions, elementwise ops, transposes, reshapes and broadcasts, as long as one of the first three is
    still above; rules of masks are of the part's own index then. What nobody reads is dead whether or not masks are skipped, so that `--sparsity off` does
    the same.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def PropagateSparsity : Pass<"dmir-propagate-sparsity", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createPropagateSparsityPass(context)";
  let summary = "What tensors are outside of a rule of their index, and which of their elements outputs depend on, as dmir.sparsity";
  let description = [{
    `{known = {keep = [affine_set<(i, j) : (i - j >= 0)>], value = 0.0 : f32}}`: outside of the union of the sets the result is the value, a zero
    of either sign. Found of constants (triangles, bands, blocks along the diagonal, strides, rows and columns without numbers), masks and
    comparisons of indices, and carried through elementwise ops, softmax, matmul, reduce and ops that move elements; nothing is known of
    what others give. Zeros stay zeros in products, as in fused attention: what is infinite does not spread. `{demanded = {keep = [...]}}`: whatever
    is elsewhere, no output changes; of slices, masks and selects by a rule, carried back through the same ops. Tensors of fewer than 4096 elements are not
    looked at. Facts that the function had are derived anew. Nothing is written with `--sparsity off`.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}

def FindMasks : Pass<"dmir-find-masks", "::mlir::func::FuncOp"> {
  let constructor = "::dmxc::createFindMasksPass(context)";
  let summary = "Scores that a rule of their index replaces by one number get a dmir.mask; the tensors that said so go";
  let description = [{
    Before each softmax along the last axis. The rule is read from comparisons of indices, selects, sums with masks, constants and
    what moves them about; a part of a mask that is no rule stays as it is. A sum with -inf or with less than -1e38 counts as replaced.
    Another number that is added, below -1000, gives a mask that adds; one number in the place of scores, or the 0 of a product with a mask,
    one that replaces. Bools that are an "or" are read case by case, so that a window beside global rows and columns is three. A constant
    matrix that is no such rule is a list of tiles of 64 x 64 or more, where it leaves out a fifth of them. Rows of weights that are zeroed because they see no
    key stay as they are where the rule shows that each row sees one. The target that computes the softmax must compute dmir.mask.
    A softmax over scores that are masked by something else says by what in the attribute `dmir.mask_unknown`: by a select that does not
    look at the scores alone, by a sum with something that has a fill (-inf, a least number, one below -1000 or 0 and -100), or, in attention, with
    what the caller brings. A bias is no mask.
  }];
  let dependentDialects = ["::dmxc::dmir::DMIRDialect"];
}
