"""Constructs that other LLVMs spell differently, and texts that stay: `tests/golden/pairs/llvm-spellings.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from irdiff.codegen.readable import SPELLINGS, rewritten

GOLDEN = tomllib.loads((Path(__file__).parents[2] / "golden/pairs/llvm-spellings.toml").read_text())


@pytest.mark.parametrize("row", GOLDEN["rewritten"], ids=lambda row: row["before"])
def test_a_construct_is_taken_out(row: dict[str, str]) -> None:
    assert rewritten(row["before"], [row["name"]]) == (row["after"], (row["name"],))
    assert rewritten(row["before"], []) == (row["before"], ())


@pytest.mark.parametrize("row", GOLDEN["stays"], ids=lambda row: row["text"])
def test_what_means_something_else_stays(row: dict[str, str]) -> None:
    assert rewritten(row["text"], [row["name"]]) == (row["text"], ())


def test_a_promise_is_never_called_exact() -> None:
    promises = [row.name for row in SPELLINGS if not row.exact]
    assert promises == ["captures(…)", "getelementptr nuw", "icmp samesign", "trunc nuw"]
