"""A worker that leaves files, as `irdiff.worker_client.worker_requests` leaves them of a real one."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from irdiff.model import Failure, FailureKind
from irdiff.worker_client.workers import EndedChild

COMPILED = {
    "outcome": "compiled", "stage_times_s": {"ttgir": 0.5}, "stage_cpu_s": {"ttgir": 0.25},
    "assembler_flags": None, "assembler_log": "registers", "metadata": {"num_warps": 4, "name": "k"},
    "launcher_args": {"symbol": "k", "packed": [4, 1]}, "settings": {}, "notes": [], "launches": [], "failures": [],
}  # fmt: skip


@dataclass
class FakeRequests:
    files: dict[str, str | bytes] = field(default_factory=lambda: {"ttgir": b"module {}"})
    result: dict[str, Any] | None = field(default_factory=lambda: dict(COMPILED))
    """None: it dies on the way."""
    ended: EndedChild = field(
        default_factory=lambda: EndedChild(signal=0, timed_out=False, worker_died=False)
    )
    failed: tuple[FailureKind, str] = (FailureKind.CRASH, "ttgir")
    """What kind of failure it is where nothing was compiled, and of which stage."""
    environment_digest: str = "environment"
    timeout_s: float = 300.0
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    """Each request, with what it was made beside and the text that it was given."""

    @property
    def config(self):
        limits = SimpleNamespace(timeout_s=self.timeout_s)
        folder = Path(tempfile.gettempdir())
        return SimpleNamespace(limits=limits, temporary_folder=folder, changed_files=folder)

    def ask(self, _, beside, row, folder, *, randomized=False):
        content = Path(row["input"]).read_bytes() if "input" in row else None
        self.rows.append({**row, "content": content, "beside": beside, "randomized": randomized})
        for name, made in self.files.items():
            (folder / name).write_bytes(made if isinstance(made, bytes) else made.encode())
        if self.result is not None:
            (folder / "result.json").write_text(json.dumps({"artifacts": [*self.files], **self.result}))
        return self.ended

    def failure(self, *_):
        kind, stage = self.failed
        return Failure(kind=kind, stage=stage, message="why", signal=None, stderr="")
