"""What a comparison asks of a compiler: both sides of a case, and each side again."""

from __future__ import annotations

from typing import Protocol

from irdiff.model import Launch, Outcome, Target, Toolchain
from irdiff.resolve.corpus import Corpus


class Compiler(Protocol):
    """A case that does not compile is a value. Thread-safe."""

    def compile(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, *, fresh: bool = False
    ) -> Outcome:
        """One side of a case; `fresh` trusts nothing that was kept."""
        ...

    def recompile(
        self,
        toolchain: Toolchain,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        attempt: int,
        fresh: bool = False,
    ) -> Outcome:
        """The case again in another process, with addresses and hashes randomized."""
        ...
