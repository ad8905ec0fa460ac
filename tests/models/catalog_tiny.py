"""Architectures made so small that their files lie in the repository (fixtures/): every exporter's forms without PyPI."""

from catalog import Case, enliven, normal, row, tokens
from catalog_classic import LOGISTIC, SCALE, learnt, pipeline
from catalog_seq2seq import pair
from catalog_small import module
from huggingface import decoder_step, text

ONNX = "dynamo18 dynamo23 script11 script17"
ALL = "pt2-dyn pt2-core " + ONNX
SIZES = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": 1, "max_position_embeddings": 24}
# Heads of 16, the least that ONNX Runtime's attention takes.
HEADS = {**SIZES, "hidden_size": 32, "num_key_value_heads": 1}


def tiny(kind, config, exports, name, **sizes):
    row(f"tiny-{name}", "tiny", text(kind, config, vocabulary=40, lengths=((2, 5), (3, 7)), **sizes), exports)


def network(kind, *shapes, dims=None, **arguments):
    """A network of tiny_modules for an image or a row of values."""

    def make():
        import tiny_modules
        import torch

        torch.manual_seed(0)
        model = enliven(getattr(tiny_modules, kind)(**arguments)).eval()
        return Case(model, [{"x": normal(*shape, seed=at)} for at, shape in enumerate(shapes)], {"x": dims or {0: "batch"}})

    return make


def few(number):
    return {"ids": tokens(2 + number, 4 + number, 20)}


def small_graph(number):
    nodes, edges = 6 + 3 * number, 11 + 5 * number
    return {"nodes": normal(nodes, 8), "edges": tokens(2, edges, nodes + 3, seed=number) - 3}


def small_cached(number):
    import torch

    return {"x": normal(1, 3, 16, seed=number), "at": torch.arange(3) + 2 * number}


row("tiny-mlp", "tiny", network("Mlp", (2, 8), (3, 8)), ALL + " pt2 pt2-strict pt2-dyn@2.6 pt2-dyn@2.9 pt2-named pt2-bf16 q-dyn q-qdq q-qop fp16")
row("tiny-cnn", "tiny", network("Cnn", (2, 3, 12, 12), (3, 3, 12, 12)), ALL + " pt2-dyn@2.6 dynamo20 script13 q-qdq q-qop ortopt-ext fp16")
row(
    "tiny-attention",
    "tiny",
    network("Block", (2, 5, 16), (3, 8, 16), dims={0: "batch", 1: "length"}),
    ALL + " pt2-strict-dyn pt2-bf16 ortopt-ext q4-16-acc4 q8-32 q4-qdq q4-32",
)
row("tiny-upsample", "tiny", network("Upsample", (2, 3, 6, 6), (3, 3, 8, 10), dims={0: "batch", 2: "height", 3: "width"}), ALL)
row(
    "tiny-lstm",
    "tiny",
    module("Tagger", few, {"ids": {0: "batch", 1: "length"}}, vocabulary=20, width=8, hidden=8, layers=1),
    "pt2-dyn script11 script17",
)
row(
    "tiny-gru",
    "tiny",
    module("Tagger", few, {"ids": {0: "batch", 1: "length"}}, kind="GRU", vocabulary=20, width=8, hidden=8, layers=1),
    "pt2 pt2-core script14",
)
row(
    "tiny-graph",
    "tiny",
    module("Graph", small_graph, {"nodes": {0: "nodes"}, "edges": {1: "edges"}}, how="sum", width=8, layers=1),
    "pt2-dyn dynamo18 script17",
)
row("tiny-averages", "tiny", module("Averages", lambda number: {"x": normal(3, 8, seed=number)}, width=8), "pt2 pt2@2.6 pt2-core-static")
row("tiny-cache", "tiny", module("StaticCache", small_cached, width=16, heads=2, room=8), "pt2 pt2@2.9 pt2-core-static")
row("tiny-cond", "tiny", module("Control", lambda number: {"x": normal(3, 16, seed=number) + 0.5 - number}), "pt2 dynamo18")
tiny(
    "BertModel",
    "BertConfig",
    "pt2-dyn dynamo18 script14 ortopt ortopt-fp16 q-dyn optimum-features",
    "bert",
    names=("last_hidden_state",),
    **SIZES,
)
tiny(
    "GPT2LMHeadModel",
    "GPT2Config",
    "pt2-dyn dynamo18 script17 ortopt-gpt2 optimum-past",
    "gpt2",
    n_embd=16,
    n_head=2,
    n_layer=1,
    n_positions=24,
)
tiny(
    "LlamaForCausalLM",
    "LlamaConfig",
    "pt2-dyn pt2-dyn@2.6 dynamo18 script17 q4-32 genai-fp32 genai-int4 genai-fp16 optimum-past",
    "llama",
    **HEADS,
)
tiny("Qwen3ForCausalLM", "Qwen3Config", "pt2-dyn dynamo18 genai-int4", "qwen3", head_dim=16, **HEADS)
tiny("Gemma2ForCausalLM", "Gemma2Config", "pt2-dyn genai-int4", "gemma2", head_dim=16, sliding_window=4, **HEADS)
tiny("MixtralForCausalLM", "MixtralConfig", "pt2-dyn dynamo18", "mixtral", num_local_experts=4, num_experts_per_tok=2, **HEADS)
row(
    "tiny-llama-step",
    "tiny",
    decoder_step("LlamaForCausalLM", "LlamaConfig", 1, 1, 16, vocabulary=20, **HEADS),
    "pt2-dyn dynamo18 script17",
)
row(
    "tiny-t5",
    "tiny",
    pair(
        "T5ForConditionalGeneration",
        "T5Config",
        vocabulary=40,
        d_model=16,
        d_kv=8,
        num_heads=2,
        d_ff=24,
        num_layers=1,
        num_decoder_layers=1,
        decoder_start_token_id=0,
    ),
    "pt2-dyn dynamo18 script17",
)
row("tiny-logistic", "tiny", pipeline(SCALE, LOGISTIC), "skl2onnx skl2onnx-zipmap")
row("tiny-svc", "tiny", learnt("sklearn.svm.SVC", probability=True), "skl2onnx")
row("tiny-forest", "tiny", learnt("sklearn.ensemble.RandomForestClassifier", n_estimators=4, max_depth=3), "skl2onnx")
row("tiny-lightgbm", "tiny", learnt("lightgbm.LGBMClassifier", n_estimators=4, max_depth=3, verbose=-1), "onnxmltools-lightgbm")
row("tiny-xgboost", "tiny", learnt("xgboost.XGBRegressor", True, n_estimators=4, max_depth=3), "onnxmltools-xgboost")
