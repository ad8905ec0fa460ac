#!/usr/bin/python3
"""Prints digits beside the classifier's answers: show.py IMAGES.npy LABELS.npy FOLDER-OR-FILE-OF-ANSWERS [--min-accuracy P]

Exit 1 when the accuracy over all images is below P percent (default 97)."""
import argparse
import pathlib
import sys

import numpy as np

SHADES = " .:-=+*#%@"


def rows_of(image):
    return ["".join(2 * SHADES[min(int(p * len(SHADES)), len(SHADES) - 1)] for p in row) for row in image]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("images")
    parser.add_argument("labels")
    parser.add_argument("answers")
    parser.add_argument("--min-accuracy", type=float, default=97.0)
    parser.add_argument("--count", type=int, default=12)
    options = parser.parse_args()
    images, labels = np.load(options.images), np.load(options.labels)
    path = pathlib.Path(options.answers)
    probabilities = np.load(next(iter(sorted(path.glob("*.npy")))) if path.is_dir() else path)
    answers = probabilities.argmax(1)
    per_row = 4
    for start in range(0, options.count, per_row):
        print()
        picked = range(start, min(start + per_row, options.count))
        for lines in zip(*(rows_of(images[i, 0]) for i in picked)):
            print("   ".join(lines))
        print("   ".join(f"{f'answer {answers[i]} ({100 * probabilities[i, answers[i]]:.0f} %)':<16}" for i in picked))
        print("   ".join(f"{f'label  {labels[i]}' + ('' if answers[i] == labels[i] else '  WRONG'):<16}" for i in picked))
    accuracy = 100 * (answers == labels).mean()
    print(f"\n{(answers == labels).sum()} of {len(labels)} test images right: {accuracy:.2f} %")
    return 0 if accuracy >= options.min_accuracy else 1


if __name__ == "__main__":
    sys.exit(main())
