//===- TransformOps.td - dmxc's ops of schedules -----------------------------===//
//
// An extension of MLIR's transform dialect: what a script says to find regions of a model and to decide how they are
// computed. Handles and failures are upstream's; a failure that another choice may avoid is silenceable.
//
//===----------------------------------------------------------------------===//
#ifndef DMXC_TRANSFORM_OPS
#define DMXC_TRANSFORM_OPS

include "mlir/Dialect/Transform/IR/TransformDialect.td"
include "mlir/Dialect/Transform/Interfaces/TransformInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/SymbolInterfaces.td"

class DmxOp<string name> : Op<Transform_Dialect, "dmx." # name,
    [DeclareOpInterfaceMethods<TransformOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def DMX_MatchOp : DmxOp<"match"> {
  let summary = "the regions or ops of a model that have properties, in program order";
  let description = [{
    ```mlir
    %late = transform.dmx.match {op = "dmir.conv", node = "layer4*", where = {strides = [2, 2]}} in %m expect 3
          : !transform.any_op -> !transform.any_op
    ```

    Keys, each of which may be left out: `kind`, "region" (the default), "op", "product" (ops that multiply matrices, and
    convolutions, whatever they are called), "loop", or "nest" (loops that are in no other loop but those that a target deals
    out, which it marks with an attribute of its own); `op`, an op's name; `node`, a glob of names of
    nodes of the model; `where`, attributes and their values; `device` and `algorithm` of the region (`algorithm` a glob); `nth`, one
    of them alone, counted from 0. A region has `op`, `node` and `where` if one op in it has all of them; `node` alone may be the
    region's own name, which `--explain-decisions` shows.

    `expect N` is how many there must be; without it at least one; `expect any` allows none. Another number is a
    silenceable failure that names what was found, and what lacked one property alone.
  }];
  let arguments = (ins TransformHandleTypeInterface:$root, DictionaryAttr:$filter, OptionalAttr<I64Attr>:$expected,
                       UnitAttr:$mayBeNone);
  let results = (outs TransformHandleTypeInterface:$matched);
}

def DMX_DecideOp : DmxOp<"decide"> {
  let summary = "sets decisions of regions; the target derives what follows";
  let description = [{
    ```mlir
    transform.dmx.decide %late {algorithm = "conv-direct"} with grain = %g : !transform.any_op, !transform.param<i64>
    ```

    `dmxc --explain-decisions` lists the decisions of each region with their values. Of a product in a region it decides what is
    the product's own where the region has several, and else the region's. A decision that was made before is
    replaced, others stay. The handle stays valid. A value that the target does not have for one of the regions is a silenceable
    failure that names region and values.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, Variadic<TransformParamTypeInterface>:$params,
                       DictionaryAttr:$decisions, StrArrayAttr:$knobs);
}

def DMX_ParamOp : DmxOp<"param"> {
  let summary = "a value that is left open: a default, `--set`, or a tuner chooses it";
  let description = [{
    ```mlir
    %y = transform.dmx.param "tile_y" one_of [1, 2, 4, 8] default 4 -> !transform.param<i64>
    %x = transform.dmx.param "tile_x" range 8 to 64 step 8 default 16 -> !transform.param<i64>
    %i = transform.dmx.param "inner_x" divides %x default 4 -> !transform.param<i64>
    ```

    Bounds and what is divided may be numbers or parameters that were read before (of the result's type, or of types behind a colon). Without `default` it is the first
    value. A default, or a value of `--set`, that is none of the values is a silenceable failure.
  }];
  let arguments = (ins Variadic<TransformParamTypeInterface>:$operands_, StrAttr:$name, StrAttr:$form,
                       OptionalAttr<ArrayAttr>:$values, DenseI64ArrayAttr:$bounds, OptionalAttr<AnyAttr>:$preferred);
  let results = (outs TransformParamTypeInterface:$value);
  let extraClassDeclaration = [{
    /// In `bounds`: the next of the operands.
    static constexpr int64_t kOperand = INT64_MIN;
  }];
}

def DMX_DimOp : DmxOp<"dim"> {
  let summary = "an extent of a tensor of the model";
  let description = [{
    ```mlir
    %n = transform.dmx.dim %matmul[1] : !transform.any_op -> !transform.param<i64>
    %k = transform.dmx.dim %matmul operand 0 [1] : !transform.any_op -> !transform.param<i64>
    ```

    Of the first result, or of an operand; the handle has one op, or region. A negative number counts from the last dim. An extent
    that only a run brings is a silenceable failure.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, I64Attr:$dim, OptionalAttr<I64Attr>:$ofOperand);
  let results = (outs TransformParamTypeInterface:$extent);
}

def DMX_IncludeOp : Op<Transform_Dialect, "dmx.include", [DeclareOpInterfaceMethods<TransformOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  let summary = "another file's sequences, and before the script's own what it runs itself";
  let description = [{
    ```mlir
    transform.dmx.include "mine/grains.mlir"
    ```

    Stands beside sequences. The file is looked for beside the one that includes it, in the folders of `--schedule-path` in their
    order, and among the schedules that targets ship. Sequences of it can be called like the file's own; those that run behind a
    stop (`@__transform_main`, `dmx.at`) run before those of the file that includes it, which has the last word. A file that is
    included twice runs once; one that includes itself, over others too, is refused.
  }];
  let arguments = (ins StrAttr:$file);
  let assemblyFormat = "$file attr-dict";
}

def DMX_GuardOp : Op<Transform_Dialect, "dmx.guard",
    [DeclareOpInterfaceMethods<TransformOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  let summary = "what dmxc puts before ops of MLIR's that say nothing of what they cannot do";
  let description = [{
    Before `transform.annotate`, with its name and value: a silenceable failure where ops would drop the value or be invalid with
    it, where the attribute is one of dmxc's own, and where it is a decision, which `transform.dmx.decide` makes. Before
    `transform.alternatives`: one where the handle has the model itself, which cannot be exchanged.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, Optional<TransformParamTypeInterface>:$param,
                       OptionalAttr<StrAttr>:$name);
  let assemblyFormat = "$target ($name^)? (`=` $param^)? attr-dict `:` type($target) (`,` type($param)^)?";
}

def DMX_FoundOp : Op<Transform_Dialect, "dmx.found",
    [DeclareOpInterfaceMethods<TransformOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  let summary = "what dmxc puts behind `transform.structured.match`, which says nothing where it finds nothing";
  let description = [{
    A silenceable failure that names the ops that there are. A match that may find nothing has the attribute `dmx.may_be_none`, or is
    `transform.dmx.match` with `expect any`.
  }];
  let arguments = (ins TransformHandleTypeInterface:$found, TransformHandleTypeInterface:$root,
                       OptionalAttr<StrArrayAttr>:$ops);
  let assemblyFormat = "$found `in` $root ($ops^)? attr-dict `:` type($found) `,` type($root)";
}

//===----------------------------------------------------------------------===//
// Loops: what schedules do at the stops where kernels are loops
//===----------------------------------------------------------------------===//

def DMX_FormType : TypeDef<Transform_Dialect, "DmxForm", [DeclareTypeInterfaceMethods<TransformHandleTypeInterface>]> {
  let summary = "a handle to what has a form";
  let description = [{
    `!transform.dmx.form<"nest.perfect">`: each op that the handle is given is checked. `dmxc --print-forms` lists the forms.
  }];
  let mnemonic = "dmx.form";
  let parameters = (ins StringRefParameter<"A form, or several with '+' between them">:$form);
  let assemblyFormat = "`<` $form `>`";
  let genVerifyDecl = 1;
}

/// An op on loops; `needs` and `keeps` are forms of what it is given and of what it returns.
class DmxLoopOp<string name, string needsForm, string keepsForm> : Op<Transform_Dialect, "dmx." # name,
    [DeclareOpInterfaceMethods<TransformOpInterface>, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  string needs = needsForm;
  string keeps = keepsForm;
  code formDeclarations = [{
    static constexpr llvm::StringLiteral kNeeds = "}] # needsForm # [{", kKeeps = "}] # keepsForm # [{";
  }];
  let extraClassDeclaration = formDeclarations;
}

def DMX_LoopOp : DmxLoopOp<"loop", "", ""> {
  let summary = "a loop of a nest, counted from the outermost, which is 0";
  let description = [{
    ```mlir
    %inner = transform.dmx.loop %nest[1] : !transform.any_op -> !transform.any_op
    ```
  }];
  let arguments = (ins TransformHandleTypeInterface:$nest, I64Attr:$depth);
  let results = (outs TransformHandleTypeInterface:$loop);
  let assemblyFormat = "$nest `[` $depth `]` attr-dict `:` type($nest) `->` type($loop)";
}

def DMX_InterchangeOp : DmxLoopOp<"interchange", "nest.perfect", "nest.perfect"> {
  let summary = "loops of a nest in another order";
  let description = [{
    ```mlir
    %outer = transform.dmx.interchange %nest [1, 0] : !transform.any_op -> !transform.any_op
    ```

    The loops from outside to inside, by what they were counted from the outermost. Needs `nest.perfect` of as many loops as are
    named, and keeps it. Where a value would be stored or read in another order it is refused: results are the same, to the bit.
  }];
  let arguments = (ins TransformHandleTypeInterface:$nest, DenseI64ArrayAttr:$order);
  let results = (outs TransformHandleTypeInterface:$outer);
  let assemblyFormat = "$nest $order attr-dict `:` type($nest) `->` type($outer)";
}

def DMX_TileOp : DmxLoopOp<"tile", "nest.perfect", "nest.perfect"> {
  let summary = "loops over tiles of the trips of a nest, and loops over the trips of a tile";
  let description = [{
    ```mlir
    %tiles, %points = transform.dmx.tile %nest [2, %y] : !transform.any_op, !transform.param<i64> -> !transform.any_op, !transform.any_op
    ```

    How many trips of each loop a tile has, from the outermost loop on; 0: the loop is not cut, and stays where the loops over
    tiles are. Of one loop this is strip-mining, which is always allowed; of several, trips come in another order, which is refused
    where it would change results. Returned are the outermost loops of all and of a tile. Needs `nest.perfect` of as many loops
    as are named, and keeps it.
  }];
  let arguments = (ins TransformHandleTypeInterface:$nest, Variadic<TransformParamTypeInterface>:$dynamicSizes,
                       DenseI64ArrayAttr:$sizes);
  let results = (outs TransformHandleTypeInterface:$tiles, TransformHandleTypeInterface:$points);
  let assemblyFormat = [{
    $nest custom<DynamicIndexList>($dynamicSizes, $sizes) attr-dict `:` type(operands) `->` type($tiles) `,` type($points)
  }];
  let hasVerifier = 1;
}

def DMX_UnrollOp : DmxLoopOp<"unroll", "", ""> {
  let summary = "a loop with several trips in one, or none";
  let description = [{
    ```mlir
    %left = transform.dmx.unroll %loop by 2 : !transform.any_op -> !transform.any_op
    %none = transform.dmx.unroll %loop full : !transform.any_op -> !transform.any_op
    ```

    Trips that are left over have a loop of their own behind. Returned is the loop, if it is still one; `full` leaves none.
  }];
  let arguments = (ins TransformHandleTypeInterface:$loop, Optional<TransformParamTypeInterface>:$dynamicFactor,
                       OptionalAttr<I64Attr>:$factor, UnitAttr:$full);
  let results = (outs TransformHandleTypeInterface:$left);
  let assemblyFormat = [{
    $loop (`full` $full^) : (`by` custom<Count>($dynamicFactor, $factor))? attr-dict `:` type(operands) `->` type($left)
  }];
  let hasVerifier = 1;
}

def DMX_FuseIntoOp : DmxLoopOp<"fuse_into", "nest.normalized", ""> {
  let summary = "the trips of one loop into those of another";
  let description = [{
    ```mlir
    %both = transform.dmx.fuse_into %first into %second : !transform.any_op, !transform.any_op -> !transform.any_op
    %both = transform.dmx.fuse_into %first into %second depth 2 : !transform.any_op, !transform.any_op -> !transform.any_op
    ```

    Loops of the same block with the same trips; `depth`: as many loops of two perfect nests, one without it. What stands between
    them must not rest on the first. Refused where a trip would need what a later trip makes. Needs `nest.normalized` of both.
  }];
  let arguments = (ins TransformHandleTypeInterface:$first, TransformHandleTypeInterface:$second,
                       OptionalAttr<I64Attr>:$depth);
  let results = (outs TransformHandleTypeInterface:$fused);
  let assemblyFormat = "$first `into` $second (`depth` $depth^)? attr-dict `:` type(operands) `->` type($fused)";
}

def DMX_PadOp : DmxLoopOp<"pad", "nest.normalized", ""> {
  let summary = "a loop whose number of trips is a multiple";
  let description = [{
    ```mlir
    %whole = transform.dmx.pad %loop to_multiple_of 4 : !transform.any_op -> !transform.any_op
    ```

    Trips that are added do nothing: the body stands in an `affine.if`. A loop that has such a number of trips stays as it is.
    Needs `nest.normalized` and a constant number of trips.
  }];
  let arguments = (ins TransformHandleTypeInterface:$loop, Optional<TransformParamTypeInterface>:$dynamicMultiple,
                       OptionalAttr<I64Attr>:$multiple);
  let results = (outs TransformHandleTypeInterface:$padded);
  let assemblyFormat = [{
    $loop `to_multiple_of` custom<Count>($dynamicMultiple, $multiple) attr-dict `:` type(operands) `->` type($padded)
  }];
  let hasVerifier = 1;
}

def DMX_NormalizeOp : DmxLoopOp<"normalize", "", ""> {
  let summary = "brings a form about, where it is not there";
  let description = [{
    ```mlir
    transform.dmx.normalize %nest to "nest.perfect+nest.normalized" : !transform.any_op
    ```

    Of each nest in what the handle has. Where the form is there nothing is touched; where it cannot be reached, a silenceable failure names
    the op in the way. The handle stays valid. Of a form of the script's own (`define_form`) its sequence runs.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$form);
  let assemblyFormat = "$target `to` $form attr-dict `:` type($target)";
  let hasVerifier = 1;
}

def DMX_CheckOp : DmxLoopOp<"check", "", ""> {
  let summary = "fails where a form is not there";
  let description = [{
    ```mlir
    transform.dmx.check %nest is "nest.perfect" : !transform.any_op
    transform.dmx.check %nest is "nest.perfect" ensured : !transform.any_op
    ```

    A silenceable failure that names the op in the way. `ensured`: what came before promised the form, so that it is at fault, and the
    failure is a definite one, `[schedule-postcondition]`.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$form, UnitAttr:$ensured);
  let assemblyFormat = "$target `is` $form (`ensured` $ensured^)? attr-dict `:` type($target)";
  let hasVerifier = 1;
}

def DMX_DefineFormOp : Op<Transform_Dialect, "dmx.define_form", [Symbol, DeclareOpInterfaceMethods<TransformOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let cppNamespace = "::dmxc::transform";
  let summary = "a form of the script's own: two sequences";
  let description = [{
    ```mlir
    transform.dmx.define_form @even extends "nest.perfect" check @has_even_trips reach @make_even
    ```

    Beside the sequences, whose one argument, an op that is to have the form, they only read or do not consume. `check` fails where the form is not
    there, `reach` brings it about, and is followed by another check: where that fails, `reach` is at fault, `[schedule-postcondition]`.
    What it extends is brought about before. Its name is used like that of any form: `normalize %n to "even"`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$base, FlatSymbolRefAttr:$checker, FlatSymbolRefAttr:$fixer);
  let assemblyFormat = "$sym_name (`extends` $base^)? `check` $checker `reach` $fixer attr-dict";
  let hasVerifier = 1;
}

def DMX_RunPassOp : DmxLoopOp<"run_pass", "", ""> {
  let summary = "a pass, by its name";
  let description = [{
    ```mlir
    %n = transform.dmx.run_pass "dmir-simplify" on %m : !transform.any_op -> !transform.any_op
    %g = transform.dmx.run_pass "affine-normalize-fuse" {normalize = false} on %f : !transform.any_op -> !transform.any_op
    ```

    dmxc's passes and MLIR's that dmx-opt has; those of a phase see the targets of the compile. The handle is consumed: a pass may change all that is in what it is given.
    Returned are the ops that it ran on.
  }];
  let arguments = (ins TransformHandleTypeInterface:$target, StrAttr:$pass, OptionalAttr<DictionaryAttr>:$options);
  let results = (outs TransformHandleTypeInterface:$result);
  let assemblyFormat = "$pass ($options^)? `on` $target attr-dict `:` type($target) `->` type($result)";
}

#endif
