"""Recurrences, attention and classical models, with operands of their own."""
import numpy as np

from builder import op
from graph import Skip

BOUND = 1e-4  # of results that many steps computed, each smooth


def weights(g, *shape, top=1.0, dtype="f32"):
    return g.fresh(dtype, g.statics(*shape), lo=-top, hi=top, step=0.125, weight=True)


@op("LSTM", "GRU", "RNN", since=14, weight=0.5)
def recurrence(g, name):
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    direction = g.choose("forward", "reverse", "bidirectional")
    d, hidden = 2 if direction == "bidirectional" else 1, g.random.randint(1, 5)
    x = g.floats((3, 3), dtypes=("f32",), lo=-2, hi=2, where=lambda v: v.known and v.dims[2].static and v.dims[2].most and v.dims[0].least and v.dims[1].least,
                 dims=lambda _: [g.extent(1, 5), g.extent(1, 3), g.static(g.random.randint(1, 5))])
    if x.err > 1e-5:
        raise Skip
    width = x.dims[2].values[0]
    inputs = [x, weights(g, d, gates * hidden, width, top=0.5), weights(g, d, gates * hidden, hidden, top=0.5)]
    if g.chance(0.6):
        inputs.append(weights(g, d, 2 * gates * hidden, top=0.5))
    attributes = dict(hidden_size=hidden, direction=direction)
    if name == "GRU":
        attributes["linear_before_reset"] = g.choose(0, 1)
    names = g.node(name, inputs, 3 if name == "LSTM" else 2, **attributes)
    last = [g.static(d), x.dims[1], g.static(hidden)]
    g.value(names[0], "f32", [x.dims[0]] + last[:1] + last[1:], -1.0, 1.0, BOUND + 50 * x.err, None)
    g.value(names[1], "f32", last, -1.0, 1.0, BOUND + 50 * x.err, None)
    if name == "LSTM":
        g.value(names[2], "f32", last, -20.0, 20.0, 10 * BOUND + 50 * x.err, None)


@op("Attention", since=23, weight=0.6)
def attention(g):
    b, h, width = g.random.randint(1, 2), g.random.randint(1, 3), g.choose(1, 4, 8)
    q = g.fresh("f32", [g.static(b), g.static(h), g.extent(1, 6), g.static(width)], lo=-1.0, hi=1.0, step=0.125)
    s = g.extent(1, 6)
    if not s.least or not q.known:
        raise Skip
    k, v = (g.fresh("f32", [g.static(b), g.static(h), s, g.static(width)], lo=-1.0, hi=1.0, step=0.125) for _ in "kv")
    g.value(g.node("Attention", [q, k, v], is_causal=g.choose(0, 1) if s.same(q.dims[2]) else 0, scale=0.5), "f32", q.dims, -1.0, 1.0, BOUND, None)


@op("ai.onnx.preview.FlexAttention", since=26, weight=0.5)
def flex_attention(g):
    q, k, v = (g.fresh("f32", g.statics(1, 2, 4, 4), lo=-1.0, hi=1.0, step=0.125) for _ in "qkv")
    g.value(g.node("FlexAttention", [q, k, v], domain="ai.onnx.preview"), "f32", q.dims, -1.0, 1.0, BOUND, None)


