"""The stages that all backends have; what is below LLVM IR is each backend's own (`backends.stages`)."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """In the order they are made."""

    LAUNCH = "launch"
    """The calls of the program: grid, arguments, options, order. It holds nothing that is compiled."""
    SOURCE = "source"
    """The frontend's IR, before the first pass."""
    TTIR = "ttir"
    GLIR = "glir"
    """Gluon's IR, in place of TTIR."""
    TTGIR = "ttgir"
    LLIR = "llir"


MLIR = frozenset({Stage.SOURCE, Stage.TTIR, Stage.GLIR, Stage.TTGIR})
