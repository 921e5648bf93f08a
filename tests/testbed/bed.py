# SPDX-License-Identifier: Apache-2.0
"""The test bed for Python: a bed that is up during a with statement."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def tool(name):
    return os.path.join(HERE, name)


def reason_against():
    """The reason why the bed cannot run on this machine, or an empty string."""
    able = subprocess.run([tool("can_run")], stdout=subprocess.PIPE, text=True, check=False)
    return "" if able.returncode == 0 else able.stdout.strip()


class Bed:
    """A bed that with.sh keeps up. The command of with.sh prints the name of the bed and waits for the end of its input."""

    def __init__(self, *size):
        self.holder = subprocess.Popen([tool("with.sh"), *map(str, size), "--", "sh", "-c", "echo $TB; read _"], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.name = self.holder.stdout.readline().strip()
        if not self.name:
            raise RuntimeError(f"no test bed: with.sh {size} ended with {self.holder.wait()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.holder.stdin.close()
        self.holder.wait(60)
        self.holder.stdout.close()

    def call(self, script, *arguments, allowed=(0,), timeout=120, errors=subprocess.PIPE):
        """The output of a script, with its standard error output if `errors` is subprocess.STDOUT. RuntimeError if its exit status is not allowed."""
        done = subprocess.run([tool(script), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                              timeout=timeout, env={**os.environ, "TB": self.name}, check=False)
        if done.returncode not in allowed:
            raise RuntimeError(f"{script} {arguments}: {done.returncode}\n{done.stdout}{done.stderr or ''}")
        return done.stdout

    def counters(self):
        """{(host, device): (bytes sent, bytes received)} since the bed was started."""
        return {(host, device): (int(sent), int(received)) for host, device, _, sent, _, received in
                (line.split() for line in self.call("bytes.sh").splitlines())}

    def counted(self, *command, timeout=120, errors=subprocess.PIPE):
        """({(host, device): (sent, received)} during the command, its output)"""
        before = self.counters()
        text = self.call("run.sh", *command, timeout=timeout, errors=errors)
        after = self.counters()
        return {link: (after[link][0] - before[link][0], after[link][1] - before[link][1]) for link in after}, text
