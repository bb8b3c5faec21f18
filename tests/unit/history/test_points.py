from __future__ import annotations

import re

import pytest
from packaging.specifiers import SpecifierSet

from irdiff.errors import ToolchainError, UsageError
from irdiff.history import versions

INDEX = ["3.1.0", "3.2.0", "3.3.0", "3.3.1", "3.4.0", "3.5.0"]


def ask(requirement: str) -> str | None:
    wanted = SpecifierSet(requirement.removeprefix("triton"))
    return next((version for version in reversed(INDEX) if version in wanted), None)


def test_a_range_is_all_that_the_index_has_of_it() -> None:
    assert versions.between("3.2.0", "3.4.0", ask) == ["3.2.0", "3.3.0", "3.3.1", "3.4.0"]


def test_a_range_without_a_version_is_an_error() -> None:
    with pytest.raises(ToolchainError, match=re.escape("from 4.0 to 5.0")):
        versions.between("4.0", "5.0", ask)


def nights(*days: str) -> list[versions.Point]:
    return [versions.release(f"3.4.0.dev{day}") for day in days]


def test_of_each_span_the_last_version_stays() -> None:
    made = nights("20250601", "20250602", "20250602", "20250603", "20250604", "20250605")
    assert [point.day for point in versions.thinned(made, 2)] == ["2025-06-01", "2025-06-03", "2025-06-05"]
    assert versions.thinned(made, 0) == made


def test_versions_without_a_day_cannot_be_thinned() -> None:
    with pytest.raises(UsageError, match=re.escape("3.4.0 names no day")):
        versions.thinned([versions.release("3.4.0")], 1)


@pytest.mark.parametrize("spec", ["3.4.0", "wheel:a..b", "triton>=3"])
def test_what_is_no_range_is_refused(spec: str, tmp_path, config) -> None:
    with pytest.raises(UsageError, match="no range of versions"):
        versions.of_specs([spec], 0, tmp_path, config)


def test_releases_are_put_in_order_once(tmp_path, config) -> None:
    found = versions.of_specs(["triton==3.10.0", "triton==3.9.0", "triton==3.10.0"], 0, tmp_path, config)
    assert [point.label for point in found] == ["3.9.0", "3.10.0"]


def test_series_are_not_mixed(tmp_path, config) -> None:
    with pytest.raises(UsageError, match="nightlies, releases"):
        versions.of_specs(["triton==3.9.0", "triton==3.9.0.dev20250601"], 0, tmp_path, config)
