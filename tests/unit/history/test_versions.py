"""How versions are named and sorted."""

from dataclasses import replace

import pytest
from packaging.version import Version as Packaged

from irdiff.errors import UsageError
from irdiff.history import versions
from irdiff.history.versions import COMMITS, NIGHTLIES, OTHERS, RELEASES
from tests.unit import runs

ORDERED = [
    *("3.2.0", "3.3.1+gitc8757738", "3.4.0.dev20250101", "3.4.0a1", "3.4.0rc1.dev2", "3.4.0rc1", "3.4.0"),
    *("3.4.0.post1.dev3", "3.4.0.post1", "3.4.0.post20240716052845", "3.4.1", "3.10.0"),
]


def test_texts_sort_as_versions_do():
    shuffled = ORDERED[::-1]
    assert sorted(shuffled, key=versions.sort_key) == ORDERED == sorted(shuffled, key=Packaged)


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
def test_a_side_is_a_version(spec, name, series, label):
    run = runs.run(runs.case())
    base = versions.of_run(replace(run, base=replace(run.base, spec=spec))).base
    assert (base.name, base.series, base.label) == (name, series, label)


def test_specs_are_one_series_in_order_and_each_once(tmp_path, config):
    found = versions.of_specs(["triton==3.10.0", "triton==3.9.0", "triton==3.10.0"], 0, tmp_path, config)
    assert [point.label for point in found] == ["3.9.0", "3.10.0"]
    with pytest.raises(UsageError, match="nightlies, releases"):
        versions.of_specs(["triton==3.9.0", "triton==3.9.0.dev20250601"], 0, tmp_path, config)
    for spec in ("3.4.0", "wheel:a..b", "triton>=3"):
        with pytest.raises(UsageError, match="range of versions"):
            versions.of_specs([spec], 0, tmp_path, config)
