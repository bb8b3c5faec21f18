"""What is said of a request that gave no result: the first reason, whatever a compiler prints before and after."""

import resource
import signal
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace

import pytest

from irdiff import config
from irdiff.errors import StoreError
from irdiff.model import FailureKind
from irdiff.worker_client import diagnosis
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import EndedChild, Workers
from tests.texts import text_of
from tests.unit.golden import golden

MODULE = "\n".join(f"    %{n} = arith.addi %a, %b : i32" for n in range(2000))


@pytest.mark.parametrize("row", golden("diagnosis")["case"], ids=itemgetter("name"))
def test_the_first_reason_leads(row):
    said = row["stderr"].replace("<MODULE>", MODULE)
    assert diagnosis.of_text(said).text.startswith(row["reason"])


def test_the_pass_and_the_ending_follow_the_reason():
    said = diagnosis.of_text(text_of("diagnosis/failed_pass.txt") + MODULE)
    assert said.pass_name == "TritonAMDGPUConvertToBufferOps"
    assert said.explained("the compiler died of SIGABRT").endswith(
        "(ConvertToBufferOps.cpp:486), in TritonAMDGPUConvertToBufferOps (the compiler died of SIGABRT)"
    )


def test_the_beginning_and_the_end_are_kept(tmp_path):
    path = tmp_path / "stderr"
    path.write_text(f"the beginning\n{MODULE}\nthe end\n")
    excerpt = diagnosis.of_file(path).excerpt
    assert excerpt.startswith("the beginning\n")
    assert excerpt.endswith("\nthe end")
    assert "bytes left out" in excerpt
    assert diagnosis.of_file(tmp_path / "none") == diagnosis.NOTHING


@pytest.fixture
def requests(tmp_path):
    chosen = config.load(cache=tmp_path)
    return Requests(chosen, Workers(chosen))


def test_a_killed_process_says_nothing_of_the_compiler(requests, tmp_path):
    from_outside = {signal.SIGKILL, signal.SIGTERM}
    for number in (*from_outside, signal.SIGSEGV, signal.SIGABRT):
        ended = EndedChild(signal=number, timed_out=False, worker_died=False)
        kind = FailureKind.MEMORY if number in from_outside else FailureKind.CRASH
        assert requests.failure(ended, None, tmp_path).kind is kind, number


@pytest.mark.parametrize("deaths", [(False,), (True, False), (True, True)])
def test_a_case_whose_worker_died_is_asked_once_more(tmp_path, deaths):
    """Another case may have killed it: of this one that says nothing."""
    ends = iter([EndedChild(signal=0, timed_out=False, worker_died=died) for died in deaths])
    workers = SimpleNamespace(get=lambda *_, **__: SimpleNamespace(request=lambda _: next(ends)))
    ended = Requests(config.load(cache=tmp_path), workers).ask(None, None, {}, tmp_path)
    assert ended.worker_died is deaths[-1] and next(ends, None) is None


@pytest.fixture
def full_disk():
    """A limit of the size of files stands for it: every write past it fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_ends_the_comparison_and_is_no_failure_of_a_kernel(requests, tmp_path, full_disk):
    """The child could write neither its result nor why."""
    ended = EndedChild(signal=0, timed_out=False, worker_died=False)
    workers = SimpleNamespace(get=lambda *_, **__: SimpleNamespace(request=lambda _: ended))
    with pytest.raises(StoreError, match="File too large"):
        Requests(config.load(cache=tmp_path), workers).ask(None, None, {}, tmp_path)
    (tmp_path / "stderr").write_text("ptxas fatal: No space left on device\n")
    with pytest.raises(StoreError, match=r"No space left on device: .* MB are free on /") as raised:
        requests.failure(ended, None, tmp_path)
    assert "IRDIFF_CACHE" in raised.value.hint


def test_a_full_folder_of_temporary_files_is_named_and_not_the_one_that_python_falls_back_to(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/elsewhere")
    assert config.load(cache=tmp_path).temporary_folder == tmp_path
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    assert config.load(cache=tmp_path).temporary_folder == Path("/elsewhere")


@pytest.mark.slow
def test_the_end_of_a_huge_output_is_read_alone(tmp_path):
    with (tmp_path / "stderr").open("wb") as file:
        file.truncate(1 << 40)  # sparse: whoever reads it whole runs out of memory
        file.seek(0, 2)
        file.write("the last line \N{EM DASH} of all\n".encode())
    said = diagnosis.of_file(tmp_path / "stderr").excerpt
    assert said.endswith("the last line \N{EM DASH} of all")
    assert len(said) <= 6100
