from __future__ import annotations

from dataclasses import replace

import pytest
from packaging.version import Version as Packaged

from irdiff.history import versions
from irdiff.history.versions import COMMITS, NIGHTLIES, OTHERS, RELEASES

ORDERED = [
    "3.2.0",
    "3.3.1+gitc8757738",
    "3.4.0.dev20250101",
    "3.4.0a1",
    "3.4.0rc1.dev2",
    "3.4.0rc1",
    "3.4.0",
    "3.4.0.post1.dev3",
    "3.4.0.post1",
    "3.4.0.post20240716052845",
    "3.4.1",
    "3.10.0",
]


def test_texts_sort_as_versions_do() -> None:
    shuffled = ORDERED[::-1]
    assert sorted(shuffled, key=versions.sort_key) == ORDERED == sorted(shuffled, key=Packaged)


def test_trailing_zeros_say_nothing() -> None:
    assert versions.sort_key("3.2") == versions.sort_key("3.2.0")


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("3.0.0.post20240716052845", "2024-07-16"),
        ("3.4.0.dev20250612+git1a2b", "2025-06-12"),
        ("3.4.0", None),
        ("3.4.0+git20251", None),
    ],
)
def test_a_nightly_names_its_day(version: str, day: str | None) -> None:
    assert versions.date_of(version) == day


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


def test_revisions_of_kernels_are_told_apart_by_their_commit(build) -> None:
    run = build.run(build.case())
    told = "kernels of {} (0123456789): a title"
    sides = versions.of_run(
        replace(
            run,
            base=replace(run.base, digest="d", corpus="a", note=told.format("main~1").replace("012", "aaa")),
            head=replace(run.head, digest="d", corpus="b", note=told.format("main")),
        )
    )
    assert (sides.base.name, sides.head.name) == ("aaa3456789", "0123456789")
    assert sides.base.sort_key < sides.head.sort_key
