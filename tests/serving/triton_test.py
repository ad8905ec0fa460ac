#!/usr/bin/env python3
"""Bundles behind NVIDIA Triton: what they answer. triton_test.py BIN BACKENDS [unittest arguments], see cases.py. A plain run samples;
DMXC_LONG=1 runs all."""
import concurrent.futures
import contextlib
import json
import random
import re
import shutil
import socket
import sys
import time
import unittest

import server
from cases import BACKENDS, BIN, CONVERT, LONG, MODELS, Serving, compiled, python, run

sys.path.insert(0, str(server.ROOT / "tools/python"))
import dmxrt
import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException


class RealModels(Serving):
    """Files that people have, bit for bit as dmx-run computes them."""

    def test_models(self):
        if not MODELS.is_dir():
            self.skipTest(f"{MODELS} is not there")
        folders = sorted(each for each in MODELS.iterdir() if (each / "model.onnx").exists())
        folders = folders if LONG else [each for each in folders if each.name in ("bert_toy", "gpt2_past_tiny", "mnist_torch_dynamo", "dtln_model_1")]
        cases = {}
        for folder in folders:
            bundle = compiled(folder / "model.onnx", self.dir / f"{folder.name}.bundle")
            place = self.dir / f"in-{folder.name}"
            place.mkdir()
            python(CONVERT, folder / "model.onnx", folder / "test_data_set_0", place)
            inputs = {path.stem.removeprefix("in_").replace("%2F", "/"): np.load(path) for path in place.glob("in_*.npy")}
            if any(values.dtype.kind not in "fiub" for values in inputs.values()):
                continue
            cases[folder.name] = (bundle, inputs)
            server.add(self.repository, folder.name, bundle)
        with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http, network_timeout=60) as over_http, \
                grpc.InferenceServerClient(running.grpc) as over_grpc:
            for name, (bundle, inputs) in cases.items():
                self.assertTrue(over_http.is_model_ready(name), f"{name}: {running.text()[-2000:]}")
                files = self.alone(bundle, inputs)  # whose names have "_" for what not every file system takes
                expected = {output: files[re.sub(r"[^\w.-]", "_", output)] for output in self.outputs_of(over_http, name)}
                for how, client, module, binary in (("binary", over_http, http, True), ("json", over_http, http, False), ("grpc", over_grpc, grpc, True)):
                    answer = self.ask(client, name, inputs, module, binary)
                    for output, values in expected.items():
                        got = answer.as_numpy(output)
                        values = values.reshape(1) if values.ndim == 0 else values
                        self.assertEqual((got.dtype, got.shape), (values.dtype, values.shape), f"{name} {how} {output}")
                        self.assertTrue(np.array_equal(got, values, equal_nan=True), f"{name} {how} {output}")


class Batches(Serving):
    """Requests that are joined, and such as must not be."""

    def test_joined(self):
        bundle = self.made("dense", "6", 256)
        server.add(self.repository, "dense", bundle, 'dynamic_batching { max_queue_delay_microseconds: 2000 }\n')
        count, clients = (10_000, 64) if LONG else (1_500, 64)
        random_rows = np.random.default_rng(1)
        inputs = [random_rows.standard_normal((int(rows), 256)).astype(np.float32) for rows in random_rows.integers(1, 9, 40)]
        expected = [next(iter(self.alone(bundle, {"x": x}).values())) for x in inputs]
        output = next(iter(self.alone(bundle, {"x": inputs[0]})))
        with server.Server(self.repository, BACKENDS) as running:
            with http.InferenceServerClient(running.http) as client:
                config = client.get_model_config("dense")
                self.assertEqual(config["max_batch_size"], 64)
                self.outputs_of(client, "dense")

            def work(number):
                with http.InferenceServerClient(running.http, network_timeout=60) as client:
                    wrong = 0
                    for i in range(number, count, clients):
                        got = self.ask(client, "dense", {"x": inputs[i % 40]}).as_numpy(output)
                        # Products of few rows and of many round in other orders.
                        wrong += not np.allclose(got, expected[i % 40], 1e-4, 1e-5)
                    return wrong

            with concurrent.futures.ThreadPoolExecutor(clients) as pool:
                self.assertEqual(sum(pool.map(work, range(clients))), 0)
            told = running.statistics("dense")
            self.assertEqual(int(told["inference_stats"]["success"]["count"]), count)
            self.assertLessEqual(int(told["execution_count"]), count / 3)
            print(f"{count} requests in {told['execution_count']} runs")

    def test_rows_that_depend_on_each_other(self):
        """A sum over the rows before: joined, a client would get another's."""
        bundle = self.made("mixed", "mixed", 16)
        server.add(self.repository, "mixed", bundle)
        server.add(self.repository, "mixed_on", bundle, 'parameters { key: "batching" value { string_value: "on" } }\n')
        with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http) as client:
            self.assertEqual(client.get_model_config("mixed").get("max_batch_size", 0), 0)
            self.assertIn("rows of a run depend on each other", running.text())
            self.assertEqual(client.get_model_config("mixed_on")["max_batch_size"], 64)
            x = np.random.default_rng(2).standard_normal((3, 16)).astype(np.float32)
            self.assertTrue(np.array_equal(self.ask(client, "mixed", {"x": x}).as_numpy("y"), self.alone(bundle, {"x": x})["y"]))

    def test_one_wrong_request_is_its_own_affair(self):
        bundle = self.made("gather", "gather", 32)
        server.add(self.repository, "gather", bundle, 'dynamic_batching { max_queue_delay_microseconds: 20000 }\n')
        with server.Server(self.repository, BACKENDS, *server.EXPLICIT, "gather") as running:
            with http.InferenceServerClient(running.http) as client:
                self.outputs_of(client, "gather")

            def work(number):
                with http.InferenceServerClient(running.http) as client:
                    bad = number % 4 == 1
                    index = np.array([[number % 32, 99 if bad else 3]])
                    try:
                        got = self.ask(client, "gather", {"i": index}).as_numpy("y")
                        return not bad and np.array_equal(got, self.expected[index[0]][None])
                    except InferenceServerException as error:
                        self.said.add(str(error))
                        return bad

            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                self.expected = np.stack([self.alone(bundle, {"i": np.array([[i, i]])})["y"][0, 0] for i in range(32)])
                self.said = set()
                self.assertTrue(all(pool.map(work, range(64))))
                self.assertEqual(len(self.said), 1, self.said)
                self.assertRegex(self.said.pop(), "Gather|index")
            running.unload("gather")


