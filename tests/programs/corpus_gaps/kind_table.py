"""Which kinds of operations of Triton's dialects the launches of each tier have, and which none has.

Read from the `ttir` and `ttgir` of the cases. An operation that only lives between passes is in neither.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.ir.mlir import NAMESPACES
from irdiff.model import Compiled, Launch, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from tests.programs.corpus_gaps.operation_kinds import MASKABLE, OperationKind, class_of, kinds

_INTEGERS = ("i8", "i16", "i32", "i64")
_FLOATS = ("f16", "bf16", "f32", "f64")
_FLOAT8 = ("f8E4M3FN", "f8E5M2")
_MOVED = (*_INTEGERS, *_FLOATS, *_FLOAT8)
_BITS = ("and", "or", "xor", "exch")
_ATOMICS = (
    *(f"fadd {name}" for name in _FLOATS),
    *(f"{word} {name}" for word in ("add", "max", "min", "umax", "umin", *_BITS) for name in ("i32", "i64")),
)
_ELEMENTS = {
    "tt.load": _MOVED,
    "tt.store": _MOVED,
    "tt.atomic_rmw": _ATOMICS,
    "tt.atomic_cas": ("i16", "i32", "i64"),
    "tt.reduce": (*_INTEGERS, *_FLOATS),
    "tt.scan": (*_INTEGERS, *_FLOATS),
    "tt.gather": (*_INTEGERS, *_FLOATS),
    "tt.descriptor_load": _MOVED,
    "tt.descriptor_store": _MOVED,
    "tt.dot": ("i8", "f16", "bf16", *_FLOAT8, "f64", "f32 as tf32", "f32 as tf32x3", "f32 as ieee"),
    "ttng.warp_group_dot": (
        "i8",
        "f16",
        "bf16",
        *_FLOAT8,
        "f32 as tf32",
        "f16 in registers",
        "bf16 in registers",
    ),
    "ttng.tc_gen5_mma": ("i8", "f16", "bf16", *_FLOAT8, "f32"),
    "ttg.convert_layout": _MOVED,
    "ttg.local_load": _MOVED,
    "ttg.local_store": _MOVED,
}
"""What Triton's frontend takes, for operations that are lowered differently for each; others have the element
types that some launch has."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One operation, with or without a mask, and its element types; one without any has an empty one."""

    operation: str
    gate: list[str]
    """Those that a case of the gate tier has."""
    later: list[str]
    """Those that only the tiers after it have."""
    none: list[str]


def of_launches(
    side: Side, launches: Sequence[tuple[Launch, Target]], compiler: WorkerCompiler, report: Report
) -> list[tuple[str, set[OperationKind]]]:
    """The tier and the kinds of each launch that compiles."""

    def one(job: tuple[Launch, Target]) -> tuple[str, set[OperationKind]] | None:
        launch, target = job
        compiled = compiler.compile(side, launch, target)
        if not isinstance(compiled, Compiled):
            return None
        found: set[OperationKind] = set()
        for stage in ("ttir", "ttgir"):
            artifact = compiled.artifacts.get(stage)
            text = compiler.store.get(artifact.digest) if artifact else None
            found |= kinds((text or b"").decode(errors="replace"))
        return launch.tier, found

    rows = in_parallel(one, launches, compiler.requests.config.jobs, "kinds", report)
    return [row for row in rows if row is not None]


def registered(package: str) -> set[str]:
    """The operations of these dialects in a toolchain's library: names that have a C++ class beside them.

    A few classes have another name than their operation, and are known where a case has one.
    """
    library = Path(package) / "_C" / "libtriton.so"
    content = library.read_bytes() if library.exists() else b""
    found = set()
    classes = set(re.findall(rb"mlir::triton::((?:\w+::)?)(\w+)Op\b", content))
    for dialect, namespace in NAMESPACES.items():
        known = {name.decode().lower() for within, name in classes if within == namespace}
        # a pattern that begins with fixed bytes is found ten times faster
        names = set(re.findall(rb"\0" + dialect.encode() + rb"\.([a-z][a-z0-9_.]+)(?=\0)", content))
        found |= {
            f"{dialect}.{name.decode()}" for name in names if class_of(f"{dialect}.{name.decode()}") in known
        }
    return found


def table(found: Iterable[tuple[str, set[OperationKind]]], operations: Iterable[str]) -> list[Row]:
    """One row for each operation that a case has or the toolchain knows; two where a mask may guard it."""
    cases = list(found)
    gate = set[OperationKind]().union(*(had for tier, had in cases if tier == "gate"))
    every = {kind for _, had in cases for kind in had if kind.operation.partition(".")[0] in NAMESPACES}
    elements: dict[str, set[str]] = defaultdict(set)
    for kind in every:
        elements[kind.operation].add(kind.element)
    return [
        _row(name, masked, sorted({*elements[name], *_ELEMENTS.get(name, ())}) or [""], gate, every)
        for name in sorted({*elements, *operations})
        for masked in ((False, True) if name in MASKABLE else (False,))
    ]


def _row(
    name: str, masked: bool, elements: Sequence[str], gate: Set[OperationKind], every: Set[OperationKind]
) -> Row:
    of = {element: OperationKind(operation=name, element=element, masked=masked) for element in elements}
    return Row(
        operation=f"{name}, masked" if masked else name,
        gate=[element for element, kind in of.items() if kind in gate],
        later=[element for element, kind in of.items() if kind in every - gate],
        none=[element for element, kind in of.items() if kind not in every],
    )
