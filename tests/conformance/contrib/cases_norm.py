"""Cases of normalizations and activations."""
from build import Cases, Tensor, held, np
from definitions_norm import DEFINITIONS

CASES = Cases(DEFINITIONS)


def simplified(variant, shape, results=(1,), kind="f32", axis=None, domain="", scale_kind=None, constant=True, **more):
    width = shape[-1:] if axis is None else shape[axis:]
    keep = held if constant else (lambda t: t)
    if axis is not None:
        more["_axis"] = axis
    CASES.add("SimplifiedLayerNormalization", variant, lambda r: [r.normal(kind, *shape), keep(r.normal(scale_kind or kind, *width))],
              results, domain=domain, **more)


simplified("plain", (2, 3, 8))
simplified("contrib_domain", (2, 3, 8), domain="com.microsoft")
simplified("contrib_domain_everything", (2, 3, 4), (1, 1), axis=1, domain="com.microsoft", _epsilon=1e-3, _stash_type=1)
simplified("epsilon", (2, 8), _epsilon=0.5)
simplified("axis_last", (2, 3, 8), axis=2)
simplified("axis_first", (2, 3, 4), axis=0)
simplified("axis_negative", (2, 3, 4), axis=-2)
simplified("inverse", (2, 3, 8), (1, 1))
simplified("inverse_axis", (2, 3, 4), (1, 1), axis=1)
simplified("f16", (2, 3, 16), kind="f16")
simplified("f64", (2, 8), kind="f64")
simplified("bf16", (2, 8), kind="bf16")
simplified("f16_inverse", (2, 3, 16), (1, 1), kind="f16", _stash_type=1)
simplified("scale_at_run", (4, 40), constant=False)
simplified("wide", (5, 300))
simplified("mixed_types", (2, 8), kind="f32", scale_kind="f16", tolerance=(4e-3, 2e-3), group="extended")
CASES.add("SimplifiedLayerNormalization", "open", [lambda r, s=s: [r.normal("f32", *s, 8),
                                                                   held(Tensor("f32", np.arange(1, 9) / 8))] for s in ((1, 1), (2, 5))],
          domain="")


def skipped(op, variant, shape=(2, 3, 8), skip=None, beta=False, bias=False, results=(1,), kind="f32", constant=True, **more):
    keep = held if constant else (lambda t: t)

    def make(r):
        width = shape[-1]
        vector = lambda there: keep(r.normal(kind, width)) if there else None
        last = [vector(beta), vector(bias)] if op == "SkipLayerNormalization" else [vector(bias)]
        return [r.normal(kind, *shape), r.normal(kind, *(skip or shape)), keep(r.normal(kind, width)), *last]
    CASES.add(op, variant, make, results, **more)


for op in ("SkipSimplifiedLayerNormalization", "SkipLayerNormalization"):
    skipped(op, "plain")
    skipped(op, "epsilon", _epsilon=0.25)
    skipped(op, "rank2", (5, 16))
    skipped(op, "bias", bias=True)
    skipped(op, "sum", results=(1, 0, 0, 1))
    skipped(op, "sum_bias", results=(1, 0, 0, 1), bias=True)
    skipped(op, "skip_broadcast", skip=(1, 3, 8))
    skipped(op, "skip_rank2", skip=(3, 8), bias=True, results=(1, 0, 0, 1))
    for kind in ("f16", "bf16"):
        skipped(op, kind, kind=kind)
        skipped(op, kind + "_sum", kind=kind, bias=True, results=(1, 0, 0, 1))
    skipped(op, "vectors_at_run", constant=False, bias=True)
    skipped(op, "inverse", results=(1, 0, 1), group="extended")
    skipped(op, "wide", (3, 4, 160), bias=True, results=(1, 0, 0, 1))
    beta = [held(Tensor("f32", np.arange(8) / 16))] if op == "SkipLayerNormalization" else []
    CASES.add(op, "open", [lambda r, s=s, more=beta: [r.normal("f32", *s, 8), r.normal("f32", *s, 8),
                                                      held(Tensor("f32", np.arange(1, 9) / 8)), *more] for s in (
        (1, 1), (2, 5))], (1, 0, 0, 1), _epsilon=1e-5)
skipped("SkipLayerNormalization", "beta", beta=True)
skipped("SkipLayerNormalization", "beta_bias", beta=True, bias=True, results=(1, 0, 0, 1))
skipped("SkipLayerNormalization", "mean_inverse", beta=True, results=(1, 1, 1, 1), group="extended")
skipped("SkipLayerNormalization", "mean", results=(1, 1), group="extended")
skipped("SkipLayerNormalization", "f16_beta", kind="f16", beta=True, _epsilon=1e-5)
skipped("SkipSimplifiedLayerNormalization", "mean_of_training", results=(1, 0, 1, 1), bias=True, group="extended")
