"""What a worker notes of the compiler's registries: which objects they hold, and in which order."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The worker's module, with nothing in place of the compiler."""
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))
    monkeypatch.delitem(sys.modules, "irdiff.worker.settings", raising=False)
    yield importlib.import_module("irdiff.worker.settings")
    monkeypatch.delitem(sys.modules, "irdiff.worker.settings")


def test_the_order_of_a_registry_counts(settings: Any) -> None:
    registry = {"first": object(), "second": object()}
    before = settings._Held(registry)
    assert settings._Held(registry) == before
    registry["first"] = registry.pop("first")
    assert settings._Held(registry) != before


def test_a_registry_gets_its_order_back(settings: Any) -> None:
    registry = {"first": object(), "second": object()}
    before = settings._Held(registry)
    registry["first"] = registry.pop("first")
    before.restore()
    assert list(registry) == ["first", "second"]


def test_another_object_in_its_place_counts(settings: Any) -> None:
    registry = [object()]
    before = settings._Held(registry)
    registry[0] = object()
    assert settings._Held(registry) != before
