#!/usr/bin/env python3
"""Requests a second of a served model: batching on, off, and a peer. Run by hand, never judged by a test (tests/bench/README.md).
    throughput.py BIN BACKENDS [--width 2048 --layers 6 | --model M.onnx] [--ort PYTHON] [--runs 5] [--seconds 5] [--clients 64]
The load is `wrk` (apt-get install wrk): so many requests in flight, bodies of 1 to 8 rows in turn. PYTHON has nvidia-pytriton and onnxruntime: the
peer is ONNX Runtime in one process behind pytriton's dynamic batching, with as many threads as our instance. Runs of all take turns; medians."""
import argparse
import contextlib
import http.client
import pathlib
import re
import statistics
import subprocess
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("bin")
parser.add_argument("backends")
parser.add_argument("--width", type=int, default=2048, help="of square weights of --layers products")
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--model", type=pathlib.Path, help="one with an open first axis, instead")
parser.add_argument("--ort", metavar="PYTHON")
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--seconds", type=int, default=5)
parser.add_argument("--clients", type=int, default=64)
parser.add_argument("--delay", type=int, default=0, help="max_queue_delay_microseconds")
options = parser.parse_args()

import server
from cases import BACKENDS, Serving, compiled

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype, triton_to_np_dtype

LUA = """
local n, all = 0, {{}}
for i = 1, 8 do
  local file = io.open("{place}/" .. i, "rb")
  all[i] = wrk.format("POST", "/v2/models/m/infer", {{["Inference-Header-Content-Length"] = io.open("{place}/" .. i .. ".head"):read("*l")}}, file:read("*a"))
end
request = function() n = n % 8 + 1; return all[n] end
"""
# MODEL PORT THREADS MOST_ROWS: pytriton's server of functions, whose dynamic batching joins requests as Triton's does for a backend.
PEER = """
import sys, numpy, onnxruntime
from pytriton.decorators import batch
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig
chosen = onnxruntime.SessionOptions()
chosen.intra_op_num_threads, chosen.inter_op_num_threads = int(sys.argv[3]), 1
session = onnxruntime.InferenceSession(sys.argv[1], chosen, providers=["CPUExecutionProvider"])
kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32, "tensor(uint8)": numpy.uint8}
tensors = lambda each: [Tensor(name=t.name, dtype=kinds[t.type], shape=tuple(d if isinstance(d, int) else -1 for d in t.shape[1:])) for t in each]
names = [t.name for t in session.get_outputs()]
@batch
def infer(**inputs):
    return dict(zip(names, session.run(names, inputs)))
port = int(sys.argv[2])
with Triton(config=TritonConfig(http_port=port, grpc_port=port + 1, metrics_port=port + 2, allow_gpu_metrics=False)) as triton:
    triton.bind(model_name="m", infer_func=infer, inputs=tensors(session.get_inputs()), outputs=tensors(session.get_outputs()),
                config=ModelConfig(max_batch_size=int(sys.argv[4]), batcher=DynamicBatcher(max_queue_delay_microseconds=int(sys.argv[5]))))
    triton.serve()
"""


def bodies(client, place):
    """Requests of 1 to 8 rows, as files."""
    place.mkdir()
    rng = np.random.default_rng(1)
    for rows in range(1, 9):
        given = []
        for each in client.get_model_metadata("m")["inputs"]:
            kind = triton_to_np_dtype(each["datatype"])
            shape = [rows] + [int(dim) if int(dim) > 0 else 16 for dim in each["shape"][1:]]
            x = (rng.standard_normal(shape) if kind().dtype.kind == "f" else rng.integers(0, 2, shape)).astype(kind)
            tensor = triton.InferInput(each["name"], shape, np_to_triton_dtype(kind))
            tensor.set_data_from_numpy(x)
            given.append(tensor)
        body, head = triton.InferenceServerClient.generate_request_body(given)
        (place / str(rows)).write_bytes(body)
        (place / f"{rows}.head").write_text(f"{head or len(body)}\n")


