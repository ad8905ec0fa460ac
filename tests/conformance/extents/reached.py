"""Which DMIR ops the cases reach with an extent of 0 and of 1, as the frontend and the partition phase leave them."""
import re
import subprocess

# Whose operand is a list of sizes: of none there is nothing to compute, and the frontend phase leaves no op.
LISTS = {"define_dims", "dim_tensor"}
LINE = re.compile(r"(?:= |^ *)dmir\.(\w+)\b(.*)")
TENSOR = re.compile(r"tensor<((?:[0-9?]+x)*)")


def computed(bin_):
    """The ops that the cpu target computes."""
    table = subprocess.run([bin_ / "dmxc", "--print-ops"], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| dmir.")]
    assert rows, "dmxc --print-ops gives no table"
    return {op.removeprefix("dmir.") for op, _, _, cpu, *_ in rows if cpu == "yes"}


class Reached:
    """Ops by extent. An open extent takes both in the runs of its model."""

    def __init__(self):
        self.ops = {"0": set(), "1": set()}

    def add(self, text):
        for line in text.splitlines():
            found = LINE.search(line)
            if not found:
                continue
            extents = {extent for dims in TENSOR.findall(found[2]) for extent in dims.split("x")[:-1]}
            for extent in ("0", "1"):
                if extent in extents or "?" in extents:
                    self.ops[extent].add(found[1])

    def join(self, other):
        for extent, ops in other.ops.items():
            self.ops[extent] |= ops

    def missing(self, wanted):
        """What is missing, as text."""
        return [f"dmir.{op} at an extent of {extent}" for extent, ops in self.ops.items() for op in sorted(wanted - ops - (LISTS if extent == "0" else set()))]
