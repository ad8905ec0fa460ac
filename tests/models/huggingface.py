"""Models of transformers from configurations, and the exporters that take such a model whole: optimum and onnxruntime-genai's builder."""

import functools
import re
import shutil
import sys

import catalog


def build(kind, config, attention="sdpa", seed=0, **sizes):
    """A model of transformers by its class's and its configuration's name."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = getattr(transformers, kind)
    try:
        model = model._from_config(getattr(transformers, config)(**sizes), attn_implementation=attention)
    except (ValueError, ImportError):  # classes that have one way alone
        options = getattr(transformers, config)(**sizes)
        options._attn_implementation = "eager"
        model = model(options)
    if attention == "sdpa":
        without_vmap(model)
    model = catalog.enliven(model).eval()
    model.config.use_cache = False
    return model


def without_vmap(model):
    """transformers' own recipe for exports: masks by broadcasting, since releases of torch do not trace vmap."""
    try:
        from transformers.integrations.executorch import sdpa_mask_without_vmap
        from transformers.integrations.sdpa_attention import sdpa_attention_forward
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
        from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
    except ImportError:
        return
    code = sys.modules[type(model).__module__]
    if hasattr(code, "create_causal_mask") or hasattr(code, "create_bidirectional_mask"):
        ALL_MASK_ATTENTION_FUNCTIONS.register("sdpa_without_vmap", sdpa_mask_without_vmap)
        ALL_ATTENTION_FUNCTIONS.register("sdpa_without_vmap", sdpa_attention_forward)
        set_attention(model, "sdpa", "sdpa_without_vmap")


def set_attention(model, old, new):
    for module in model.modules():
        if getattr(getattr(module, "config", None), "_attn_implementation", "") == old:
            module.config._attn_implementation = new


def outputs(*names, **more):
    """A call that gives these outputs by name; all tensors without a name."""

    def call(model, **inputs):
        result = model(**inputs, **more)
        return [result[name] for name in names] if names else result

    return call


def text(
    kind,
    config,
    *,
    attention="sdpa",
    vocabulary=1000,
    lengths=((2, 16), (3, 21)),
    masked=True,
    open_batch=True,
    names=("logits",),
    ids="input_ids",
    more=None,
    **sizes,
):
    """A build of a model that reads tokens: ids and, mostly, a mask, at two sizes."""

    def make():
        model = build(kind, config, attention, vocab_size=vocabulary, **sizes)
        sets = []
        for batch, length in lengths:
            inputs = {ids: catalog.tokens(batch, length, vocabulary, seed=batch)}
            if masked:
                inputs["attention_mask"] = catalog.mask(batch, length)
            sets.append(inputs)
        axes = {0: "batch", 1: "sequence"} if open_batch else {1: "sequence"}
        return catalog.Case(model, sets, {name: dict(axes) for name in sets[0]}, outputs(*names, **(more or {})), config=model.config)

    return make


def cache_of(model, tensors):
    """transformers' cache with these keys and values, layer by layer."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for layer in range(len(tensors) // 2):
        cache.update(tensors[2 * layer], tensors[2 * layer + 1], layer)
    return cache


def tensors_of(cache):
    if hasattr(cache, "layers"):
        return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
    return [tensor for pair in zip(cache.key_cache, cache.value_cache) for tensor in pair]


def step_call(model, input_ids, attention_mask, **past):
    """A decoder's step with the past given and given back."""
    result = model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache_of(model, list(past.values())), use_cache=True)
    return [result.logits, *tensors_of(result.past_key_values)]


def decoder_step(kind, config, layers, heads, head, *, attention="sdpa", vocabulary=1000, sizes_of_sets=((2, 2, 9), (3, 3, 14)), **sizes):
    """A build of a decoder that gets and gives its cache: batch, new tokens, tokens so far."""

    def make():
        model = build(kind, config, attention, vocab_size=vocabulary, **sizes)
        sets = []
        for batch, new, past in sizes_of_sets:
            inputs = {"input_ids": catalog.tokens(batch, new, vocabulary), "attention_mask": catalog.mask(batch, past + new) * 0 + 1}
            for layer in range(layers):
                inputs[f"past_key_{layer}"] = catalog.normal(batch, heads, past, head, seed=2 * layer)
                inputs[f"past_value_{layer}"] = catalog.normal(batch, heads, past, head, seed=2 * layer + 1)
            sets.append(inputs)
        dims = {name: {0: "batch", 2: "past"} for name in sets[0] if name.startswith("past")}
        dims |= {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "total"}}
        return catalog.Case(model, sets, dims, step_call, config=model.config)

    return make


def save_pretrained(case, folder):
    """The model with a tokenizer of words of its own, as a folder that other tools read."""
    import tokenizers
    import transformers

    place = folder / "source"
    set_attention(case.model, "sdpa_without_vmap", "sdpa")
    case.model.config.use_cache = True
    case.model.save_pretrained(place)
    if not getattr(case.model.config, "vocab_size", 0):
        return place
    words = {f"w{number}": number for number in range(case.model.config.vocab_size)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="w0", pad_token="w1", eos_token="w2", bos_token="w2"
    ).save_pretrained(place)
    return place


def collect(case, folder, made):
    """Moves the files of an exporter's folder into ours and fits the case's inputs to what the file asks for."""
    import exporters

    for path in made.iterdir():
        if path.name.endswith((".onnx", ".onnx_data", ".onnx.data", ".data")):
            shutil.move(str(path), folder / path.name)
    shutil.rmtree(folder / "source", ignore_errors=True)
    shutil.rmtree(made, ignore_errors=True)
    if sum(path.stat().st_size for path in folder.glob("model*")) < 1 << 20:
        in_one_file(folder)
    return exporters.onnx_answer(folder / "model.onnx")


