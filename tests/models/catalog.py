"""The list of architectures and of what each is exported with. Rows can be read without torch: what builds a model imports it inside.

A row's exports are words: EXPORTER (exporters.py) or EXPORTER@ENVIRONMENT; a file is called ROW.EXPORTER[@ENVIRONMENT]. Weights are
random and made alive (see enliven), inputs come from a seed, and nothing is fetched."""

import collections
import dataclasses
import fnmatch
import importlib
import re

NEWEST = "2.15"
# Where an exporter's package is when a row does not say: optimum wants the transformers of its day.
HOME = {"optimum": "2.9"}
MODULES = [
    "catalog_vision",
    "catalog_detection",
    "catalog_encoders",
    "catalog_decoders",
    "catalog_seq2seq",
    "catalog_media",
    "catalog_composites",
    "catalog_small",
    "catalog_classic",
    "catalog_tiny",
]
ROWS = {}


@dataclasses.dataclass
class Row:
    name: str
    family: str
    build: object
    exports: list
    whole: bool
    options: dict


@dataclasses.dataclass
class Case:
    """A model with sets of inputs by name. call(model, **inputs) gives tensors, alone or in tuples, lists, dicts.
    dims: {input: {axis: name}}, what dynamic exports leave open. scores: {integer output: the float output that ordered it}."""

    model: object
    inputs: list
    dims: dict = dataclasses.field(default_factory=dict)
    call: object = None
    scores: dict = dataclasses.field(default_factory=dict)
    config: object = None


@dataclasses.dataclass
class Export:
    row: Row
    exporter: str
    environment: str

    @property
    def name(self):
        return f"{self.row.name}.{self.exporter}" + (f"@{self.environment}" if self.environment not in (NEWEST, self.home()) else "")

    def home(self):
        return HOME.get(self.exporter.split("-")[0], NEWEST)

    def matches(self, pattern):
        words = (self.name, self.row.name, self.row.family, self.exporter, self.environment)
        return any(word == pattern or fnmatch.fnmatch(word, pattern) for word in words)


def row(name, family, build, exports, whole=False, **options):
    assert name not in ROWS, name
    ROWS[name] = Row(name, family, build, exports.split(), whole, {"bare": family == "tiny", **options})


def rows():
    if not ROWS:
        for module in MODULES:
            importlib.import_module(module)
    return ROWS


def exports(patterns=()):
    result = []
    for each in rows().values():
        for word in each.exports:
            exporter, _, environment = word.partition("@")
            result.append(Export(each, exporter, environment or HOME.get(exporter.split("-")[0], NEWEST)))
    return [export for export in result if not patterns or any(all(map(export.matches, pattern.split("+"))) for pattern in patterns)]


def widest_first(found):
    """The order of a run: every family with every exporter once, then twice, and so on, whole configurations after those that were cut, so
    that a table says much early."""
    counts, keys = collections.Counter(), {}
    for export in sorted(found, key=lambda export: export.row.whole):
        pair = (export.row.family, re.sub(r"\d+$", "", export.exporter), export.environment)
        keys[export.name] = (counts[pair], export.row.whole)
        counts[pair] += 1
    return sorted(found, key=lambda export: keys[export.name])


def find(name):
    return next(export for export in exports() if export.name == name)


def enliven(model, seed=1):
    """Random weights as a trained model has them: what an initialisation leaves at one value (scales, biases, statistics, gates) is spread
    around it, so that no branch is multiplied by zero and no normalisation is the identity."""
    import torch

    random = torch.Generator().manual_seed(seed)

    def spread(values, scale):
        return torch.randn(values.shape, generator=random, dtype=torch.float32).to(values.dtype) * scale

    with torch.no_grad():
        for module in model.modules():
            if getattr(module, "running_var", None) is not None:
                module.running_mean.add_(spread(module.running_mean, 0.1))
                module.running_var.mul_(0.5 + torch.rand(module.running_var.shape, generator=random))
        for values in model.parameters():
            if values.is_floating_point() and values.numel() > 1 and bool((values == values.flatten()[0]).all()):
                small = 0 < abs(float(values.flatten()[0])) < 0.01
                values.add_(spread(values, 0.02 if values.dim() > 1 else 0.1))
                if small:
                    values.add_(0.1)
    return model


def images(batch, height, width=None, channels=3, seed=3):
    import torch

    random = torch.Generator().manual_seed(seed)
    return torch.randn(batch, channels, height, width or height, generator=random)


def normal(*shape, seed=4):
    import torch

    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(batch, length, vocabulary, seed=5):
    import torch

    return torch.randint(3, vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed))


def mask(batch, length):
    """Ones, with a tail of zeros in the later rows."""
    import torch

    lengths = torch.tensor([max(1, length - 3 * number) for number in range(batch)])
    return (torch.arange(length)[None] < lengths[:, None]).long()
