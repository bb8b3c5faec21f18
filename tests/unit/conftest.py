from __future__ import annotations

import pytest

from irdiff.model import Launch


@pytest.fixture
def launch() -> Launch:
    return Launch(
        id="a/b:c",
        workload="a/b",
        label="c",
        kernel="k",
        target="sm_90",
        digest="0" * 64,
        source_digest="1" * 64,
        source_path="a/b.py",
        arguments=(),
        signature={},
        constexprs={},
        attributes={},
        options={},
        grid=(1, 1, 1),
        tier="core",
        expected=True,
        flops=None,
        min_bytes=None,
        tolerance=None,
    )
