"""Equal values are one object, and different ones are not."""

from __future__ import annotations

import json
from pathlib import Path

from irdiff.store.interning import interned, read_once


def test_equal_values_are_one_object() -> None:
    first = interned({"num_warps": 4, "arch": "sm_90"})
    assert interned({"num_warps": 4, "arch": "".join(["sm_", "90"])}) is first


def test_values_that_are_written_otherwise_stay_apart() -> None:
    values = [interned({"flag": value}) for value in (True, 1, 1.0, "1")]
    assert [type(value["flag"]) for value in values] == [bool, int, float, str]


def test_a_text_is_read_once_for_each_kind(tmp_path: Path) -> None:
    text = f'{{"a": "{tmp_path}"}}'
    first = read_once("one", text, json.loads)
    assert read_once("one", str(text.encode(), "utf-8"), json.loads) is first
    assert read_once("other", text, len) == len(text)
