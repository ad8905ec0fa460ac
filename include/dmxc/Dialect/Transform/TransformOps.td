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
include "mlir/IR/CommonAttrConstraints.td"

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

    Keys, each of which may be left out: `kind`, "region" (the default), "op" or "product" (ops that multiply matrices, and
    convolutions, whatever they are called); `op`, an op's name; `node`, a glob of names of
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

#endif
