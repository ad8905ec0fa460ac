"""Recurrent networks, graphs of messages, and programs that keep something between runs."""

from catalog import Case, enliven, images, normal, row, tokens

ALL = "pt2-dyn dynamo18 script17"
STATES = "pt2 pt2-strict pt2-core-static pt2@2.6 pt2@2.9"


def module(name, inputs, dims=None, **arguments):
    """A module written here; inputs(number) gives the tensors of a set."""

    def make():
        import small_modules
        import torch

        torch.manual_seed(0)
        model = enliven(getattr(small_modules, name)(**arguments)).eval()
        return Case(model, [inputs(number) for number in range(2)], dims or {})

    return make


def ids(number):
    return {"ids": tokens(2 + number, 12 + 5 * number, 1000)}


def language(states):
    def inputs(number):
        given = ids(number)
        return given | {name: normal(2, 2 + number, 256, seed=at) for at, name in enumerate(states)}

    return inputs


def graph(number):
    nodes, edges = 20 + 13 * number, 70 + 41 * number
    return {"nodes": normal(nodes, 64), "edges": tokens(2, edges, nodes + 3) - 3}


def cached(number):
    import torch

    return {"x": normal(1, 6, 256, seed=number), "at": torch.arange(6) + 3 * number}


SEQUENCE = {"ids": {0: "batch", 1: "length"}}
for kind in ("LSTM", "GRU"):
    row(
        f"{kind.lower()}-tagger",
        "recurrent",
        module("Tagger", ids, SEQUENCE, kind=kind),
        ALL + " pt2 script11 script14 pt2-dyn@2.6 q-dyn pt2-core",
        True,
    )
row("rnn-tagger", "recurrent", module("Tagger", ids, SEQUENCE, kind="RNN", two_ways=False), "pt2-dyn script17")
row("lstm-language", "recurrent", module("Language", language("hc"), {**SEQUENCE, "h": {1: "batch"}, "c": {1: "batch"}}), ALL + " q-dyn")
row("gru-language", "recurrent", module("Language", language("h"), {**SEQUENCE, "h": {1: "batch"}}, kind="GRU"), ALL)
row("gru-cells", "recurrent", module("Cells", lambda number: {"x": normal(2 + number, 12, 32)}, {"x": {0: "batch"}}), ALL)
row(
    "lstm-cells",
    "recurrent",
    module("Cells", lambda number: {"x": normal(2 + number, 12, 32)}, {"x": {0: "batch"}}, kind="LSTMCell"),
    "pt2-dyn script17",
)
for how in ("sum", "mean", "max", "attention"):
    row(
        f"gnn-{how}",
        "graph",
        module("Graph", graph, {"nodes": {0: "nodes"}, "edges": {1: "edges"}}, how=how),
        ALL + (" pt2-core pt2-dyn@2.6 script18" if how == "sum" else " dynamo20"),
    )
row("state-averages", "states", module("Averages", lambda number: {"x": normal(5, 32, seed=number)}), STATES)
row("state-stream", "states", module("Stream", lambda number: {"x": normal(1, 32, 20, seed=number)}), STATES)
row("state-cache-copy", "states", module("StaticCache", cached), STATES)
row("state-cache-put", "states", module("StaticCache", cached, how="index_put"), STATES)
row("state-cache-scatter", "states", module("StaticCache", cached, how="scatter"), "pt2 pt2-core-static")
row("state-batch-norm", "states", module("Training", lambda number: {"x": images(4, 16, seed=number)}), "pt2 pt2-core-static")
row("control-cond", "states", module("Control", lambda number: {"x": normal(3, 16, seed=number) + 0.5 - number}), "pt2 pt2-strict dynamo18")
row(
    "spectrum",
    "sound",
    module("Spectrum", lambda number: {"audio": normal(2 + number, 4000 + 800 * number)}, {"audio": {0: "batch", 1: "samples"}}),
    "pt2-dyn dynamo18 script17",
)


def static_decoder(kind, config, **sizes):
    """transformers' own recipe for decoders with a static cache, which ExecuTorch takes."""

    def make():
        import huggingface
        import torch
        from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

        model = huggingface.build(kind, config, vocab_size=1000, **sizes)
        from transformers import GenerationConfig

        model.config.use_cache = True
        model.generation_config = GenerationConfig(
            use_cache=True, cache_implementation="static", max_length=32, cache_config={"batch_size": 1, "max_cache_len": 32}
        )
        try:
            module = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=32, device=torch.device("cpu"))
        except TypeError:
            module = TorchExportableModuleWithStaticCache(model)
        sets = [{"input_ids": tokens(1, 1, 1000, seed), "cache_position": torch.tensor([at])} for seed, at in ((1, 0), (2, 3))]
        return Case(module, sets, {}, lambda module, input_ids, cache_position: module(input_ids=input_ids, cache_position=cache_position))

    return make


row(
    "static-smollm-2",
    "states",
    static_decoder(
        "LlamaForCausalLM",
        "LlamaConfig",
        hidden_size=576,
        num_attention_heads=9,
        num_key_value_heads=3,
        intermediate_size=1536,
        num_hidden_layers=2,
    ),
    "pt2 pt2@2.9 pt2@2.6 pt2-core-static",
)
row(
    "static-qwen3-2",
    "states",
    static_decoder(
        "Qwen3ForCausalLM",
        "Qwen3Config",
        hidden_size=1024,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        intermediate_size=3072,
        num_hidden_layers=2,
    ),
    "pt2 pt2@2.9 pt2-core-static",
)
