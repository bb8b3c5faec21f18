"""What is said of a request that gave no result."""

import signal
from types import SimpleNamespace

import pytest

from irdiff import config
from irdiff.model import FailureKind
from irdiff.worker_client import diagnosis
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import EndedChild, Workers


@pytest.fixture
def requests(tmp_path):
    chosen = config.load(cache=tmp_path)
    return Requests(chosen, Workers(chosen))


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGKILL, FailureKind.MEMORY),
        (signal.SIGTERM, FailureKind.MEMORY),
        (signal.SIGSEGV, FailureKind.CRASH),
        (signal.SIGABRT, FailureKind.CRASH),
    ],
)
def test_a_killed_process_says_nothing_of_the_compiler(requests, tmp_path, number, kind):
    ended = EndedChild(signal=number, timed_out=False, worker_died=False)
    assert requests.failure(ended, None, tmp_path).kind is kind


@pytest.mark.parametrize("deaths", [(False,), (True, False), (True, True)])
def test_a_case_whose_worker_died_is_asked_once_more(tmp_path, deaths):
    """Another case may have killed it: of this one that says nothing."""
    ends = iter([EndedChild(signal=0, timed_out=False, worker_died=died) for died in deaths])
    workers = SimpleNamespace(get=lambda *_, **__: SimpleNamespace(request=lambda _: next(ends)))
    ended = Requests(config.load(cache=tmp_path), workers).ask(None, None, {}, tmp_path)
    assert ended.worker_died is deaths[-1] and next(ends, None) is None


def test_the_end_of_a_huge_output_is_read_alone(tmp_path):
    with (tmp_path / "stderr").open("wb") as file:
        file.truncate(1 << 40)  # sparse: whoever reads it whole runs out of memory
        file.seek(0, 2)
        file.write("the last line \N{EM DASH} of all\n".encode())
    said = diagnosis.of_file(tmp_path / "stderr").excerpt
    assert said.endswith("the last line \N{EM DASH} of all")
    assert len(said) <= 6100
