"""Fixtures of unit tests: `launch` is a launch; `requests` a worker. What else tests need, `runs` makes."""

import pytest

from tests.unit import runs
from tests.unit.requests import FakeRequests


@pytest.fixture
def launch():
    """One that nothing is known of but its names."""
    return runs.launch(
        "a/b:c@sm_90", kernel="k", digest="0" * 64, source_digest="1" * 64, signature={}, tier="core"
    )


@pytest.fixture
def requests():
    return FakeRequests()
