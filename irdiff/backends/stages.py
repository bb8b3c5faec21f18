"""The stages of all backends: their order, what each is made of, and which hold machine code.

launch → source → ttir → (glir →) ttgir → llir → assembly → binary
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from irdiff.backends import BACKENDS, amd
from irdiff.backends.binary_kind import BinaryKind
from irdiff.errors import UsageError
from irdiff.model import Component
from irdiff.stages import Stage

T = TypeVar("T")

_KINDS = [backend.BINARY for backend in BACKENDS.values() if backend.BINARY]
BINARIES: Mapping[str, BinaryKind] = {kind.artifact: kind for kind in _KINDS}
"""By the stage whose artifact it is."""
ASSEMBLIES = tuple(kind.assembly for kind in _KINDS)
"""The last texts."""
MACHINE_CODE = tuple(kind.status for kind in _KINDS)
"""The stages whose statuses are those of machine code."""
ORDER: tuple[str, ...] = tuple(dict.fromkeys([*Stage, *ASSEMBLIES, *MACHINE_CODE, *BINARIES]))
"""As they are made."""
TEXTS = frozenset({*Stage, *ASSEMBLIES}) - {Stage.LAUNCH}
"""Whose artifacts are texts."""
WITHOUT_TEXT: Mapping[str, BinaryKind] = {
    kind.status: kind for kind in _KINDS if not kind.is_reported_as_text
}
"""By its status, the machine code that can only be disassembled."""
COMPARED: Mapping[str, tuple[str, ...]] = {name: backend.STAGES for name, backend in BACKENDS.items()}
"""The stages that get a status, by the name of a target's backend."""
INPUT: Mapping[str, str] = {
    Stage.TTIR: Stage.SOURCE,
    Stage.TTGIR: Stage.TTIR,
    Stage.LLIR: Stage.TTGIR,
    **{kind.status: kind.assembly for kind in _KINDS},
    **dict.fromkeys(ASSEMBLIES, Stage.LLIR),
}
"""The stage before each stage."""
_GENERATORS = frozenset({Component.LLVM_CODEGEN, Component.CODEGEN_LIBRARY})
COMPONENTS: Mapping[str, Component] = {
    Stage.TTIR: Component.TTIR_PASSES,
    Stage.GLIR: Component.TTIR_PASSES,
    Stage.TTGIR: Component.TTGIR_PASSES,
    Stage.LLIR: Component.LLVM_LOWERING,
    **dict.fromkeys(ASSEMBLIES, Component.LLVM_CODEGEN),
    **{kind.artifact: kind.made_by for kind in _KINDS},
}
"""The component that makes each stage."""
NAMES = {
    **{kind.made_by: kind.made_by.value for kind in _KINDS},
    Component.CODEGEN_LIBRARY: "the AMD codegen library",
}
"""Names of the components that belong to one backend."""
MAKERS: Mapping[str, frozenset[Component]] = {
    Stage.LAUNCH: frozenset({Component.PROGRAM, Component.RUNTIME}),
    Stage.TTIR: frozenset({Component.SPECIALIZATION, Component.FRONTEND, Component.TTIR_PASSES}),
    Stage.GLIR: frozenset({Component.SPECIALIZATION, Component.FRONTEND, Component.TTIR_PASSES}),
    Stage.TTGIR: frozenset({Component.SPECIALIZATION, Component.FRONTEND, Component.TTGIR_PASSES}),
    Stage.LLIR: frozenset({Component.LLVM_LOWERING, Component.LLVM_CODEGEN}),
    **{kind.assembly: _GENERATORS for kind in _KINDS},
    **{
        kind.status: frozenset({kind.made_by, *(_GENERATORS if kind.is_reported_as_text else ())})
        for kind in _KINDS
    },
}
"""By the stage of an origin, the components that can have made it differ."""


BY_SUFFIX: Mapping[str, str] = {".mlir": Stage.TTGIR, ".ll": Stage.LLIR, ".s": amd.ASSEMBLY}
"""How the names of files end that hold a stage's text, where that is not the stage's name."""


def reported(stage: str) -> str:
    """The stage under which statuses and origins name an artifact: of a binary that of its machine code."""
    return BINARIES[stage].status if stage in BINARIES else stage


def check_compared(names: Iterable[str], backends: Iterable[str]) -> None:
    """Raises UsageError for a name that is no stage that gets a status, with the one that comes near.

    A backend that is not known here names its stages as it likes.
    """
    if not set(backends) <= COMPARED.keys():
        return
    stages_known = sorted({stage for stages in COMPARED.values() for stage in stages} | {Stage.GLIR})
    for name in names:
        if name not in stages_known:
            near = get_close_matches(name, stages_known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"the stages are {', '.join(stages_known)}"
            raise UsageError(f"no stage is called {name!r}", hint=hint)


def in_stage_order(by_stage: Mapping[str, T]) -> list[tuple[str, T]]:
    """By stage, in the order they are made, those that are not known behind them."""
    places = {name: place for place, name in enumerate(ORDER)}
    return sorted(by_stage.items(), key=lambda item: (places.get(item[0], len(places)), item[0]))