def in_one_file(folder):
    """What is small is one file, whatever its exporter does."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    for path in folder.glob("model*"):
        path.unlink()
    onnx.save(model, folder / "model.onnx")


def optimum(task):
    def export(case, folder, options):
        from optimum.exporters.onnx import main_export

        made = folder / "made"
        main_export(
            str(save_pretrained(case, folder)),
            output=made,
            task=task,
            do_validation=False,
            no_post_process=True,
            framework="pt",
            local_files_only=True,
        )
        answer = collect(case, folder, made)
        fit(case, answer)
        return answer

    return export


def genai(precision, device="cpu", **extra):
    """The builder as its page has it, by its command."""

    def export(case, folder, options):
        import subprocess

        made, cache = folder / "made", folder / "cache"
        command = [
            sys.executable,
            "-m",
            "onnxruntime_genai.models.builder",
            "-i",
            save_pretrained(case, folder),
            "-o",
            made,
            "-p",
            precision,
            "-e",
            device,
            "-c",
            cache,
        ]
        if extra:
            command += ["--extra_options", *(f"{name}={value}" for name, value in extra.items())]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        print(done.stdout, done.stderr)
        shutil.rmtree(cache, ignore_errors=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
        answer = collect(case, folder, made)
        fit(case, answer)
        return answer

    return export


def fit(case, answer):
    """Inputs that a file has beyond the case's: positions, token types and an empty or filled past, as the exporters call them."""
    import torch

    if "input_ids" not in case.inputs[0]:
        return
    sets, types = [], {name: getattr(torch, kind) for name, kind in answer["types"].items()}
    for number, inputs in enumerate(case.inputs):
        batch, new = inputs["input_ids"].shape
        past = 0 if number == 0 else 5
        if past and has_past(answer):  # a prompt, and then a step of one token: what kernels with a cache are made for
            inputs = {name: value[:, :1] for name, value in inputs.items()}
            new = 1
        fitted = {}
        for name, sizes in answer["inputs"].items():
            if name in inputs and name != "attention_mask":
                fitted[name] = inputs[name]
            elif name == "attention_mask":
                fitted[name] = torch.ones(batch, new + (past if has_past(answer) else 0), dtype=torch.long)
            elif name == "position_ids":
                fitted[name] = torch.arange(past, past + new).repeat(batch, 1)
            elif name == "token_type_ids":
                fitted[name] = torch.zeros(batch, new, dtype=torch.long)
            elif "past" in name:
                rows = catalog.normal(batch, sizes[1], past, head_of(case.config, sizes), seed=len(fitted)).to(types[name])
                fitted[name] = with_rows(rows, capacity(case.config, sizes, past + new))
            else:
                raise ValueError(f"no value for input {name}")
        sets.append(fitted)
    case.inputs = sets
    case.call = functools.partial(whole_call, answer["outputs"])


def capacity(config, sizes, total):
    """Rows that a sliding cache must have room for: the window, and here the step, so that nothing is dropped. Others grow."""
    return max(config.sliding_window, total) if "sliding" in str(sizes[2]) else 0


def head_of(config, sizes):
    if isinstance(sizes[3], int):
        return sizes[3]
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def has_past(answer):
    return any("past" in name for name in answer["inputs"])


def layer_and_kind(name):
    """A cache's tensor by its name: past_key_values.3.value, present.3.key."""
    found = re.search(r"\.(\d+)\.(key|value)$", name)
    return (int(found[1]), found[2] == "value") if found else None


def with_rows(cache, count):
    """A sliding cache has its size before and after a step; rows behind the valid ones are zeros here."""
    import torch

    return torch.nn.functional.pad(cache, (0, 0, 0, max(0, count - cache.shape[2])))


def whole_call(names, model, **inputs):
    """What the file computes, by the model that it was made from: the outputs of these names."""
    past = {layer_and_kind(name): value.to(next(model.parameters()).dtype) for name, value in inputs.items() if "past" in name}
    rest = {name: value for name, value in inputs.items() if "past" not in name}
    if not past:
        result = model(**rest)
        return [result[name] for name in result if name in ("logits", "last_hidden_state", "pooler_output")]
    rows = rest["attention_mask"].shape[1] - rest["input_ids"].shape[1]
    result = model(**rest, past_key_values=cache_of(model, [past[key][:, :, :rows] for key in sorted(past)]), use_cache=True)
    kept = [with_rows(value, past[key].shape[2]) for key, value in zip(sorted(past), tensors_of(result.past_key_values), strict=True)]
    places = [layer_and_kind(name) for name in names]
    return [result.logits if place is None else kept[2 * place[0] + place[1]] for place in places]


EXPORTERS = {
    "optimum": optimum("auto"),
    "optimum-features": optimum("feature-extraction"),
    "optimum-text": optimum("text-generation"),
    "optimum-past": optimum("text-generation-with-past"),
    "optimum-classes": optimum("text-classification"),
    "optimum-fill": optimum("fill-mask"),
    "genai-fp32": genai("fp32"),
    "genai-fp16": genai("fp16", "cuda"),
    "genai-int4": genai("int4"),
    "genai-int4-acc1": genai("int4", accuracy_level=1),
    "genai-int4-b128": genai("int4", block_size=128),
    "genai-int4-rtn": genai("int4", algo_config="rtn_last"),
}
