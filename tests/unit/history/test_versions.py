"""How versions are named and sorted, and which ones a backfill is about."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Packaged

from irdiff.errors import ToolchainError, UsageError
from irdiff.history import versions
from irdiff.history.versions import COMMITS, NIGHTLIES, OTHERS, RELEASES

ORDERED = [
    *("3.2.0", "3.3.1+gitc8757738", "3.4.0.dev20250101", "3.4.0a1", "3.4.0rc1.dev2", "3.4.0rc1", "3.4.0"),
    *("3.4.0.post1.dev3", "3.4.0.post1", "3.4.0.post20240716052845", "3.4.1", "3.10.0"),
]


def test_texts_sort_as_versions_do() -> None:
    shuffled = ORDERED[::-1]
    assert sorted(shuffled, key=versions.sort_key) == ORDERED == sorted(shuffled, key=Packaged)


def test_a_nightly_names_its_day() -> None:
    assert versions.sort_key("3.2") == versions.sort_key("3.2.0")
    days = {"3.0.0.post20240716052845": "2024-07-16", "3.4.0.dev20250612+git1a2b": "2025-06-12"}
    days |= dict.fromkeys(("3.4.0", "3.4.0+git20251"))
    assert {version: versions.date_of(version) for version in days} == days


@pytest.mark.parametrize(
    ("spec", "name", "series", "label"),
    [
        ("triton==3.8.0", "triton==3.8.0", RELEASES, "3.8.0"),
        ("triton==3.4.0.dev20250612", "triton==3.4.0.dev20250612", NIGHTLIES, "3.4.0.dev20250612"),
        ("main~3 (0123456789)", "0123456789", COMMITS, "0123456789"),
        ("0123456789", "0123456789", COMMITS, "0123456789"),
        ("wheel:/tmp/x.whl", "wheel:/tmp/x.whl", OTHERS, "wheel:/tmp/x.whl"),
    ],
)
def test_a_side_is_a_version(build, spec: str, name: str, series: str, label: str) -> None:
    run = build.run(build.case())
    base = versions.of_run(replace(run, base=replace(run.base, spec=spec))).base
    assert (base.name, base.series, base.label) == (name, series, label)


def test_revisions_of_kernels_are_named_by_their_commit(build) -> None:
    run = build.run(build.case())
    base, head = (
        replace(run.base, digest="d", corpus=corpus, note=f"kernels of {name} ({commit}): a title")
        for corpus, name, commit in (("a", "main~1", "aaa3456789"), ("b", "main", "0123456789"))
    )
    sides = versions.of_run(replace(run, base=base, head=head))
    assert (sides.base.name, sides.head.name) == ("aaa3456789", "0123456789")
    assert sides.base.sort_key < sides.head.sort_key


# which versions a backfill is about

INDEX = ["3.1.0", "3.2.0", "3.3.0", "3.3.1", "3.4.0", "3.5.0"]


def ask(requirement: str) -> str | None:
    wanted = SpecifierSet(requirement.removeprefix("triton"))
    return next((version for version in reversed(INDEX) if version in wanted), None)


def test_a_range_is_all_that_the_index_has_of_it() -> None:
    assert versions.between("3.2.0", "3.4.0", ask) == ["3.2.0", "3.3.0", "3.3.1", "3.4.0"]
    with pytest.raises(ToolchainError, match=re.escape("from 4.0 to 5.0")):
        versions.between("4.0", "5.0", ask)


def test_specs_are_one_series_in_order_and_each_once(tmp_path, config) -> None:
    found = versions.of_specs(["triton==3.10.0", "triton==3.9.0", "triton==3.10.0"], 0, tmp_path, config)
    assert [point.label for point in found] == ["3.9.0", "3.10.0"]
    with pytest.raises(UsageError, match="nightlies, releases"):
        versions.of_specs(["triton==3.9.0", "triton==3.9.0.dev20250601"], 0, tmp_path, config)
    for spec in ("3.4.0", "wheel:a..b", "triton>=3"):
        with pytest.raises(UsageError, match="no range of versions"):
            versions.of_specs([spec], 0, tmp_path, config)
