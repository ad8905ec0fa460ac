"""How often what was made: each operator at each rank, with extents of 0, 1 and more, static and open."""
import collections
import pathlib

EXTENTS = [(extent, kind) for extent in ("0", "1", "many") for kind in ("static", "open")]


def operators():
    """All that frontends/onnx/OPERATORS.md lists and does not refuse."""
    text = (pathlib.Path(__file__).resolve().parents[3] / "frontends/onnx/OPERATORS.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return {row[0] for row in rows if len(row) == 4 and row[0] != "operator" and row[2] != "refused"}


class Coverage:
    def __init__(self):
        self.graphs = self.nodes = 0
        self.made = collections.Counter()
        self.ranks = collections.defaultdict(collections.Counter)
        self.extents = collections.defaultdict(collections.Counter)

    def add(self, graph):
        self.graphs += 1
        for operator, rank, extents in graph.counted:
            self.nodes += 1
            self.made[operator] += 1
            self.ranks[operator][rank] += 1
            for extent in extents:
                self.extents[operator][extent] += 1

    def print(self):
        print(f"{self.graphs} graphs, {self.nodes} nodes. Of each operator: nodes, first operands by rank, those with an extent of 0, 1 and more, static "
              "and open.")
        for operator in sorted(self.made):
            ranks = " ".join(f"{r}:{n}" for r, n in sorted(self.ranks[operator].items()))
            extents = " ".join(f"{self.extents[operator][e]}" for e in EXTENTS)
            print(f"  {operator:32} {self.made[operator]:6}  rank {ranks:44} extents {extents}")
        missing = sorted(operators() - set(self.made))
        print(f"not made: {', '.join(missing) or 'none'}")
