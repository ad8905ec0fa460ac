"""A detector of the YOLO kind, written here since the packages of that family fetch and are under other licences."""

import torch
from torch import nn


def block(into, out, kernel=1, stride=1):
    return nn.Sequential(nn.Conv2d(into, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out), nn.SiLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = block(width, width, 3), block(width, width, 3)

    def forward(self, x):
        return x + self.second(self.first(x))


class CrossStage(nn.Module):
    def __init__(self, into, out, count=1):
        super().__init__()
        self.enter, self.leave = block(into, out), block((2 + count) * (out // 2), out)
        self.blocks = nn.ModuleList(Bottleneck(out // 2) for _ in range(count))

    def forward(self, x):
        parts = list(self.enter(x).chunk(2, 1))
        for each in self.blocks:
            parts.append(each(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Pyramid(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enter, self.leave, self.pool = block(width, width // 2), block(2 * width, width), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        parts = [self.enter(x)]
        for _ in range(3):
            parts.append(self.pool(parts[-1]))
        return self.leave(torch.cat(parts, 1))


class Yolo(nn.Module):
    """Boxes (x, y, w, h) and class scores of all places of three scales."""

    def __init__(self, classes, width, free):
        super().__init__()
        w, self.classes, self.free = width, classes, free
        self.stem = nn.Sequential(block(3, w, 3, 2), block(w, 2 * w, 3, 2), CrossStage(2 * w, 2 * w))
        self.third = nn.Sequential(block(2 * w, 4 * w, 3, 2), CrossStage(4 * w, 4 * w, 2))
        self.fourth = nn.Sequential(block(4 * w, 8 * w, 3, 2), CrossStage(8 * w, 8 * w, 2))
        self.fifth = nn.Sequential(block(8 * w, 16 * w, 3, 2), CrossStage(16 * w, 16 * w), Pyramid(16 * w))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.join4, self.join3 = CrossStage(24 * w, 8 * w), CrossStage(12 * w, 4 * w)
        each = 64 + classes if free else 3 * (5 + classes)
        self.heads = nn.ModuleList(nn.Conv2d(into * w, each, 1) for into in (4, 8, 16))
        self.register_buffer("bins", torch.arange(16.0))
        self.register_buffer(
            "anchors",
            torch.tensor([[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]).float().view(3, 3, 2),
        )

    def forward(self, images):
        third = self.third(self.stem(images))
        fourth = self.fourth(third)
        fifth = self.fifth(fourth)
        fourth = self.join4(torch.cat([self.up(fifth), fourth], 1))
        third = self.join3(torch.cat([self.up(fourth), third], 1))
        decode = self.decode_free if self.free else self.decode_anchors
        return torch.cat([decode(head(x), 8 << n, n) for n, (head, x) in enumerate(zip(self.heads, (third, fourth, fifth)))], 1)

    @staticmethod
    def grid(x):
        height, width = x.shape[-2:]
        rows = torch.arange(height, device=x.device, dtype=x.dtype)
        columns = torch.arange(width, device=x.device, dtype=x.dtype)
        y, x = torch.meshgrid(rows, columns, indexing="ij")
        return torch.stack([x, y], -1)

    def decode_free(self, x, stride, _):
        batch = x.shape[0]
        places = self.grid(x).reshape(-1, 2) + 0.5
        x = x.flatten(2).transpose(1, 2)
        sides = x[..., :64].reshape(batch, -1, 4, 16).softmax(-1).matmul(self.bins.to(x.dtype))
        low, high = places - sides[..., :2], places + sides[..., 2:]
        return torch.cat([(low + high) / 2 * stride, (high - low) * stride, x[..., 64:].sigmoid()], -1)

    def decode_anchors(self, x, stride, number):
        batch, _, height, width = x.shape
        y = x.view(batch, 3, 5 + self.classes, height, width).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        places = (y[..., 0:2] * 2 - 0.5 + self.grid(x)) * stride
        sizes = (y[..., 2:4] * 2) ** 2 * self.anchors[number].to(x.dtype)[None, :, None, None, :]
        return torch.cat([places, sizes, y[..., 4:]], -1).view(batch, -1, 5 + self.classes)


class Detector(nn.Module):
    """With the selection of boxes behind it."""

    def __init__(self, yolo):
        super().__init__()
        self.yolo = yolo

    def forward(self, images):
        from torchvision.ops import nms

        found = self.yolo(images)[0]
        scores, labels = found[:, 4:].max(1)
        centre, size = found[:, :2], found[:, 2:4]
        boxes = torch.cat([centre - size / 2, centre + size / 2], 1)
        kept = nms(boxes, scores, 0.5)[:20]
        return boxes[kept], scores[kept], labels[kept]
