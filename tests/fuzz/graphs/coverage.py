"""How often what was made: each operator at each rank, with extents of 0, 1 and more, static and open."""
import collections
import pathlib

from graph import walk

SYNONYMS = {"SimplifiedLayerNormalization"}  # RMSNormalization by another name


def operators():
    """All that frontends/onnx/OPERATORS.md lists and does not refuse, but for the domain com.microsoft."""
    text = (pathlib.Path(__file__).resolve().parents[3] / "frontends/onnx/OPERATORS.md").read_text().partition("## The domain")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return {row[0] for row in rows if len(row) == 4 and row[0] != "operator" and row[2] != "refused"} - SYNONYMS


class Coverage:
    def __init__(self):
        self.graphs = self.nodes = 0
        self.made = collections.Counter()
        self.cells = collections.defaultdict(collections.Counter)  # (operator, rank) -> extents

    def add(self, graph):
        self.graphs += 1
        for node in walk(graph.nodes):
            self.nodes += 1
            self.made[node.kind] += 1
            self.cells[node.kind, node.rank].update(node.extents if node.rank else ["scalar"])

    def missing(self):
        return sorted(operators() - set(self.made))

    def print(self):
        print(f"{self.graphs} graphs, {self.nodes} nodes. Of each operator: nodes; for each rank of first operands those with an extent of 0, of 1 and of "
              "more, static+open in a run.")
        for operator in sorted(self.made):
            ranks = sorted(rank for name, rank in self.cells if name == operator)
            print(f"  {operator} {self.made[operator]}: " + ", ".join(self.row(operator, rank) for rank in ranks))
        print(f"not made: {', '.join(self.missing()) or 'none'}")

    def row(self, operator, rank):
        cell = self.cells[operator, rank]
        if not rank:
            return f"r0 {cell['scalar']}"
        return f"r{rank} " + " ".join(f"{cell[e, 'static']}+{cell[e, 'open']}" for e in ("0", "1", "many"))
