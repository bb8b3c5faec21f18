"""A scheduler and two workers of Dask on this machine, some of which die while they are needed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Result

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
DASK = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
WORKER = [sys.executable, "-m", "distributed.cli.dask_worker"]
WORDS = (
    "compare",
    "triton==3.8.0",
    "triton==3.9.0",
    "--tier",
    "gate",
    "--target",
    "sm_90",
    "--target",
    "gfx942",
)
CASES = ("--case", "elementwise/vector_add", "--case", "normalization/softmax")


@dataclass
class Machines:
    """Processes of Dask, each in a group of its own."""

    folder: Path
    port: int
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def start(self, command: list[str], *words: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{len(self.started)}.log").open("wb")
        environment = {**os.environ, "IRDIFF_JOBS": "1", "PYTHONPATH": str(ROOT)}
        child = subprocess.Popen(
            [*command, *words],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
            cwd=self.folder,
        )
        self.started.append(child)
        return child

    def answers(self, port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def wait_for(self, what: Callable[[], bool]) -> None:
        for _ in range(600):
            if what():
                return
            time.sleep(0.2)
        pytest.fail("Dask did not start")

    def registered(self) -> int:
        return sum("Registered to" in path.read_text() for path in self.folder.glob("*.log"))

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "dask"
    folder.mkdir()
    made = Machines(folder, port)
    try:
        made.start(DASK, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        made.wait_for(lambda: made.answers(port))
        for _ in range(2):
            made.start(WORKER, made.url, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        made.wait_for(lambda: made.registered() == 2)
        yield made
    finally:
        for child in made.started:
            if child.poll() is None:
                made.kill(child)


def told(run: dict[str, Any]) -> dict[str, Any]:
    """All that a run says but for times, and whether a compiler was started here."""
    cases = [{**case, "compile_s": None} for case in run["cases"]]
    return {**{name: run[name] for name in ("groups", "summary", "launches", "base", "head")}, "cases": cases}


def test_machines_say_what_one_machine_says_and_one_may_die(
    machines: Machines, irdiff: Callable[..., Result], cache: Path, tmp_path: Path
) -> None:
    def kill_one() -> None:
        machines.wait_for(lambda: any((cache / "store" / "records").glob("compile/*/*")))
        machines.kill(machines.started[2])

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = irdiff(*WORDS, *CASES, "--cluster", machines.url)
    killer.join()
    assert done.run is not None, done.stderr
    assert machines.started[2].poll() is not None
    assert "2 workers" in done.stderr or "cluster: 4/4" in done.stderr
    assert [note for note in done.run["notes"] if "made here" in note] == []
    assert done.run["environment"]["address-randomization"] == "no compiler was started"
    (cache / "store").rename(tmp_path / "of machines")
    alone = irdiff(*WORDS, *CASES)
    assert alone.run is not None, alone.stderr
    assert told(done.run) == told(alone.run)


def test_a_scheduler_that_dies_leaves_the_work_to_this_machine(
    machines: Machines, irdiff: Callable[..., Result], cache: Path
) -> None:
    def kill_scheduler() -> None:
        machines.wait_for(lambda: any((cache / "store" / "records").glob("catalog/*/*")))
        machines.kill(machines.started[0])

    killer = threading.Thread(target=kill_scheduler)
    killer.start()
    done = irdiff(*WORDS, "--case", "elementwise/vector_add", "--cluster", machines.url)
    killer.join()
    assert done.run is not None, done.stderr
    assert done.verdicts() == {"changed": 2}
    assert any("were made here instead" in note for note in done.run["notes"])


def test_a_machine_that_stands_still_for_a_while_loses_nothing(
    machines: Machines, irdiff: Callable[..., Result], cache: Path
) -> None:
    paused = machines.started[1]

    def pause_one() -> None:
        machines.wait_for(lambda: any((cache / "store" / "records").glob("catalog/*/*")))
        os.killpg(paused.pid, signal.SIGSTOP)
        time.sleep(15)
        os.killpg(paused.pid, signal.SIGCONT)

    pauser = threading.Thread(target=pause_one)
    pauser.start()
    done = irdiff(*WORDS, *CASES, "--cluster", machines.url)
    pauser.join()
    assert done.run is not None, done.stderr
    assert [note for note in done.run["notes"] if "made here" in note] == []
    assert done.run["environment"]["address-randomization"] == "no compiler was started"


def test_a_scheduler_that_is_started_again_costs_no_answer(
    machines: Machines, irdiff: Callable[..., Result], cache: Path
) -> None:
    def restart() -> None:
        machines.wait_for(lambda: any((cache / "store" / "records").glob("catalog/*/*")))
        machines.kill(machines.started[0])
        machines.start(DASK, "--host", "127.0.0.1", "--port", str(machines.port), "--no-dashboard")

    restarter = threading.Thread(target=restart)
    restarter.start()
    done = irdiff(*WORDS, "--case", "elementwise/vector_add", "--cluster", machines.url)
    restarter.join()
    assert done.run is not None, done.stderr
    assert done.verdicts() == {"changed": 2}


def test_a_scheduler_that_is_not_there_is_one_error(irdiff: Callable[..., Result]) -> None:
    done = irdiff(*WORDS, "--case", "elementwise/vector_add", "--cluster", "tcp://127.0.0.1:1")
    assert done.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in done.stderr
