"""What the worker says of a backend's class."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.worker import loaded


def asking(supports: Any) -> Any:
    return SimpleNamespace(supports_target=supports)


@pytest.mark.parametrize(
    ("supports", "names"),
    [
        (lambda target: target.backend == "cuda", ["cuda"]),
        (lambda target: "cuda" == target.backend, ["cuda"]),  # noqa: SIM300 - as somebody may write it
        (lambda target: target.backend == "cuda" and target.arch >= 90, ["cuda"]),
        (lambda target: target.backend in ("xpu", "cpu"), ["cpu", "xpu"]),
        (lambda target: not (target.backend != "cuda"), ["cuda"]),  # noqa: SIM202 - as above
        (lambda target: target.arch == 90, None),
        (lambda target: target.backend in {"cuda"}, None),
        (lambda target: target.backend.startswith("c"), None),
        (lambda target: f"{target.backend}" == "cuda", None),
        (lambda target: target.backend != "cuda", None),
        (lambda target: bool(target.backend), None),
        (lambda target: True, None),
        (lambda target: False, None),
    ],
)
def test_names_of_targets_are_known_where_the_class_compares_and_says_no(supports: Any, names: Any) -> None:
    assert loaded._names_of_targets(asking(supports)) == names


def test_a_class_comes_from_the_files_of_all_that_it_holds() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def add_stages(self): pass", pytest.__file__, "exec"), namespace)

    class Patched:
        add_stages = namespace["add_stages"]

    assert {__file__, pytest.__file__} <= set(loaded._places_of(Patched))
