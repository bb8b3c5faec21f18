"""Compilers that crash, hang or eat memory, damaged stores, killed runs: the right verdict or one clear error."""

import glob
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest

from irdiff import config
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EVERY_LAUNCH, Compiled
from irdiff.resolve import corpus as corpora
from irdiff.resolve import targets
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains import resolve
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers
from tests.integration.conftest import started
from tests.texts import text_of
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]

NEW = "triton==3.9.0"
WORKLOAD = text_of("faults/workload.py")


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "planted" / "faults"
    folder.mkdir(parents=True)
    (folder / "compiler.py").write_text(WORKLOAD)
    return folder.parent


def check(irdiff, corpus, *more):
    return irdiff(
        "compare", NEW, NEW, "--no-cache", "--corpus", str(corpus), "--target", "sm_90",
        "--timeout", "30", "--memory", "2048", *more,
    )  # fmt: skip


def test_each_fault_ends_its_case_alone(irdiff, corpus):
    result = check(irdiff, corpus)
    assert result.code == 4, "a hang and exhausted memory are said: not everything was compared"
    assert "2 cases called failing ran out of time or memory" in result.stderr
    assert result.case("faults/compiler:fine@sm_90")["verdict"] == "unchanged"
    expected = {
        "crash": ("crash", "SIGSEGV"),
        "abort": ("crash", "SIGABRT"),
        "error": ("error", "planted error"),
        "hang": ("timeout", "30 s"),
        "memory": ("memory", "memory"),
    }
    for label, (kind, text) in expected.items():
        case = result.case(f"faults/compiler:{label}@sm_90")
        assert case["verdict"] == "failing", case
        assert case["failures"]["head"]["kind"] == kind, case["failures"]["head"]
        assert text.lower() in case["error"].lower()
    (base, head) = (note for note in result.run["notes"] if "without the frontend" in note)
    assert base.startswith("faults/compiler@sm_90 was captured at base") and "SIGSEGV" in head


def test_what_failed_launches_held_is_free_for_the_next(irdiff, corpus):
    """Each holds 600 MiB of the 2048 when it ends: by a frame of its own, or below the frontend's error."""
    (corpus / "faults" / "holds.py").write_text(WORKLOAD + text_of("faults/holds.py"))
    result = check(irdiff, corpus, "--case", "faults/holds")
    assert result.verdicts() == {"failing": 8, "unchanged": 1}
    assert all("planted" in case["error"] for case in result.run["cases"] if case["verdict"] == "failing")


