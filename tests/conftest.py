"""What tests share: one cache of toolchains for all of them, a store of its own for each."""

import shutil
import signal
from pathlib import Path

import pytest

from irdiff import config as configuration
from tests.programs.browser import NOT_RUN
from tests.programs.evidence import comparing

ROOT = Path(__file__).parent.parent
collect_ignore = ["data"]
# a shell that starts the tests in the background has them ignore it, and all that they start
signal.signal(signal.SIGINT, signal.default_int_handler)


LONGEST_FIRST = (
    *("test_workflow_steps.py", "test_evidence.py", "test_compiler_commits.py", "test_origin.py"),
    *("test_kernel_authors.py", "test_native_builds.py", "test_bisect_commits.py", "test_false_alarms.py"),
    *("test_what_stages_see.py", "test_sample.py", "test_faults.py", "test_compare.py", "test_runs_made_twice.py"),
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Two processes take a file each (`--dist loadfile`): none begins a long one when the other is done."""
    place = {name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path.name, 50 if "integration" in item.path.parts else 99))


@pytest.fixture(scope="session")
def shared_cache():
    """The cache whose toolchains integration tests share (IRDIFF_CACHE, or the user's)."""
    return configuration.load().cache


@pytest.fixture
def cache(tmp_path, shared_cache):
    """A cache with a store of its own and the shared toolchains."""
    return comparing.new_cache(tmp_path / "cache", shared_cache)


@pytest.fixture
def config(cache):
    return configuration.load(cache=cache)


@pytest.fixture
def small_corpus(tmp_path):
    """A copy of the vector addition alone."""
    folder = tmp_path / "corpus" / "elementwise"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "corpus" / "elementwise" / "vector_add.py", folder)
    return folder.parent


def pytest_terminal_summary(terminalreporter):
    """What a machine cannot run at all is said at the end, where it is read, and not only as a letter."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = (str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple))
    for reason in sorted({reason.removeprefix("Skipped: ") for reason in reasons if NOT_RUN in reason}):
        terminalreporter.section("NOT RUN", red=True, bold=True)
        terminalreporter.line(reason, red=True)
