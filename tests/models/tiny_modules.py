"""Networks of a few hundred weights."""

import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.1, inplace=True), nn.Linear(16, 4)
        )

    def forward(self, x):
        return self.net(x).softmax(-1)


class Cnn(nn.Module):
    """Convolutions as classifiers have them: plain, by channel, with a gate over channels and a skip."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(inplace=True))
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.SiLU(inplace=True))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1), nn.Hardsigmoid())
        self.out, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        y = self.deep(x)
        x = nn.functional.max_pool2d(x + self.out(y * self.gate(y)), 2)
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """A block of attention with a causal mask and rotary positions, a root mean square before it and a gated product behind it."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.scale, self.up, self.down = nn.Parameter(torch.ones(width)), nn.Linear(width, 4 * width), nn.Linear(2 * width, width)

    def turn(self, x):
        half = x.shape[-1] // 2
        speeds = 10000.0 ** (-torch.arange(half, dtype=x.dtype) / half)
        angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * speeds
        low, high = x[..., :half], x[..., half:]
        return torch.cat([low * angles.cos() - high * angles.sin(), high * angles.cos() + low * angles.sin()], -1)

    def forward(self, x):
        batch, length, width = x.shape
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(y).split(width, -1))
        y = nn.functional.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        gate, up = self.up(x).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)


class Upsample(nn.Module):
    """Down, through and up again, as networks that segment do; sizes open."""

    def __init__(self):
        super().__init__()
        self.down, self.norm, self.up = nn.Conv2d(3, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        y = torch.nn.functional.gelu(self.norm(self.down(x)), approximate="tanh")
        y = self.out(self.up(y))
        return nn.functional.interpolate(y, size=x.shape[-2:], mode="bilinear", align_corners=False)
