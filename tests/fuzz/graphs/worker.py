"""The worker process: compiles, interprets and runs."""
import subprocess


class Result:
    """`code`: an exit code, or a signal's number negative."""

    def __init__(self, line):
        code, milliseconds, text = line.rstrip("\n").split("\t", 2)
        self.code, self.milliseconds, self.text = int(code), int(milliseconds), text.replace("\\n", "\n").replace("\\t", "\t")

    def __bool__(self):
        return self.code == 0


class Worker:
    def __init__(self, command, folder):
        self.command, self.folder, self.process = [str(p) for p in command], folder, None
        self.milliseconds = {}
        self.counts = {}

    def ask(self, *words):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.folder)
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker ended at: {words}")
        result = Result(line)
        self.milliseconds[words[0]] = self.milliseconds.get(words[0], 0) + result.milliseconds
        self.counts[words[0]] = self.counts.get(words[0], 0) + 1
        return result

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
