#!/usr/bin/env python3
"""Bundles behind NVIDIA Triton: clients that cancel, die, or ask while models come and go. clients_test.py BIN BACKENDS [unittest arguments],
see cases.py."""
import concurrent.futures
import contextlib
import queue
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


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
