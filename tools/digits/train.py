#!/usr/bin/python3
"""Trains the digit classifier of tools/demo and writes it as ONNX with its test set.

    tools/setup --bench && tools/digits/train.py

Data: the 1797 8x8 images of scikit-learn's digits set (UCI optical recognition of handwritten digits), which ship inside the package.
The last fifth of a seeded shuffle is the test set. Deterministic on one machine: fixed seeds, one thread.
Writes digits.onnx, images.npy (f32, N x 1 x 8 x 8, 0..1) and labels.npy (i64) beside this file.
"""
import pathlib

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
TEST_IMAGES = 360


def data():
    digits = load_digits()
    order = np.random.RandomState(7).permutation(len(digits.target))
    images = (digits.images[order] / 16.0).astype(np.float32)[:, None]
    labels = digits.target[order].astype(np.int64)
    cut = len(labels) - TEST_IMAGES
    return images[:cut], labels[:cut], images[cut:], labels[cut:]


class Digits(nn.Module):
    """Two convolutions with batch normalisation, a pooling, two dense layers: 21 thousand parameters."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16)
        self.conv2, self.norm2 = nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.pool = nn.MaxPool2d(2)
        self.hidden, self.out = nn.Linear(32 * 4 * 4, 32), nn.Linear(32, 10)

    def forward(self, image):
        x = torch.relu(self.norm1(self.conv1(image)))
        x = self.pool(torch.relu(self.norm2(self.conv2(x))))
        x = torch.relu(self.hidden(x.flatten(1)))
        return torch.softmax(self.out(x), 1)


def train(model, images, labels):
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    epochs = 30
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = 2e-3 * (1 - epoch / epochs)
        for batch in torch.randperm(len(labels)).split(64):
            # A pixel of shift either way: the test set's writers do not centre alike.
            shift = tuple(torch.randint(-1, 2, (2,)).tolist())
            probabilities = model(torch.roll(images[batch], shift, (2, 3)))
            loss = nn.functional.nll_loss(torch.log(probabilities + 1e-9), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def export(model, path):
    model.eval()
    torch.onnx.export(model, torch.zeros(1, 1, 8, 8), str(path), input_names=["image"], output_names=["probabilities"],
                      dynamic_axes={"image": {0: "batch"}, "probabilities": {0: "batch"}}, opset_version=13,
                      do_constant_folding=False, training=torch.onnx.TrainingMode.EVAL)
    proto = onnx.load(str(path))
    onnx.checker.check_model(proto)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    train_images, train_labels, images, labels = data()
    model = Digits()
    train(model, train_images, train_labels)
    model.eval()
    with torch.no_grad():
        answers = model(torch.from_numpy(images)).argmax(1).numpy()
    accuracy = (answers == labels).mean()
    print(f"test accuracy {100 * accuracy:.2f} % on {len(labels)} images")
    if accuracy < 0.97:
        raise SystemExit("below 97 %: nothing written")
    export(model, HERE / "digits.onnx")
    np.save(HERE / "images.npy", images)
    np.save(HERE / "labels.npy", labels)


if __name__ == "__main__":
    main()
