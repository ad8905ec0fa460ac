#!/usr/bin/env python3
"""Operators that mask by themselves, from file to run: ONNX's Attention (is_causal, nonpad_kv_seqlen, a past) and
GroupQueryAttention (local_window_size, seqlens_k, a past), with sizes that are known and open. The rule is read, keys are left out, and
the result is that of a definition in numpy. Usage: mask_forms.py BIN [unittest arguments]. Exit 77 where numpy is not installed."""
import json
import sys
import unittest

import dynamic_shapes  # exits where numpy is not installed
from dynamic_shapes import BundleTest, np, onnx, softmax


def visible(positions, columns, counts, window):
    """[batch, rows, columns]: keys up to the row's own position, of those that count, not further away than the window."""
    j, own = np.arange(columns), positions[..., None]
    keep = (j <= own) & (j < counts[:, None, None])
    return keep & (j > own - window) if window > 0 else keep


def attended(q, k, v, keep):
    """[batch, heads, rows, size]; a row that sees nothing gives zeros."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, 1).astype(np.float64) for x in (k, v))
    scores = np.where(keep[:, None], q.astype(np.float64) @ k.swapaxes(2, 3) / np.sqrt(q.shape[3]), -np.inf)
    blind = ~keep.any(-1)[:, None, :, None]
    return np.where(blind, 0, softmax(np.where(blind, 0, scores)) @ v)


class Forms(BundleTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(3)

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def build(self, model, rule, kernel="attention-tiles"):
        """Compiles, and looks at what was read."""
        (self.dir / "m.onnx").write_bytes(model)
        self.compile_file(self.dir / "m.onnx", "--sparsity-report", str(self.dir / "r.json"))
        one, = json.loads((self.dir / "r.json").read_text())["attentions"]
        self.assertEqual((one.get("rule", one.get("unknown")), one["algorithm"]), (rule, kernel))
        self.assertNotIn("rest", one)

    def check(self, values, wanted, name="y", rows=None):
        ran = self.run_bundle(values)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        got = np.load(next((self.dir / "out").glob(f"*{name}.npy")))
        self.assertEqual(got.shape, wanted.shape)
        if rows is not None:  # those of padding are what they are
            got, wanted = got[rows], wanted[rows]
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)

    # --- Attention of ONNX

    def model_of_attention(self, rows, keys, lengths=False, past=None, causal=1):
        f, heads, kv, size = onnx.FLOAT, 4, 2, 16
        inputs = [("q", f, ["b", heads, rows, size]), ("k", f, ["b", kv, keys, size]), ("v", f, ["b", kv, keys, size])]
        names = "q k v"
        if past is not None:
            inputs += [("pk", f, ["b", kv, past, size]), ("pv", f, ["b", kv, past, size])]
        words = ["q", "k", "v", "", *(["pk", "pv"] if past is not None else ["", ""]), *(["lengths"] if lengths else [])]
        while not words[-1]:
            words.pop()
        if lengths:
            inputs.append(("lengths", onnx.INT64, ["b"]))
        outs = ["y", *(["nk", "nv"] if past is not None else [])]
        node = onnx.node_of("Attention", words, " ".join(outs), is_causal=causal)
        return onnx.model([node], [onnx.info(*one) for one in inputs], [onnx.info(name, f, None) for name in outs], opset=24)

    def run_attention(self, batch, rows, keys, lengths=None, past=None, causal=1):
        q, k, v = self.normal(batch, 4, rows, 16), self.normal(batch, 2, keys, 16), self.normal(batch, 2, keys, 16)
        values = {"q": q, "k": k, "v": v}
        if past is not None:
            values["pk"], values["pv"] = self.normal(batch, 2, past, 16), self.normal(batch, 2, past, 16)
            k, v = np.concatenate([values["pk"], k], 2), np.concatenate([values["pv"], v], 2)
        counts, first = np.full(batch, k.shape[2]), np.full(batch, past or 0)
        if lengths is not None:
            values["lengths"] = counts = np.array(lengths, np.int64)
            first = counts - rows
        own = first[:, None] + np.arange(rows) if causal else np.full((batch, rows), k.shape[2])
        self.check(values, attended(q, k, v, visible(own, k.shape[2], counts, 0)))

    def test_attention(self):
        self.build(self.model_of_attention(300, 300), "j <= i")
        self.run_attention(2, 300, 300)
        self.build(self.model_of_attention("s", "t"), "j <= i")
        for rows, keys in ((1, 1), (300, 300), (70, 400), (400, 70), (0, 5)):
            self.run_attention(1, rows, keys)

    def test_attention_with_a_past(self):
        self.build(self.model_of_attention(40, 40, past=300), "j <= i + 300")
        self.run_attention(2, 40, 40, past=300)
        self.build(self.model_of_attention("s", "s", past="p"), "j <= i + p")
        for rows, past in ((1, 0), (1, 500), (300, 0), (30, 300)):
            self.run_attention(1, rows, rows, past=past)

    def test_lengths_of_keys(self):
        self.build(self.model_of_attention(8, 600, lengths=True, causal=0), "j < 'lengths'")
        for lengths in ([600, 1], [300, 299], [0, 17]):
            self.run_attention(2, 8, 600, lengths=lengths, causal=0)
        self.build(self.model_of_attention("s", "t", lengths=True), "j + s <= i + 'lengths' and j < 'lengths'")
        for rows, keys, lengths in ((1, 600, [600, 1]), (30, 600, [300, 31]), (300, 300, [300, 20]), (5, 9, [2, 9])):
            self.run_attention(2, rows, keys, lengths=lengths)

    # --- GroupQueryAttention of com.microsoft

    def model_of_groups(self, rows, past, window, total=None, heads=4, kv=2, size=16):
        """`total`: rows of the cache after the step, where that is known; else an input brings it."""
        f, i = onnx.FLOAT, onnx.INT32
        inputs = [("q", f, ["b", rows, heads * size]), ("k", f, ["b", rows, kv * size]), ("v", f, ["b", rows, kv * size]),
                  ("pk", f, ["b", kv, past, size]), ("pv", f, ["b", kv, past, size]), ("lengths", i, ["b"])]
        weights = []
        if total is None:
            inputs.append(("total", i, []))
        else:
            weights.append(onnx.tensor("total", i, [], [total]))
        present = ["b", kv, past if isinstance(past, int) else None, size]
        node = onnx.node("GroupQueryAttention", "q k v pk pv lengths total", "y nk nv", domain="com.microsoft", num_heads=heads,
                         kv_num_heads=kv, local_window_size=window)
        outputs = [onnx.info("y", f, None), onnx.info("nk", f, present), onnx.info("nv", f, present)]
        return onnx.model([node], [onnx.info(*one) for one in inputs], outputs, weights=weights, extra=onnx.field(8, onnx.message((1, "com.microsoft"), (2, 1))))

    def run_groups(self, rows, capacity, totals, window, given_total=True, heads=4, kv=2, size=16):
        """`totals`: rows of each batch entry that count after the step."""
        batch, totals = len(totals), np.array(totals)
        q, k, v = self.normal(batch, rows, heads * size), self.normal(batch, rows, kv * size), self.normal(batch, rows, kv * size)
        before = np.maximum(totals - rows, 0)
        pk, pv = self.normal(batch, kv, capacity, size), self.normal(batch, kv, capacity, size)
        values = {"q": q, "k": k, "v": v, "pk": pk, "pv": pv, "lengths": (totals - 1).astype(np.int32)}
        if given_total:
            values["total"] = np.array(totals.max(), np.int32)
        keys = int(totals.max())
        whole = [np.zeros((batch, kv, max(keys, before.max() + rows), size), np.float32) for _ in range(2)]
        for cache, past, new in zip(whole, (pk, pv), (k, v)):
            for b in range(batch):
                cache[b, :, :before[b]] = past[b, :, :before[b]]
                cache[b, :, before[b]:before[b] + rows] = new[b].reshape(rows, kv, size).swapaxes(0, 1)
        own = before[:, None] + np.arange(rows)
        keep = visible(own, whole[0].shape[2], np.full(batch, whole[0].shape[2]), window)
        y = attended(q.reshape(batch, rows, heads, size).swapaxes(1, 2), *whole, keep)
        self.check(values, y.swapaxes(1, 2).reshape(batch, rows, heads * size), rows=own < totals[:, None])

    # Rows of a matrix are pairs of heads of one position; that of the first is what the node computes from the lengths. Rows of padding
    # behind all keys see the last ones, which makes the second case of a window.
    POSITION = "'GroupQueryAttention_0' + i // 2"
    WINDOW = f"(j <= {POSITION} and {POSITION} <= j + 99) or (j <= {POSITION} and GroupQueryAttention_0#0 <= j + 100)"

    def test_groups_of_known_sizes(self):
        """A cache of 512 rows that is written in place: a prompt, then rows behind it."""
        self.build(self.model_of_groups(300, 512, -1, total=512), f"j <= {self.POSITION}")
        for totals in ([300, 300], [300, 120], [420, 512]):
            self.run_groups(300, 512, totals, -1, given_total=False)
        self.build(self.model_of_groups(64, 512, 100), self.WINDOW)
        for totals in ([64, 64], [400, 512], [64, 300]):
            self.run_groups(64, 512, totals, 100)

    def test_groups_of_open_sizes(self):
        """A cache that grows: any number of rows behind any past, one bundle."""
        for window, rule in ((-1, f"j <= {self.POSITION}"), (100, self.WINDOW)):
            self.build(self.model_of_groups("s", "p", window), rule)
            for rows, past, totals in ((300, 0, [300, 300]), (300, 0, [300, 77]), (1, 500, [501, 501]), (1, 500, [501, 30]), (40, 300, [340, 340])):
                self.run_groups(rows, past, totals, window)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
