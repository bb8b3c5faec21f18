"""What a comparison asks of a compiler: both sides of a case, their binaries, and each side again."""

from __future__ import annotations

from typing import Protocol

from irdiff.model import Compiled, Launch, Outcome, Target, Toolchain
from irdiff.resolve.corpus import Corpus


class Compiler(Protocol):
    """A case that does not compile is a value. Thread-safe."""

    def compile(
        self,
        toolchain: Toolchain,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        assemble: bool,
        fresh: bool = False,
    ) -> Outcome:
        """One side of a case. Without `assemble` it may stop at PTX; `fresh` trusts nothing that was kept."""
        ...

    def assemble(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, compiled: Compiled
    ) -> Outcome:
        """The same case with its binary."""
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

    def keeps_below_frontend(self, toolchain: Toolchain, launch: Launch, target: Target) -> bool:
        """Whether a compilation of this launch has shown that its stages call no function of the frontend."""
        ...
