"""Small decoders in PyTorch with weights of a seed, and the files that its exporters make of them: mask, positions and caches are inputs, caches
outputs, as transformers calls them. `KINDS`: of llama's kind (RMS norms, rotary positions, grouped heads), the same with a sliding window, and of
gpt2's (layer norms, learned positions, one product for queries, keys and values, embedding and head tied)."""
import dataclasses
import math

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, WIDTH, HEADS, HEAD, INNER, WORDS, POSITIONS = 2, 96, 6, 16, 256, 331, 256  # of 64 KiB, from which on weights are rounded


@dataclasses.dataclass(frozen=True)
class Kind:
    groups: int  # heads of keys and values
    window: int = 0
    learned: bool = False  # positions, and all else that gpt2 has


KINDS = {"llama": Kind(2), "window": Kind(3, window=7), "gpt2": Kind(6, learned=True)}
CACHES = [f"{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(1 + 0.1 * torch.randn(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Layer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.widths = kind, [HEADS * HEAD] + [kind.groups * HEAD] * 2
        self.before, self.behind = (nn.LayerNorm(WIDTH) if kind.learned else Norm() for _ in range(2))
        self.qkv = nn.Linear(WIDTH, sum(self.widths), bias=kind.learned)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=kind.learned)
        self.up, self.down = nn.Linear(WIDTH, INNER, bias=kind.learned), nn.Linear(INNER, WIDTH, bias=kind.learned)
        self.gate = None if kind.learned else nn.Linear(WIDTH, INNER, bias=False)

    def forward(self, x, turn, mask, past):
        batch, count, _ = x.shape
        q, k, v = (part.view(batch, count, -1, HEAD).transpose(1, 2) for part in self.qkv(self.before(x)).split(self.widths, -1))
        if turn is not None:
            q, k = rotated(q, *turn), rotated(k, *turn)
        present = [torch.cat(pair, 2) for pair in zip(past, (k, v))]
        shared = HEADS // self.kind.groups
        k, v = present if shared == 1 else (y[:, :, None].expand(-1, -1, shared, -1, -1).flatten(1, 2) for y in present)
        y = F.scaled_dot_product_attention(q, k, v, mask) if self.kind.learned else ((q @ k.transpose(2, 3)) / math.sqrt(HEAD) + mask).softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(batch, count, -1))
        y = self.behind(x)
        y = F.gelu(self.up(y), approximate="tanh") if self.gate is None else F.silu(self.gate(y)) * self.up(y)
        return x + self.down(y), present


class Decoder(nn.Module):
    def __init__(self, kind, seed=1):
        super().__init__()
        torch.manual_seed(seed)
        self.kind = KINDS[kind]
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Embedding(POSITIONS, WIDTH) if self.kind.learned else None
        self.layers = nn.ModuleList(Layer(self.kind) for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH) if self.kind.learned else Norm()
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
        if self.kind.learned:
            self.head.weight = self.words.weight
            for layer in self.layers:  # else each token would be followed by itself
                nn.init.normal_(layer.down.weight, std=0.5)
        self.register_buffer("rates", 10000.0 ** -(torch.arange(0, HEAD, 2) / HEAD))
        self.eval()

    def forward(self, input_ids, attention_mask, position_ids, past_key_values):
        x, turn = self.words(input_ids), None
        if self.places is not None:
            x = x + self.places(position_ids)
        else:
            angle = position_ids[:, :, None].to(x.dtype) * self.rates.to(x.dtype)
            angle = torch.cat((angle, angle), -1)[:, None]
            turn = angle.cos(), angle.sin()
        key, place = torch.arange(attention_mask.shape[1])[None, None, None], position_ids[:, None, :, None]
        keep = (key <= place) & (attention_mask[:, None, None] != 0)
        if self.kind.window:
            keep = keep & (key > place - self.kind.window)
        mask = torch.where(keep, torch.zeros((), dtype=x.dtype), torch.finfo(torch.float32).min)
        presents = []
        for layer, past in zip(self.layers, zip(past_key_values[::2], past_key_values[1::2])):
            x, present = layer(x, turn, mask, past)
            presents += present
        return self.head(self.norm(x)), *presents

    def empty(self, batch=1):
        return [torch.zeros(batch, self.kind.groups, 0, HEAD, dtype=self.head.weight.dtype) for _ in CACHES]

    def step(self, ids, past):
        """Logits [n, WORDS] behind the rows of `past`, and the caches behind them."""
        before = past[0].shape[2]
        with torch.no_grad():
            logits, *present = self(torch.tensor([ids]), torch.ones(1, before + len(ids), dtype=torch.int64),
                                    torch.arange(before, before + len(ids))[None], past)
        return logits[0].numpy(), present


def example(decoder, batch, count, before):
    past = [torch.randn(batch, decoder.kind.groups, before, HEAD) for _ in CACHES]
    return (torch.randint(0, WORDS, (batch, count)), torch.ones(batch, before + count, dtype=torch.int64),
            torch.arange(before, before + count).repeat(batch, 1), past)


NAMES = ["input_ids", "attention_mask", "position_ids"] + [f"past_key_values.{name}" for name in CACHES]


def write_onnx(decoder, path, dynamo=False):
    open_dims = {"input_ids": {0: "batch_size", 1: "n"}, "attention_mask": {0: "batch_size", 1: "total"}, "position_ids": {0: "batch_size", 1: "n"}}
    open_dims |= {name: {0: "batch_size", 2: "past"} for name in NAMES[3:]}
    present = [f"present.{name}" for name in CACHES]
    torch.onnx.export(decoder, example(decoder, 2, 3, 5), str(path), input_names=NAMES, output_names=["logits", *present], dynamo=dynamo, opset_version=17,
                      dynamic_axes={**open_dims, **{name: {0: "batch_size", 2: "all"} for name in present}, "logits": {0: "batch_size", 1: "n"}})
    return path


def write_pt2(decoder, path, form):
    """For one sequence, "pt2-one"; for any number of them, "pt2-any"; or with what the exporter finds to be open, "pt2-auto"."""
    auto, batch, first = torch.export.Dim.AUTO, 2, {0: torch.export.Dim.AUTO}
    count = past = auto
    if form != "pt2-auto":
        count, past = torch.export.Dim("n", min=1, max=POSITIONS), torch.export.Dim("past", min=0, max=POSITIONS)
        batch, first = (1, {}) if form == "pt2-one" else (2, {0: torch.export.Dim("batch_size", min=1, max=64)})
    shapes = {"input_ids": {**first, 1: count}, "attention_mask": {**first, 1: auto}, "position_ids": {**first, 1: count},
              "past_key_values": [{**first, 2: past} for _ in CACHES]}
    torch.export.save(torch.export.export(decoder, example(decoder, batch, 3, 5), dynamic_shapes=shapes), str(path))
    return path
