"""What chapters share: showing a kernel's texts, running it for some seeds, comparing, saying clocks.

    python3 tools/examples/hopper/ch2_saxpy.py [--show] [--seeds N] [--keep DIR]      # DMXC_BIN: where dmxc and dmx-run are, if not in the PATH
    python3 tools/examples/hopper/ch6_specialised.py --size 4096 4096 4096 --blocks 3  # the estimated clocks of a large one, by three of its blocks

--show prints all of the MLIR and the PTX; --seeds runs it for so many orders of blocks, warps and copies."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy as np  # noqa: E402

from dmxkernels import KernelError, kernel  # noqa: E402, F401


def arguments():
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--show", action="store_true", help="print the MLIR and the PTX")
    parser.add_argument("--seeds", type=int, default=1, help="orders of turns to run it in")
    parser.add_argument("--keep", help="a folder for the texts and the bundle")
    parser.add_argument("--size", type=int, nargs=3, default=[256, 512, 512], metavar=("M", "N", "K"), help="of products: rows, columns, terms")
    parser.add_argument("--blocks", type=int, default=0, help="simulate so many blocks alone, for the clocks; computes no results")
    return parser.parse_args()


def eighths(generator, *shape):
    """Multiples of 1/8, whose products and sums are exact: any order of sums gives the same bits."""
    return generator.integers(-8, 9, shape) / 8


def chapter(made, inputs, wanted):
    """Shows and runs a kernel, and compares each output, to the last bit, with what numpy has."""
    given = arguments()
    try:
        if given.keep:
            pathlib.Path(given.keep).mkdir(parents=True, exist_ok=True)
        folder = made.compile(given.keep)
        ptx = (folder / f"{made.name}.ptx").read_text()
        for what, text in (("mlir", made.text), ("ptx", ptx)):
            print(f"--- {folder / made.name}.{what}: {len(text.splitlines())} lines")
            if given.show:
                print(text)
        for seed in range(given.seeds):
            run = made.run(inputs, seed, given.blocks, folder)
            if given.blocks:
                print(f"{made.name}: {run.clocks:.0f} clocks, by {given.blocks} blocks")
                return
            for line in run.said:
                print(line)
            for name, values in wanted.items():
                if not np.array_equal(run[name], values):
                    place = tuple(int(i) for i in np.argwhere(run[name] != values)[0])
                    sys.exit(f"FAIL seed {seed}: {name}{list(place)} is {run[name][place]}, numpy has {values[place]}")
    except KernelError as error:
        sys.exit(f"FAIL {error}")
    print(f"PASS {made.name}, {given.seeds} of {given.seeds} seeds; {run.clocks:.0f} clocks" if run.clocks else f"PASS {made.name}")


def product(make):
    """A chapter of make(M, N, K), a product of f16 whose sums are exact."""
    m, n, terms = arguments().size
    random = np.random.default_rng(5)
    a, b = eighths(random, m, terms).astype(np.float16), eighths(random, terms, n).astype(np.float16)
    wanted = {} if arguments().blocks else {"d": a.astype(np.float32) @ b.astype(np.float32)}
    chapter(make(m, n, terms), {"a": a, "b": b}, wanted)


def turn(k, slot, phase, slots):
    """The next slot; behind the last one comes the first, in the other phase."""
    last = slot == slots - 1
    return k.select(last, 0, slot + 1), k.select(last, 1 - phase, phase)