@op("RotaryEmbedding", since=23, weight=0.5)
def rotary(g):
    b, s, h, width = g.random.randint(1, 2), g.random.randint(1, 5), g.random.randint(1, 3), g.choose(2, 4, 8)
    x = g.fresh("f32", g.statics(b, h, s, width), lo=-2.0, hi=2.0, step=0.25)
    cos, sin = weights(g, 8, width // 2), weights(g, 8, width // 2)
    at = g.fresh("i64", g.statics(b, s), lo=0, hi=7)
    g.value(g.node("RotaryEmbedding", [x, cos, sin, at], interleaved=g.choose(0, 1)), "f32", x.dims, -4.0, 4.0, BOUND, None)


@op("SwiGLU", since=28, weight=1.5)
def swiglu(g):
    a = g.floats((1, 3), dtypes=("f32",), lo=-4, hi=4)
    g.value(g.node("SwiGLU", [a, a]), "f32", a.dims, -16.0, 16.0, BOUND + 20 * a.err, None)


@op("CausalConvWithState", since=27, weight=1.0)
def causal_conv(g):
    b, c, n, k = g.random.randint(1, 2), g.random.randint(1, 3), g.random.randint(1, 6), g.random.randint(1, 4)
    x = g.fresh("f32", g.statics(b, c, n), lo=-1.0, hi=1.0, step=0.25)
    y, state = g.node("CausalConvWithState", [x, weights(g, c, 1, k)], 2)
    g.value(y, "f32", x.dims, -4.0, 4.0, BOUND, None)
    g.value(state, "f32", g.statics(b, c, k - 1), -1.0, 1.0, BOUND, None)


@op("LinearAttention", since=27, weight=1.0)
def linear_attention(g):
    b, t, h, width = g.random.randint(1, 2), g.random.randint(1, 4), 2, g.choose(1, 4)
    q, k, v = (g.fresh("f32", g.statics(b, t, h * width), lo=-0.5, hi=0.5, step=0.125) for _ in "qkv")
    y, state = g.node("LinearAttention", [q, k, v], 2, q_num_heads=h, kv_num_heads=h, update_rule="linear", scale=1.0)
    g.value(y, "f32", q.dims, -16.0, 16.0, BOUND, None)
    g.value(state, "f32", g.statics(b, h, width, width), -16.0, 16.0, BOUND, None)


@op("TfIdfVectorizer", since=9, weight=0.3)
def tf_idf(g):
    x = g.fresh("i64", g.statics(g.random.randint(1, 9)), lo=0, hi=4)
    name = g.node("TfIdfVectorizer", [x], max_gram_length=2, min_gram_length=1, max_skip_count=g.choose(0, 1), mode="TF", ngram_counts=[0, 3],
                  ngram_indexes=[0, 1, 2, 3, 4], pool_int64s=[1, 2, 3, 1, 2, 2, 3])
    g.value(name, "f32", g.statics(5), 0.0, 20.0, 0, 1.0)


# --- ai.onnx.ml ---------------------------------------------------------------------------------------------------------
ML = "ai.onnx.ml"


def rows(g, width=None, dtypes=("f32",)):
    """Rows of a few features, on a grid."""
    width = width or g.random.randint(1, 5)
    return g.fresh(g.choose(*dtypes), [g.extent(1, 6), g.static(width)], lo=-2, hi=2, step=0.25), width


def numbers(g, n):
    return [float(x) / 4 for x in g.numpy.integers(-4, 5, n)]


@op("ai.onnx.ml.ArrayFeatureExtractor", since=9, weight=0.3)
def array_feature(g):
    x, width = rows(g, dtypes=("f32", "i64"))
    at = g.fresh("i64", g.statics(g.random.randint(1, 3)), lo=0, hi=width - 1)
    g.like(g.node("ArrayFeatureExtractor", [x, at], domain=ML), x, [x.dims[0], at.dims[0]])


@op("ai.onnx.ml.Binarizer", since=9, weight=0.3)
def binarizer(g):
    x = g.floats((1, 3), dtypes=("f32",), exact=True)
    g.like(g.node("Binarizer", [x], domain=ML, threshold=0.5), x, lo=0, hi=1, step=1, hazy=True)


@op("ai.onnx.ml.FeatureVectorizer", since=9, weight=0.3)
def feature_vectorizer(g):
    x, a = rows(g)
    y = g.fresh("f32", [x.dims[0], g.static(2)], lo=-2, hi=2, step=0.25)
    g.value(g.node("FeatureVectorizer", [x, y], domain=ML, inputdimensions=[a, 2]), "f32", [x.dims[0], g.static(a + 2)], -2, 2, 0, 0.25)


@op("ai.onnx.ml.Imputer", since=9, weight=0.3)
def imputer(g):
    x, _ = rows(g)
    g.like(g.node("Imputer", [x], domain=ML, imputed_value_floats=[0.5], replaced_value_float=1.0), x)


@op("ai.onnx.ml.LabelEncoder", since=9, weight=0.3)
def label_encoder(g):
    x = g.fresh("i64", g.dims(g.choose(1, 2)), lo=0, hi=4)
    g.value(g.node("LabelEncoder", [x], domain=ML, keys_int64s=[0, 2, 3], values_floats=[0.5, 1.5, -1.0], default_float=2.0), "f32", x.dims, -1.0, 2.0, 0, 0.5)


@op("ai.onnx.ml.LinearRegressor", since=9, weight=0.3)
def linear_regressor(g):
    x, width = rows(g)
    g.value(g.node("LinearRegressor", [x], domain=ML, coefficients=numbers(g, 2 * width), intercepts=numbers(g, 2), targets=2), "f32", [x.dims[0], g.static(2)],
            -12.0, 12.0, 0, 0.0625)


def labels(g, name, n, score_top, attributes, step=None, err=0.0):
    names = "classlabels_int64s" if name.startswith("Tree") else "classlabels_ints"
    x, width = rows(g)
    label, scores = g.node(name, [x], 2, domain=ML, **{names: list(range(n))}, **attributes(width))
    g.value(label, "i64", [x.dims[0]], 0, n - 1, hazy=True, leaf=True)
    g.value(scores, "f32", [x.dims[0], g.static(n)], -score_top, score_top, err, step, hazy=True)


@op("ai.onnx.ml.LinearClassifier", since=9, weight=0.3)
def linear_classifier(g):
    labels(g, "LinearClassifier", 3, 12.0, lambda width: dict(coefficients=numbers(g, 3 * width), intercepts=[0.03125, 0.015625, 0.0078125], post_transform="NONE"),
           2.0 ** -7)


@op("ai.onnx.ml.Normalizer", since=9, weight=0.3)
def normalizer(g):
    width = g.random.randint(1, 5)
    x = g.fresh("f32", [g.extent(1, 6), g.static(width)], lo=0.25, hi=2.0, step=0.25)
    g.value(g.node("Normalizer", [x], domain=ML, norm=g.choose("MAX", "L1", "L2")), "f32", x.dims, 0.0, 1.0, 1e-6, None)


@op("ai.onnx.ml.OneHotEncoder", since=9, weight=0.3)
def one_hot_encoder(g):
    x = g.fresh("i64", g.dims(g.choose(1, 2)), lo=0, hi=4)
    g.value(g.node("OneHotEncoder", [x], domain=ML, cats_int64s=[0, 2, 3], zeros=1), "f32", list(x.dims) + g.statics(3), 0, 1, 0, 1)


@op("ai.onnx.ml.Scaler", since=9, weight=0.3)
def scaler(g):
    x, width = rows(g)
    g.value(g.node("Scaler", [x], domain=ML, offset=numbers(g, width), scale=[0.5] * width), "f32", x.dims, -1.5, 1.5, 0, 0.125)


@op("ai.onnx.ml.SVMRegressor", since=9, weight=0.3)
def svm_regressor(g):
    x, width = rows(g)
    n = g.random.randint(1, 3)
    g.value(g.node("SVMRegressor", [x], domain=ML, coefficients=numbers(g, n), kernel_params=[0.5, 0.0, 3.0], kernel_type=g.choose("LINEAR", "RBF"), n_supports=n,
                   post_transform="NONE", rho=[0.25], support_vectors=numbers(g, n * width)), "f32", [x.dims[0], g.static(1)], -40.0, 40.0, BOUND, None)


@op("ai.onnx.ml.SVMClassifier", since=9, weight=0.3)
def svm_classifier(g):
    """Votes of vectors whose decisions are not near."""
    labels(g, "SVMClassifier", 2, 40.0, lambda width: dict(coefficients=[1.0, -1.0], kernel_params=[0.5, 0.0, 3.0], kernel_type="LINEAR", post_transform="NONE",
           rho=[0.03125], support_vectors=numbers(g, 2 * width), vectors_per_class=[1, 1]), None, BOUND)


def stump(width, classes):
    """One tree of three nodes."""
    which = "class" if classes else "target"
    return {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [width - 1, 0, 0], "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_values": [0.375, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "nodes_missing_value_tracks_true": [0, 0, 0],
            f"{which}_treeids": [0, 0], f"{which}_nodeids": [1, 2], f"{which}_ids": [0, 1], f"{which}_weights": [0.5, 0.25]}


@op("ai.onnx.ml.TreeEnsembleRegressor", since=9, until=20, weight=0.4)
def tree_regressor(g):
    x, width = rows(g)
    g.value(g.node("TreeEnsembleRegressor", [x], domain=ML, n_targets=2, post_transform="NONE", aggregate_function="SUM", **stump(width, False)), "f32",
            [x.dims[0], g.static(2)], 0.0, 0.5, 0, 0.25, hazy=True)


@op("ai.onnx.ml.TreeEnsembleClassifier", since=9, until=20, weight=0.4)
def tree_classifier(g):
    labels(g, "TreeEnsembleClassifier", 3, 1.0, lambda width: dict(post_transform="NONE", **stump(width, True)), 0.25)


@op("ai.onnx.ml.TreeEnsemble", since=21, weight=0.3)
def tree_ensemble(g):
    from onnx_file import FLOAT, UINT8, tensor
    x, width = rows(g)

    def floats(*values):
        return "t", tensor("", FLOAT, [len(values)], raw=np.array(values, np.float32).tobytes())
    g.value(g.node("TreeEnsemble", [x], domain=ML, n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_featureids=[width - 1],
                   nodes_modes=("t", tensor("", UINT8, [1], raw=b"\0")), nodes_splits=floats(0.375), nodes_truenodeids=[0], nodes_trueleafs=[1],
                   nodes_falsenodeids=[1], nodes_falseleafs=[1], leaf_targetids=[0, 1], leaf_weights=floats(0.5, 0.25)), "f32", [x.dims[0], g.static(2)],
            0.0, 0.5, 0, 0.25, hazy=True)
