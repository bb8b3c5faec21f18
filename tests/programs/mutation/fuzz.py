"""Mutated, cut and spliced real texts through every normalizer, and LLVM IR through LLVM's reader.

python -m tests.programs.mutation.fuzz --seconds 600 [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

from irdiff.errors import NormalizeError
from irdiff.findings import FindingKind
from irdiff.ir.llir.llvm_process import LlvmReader
from irdiff.texts import canonicalize, equivalent
from tests.programs.mutation.artifacts import of_stage

STAGES = ("llir", "ptx", "amdgcn", "ttgir", "ttir", "glir", "sass")


def fuzz(seconds: float, seed: int) -> None:
    """Each text must give a result or NormalizeError, within a bound of time."""
    random = Random(seed)
    end = time.monotonic() + seconds
    tried = refused = 0
    slowest = 0.0
    read: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(LlvmReader(Path(folder, "log"))) as reader,
    ):
        while time.monotonic() < end:
            stage, original, text = draw(random)
            start = time.process_time()
            try:
                _judge(stage, original, text)
                if stage == "llir":
                    read[_read(original, text, reader)] += 1
            except NormalizeError:
                refused += 1
            spent = time.process_time() - start
            slowest = max(slowest, spent)
            assert spent < 30 + len(text) / 1e5, (stage, spent, text[:200])
            tried += 1
    print(
        f"fuzz: {tried} texts, {refused} refused, none crashed, slowest {slowest * 1e3:.0f} ms, seed {seed}; "
        f"LLVM IR read by LLVM: {dict(read)}"
    )


def draw(random: Random) -> tuple[str, str, str]:
    """A stage, a real text of it, and what became of that."""
    stage = random.choice(STAGES)
    original = random.choice(of_stage(stage)).text
    return stage, original, mutate(original, random)


def _read(original: str, text: str, reader: LlvmReader) -> str:
    """What is lexically equal stays equal, whatever becomes of the reader."""
    found = equivalent("llir", original, text, reprint=reader.reprint)
    assert found.equal or not equivalent("llir", original, text).equal
    why = next((str(finding) for finding in found.findings if finding.kind is FindingKind.LEXICAL_LLIR), "")
    return why or ("equal" if found.equal else "different")


def _judge(stage: str, original: str, text: str) -> None:
    """The quick answer is that of the full form, and lines can be traced."""
    canonical = canonicalize(stage, text)
    assert len(canonicalize(stage, text).numbers) == len(canonical.lines), (stage, text[:200])
    full = canonical.lines == canonicalize(stage, original).lines
    assert equivalent(stage, original, text).equal == full, (stage, text[:200])


def mutate(text: str, random: Random) -> str:
    for _ in range(random.choice((1, 3, 10))):
        at = random.randrange(len(text) + 1)
        piece = text[at : at + random.choice((1, 10, 200))]
        match random.randrange(6):
            case 0:
                text = text[:at] + text[at + len(piece) :]
            case 1:
                text = text[:at] + chr(random.randrange(1, 0x250)) + text[at:]
            case 2:
                text = text[:at] + piece * random.choice((1, 50, 2000)) + text[at:]
            case 3:
                text = text[:at] + random.choice('"{}()[]<>\\/*;%#!\n') * random.choice((1, 1000)) + text[at:]
            case 4:
                text = text[:at]
            case _:
                lines = text.split("\n")
                random.shuffle(lines)
                text = "\n".join(lines)
        if not text:
            return "\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.mutation.fuzz")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    fuzz(arguments.seconds, arguments.seed)


if __name__ == "__main__":
    main()
