"""A scheduler and two workers of Dask on this machine, some of which die while they are needed."""

import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from irdiff.store import Store
from tests import dask_machines
from tests.waiting import wait_for

BOTH = ("--target", "sm_90", "--target", "gfx942")
WORDS = ["compare", "triton==3.8.0", "triton==3.9.0", "--tier", "gate", *BOTH]
ONE = ("--case", "elementwise/vector_add")
CASES = (*ONE, "--case", "normalization/softmax")
SCHEDULER, WORKER, OTHER_WORKER = range(3)
"""In the order in which they start."""


@pytest.fixture
def machines(tmp_path):
    with dask_machines.machines(tmp_path / "dask", workers=2) as made:
        yield made


@contextmanager
def meanwhile(act, cache, *, after):
    """Once the store has a record of a kind."""

    def act_then():
        wait_for(lambda: Store(cache / "results").keys(after))
        act()

    with ThreadPoolExecutor(1) as thread:
        acted = thread.submit(act_then)
        yield
        acted.result()


def told(run):
    """All that a run says but for times, and whether a compiler was started here."""
    cases = [{**case, "compile_s": None} for case in run["cases"]]
    return {**{name: run[name] for name in ("groups", "summary", "launches", "base", "head")}, "cases": cases}


def test_machines_say_what_one_machine_says_and_one_may_die(machines, irdiff, cache, tmp_path):
    with meanwhile(lambda: machines.kill(OTHER_WORKER), cache, after="compiled"):
        done = irdiff(*WORDS, *CASES, "--cluster", machines.url)
    assert done.run is not None, done.stderr
    assert machines.started[OTHER_WORKER].poll() is not None
    assert "2 workers" in done.stderr or "cluster: 4/4" in done.stderr
    assert made_elsewhere(done)
    (cache / "results").rename(tmp_path / "of machines")
    alone = irdiff(*WORDS, *CASES)
    assert alone.run is not None, alone.stderr
    assert told(done.run) == told(alone.run)


def made_elsewhere(done):
    assert done.run is not None, done.stderr
    none_here = done.run["environment"]["address-randomization"] == "no compiler was started"
    return none_here and not any("made here" in note for note in done.run["notes"])


@pytest.mark.wide
def test_a_scheduler_that_dies_leaves_the_work_to_this_machine(machines, irdiff, cache):
    with meanwhile(lambda: machines.kill(SCHEDULER), cache, after="catalog"):
        done = irdiff(*WORDS, *ONE, "--cluster", machines.url)
    assert done.verdicts() == {"changed": 2}
    assert any("were made here instead" in note for note in done.run["notes"])


@pytest.mark.wide
def test_a_machine_that_stands_still_for_a_while_loses_nothing(machines, irdiff, cache):
    def pause():
        machines.send(WORKER, signal.SIGSTOP)
        time.sleep(15)
        machines.send(WORKER, signal.SIGCONT)

    with meanwhile(pause, cache, after="catalog"):
        assert made_elsewhere(irdiff(*WORDS, *CASES, "--cluster", machines.url))


@pytest.mark.wide
def test_a_scheduler_that_is_started_again_costs_no_answer(machines, irdiff, cache):
    def restart():
        machines.kill(SCHEDULER)
        machines.start_scheduler()

    with meanwhile(restart, cache, after="catalog"):
        done = irdiff(*WORDS, *ONE, "--cluster", machines.url)
    assert done.verdicts() == {"changed": 2}


def test_a_scheduler_that_is_not_there_is_one_error(irdiff):
    done = irdiff(*WORDS, *ONE, "--cluster", "tcp://127.0.0.1:1")
    assert done.code == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in done.stderr


def tls(folder, name):
    """Dask's settings, as variables, for one certificate that all have and that signs itself."""
    key, certificate = str(folder / f"{name}.key"), str(folder / f"{name}.pem")
    words = ("-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}")
    words = ("req", "-x509", *words, "-keyout", key, "-out", certificate)
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    where = "DASK_DISTRIBUTED__COMM__TLS__"
    files = {"CERT": certificate, "KEY": key}
    roles = [(role, what) for role in ("SCHEDULER", "WORKER", "CLIENT") for what in files]
    return {f"{where}CA_FILE": certificate, **{f"{where}{role}__{what}": files[what] for role, what in roles}}


@pytest.mark.wide
@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make certificates with")
def test_a_cluster_that_speaks_tls_answers_whoever_has_its_certificate(irdiff, tmp_path):
    ours = tls(tmp_path, "ours")
    with dask_machines.machines(tmp_path / "dask", workers=1, protocol="tls", environment=ours) as machines:
        words = (*WORDS, *ONE, "--cluster", machines.url)
        done = irdiff(*words, **ours)
        assert done.verdicts() == {"changed": 2}
        assert made_elsewhere(done)
        strangers = {
            "needs a certificate, and Dask's configuration names none": irdiff(*words),
            "no Dask scheduler answers at tls://": irdiff(*words, **tls(tmp_path, "theirs")),
            "no Dask scheduler answers at tcp://": irdiff(*words[:-1], machines.url.replace("tls", "tcp")),
        }
    for said, stranger in strangers.items():
        assert stranger.code == 2, said
        assert said in stranger.stderr
        assert stranger.stderr.count("irdiff: ") == 1, stranger.stderr
        assert "Traceback" not in stranger.stderr