def test_broken_workloads_are_findings(irdiff, corpus):
    (corpus / "faults" / "syntax.py").write_text("def broken(:\n")
    (corpus / "faults" / "dies.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    (corpus / "faults" / "empty.py").write_text("x = 1\n")
    told = {"syntax": "SyntaxError", "dies": "SIGSEGV", "empty": "LAUNCHES"}
    result = check(irdiff, corpus, *(word for name in told for word in ("--case", f"faults/{name}")))
    assert result.code == 4
    assert "nothing was compared" in result.stderr
    assert result.verdicts() == {"failing": 3}
    for name, said in told.items():
        assert said in result.case(f"faults/{name}:*@sm_90")["error"]


def test_a_host_that_is_killed_takes_no_case_along(cache, corpus):
    settings = config.load(cache=cache)
    toolchain, kernels = resolve(NEW, settings), corpora.load(corpus)
    side = Side(toolchain=toolchain, corpus=kernels, note="")
    target = next(row for row in targets.select((), [ROOT / "targets"]) if row.name == "sm_90")
    with closing(Workers(settings)) as workers, ThreadPoolExecutor(1) as pool:
        compiler = WorkerCompiler(
            Requests(settings, workers), Store(settings.store), EVERY_LAUNCH, reuse=False
        )
        launches = compiler.catalog(side, "faults/compiler", target).launches
        fine = next(row for row in launches if row.label == "fine")
        for signals in ((signal.SIGKILL,), (signal.SIGSTOP, signal.SIGKILL)):  # idle, and with work
            (host,) = _children(workers.get(toolchain, kernels.extra_packages(fine.id, target)).pid)
            os.kill(host, signals[0])
            waiting = pool.submit(compiler.compile, side, fine, target)
            if len(signals) > 1:
                assert not wait([waiting], timeout=0.3).done, "a stopped host does nothing"
                os.kill(host, signals[1])
            assert isinstance(waiting.result(), Compiled)


def test_launches_that_come_one_after_another_compile_as_each_does_alone(cache, corpus):
    """An assembler refuses some, and LLVM ends the process for others."""
    (corpus / "faults" / "stages.py").write_text(text_of("faults/stages.py"))
    settings = config.load(cache=cache)
    side = Side(toolchain=resolve(NEW, settings), corpus=corpora.load(corpus), note="")
    target = next(row for row in targets.select((), [ROOT / "targets"]) if row.name == "sm_90")

    def outcomes(*, reuse):
        with closing(Workers(settings)) as workers:
            requests = Requests(settings, workers)
            compiler = WorkerCompiler(requests, Store(settings.store), EVERY_LAUNCH, reuse=reuse)
            launches = compiler.catalog(side, "faults/stages", target).launches
            made = {row.label: compiler.compile(side, row, target) for row in launches}
            assert compiler.taken_from_store == 0
            return made

    together, alone = outcomes(reuse=True), outcomes(reuse=False)
    assert [label.partition("-")[2] for label, row in alone.items() if isinstance(row, Compiled)] == [
        "fine"
    ] * 5
    for label, outcome in alone.items():
        other = together[label]
        if isinstance(outcome, Compiled):
            assert isinstance(other, Compiled) and other.artifacts == outcome.artifacts
            assert other.metadata == outcome.metadata
        else:
            assert not isinstance(other, Compiled) and _said(other) == _said(outcome), label


def _said(failed):
    """Triton's message ends with the command that it ran, on a file of a random name."""
    failure = failed.failure
    return failure.kind, failure.stage, failure.signal, failure.message.partition("Repro command")[0]


def _children(pid):
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_unwritable_store_is_one_clear_error(irdiff, cache, corpus):
    (cache / "results").write_text("a file where the store should be")
    result = check(irdiff, corpus, "--case", ":fine")
    assert result.code == 4
    assert "cannot be written" in result.stderr
    assert "next: " in result.stderr


def test_full_disk_is_one_clear_error(irdiff, cache, corpus):
    """A file-size limit stands for a full disk: every write past it fails."""
    words = f"compare {NEW} {NEW} --no-cache --corpus {corpus} --case :fine --target sm_90"
    command = ["bash", "-c", f"ulimit -f 8; exec {sys.executable} -m irdiff {words}"]
    environment = {**os.environ, "IRDIFF_CACHE": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr
    result = check(irdiff, corpus, "--case", ":fine")
    assert result.verdicts() == {"unchanged": 1}


def _alive(marker):
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if marker in (folder / "environ").read_text(errors="replace"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_run_leaves_no_orphan_and_a_good_store(irdiff, cache, corpus, number):
    words = ("compare", NEW, NEW, "--no-cache", "--corpus", str(corpus), "--target", "sm_90")
    child = started(cache, *words, "--case", ":hang", "--case", ":fine", TMPDIR=str(cache))
    wait_for(lambda: glob.glob(f"{cache}/results/tmp/*/stderr"))  # it compiles
    child.send_signal(number)
    _, stderr = child.communicate()
    if number == signal.SIGINT:
        assert child.returncode == 130, stderr
        assert "interrupted" in stderr
    wait_for(lambda: not _alive(f"TMPDIR={cache}"))
    result = check(irdiff, corpus, "--case", ":fine")
    assert result.verdicts() == {"unchanged": 1}


def test_two_at_once_on_one_store(irdiff, cache, small_corpus):
    chosen = ("--corpus", str(small_corpus), "--target", "sm_90", "--no-recheck")
    words = ("compare", "triton==3.8.0", NEW, *chosen)
    for child in [started(cache, *words) for _ in range(2)]:
        out, err = child.communicate()
        assert child.returncode == 0, out + err
    assert irdiff(*words).code == 0
