"""Runs a command with limits of time and memory and says what it took. The memory is the resident set of the process, looked at often."""

import dataclasses
import os
import signal
import subprocess
import tempfile
import time

NICE = 10


@dataclasses.dataclass
class Done:
    code: int
    text: str
    seconds: float
    peak: int
    stopped: str = ""

    def reason(self):
        """One line: why it failed."""
        if self.stopped:
            return self.stopped
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        for line in lines:
            if "error:" in line or line.startswith("ERROR"):
                return line[:400]
        return lines[-1][:400] if lines else f"exit {self.code}"

    def crashed(self):
        return not self.stopped and (self.code < 0 or self.code == 70 or self.code > 128)


def started(command, **options):
    """The process; a program that a build is writing just now is waited for."""
    for left in range(60, -1, -1):
        try:
            return subprocess.Popen(command, **options)
        except OSError:
            if not left:
                raise
            time.sleep(2)


def resident(pid):
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def used(pid):
    """The seconds of processor time of a process and its threads."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return float("inf")


def run(command, seconds, limit=8 << 30, environment=None, cwd=None):
    """The command's end, both of its streams as one text, its time and its peak of memory. The time is the wall's, or where that is less the
    processor's: what it would take on a machine that has nothing else to do."""
    with tempfile.TemporaryFile() as out:
        start = time.monotonic()
        child = started(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            preexec_fn=lambda: os.nice(NICE),
            start_new_session=True,
        )
        stopped, usage, status = watch(child.pid, start, seconds, limit)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
        took = min(time.monotonic() - start, usage.ru_utime + usage.ru_stime)
        return Done(child.returncode, text, took, usage.ru_maxrss * 1024, stopped)


def watch(pid, start, seconds, limit):
    """Waits for the process and stops its group at a limit."""
    stopped, pause = "", 0.01
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return stopped, usage, status
        waited = time.monotonic() - start  # one that sleeps for ever is stopped too
        if not stopped and waited > seconds and (used(pid) > seconds or waited > 10 * seconds):
            stopped = f"more than {seconds} s"
        if not stopped and resident(pid) > limit:
            stopped = f"more than {limit >> 30} GiB of memory"
        if stopped:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(pause)
        pause = min(0.2, pause * 1.3)
