"""What the tests of the array say and count: `expect`, `run`, and `failures`, which decides the exit code."""
import subprocess

failures = []


def expect(good, what):
    if not good:
        failures.append(what)
        print("FAIL:", what)


def run(*command, code=0):
    """What a command said, which has to end with this exit code."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    text = done.stdout + done.stderr
    expect(done.returncode == code, f"{' '.join(map(str, command))}: exit code {done.returncode}, not {code}:\n{text[-2000:]}")
    return text
