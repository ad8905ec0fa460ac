"""Modules written here for what libraries of models do not show: recurrence, messages along edges, buffers that runs change,
static caches."""

import torch
from torch import nn


class Tagger(nn.Module):
    """Tokens through a recurrent network of either kind to scores."""

    def __init__(self, kind="LSTM", vocabulary=1000, width=128, hidden=256, layers=2, two_ways=True):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.recur = getattr(nn, kind)(width, hidden, layers, batch_first=True, bidirectional=two_ways)
        self.out = nn.Linear(hidden * (1 + two_ways), 17)

    def forward(self, ids):
        return self.out(self.recur(self.embed(ids))[0])


class Language(nn.Module):
    """A recurrent language model that gets and gives its states."""

    def __init__(self, kind="LSTM", hidden=256):
        super().__init__()
        self.kind, self.embed = kind, nn.Embedding(1000, hidden)
        self.recur, self.out = getattr(nn, kind)(hidden, hidden, 2, batch_first=True), nn.Linear(hidden, 1000)

    def forward(self, ids, h, c=None):
        y, state = self.recur(self.embed(ids), h if c is None else (h, c))
        return (self.out(y), *(state if isinstance(state, tuple) else (state,)))


class Cells(nn.Module):
    """A cell stepped by a loop of Python, with a projection."""

    def __init__(self, kind="GRUCell"):
        super().__init__()
        self.cell, self.out = getattr(nn, kind)(32, 64), nn.Linear(64, 5)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 64)
        state = (state, state) if isinstance(self.cell, nn.LSTMCell) else state
        results = []
        for step in range(12):
            state = self.cell(x[:, step], state)
            results.append(self.out(state[0] if isinstance(state, tuple) else state))
        return torch.stack(results, 1)


class Graph(nn.Module):
    """Messages along edges, summed at their targets (index_add), or the mean, the largest, or weighted by attention."""

    def __init__(self, how, width=64, layers=2):
        super().__init__()
        self.how = how
        self.messages = nn.ModuleList(nn.Linear(2 * width if how == "attention" else width, width) for _ in range(layers))
        self.scores, self.own, self.out = nn.Linear(width, 1), nn.Linear(width, width), nn.Linear(width, 7)

    def gather(self, message, target, count):
        where = target[:, None].expand_as(message)
        zero = message.new_zeros(count, message.shape[1])
        if self.how == "sum":
            return zero.index_add(0, target, message)
        if self.how == "mean":
            total = zero.scatter_add(0, where, message)
            degree = message.new_zeros(count).scatter_add(0, target, torch.ones_like(target, dtype=message.dtype))
            return total / degree.clamp(min=1)[:, None]
        if self.how == "max":
            return zero.scatter_reduce(0, where, message, "amax", include_self=True)
        weight = self.scores(message).squeeze(-1)
        top = torch.full((count,), -1e30, dtype=weight.dtype).scatter_reduce(0, target, weight, "amax", include_self=True)
        weight = (weight - top[target]).exp()
        total = weight.new_zeros(count).scatter_add(0, target, weight)
        return zero.scatter_add(0, where, message * (weight / total[target].clamp(min=1e-9))[:, None])

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        for layer in self.messages:
            given = nodes[source]
            message = layer(torch.cat([given, nodes[target]], 1) if self.how == "attention" else given)
            nodes = torch.relu(self.own(nodes) + self.gather(message, target, nodes.shape[0]))
        return self.out(nodes), nodes.mean(0)


class Averages(nn.Module):
    """A running mean of what came so far: buffers that each run changes."""

    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.out = nn.Linear(width, 8)

    def forward(self, x):
        self.count.add_(x.shape[0])
        self.mean.copy_(0.9 * self.mean + 0.1 * x.mean(0))
        return self.out(x - self.mean), self.count + 0


class Stream(nn.Module):
    """A causal convolution over a stream: the tail of the last run is a buffer."""

    def __init__(self, width=32, kernel=5):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, kernel)
        self.register_buffer("tail", torch.zeros(1, width, kernel - 1))

    def forward(self, x):
        whole = torch.cat([self.tail, x], 2)
        self.tail.copy_(whole[:, :, -self.tail.shape[2] :])
        left, right = self.conv(whole).chunk(2, 1)
        return left * torch.sigmoid(right)


class StaticCache(nn.Module):
    """A block of attention over a cache of fixed room, written at given places: by index_copy_, by index_put_ or by a slice."""

    def __init__(self, how="index_copy", width=256, heads=4, room=64):
        super().__init__()
        self.how, self.heads, self.room = how, heads, room
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("keys", torch.zeros(1, heads, room, width // heads))
        self.register_buffer("values", torch.zeros(1, heads, room, width // heads))

    def write(self, cache, at, new):
        if self.how == "index_copy":
            cache.index_copy_(2, at, new)
        elif self.how == "index_put":
            cache[:, :, at] = new
        else:
            cache.copy_(cache.scatter(2, at[None, None, :, None].expand_as(new), new))

    def forward(self, x, at):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        self.write(self.keys, at, k)
        self.write(self.values, at, v)
        seen = torch.arange(self.room)[None] <= at[:, None]
        y = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Training(nn.Module):
    """Batch normalisation in training: its statistics are buffers that change."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4)
        )

    def forward(self, x):
        return self.net.train()(x)


class Control(nn.Module):
    """torch.cond on a value: both ways are in the file."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: torch.relu(self.a(x)), lambda x: torch.tanh(self.b(x)), (x,))


class Spectrum(nn.Module):
    """A magnitude spectrogram with mel bands, as sound models compute it inside."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.bands = nn.Linear(201, 40)

    def forward(self, audio):
        power = torch.stft(audio, 400, 160, window=self.window.to(audio.dtype), return_complex=True).abs() ** 2
        return torch.log(self.bands(power.transpose(1, 2)).abs() + 1e-5)


class Frequencies(nn.Module):
    """Products with complex weights on the lowest frequencies of an image."""

    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.low = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width)
        self.high = nn.Parameter(torch.randn(width, width, modes, modes, dtype=torch.cfloat) / width)

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        result = torch.zeros(x.shape[0], x.shape[1], x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.cfloat, device=x.device)
        top, bottom = (..., slice(None, self.modes), slice(None, self.modes)), (..., slice(-self.modes, None), slice(None, self.modes))
        result[top] = torch.einsum("bixy,ioxy->boxy", spectrum[top], self.low)
        result[bottom] = torch.einsum("bixy,ioxy->boxy", spectrum[bottom], self.high)
        return torch.fft.irfft2(result, s=x.shape[-2:])


class FourierOperator(nn.Module):
    """A Fourier neural operator on images of some channels."""

    def __init__(self, channels=3, width=16, modes=6, layers=3):
        super().__init__()
        self.enter, self.leave = nn.Linear(channels, width), nn.Linear(width, 1)
        self.across = nn.ModuleList(Frequencies(width, modes) for _ in range(layers))
        self.local = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(layers))

    def forward(self, x):
        x = self.enter(x).permute(0, 3, 1, 2)
        for across, local in zip(self.across, self.local):
            x = nn.functional.gelu(across(x) + local(x))
        return self.leave(x.permute(0, 2, 3, 1))