def answers(address, place):
    """What a server says to each body: a list of outputs for each."""
    given = []
    for rows in range(1, 9):
        connection = http.client.HTTPConnection(address, timeout=60)
        head = (place / f"{rows}.head").read_text().strip()
        connection.request("POST", "/v2/models/m/infer", (place / str(rows)).read_bytes(), {"Inference-Header-Content-Length": head})
        answer = connection.getresponse()
        body, length = answer.read(), answer.getheader("Inference-Header-Content-Length")
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"{address} says {answer.status} to {rows} rows: {body[:500]!r}")
        result = triton.InferenceServerClient.parse_response_body(body, header_length=length and int(length))
        given.append([result.as_numpy(each["name"]) for each in result.get_response()["outputs"]])
    return given


def load(address, place):
    command = ["wrk", "-t1", f"-c{options.clients}", f"-d{options.seconds}s", "--latency", "--timeout", "30s", "-s", str(place / "post.lua"), f"http://{address}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        raise SystemExit(text)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), re.search(r"50%\s+(\S+)", text)[1], re.search(r"99%\s+(\S+)", text)[1]


@contextlib.contextmanager
def peer(model, threads, most):
    port = server.free_ports(1)[0]
    with open("/dev/null", "w") as nowhere:
        process = subprocess.Popen([options.ort, "-c", PEER, str(model), str(port), str(threads), str(most), str(options.delay)], stdout=nowhere, stderr=nowhere)
    try:
        end = time.monotonic() + 60
        while True:
            with contextlib.suppress(Exception), triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
                if client.is_model_ready("m"):
                    break
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit("the peer does not come up")
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def main():
    Serving.setUpClass()
    place = Serving.dir / "bodies"
    with contextlib.ExitStack() as stack:
        stack.callback(Serving.tearDownClass)
        model, bundle = Serving.dir / "m.onnx", Serving.dir / "m.bundle"
        if options.model:
            model = options.model.resolve()
            compiled(model, bundle)
        else:
            Serving().made("m", str(options.layers), options.width)
        addresses, running = {}, {}
        delay = f"dynamic_batching {{ max_queue_delay_microseconds: {options.delay} }}\n"
        for way in ("on", "off"):
            repository = Serving.dir / way
            server.add(repository, "m", bundle, delay if way == "on" else 'parameters { key: "batching" value { string_value: "off" } }\n')
            running[way] = stack.enter_context(server.Server(repository, BACKENDS))
            addresses[way] = running[way].http
        if options.ort:
            addresses["ort"] = stack.enter_context(peer(model, 1, 64))
        with triton.InferenceServerClient(addresses["off"]) as client:
            bodies(client, place)
        (place / "post.lua").write_text(LUA.format(place=place))
        expected = answers(addresses["off"], place)
        for way, address in addresses.items():
            for one, other in zip(answers(address, place), expected):
                if not all(np.allclose(a, b, 1e-3, 5e-3) for a, b in zip(one, other, strict=True)):
                    raise SystemExit(f"'{way}' gives other numbers than 'off'")
        figures = {way: [] for way in addresses}
        for number in range(options.runs):
            for way in list(addresses)[number % len(addresses):] + list(addresses)[: number % len(addresses)]:
                figures[way].append(load(addresses[way], place))
        for way, all_of in figures.items():
            told = running[way].statistics("m") if way in running else None
            runs = f", {int(told['inference_stats']['success']['count']) / int(told['execution_count']):.1f} requests a run" if told else ""
            print(f"{way}: median {statistics.median(each[0] for each in all_of):.0f} requests/s of {[round(each[0]) for each in all_of]}, "
                  f"50 % and 99 % after {all_of[-1][1]} and {all_of[-1][2]}{runs}")


if __name__ == "__main__":
    main()
