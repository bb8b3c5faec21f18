"""Repositories of kernels: what no kernel is made of, what they pin, and how one elsewhere is written."""

from operator import itemgetter
from pathlib import PurePosixPath

import pytest

from irdiff.resolve import pins, remote_repositories, tree_edits
from irdiff.resolve.kernel_repository import Plan
from tests.unit.golden import golden

GOLDEN = golden("kernel-repositories")


def test_what_no_kernel_is_made_of():
    for paths, word in (
        ("pkg/k.py pkg/tuned.json pkg/.tuned.json pkg/.cache/tuned.json", None),
        ("bench/README.md .pins/lock.txt .tuned.json .cache/tuned.json", None),
        (".github/workflows/test.yml .gitignore", "other files"),
        ("pkg/README.md LICENSE", "documents"),
    ):
        plan = Plan(workloads="bench", pin=".pins/lock.txt")  # imports from the root, as by default
        assert {
            tree_edits.purpose_without_kernels(PurePosixPath(path), [plan]) for path in paths.split()
        } == {word}


@pytest.mark.parametrize("row", GOLDEN["pin"], ids=itemgetter("name"))
def test_a_pin_means_what_the_tools_that_write_it_mean(row):
    files = {"requirements/base.txt": b"-r ../requirements.txt\ntriton==3.7.1\n"}
    assert pins.version(row["name"], row["text"].encode(), read=files.get) == row.get("version")


def test_a_repository_elsewhere_or_a_revision_of_the_one_at_hand():
    for row in GOLDEN["elsewhere"]:
        found = remote_repositories.parse(row["spec"])
        assert found and {"url": found.url, "revision": found.revision}.items() <= row.items()
    assert [spec for spec in GOLDEN["here"] if remote_repositories.parse(spec)] == []
