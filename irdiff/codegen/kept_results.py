"""What tools made, kept in the store.

A result is kept under the digest of the text that the tool was given, the digest of the tool, its options and
the code of this folder. That is sound because a tool is a process that is given nothing else: files of fixed
names in an empty folder, a fixed environment, fixed addresses; its digest covers every library it loads. What
another time may cure (a time-out, memory) is not kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter

from irdiff.codegen.outcomes import Made, NotMade
from irdiff.model import Artifact, Failure
from irdiff.store import Store, key_of, sha256


def _digest_of_code() -> str:
    """Of this folder and of what it rewrites texts with: another irdiff asks its tools anew."""
    here = Path(__file__).parent
    beside = [here.parent / "normalize" / name for name in ("llvm_floats.py", "lexing.py")]
    return key_of([sha256(path.read_bytes()) for path in (*sorted(here.glob("*.py")), *beside)])


CODE = _digest_of_code()


@dataclass(frozen=True, kw_only=True)
class KeptResult:
    """What came of one text, as the store has it."""

    artifacts: Mapping[str, Artifact]
    failure: Failure | None
    curable: bool
    log: str
    seconds: float


_adapter = TypeAdapter(KeptResult)


class KeptResults:
    """Thread-safe."""

    def __init__(self, store: Store, *, reuse: bool) -> None:
        self._store = store
        self._reuse = reuse
        self.taken = 0
        """How many needed no tool, for progress."""

    def of(self, parts: tuple[object, ...], attempt: str, make: Callable[[], Made | NotMade]) -> KeptResult:
        """What `make` makes of `parts`, all that it depends on. The attempt `fresh` trusts nothing kept."""
        key = key_of("tool/1", CODE, parts, attempt)
        known = self._store.get_record("tool", key) if self._reuse and attempt != "fresh" else None
        if known is not None:
            kept = _adapter.validate_python(known)
            if all(self._store.has(row.digest) for row in kept.artifacts.values()):
                self.taken += 1
                return kept
        begin = time.perf_counter()
        made = make()
        kept = self._result(made, round(time.perf_counter() - begin, 6))
        if not kept.curable:
            self._store.put_record("tool", key, asdict(kept))
        return kept

    def _result(self, made: Made | NotMade, seconds: float) -> KeptResult:
        if isinstance(made, NotMade):
            return KeptResult(
                artifacts={}, failure=made.failure, curable=made.curable, log="", seconds=seconds
            )
        artifacts = {
            str(name): Artifact(stage=str(name), digest=self._store.put(content), size_bytes=len(content))
            for name, content in made.outputs.items()
        }
        return KeptResult(artifacts=artifacts, failure=None, curable=False, log=made.log, seconds=seconds)
