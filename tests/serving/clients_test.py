#!/usr/bin/env python3
"""Bundles behind NVIDIA Triton: clients that cancel, die, or ask while models come and go. clients_test.py BIN BACKENDS [unittest arguments],
see cases.py."""
import concurrent.futures
import contextlib
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

import server
from cases import BACKENDS, LONG, Serving

import numpy as np
import tritonclient.grpc as grpc
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

# What malloc keeps, for threads that have ended and of large pieces, is no growth of whoever has freed it: it keeps little.
PLAIN = {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
OFF = 'parameters { key: "batching" value { string_value: "off" } }\n'


def given(x, module=grpc):
    each = module.InferInput("x", list(x.shape), "FP32")
    each.set_data_from_numpy(x)
    return [each]


class Cancelled(Serving):
    """A request that is cancelled while another runs is not run, and the others are."""

    def asked(self, client, model, x, **options):
        """A request on its way: what cancels it, and where its answer or error comes."""
        answers = queue.Queue()
        call = client.async_infer(model, given(x), lambda result, error: answers.put(error or result), **options)
        time.sleep(0.1 if len(x) > 1 else 0.01)  # so that they come one behind the other
        return call, answers

    def counts(self, running, model):
        told = running.statistics(model)
        stats = told["inference_stats"]
        return np.array([int(told["execution_count"]), int(stats["success"]["count"]), int(stats["fail"]["count"])])

    def waiting(self, config, runs):
        """Behind a long run, every second of six is cancelled: so many more runs, four more answers, three errors."""
        server.add(self.repository, "long", self.made("long", "60", 512), config)
        x = np.random.default_rng(5).standard_normal((2048, 512)).astype(np.float32)
        with server.Server(self.repository, BACKENDS) as running, grpc.InferenceServerClient(running.grpc) as client:
            output = client.get_model_metadata("long").outputs[0].name
            expected = [client.infer("long", given(x[i : i + 1])).as_numpy(output) for i in range(6)]
            before = self.counts(running, "long")
            _, first = self.asked(client, "long", x)
            waiting = [self.asked(client, "long", x[i : i + 1]) for i in range(6)]
            for call, _ in waiting[::2]:
                call.cancel()
            self.assertTrue(first.empty(), "the long run has ended before the others were cancelled")
            answers = [answer.get(timeout=60) for _, answer in waiting]
            first.get(timeout=60)
            for i, answer in enumerate(answers):
                if i % 2:
                    self.assertTrue(np.allclose(answer.as_numpy(output), expected[i], 1e-4, 1e-5))
                else:
                    self.assertIsInstance(answer, InferenceServerException)
                    self.assertIn("CANCELLED", str(answer.status()))
            self.assertEqual(list(self.counts(running, "long") - before), [runs, 4, 3])

    def test_one_by_one(self):
        self.waiting(OFF, 4)

    def test_joined(self):
        """What is left of six that wait is one run."""
        self.waiting("max_batch_size: 2048\ndynamic_batching { }\n", 2)

    def test_end_of_a_sequence(self):
        """One whose last request is cancelled gives its place, not another's, to the next."""
        bundle = self.made("sum", "sum", 512, "--state", "h=h2")
        server.add(self.repository, "sum", bundle, 'parameters { key: "max_sequences" value { string_value: "3" } }\n'
                   "sequence_batching { max_sequence_idle_microseconds: 30000000 oldest { max_candidate_sequences: 3 } }\n")
        x = np.random.default_rng(5).standard_normal((2048, 512)).astype(np.float32)
        with server.Server(self.repository, BACKENDS) as running, grpc.InferenceServerClient(running.grpc) as client:
            for number in (1, 2):
                client.infer("sum", given(x[:1]), sequence_id=number, sequence_start=True)
            _, long = self.asked(client, "sum", x, sequence_id=3, sequence_start=True)
            call, end = self.asked(client, "sum", x[:1], sequence_id=2, sequence_end=True)
            call.cancel()
            self.assertTrue(long.empty(), "the long run has ended before the other was cancelled")
            self.assertIsInstance(end.get(timeout=60), InferenceServerException)
            self.assertNotIsInstance(long.get(timeout=60), InferenceServerException)
            client.infer("sum", given(x[:1]), sequence_id=4, sequence_start=True)
            client.infer("sum", given(x[:1]), sequence_id=1)


# Asks without an end: PROTOCOL ADDRESS ROWS.
CLIENT = """
import sys, numpy, importlib
module = importlib.import_module("tritonclient." + sys.argv[1])
x = numpy.ones((int(sys.argv[3]), 512), "f4")
given = module.InferInput("x", list(x.shape), "FP32")
given.set_data_from_numpy(x)
with module.InferenceServerClient(sys.argv[2]) as client:
    client.infer("dense", [given])
    print("served", flush=True)
    while True:
        if sys.argv[1] == "http":
            client.infer("dense", [given])
        else:
            client.async_infer("dense", [given], lambda result, error: None)
            client.infer("dense", [given])
"""


class Killed(Serving):
    """Clients that are killed in the middle of requests, while others are served."""

    def test_http(self):
        with self.served() as running:
            self.kill(running, "http")

    def test_grpc(self):
        """The server's own front end of gRPC (2.51) goes on with requests that it has let go of when their clients die: it crashes, or keeps
        the model. Its log, which tells all, says whether something that went wrong was that; it is skipped then."""
        running = self.served("--log-verbose", "1")
        try:
            self.kill(running, "grpc")
        except Exception:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(2)
            why = self.of_the_front_end(running)
            with contextlib.suppress(RuntimeError):
                running.stop()
            if not why:
                raise
            self.skipTest(why)
        running.stop()

    def served(self, *options):
        server.add(self.repository, "dense", self.made("dense", "6", 512), "max_batch_size: 4096\n")
        return server.Server(self.repository, BACKENDS, *server.EXPLICIT, "dense", *options)

    def kill(self, running, protocol):
        x = np.random.default_rng(6).standard_normal((3, 512)).astype(np.float32)
        with http.InferenceServerClient(running.http, network_timeout=60) as client:
            output = self.outputs_of(client, "dense")[0]
            expected = self.ask(client, "dense", {"x": x}).as_numpy(output)
            chosen = random.Random(1)
            for _ in range(12 if LONG else 2):
                words = [sys.executable, "-c", CLIENT, protocol, getattr(running, protocol), str(chosen.choice([8, 4096]))]
                dying = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(2)]
                try:
                    for each in dying:
                        self.assertEqual(each.stdout.readline(), b"served\n")
                    time.sleep(chosen.uniform(0, 0.2))
                    self.assertTrue(all(each.poll() is None for each in dying), "a client has ended by itself")
                finally:
                    for each in dying:
                        each.kill()
                        each.communicate()
                self.assertTrue(np.allclose(self.ask(client, "dense", {"x": x}).as_numpy(output), expected, 1e-4, 1e-5))
        running.unload("dense")
        self.assertIsNone(running.process.poll(), running.text()[-2000:])

    def of_the_front_end(self, running):
        """Why what went wrong is the server's own affair; None where it may be the backend's."""
        text = running.text()
        frames = re.findall(r"^ *\d+# .*", text, re.M)
        if running.process.poll() is not None:  # the core and backends are libraries of their own
            own = frames and not any(re.search(r"libtriton|libdmxrt", frame) for frame in frames)
            return f"the server crashed by itself, without a frame of the backend: {' '.join(frames)}" if own else None
        if "/v2/repository/models/dense/unload" not in text:
            return None
        taken, back = text.count("to EXECUTING\""), text.count("from EXECUTING to RELEASED\"")
        answers = text.count("ModelInferHandler::InferResponseComplete") + text.count("/v2/models/dense/infer\"")  # each of HTTP has come
        return f"the server does not unload the model, though it has all {taken} requests back, and answers" if taken == back and answers >= taken else None


