"""Starts a Triton server with the backend of a build, for tests. Those run in the environment that has tritonclient and the server's wheel:
`python3 -m venv build/triton-venv && build/triton-venv/bin/pip install nvidia-pytriton`; exit 77 without."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(os.environ.get("DMX_TRITON_VENV", ROOT / "build/triton-venv"))


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def enter():
    """Goes on in the environment that has the server; leaves with 77 where there is none."""
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        if not (VENV / "bin/python").exists():
            skip(f"no Triton server; python3 -m venv {VENV} && {VENV}/bin/pip install nvidia-pytriton")
        os.execv(VENV / "bin/python", [VENV / "bin/python", *sys.argv])
    try:
        import numpy  # noqa: F401
        import tritonclient.grpc  # noqa: F401
        import tritonclient.http  # noqa: F401
    except ImportError as error:
        skip(f"{VENV} lacks what a client needs: {error}")


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def add(repository, name, bundle, config="", version=1, backend="dmx"):
    place = repository / name / str(version)
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(bundle, place / "model.bundle")
    (repository / name / "config.pbtxt").write_text(f'backend: "{backend}"\n{config}')


EXPLICIT = ("--model-control-mode", "explicit", "--load-model")  # and a name


class Server:
    """A server over a repository; http and grpc are addresses."""

    def __init__(self, repository, backends, *options, ready=True, environment=None):
        self.http_port, self.grpc_port, metrics = free_ports(3)
        self.http, self.grpc = f"127.0.0.1:{self.http_port}", f"127.0.0.1:{self.grpc_port}"
        self.log = tempfile.NamedTemporaryFile("w+", prefix="dmxc-triton-", suffix=".log")
        environment = os.environ | {"DMX_TRITON_BACKENDS": str(backends)} | (environment or {})
        servers = sorted(VENV.glob("lib/python*/site-packages/pytriton/tritonserver/bin/tritonserver"))
        if servers:
            environment["TRITONSERVER"] = str(servers[0])
        ports = ["--http-port", self.http_port, "--grpc-port", self.grpc_port, "--metrics-port", metrics]
        command = [ROOT / "tools/serve", repository, *ports, "--exit-timeout-secs", 5, "--exit-on-error", "false", *options]
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log, env=environment)
        if ready:
            self.wait()

    def wait(self):
        import tritonclient.http as http

        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError("the server has ended: " + self.text()[-3000:])
            with contextlib.suppress(Exception):
                with http.InferenceServerClient(self.http) as client:
                    if client.is_server_live():
                        return
            time.sleep(0.1)
        raise RuntimeError("the server does not come up: " + self.text()[-3000:])

    def text(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def memory(self):
        """Resident bytes: of files, and not."""
        rows = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines() if ":" in line)
        return {key: int(rows[key].split()[0]) << 10 for key in ("RssAnon", "RssFile", "VmRSS")}

    def statistics(self, name):
        import tritonclient.http as http

        with http.InferenceServerClient(self.http) as client:
            return client.get_inference_statistics(name)["model_stats"][-1]

    def unload(self, name):
        """Takes a model out of service, and waits until the server has let go of it: what holds a request or an answer of it, holds it."""
        import tritonclient.http as http

        with http.InferenceServerClient(self.http, network_timeout=60) as client:
            client.unload_model(name)
            end = time.monotonic() + 20
            while time.monotonic() < end:
                told = [each for each in client.get_model_repository_index() if each["name"] == name and each.get("state")]
                if all(each["state"] == "UNAVAILABLE" and each["reason"] == "unloaded" for each in told):
                    return
                time.sleep(0.05)
        raise RuntimeError(f"'{name}' is not unloaded: {told}")

    def stop(self):
        """Ends the server, which at times takes 10 s more for its own connections after all models are gone."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
        ended = self.process.poll()
        self.process.kill()
        self.process.wait()
        if ended is not None and ended < 0:
            raise RuntimeError(f"the server was ended by signal {-ended}: {self.text()[-3000:]}")
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
