"""Real tensors from rows: extents, and that every fill the corpus names exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from irdiff.worker import fills

CORPUS = Path(__file__).parent.parent.parent.parent / "corpus"


def row(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, fill: str = "normal"
) -> dict[str, object]:
    return {"dtype": "fp32", "shape": shape, "strides": strides, "storage_offset": offset, "fill": fill}


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "expected"),
    [
        ((4, 8), (8, 1), 0, 32),
        ((4, 8), (1, 4), 0, 32),
        ((4, 8), (64, 2), 10, 10 + 3 * 64 + 7 * 2 + 1),
        ((0, 8), (8, 1), 5, 5),
    ],
)
def test_extent_is_what_the_view_reaches(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int, expected: int
) -> None:
    assert fills.extent(row(shape, strides, offset)) == expected


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*.py")), ids=lambda path: path.stem)
def test_the_corpus_names_only_known_fills(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "fill" and isinstance(node.value, ast.Constant):
            assert node.value.value.partition(":")[0] in fills._FILLS


def test_values_depend_on_the_row_and_the_seed_alone() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here; the GPU tests cover it")
    one = fills.materialize(torch, row((64, 64), (64, 1)), seed=1, device="cpu")
    again = fills.materialize(torch, row((64, 64), (64, 1)), seed=1, device="cpu")
    other = fills.materialize(torch, row((64, 64), (64, 1)), seed=2, device="cpu")
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_integers_stay_in_their_range() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed here; the GPU tests cover it")
    numbers = fills.materialize(
        torch, {**row((1000,), (1,), fill="randint:3:9"), "dtype": "i32"}, device="cpu"
    )
    assert int(numbers.min()) >= 3
    assert int(numbers.max()) <= 8
