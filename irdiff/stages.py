"""The stages of a compilation that irdiff knows by name; those of other backends are plain strings.

launch → source → ttir → (glir →) ttgir → llir → ptx → cubin, shown as sass      NVIDIA
→ amdgcn → hsaco                  AMD
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import TypeVar

from irdiff.errors import UsageError

T = TypeVar("T")


class Stage(StrEnum):
    """In the order they are made."""

    LAUNCH = "launch"
    """What is launched, and how: grid, arguments, options, order. Nothing that is compiled."""
    SOURCE = "source"
    """The frontend's IR, before the first pass."""
    TTIR = "ttir"
    GLIR = "glir"
    """Gluon's IR, in place of TTIR."""
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    AMDGCN = "amdgcn"
    SASS = "sass"
    """NVIDIA's machine code, as statuses and reports name it; the artifact is the `cubin`."""
    CUBIN = "cubin"
    HSACO = "hsaco"


MLIR = frozenset({Stage.SOURCE, Stage.TTIR, Stage.GLIR, Stage.TTGIR})
MACHINE_STAGES: Mapping[str, Stage] = {Stage.CUBIN: Stage.SASS, Stage.HSACO: Stage.AMDGCN}
"""Binary artifact → the stage that its machine code is reported under."""
TEXTS = frozenset(Stage) - {Stage.LAUNCH, Stage.SASS, *MACHINE_STAGES}
"""Whose artifacts are texts."""
COMPARED: Mapping[str, tuple[Stage, ...]] = {
    "cuda": (Stage.LAUNCH, Stage.TTIR, Stage.TTGIR, Stage.LLIR, Stage.PTX, Stage.SASS),
    "hip": (Stage.LAUNCH, Stage.TTIR, Stage.TTGIR, Stage.LLIR, Stage.AMDGCN),
}
"""The stages that get a status, by the name of a target's backend."""
INPUT: Mapping[str, Stage] = {
    Stage.TTIR: Stage.SOURCE,
    Stage.TTGIR: Stage.TTIR,
    Stage.LLIR: Stage.TTGIR,
    Stage.PTX: Stage.LLIR,
    Stage.AMDGCN: Stage.LLIR,
    Stage.SASS: Stage.PTX,
}
"""What a stage is made of."""


def check_compared(names: Iterable[str], backends: Iterable[str]) -> None:
    """Raises UsageError for a name that is no stage that gets a status, with the one that comes near.

    A backend that is not known here names its stages as it likes.
    """
    if not set(backends) <= COMPARED.keys():
        return
    known = sorted({stage.value for stages in COMPARED.values() for stage in stages} | {Stage.GLIR.value})
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the stages are {', '.join(known)}"
            raise UsageError(f"no stage is called {name!r}", hint=hint)


def in_stage_order(rows: Mapping[str, T]) -> list[tuple[str, T]]:
    """By stage, in the order they are made, those that are not known behind them."""
    places: dict[str, int] = {name: place for place, name in enumerate(Stage)}
    return sorted(rows.items(), key=lambda row: (places.get(row[0], len(places)), row[0]))
