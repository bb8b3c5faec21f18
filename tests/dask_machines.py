"""A scheduler and workers of Dask on this machine, for tests and benchmarks."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import wait_for

ROOT = Path(__file__).parent.parent
_SCHEDULER = (sys.executable, "-m", "distributed.cli.dask_scheduler")
_WORKER = (sys.executable, "-m", "distributed.cli.dask_worker")
_PRELOADED = ("--preload", "irdiff.cluster.batches")
_AS_DOCUMENTED = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
}
"""What `irdiff/cluster/README.md` says to set."""


@dataclass
class Machines:
    """Processes of Dask, each in a group of its own. The first one is the scheduler."""

    folder: Path
    """Where they run, and leave their logs."""
    port: int
    protocol: str = "tcp"
    environment: Mapping[str, str] = field(default_factory=dict)
    """What is set for them besides what is set here."""
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self):
        return f"{self.protocol}://127.0.0.1:{self.port}"

    def start_scheduler(self):
        where = ("--protocol", self.protocol, "--host", "127.0.0.1", "--port", str(self.port))
        self._start(*_SCHEDULER, *where, *_PRELOADED, "--no-dashboard")

    def start_worker(self):
        self._start(*_WORKER, self.url, "--nthreads", "1", *_PRELOADED, "--no-dashboard", "--no-nanny")

    def _start(self, *command):
        ours = {"IRDIFF_JOBS": "1", "PYTHONPATH": str(ROOT)}
        env = {**os.environ, **_AS_DOCUMENTED, **ours, **self.environment}
        with (self.folder / f"{len(self.started)}.log").open("wb") as log:
            where = {"stdout": log, "stderr": log, "cwd": self.folder}
            self.started.append(subprocess.Popen(command, start_new_session=True, env=env, **where))

    def are_there(self, workers):
        logs = [path.read_text() for path in self.folder.glob("*.log")]
        return sum("Registered to" in log for log in logs) >= workers

    def kill(self, number):
        """Of those started; one that is dead already stays so."""
        child = self.started[number]
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def send(self, number, signal_):
        os.killpg(self.started[number].pid, signal_)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def machines(folder, workers, **more):
    """Once all have found each other."""
    folder.mkdir(exist_ok=True)
    made = Machines(folder, free_port(), **more)
    try:
        made.start_scheduler()
        for _ in range(workers):  # a worker waits for its scheduler
            made.start_worker()
        wait_for(lambda: made.are_there(workers))
        yield made
    finally:
        for number in range(len(made.started)):
            made.kill(number)