class Growth(Serving):
    """New versions, loads and unloads under load: no request is lost, and the server grows as it does with a backend that computes nothing."""

    GONE = "not ready|unknown model|no available versions|unloading"

    def test_reloads_under_load(self):
        width, rounds = (8704, 50) if LONG else (512, 12)  # weights of 303 MB; of 1 MB
        bundle = self.made("dense", "2", width)
        config = 'max_batch_size: 64\ninput { name: "x" data_type: TYPE_FP32 dims: %d }\noutput { name: "r1" data_type: TYPE_FP32 dims: %d }\ndynamic_batching { }\n'
        x = np.ones((2, width), np.float32)
        expected = {"dmx": next(iter(self.alone(bundle, {"x": x}).values())), "empty": x}
        growth = {backend: self.reloads(backend, bundle, config % (width, width), x, expected[backend], rounds) for backend in expected}
        self.assertLess(growth["dmx"], growth["empty"] + (1 << 20), growth)

    def reloads(self, backend, bundle, config, x, expected, rounds):
        """By how many bytes the anonymous memory of a server without models has grown after `rounds` more than a few."""
        shutil.rmtree(self.repository / "dense", ignore_errors=True)
        add = lambda version: server.add(self.repository, "dense", bundle, config, version, backend)
        add(1)
        with server.Server(self.repository, BACKENDS, *server.EXPLICIT, "dense", environment=PLAIN) as running:
            memory, version = [], 1
            for count in (5, rounds):
                with self.load(running, x, expected) as served, http.InferenceServerClient(running.http, network_timeout=60) as client:
                    for number in range(count):
                        add(version + 1)
                        self.loaded(client, x)
                        shutil.rmtree(self.repository / "dense" / str(version))
                        version += 1
                        if number % 5 == 4:
                            client.unload_model("dense")
                            self.loaded(client, x)
                running.unload("dense")
                memory.append(running.memory()["RssAnon"])
            print(f"{backend}: {rounds} loads, {served[0]} answers, anonymous memory {memory[0] / 2**20:.1f} to {memory[1] / 2**20:.1f} MB")
            self.assertGreater(served[0], rounds)
            return memory[1] - memory[0]

    def loaded(self, client, x):
        """Loads, and waits for an answer: the server crashes, with the empty backend too, when it takes away a model whose thread is still
        on its way from the loading (2.51: StopBackendThread looks into a list that this thread has not filled again)."""
        client.load_model("dense")
        client.infer("dense", given(x, http))

    @contextlib.contextmanager
    def load(self, running, x, expected):
        """Four clients that ask all the time, each of which gets its answer or is told that there is no model just now."""
        stop, lost, served = threading.Event(), [], [0]

        def work():
            with http.InferenceServerClient(running.http, network_timeout=60) as client:
                while not stop.is_set():
                    try:
                        got = client.infer("dense", given(x, http)).as_numpy("r1")
                        served[0] += 1
                        if not np.allclose(got, expected, 1e-4, 1e-5):
                            lost.append("differs")
                    except InferenceServerException as error:
                        if not re.search(self.GONE, str(error)):
                            lost.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            yield served
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