class WrongRequests(Serving):
    """Errors have a name, and others are served."""

    def test_requests(self):
        bundle = self.made("dense", "2", 64)
        server.add(self.repository, "dense", bundle)
        x = np.ones((2, 64), np.float32)
        expected = next(iter(self.alone(bundle, {"x": x}).values()))
        with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http) as client:
            output = self.outputs_of(client, "dense")[0]
            cases = [({"x": np.ones((2, 63), np.float32)}, "x"), ({"x": np.ones((2, 64), np.float64)}, "FP64"), ({"z": x}, "z"), ({"x": np.ones(64, np.float32)}, "x"),
                     ({"x": np.ones((65, 64), np.float32)}, "64"), ({"x": np.ones((2, 2, 64), np.float32)}, "x"), ({"x": np.ones((2, 64), np.int32)}, "INT32")]
            for inputs, said in cases:
                with self.assertRaises(InferenceServerException) as raised:
                    self.ask(client, "dense", inputs)
                self.assertIn(said, str(raised.exception))
            for number in range(200 if LONG else 40):
                self.torn(running, number)
            self.assertTrue(np.allclose(self.ask(client, "dense", {"x": x}).as_numpy(output), expected))
            self.assertIsNone(running.process.poll())

    def torn(self, running, number):
        """A body that lies about its sizes, is cut, or whose client dies in the middle."""
        chosen = random.Random(number)
        rows, width = chosen.choice([(2, 64), (1 << 40, 64), (-1, 64), (2, 1 << 62), (0, 64), (2, 63)])
        data = bytes(chosen.randrange(256) for _ in range(chosen.choice([0, 3, 512, 700])))
        head = json.dumps({"inputs": [{"name": chosen.choice(["x", "x", "", "\u0000"]), "shape": [rows, width], "datatype": chosen.choice(["FP32", "FP32", "BYTES", "FP99"]),
                                       "parameters": {"binary_data_size": chosen.choice([512, len(data), 1 << 40, -1])}}]}).encode()
        body = head + data
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", running.http_port), 5) as connection:
            connection.settimeout(0.3)
            told = len(body) + chosen.choice([0, 0, 100])
            connection.sendall(f"POST /v2/models/dense/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: {len(head)}\r\nContent-Length: {told}\r\n\r\n".encode()
                               + body[: chosen.choice([len(body), len(body) // 2])])
            if told == len(body) and chosen.random() < 0.7:
                answer = connection.recv(4096)
                self.assertTrue(answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 4", b"HTTP/1.1 5")) or not answer, answer[:80])

    def test_models_that_are_refused(self):
        bundle = self.made("good", "2", 64)
        server.add(self.repository, "good", bundle)
        data = bytearray(bundle.read_bytes())
        data[len(data) // 2] ^= 0xFF
        damaged = self.dir / "damaged.bundle"
        damaged.write_bytes(data[: len(data) // 2])
        server.add(self.repository, "damaged", damaged)
        key = self.dir / "key"
        cases = {"damaged": "bundle", "missing": "model.bundle", "wrong_type": "TYPE_FP32 by the bundle", "wrong_name": "the bundle has 'x'", "wrong_dims": "n x 64",
                 "too_many": "1000000", "unknown": "threads, isa", "number": "'threads' is 'many'"}
        most = self.made("bounded", "2", 64, "--dim", "n=1..128")
        (self.repository / "missing/1").mkdir(parents=True)
        (self.repository / "missing/config.pbtxt").write_text('backend: "dmx"\n')
        tensor = 'input [ {{ name: "{}" data_type: {} dims: [ {} ] }} ]\nmax_batch_size: 8\n'
        server.add(self.repository, "wrong_type", bundle, tensor.format("x", "TYPE_FP16", 64))
        server.add(self.repository, "wrong_name", bundle, tensor.format("q", "TYPE_FP32", 64))
        server.add(self.repository, "wrong_dims", bundle, tensor.format("x", "TYPE_FP32", 65))
        server.add(self.repository, "too_many", most, "max_batch_size: 1000000\n")
        server.add(self.repository, "unknown", bundle, 'parameters { key: "speed" value { string_value: "9" } }\n')
        server.add(self.repository, "number", bundle, 'parameters { key: "threads" value { string_value: "many" } }\n')
        signs = (BIN / "dmx-sign").exists() and run(BIN / "dmx-sign", "keygen", key).returncode == 0
        trusting = f'parameters {{ key: "trusted_key" value {{ string_value: "{key}.pub" }} }}\n'
        if signs:
            server.add(self.repository, "unsigned", bundle, trusting)
            cases["unsigned"] = "sign"
            signed = self.dir / "signed.bundle"
            shutil.copyfile(bundle, signed)
            self.assertEqual(run(BIN / "dmx-sign", "sign", signed, "--key", key).returncode, 0)
            server.add(self.repository, "signed", signed, trusting)
        with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http) as client:
            reasons = {each["name"]: each for each in client.get_model_repository_index()}
            for name, said in cases.items():
                self.assertEqual(reasons[name].get("state"), "UNAVAILABLE", name)
                self.assertIn(said, reasons[name]["reason"], name)
            x = np.ones((2, 64), np.float32)
            for name in ["good"] + ["signed"] * signs:
                self.ask(client, name, {"x": x})


class Versions(Serving):
    """Instances share one mapped bundle."""

    def test_instances_share_weights(self):
        width = 4096 if LONG else 2048  # 64 or 16 MB
        bundle = self.made("large", "4", width)
        figures = {}
        for count in (1, 2):
            shutil.rmtree(self.repository / "large", ignore_errors=True)
            server.add(self.repository, "large", bundle, f"instance_group [ {{ kind: KIND_CPU count: {count} }} ]\n")
            with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http, network_timeout=120, concurrency=4) as client:
                self.outputs_of(client, "large")
                x = np.ones((1, width), np.float32)
                for pending in [client.async_infer("large", [self.given(x)]) for _ in range(8)]:
                    pending.get_result()
                figures[count] = running.memory()
        self.assertLess(figures[2]["VmRSS"], 1.2 * figures[1]["VmRSS"], figures)
        print({count: {key: f"{value >> 20} MB" for key, value in each.items()} for count, each in figures.items()})

    @staticmethod
    def given(x):
        each = http.InferInput("x", list(x.shape), "FP32")
        each.set_data_from_numpy(x)
        return each


class Sequences(Serving):
    """A model with a state: a session a sequence, bit for bit."""

    def test_sequences(self):
        bundle = self.made("state", "state", 32, "--state", "h=h2")
        server.add(self.repository, "state", bundle, 'parameters { key: "max_sequences" value { string_value: "16" } }\n'
                   "sequence_batching { max_sequence_idle_microseconds: 3000000 oldest { max_candidate_sequences: 16 } }\n")
        steps, random_rows = 6, np.random.default_rng(3)
        xs = random_rows.standard_normal((17, steps, 1, 32)).astype(np.float32)
        sessions = [dmxrt.Session(bundle, threads=1, library=str(BIN.parent / "lib/libdmxrt.so")) for _ in range(17)]

        def expected(number, step):
            return sessions[number].run(x=xs[number, step])["y"]

        with server.Server(self.repository, BACKENDS) as running, http.InferenceServerClient(running.http, network_timeout=60, concurrency=20) as client:
            self.outputs_of(client, "state")
            order = [(step, number) for step in range(steps - 1) for number in range(16)]
            for step, number in order:
                answer = self.ask(client, "state", {"x": xs[number, step]}, sequence_id=number + 1, sequence_start=step == 0)
                self.assertTrue(np.array_equal(answer.as_numpy("y"), expected(number, step)), f"step {step} of {number}")
            # The 17th waits until one ends.
            given = http.InferInput("x", [1, 32], "FP32")
            given.set_data_from_numpy(xs[16, 0])
            waits = client.async_infer("state", [given], sequence_id=17, sequence_start=True)
            time.sleep(0.3)
            self.ask(client, "state", {"x": xs[0, -1]}, sequence_id=1, sequence_end=True)
            self.assertTrue(np.array_equal(waits.get_result().as_numpy("y"), expected(16, 0)))
            with self.assertRaises(InferenceServerException) as raised:
                self.ask(client, "state", {"x": xs[0, 0]}, sequence_id=1)
            self.assertRegex(str(raised.exception), "START|start flag")
            time.sleep(4)  # longer than the server lets a sequence rest
            with self.assertRaises(InferenceServerException) as raised:
                self.ask(client, "state", {"x": xs[1, 0]}, sequence_id=2)
            self.assertRegex(str(raised.exception), "START|start flag")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
