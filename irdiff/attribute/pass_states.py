"""The IR between the passes of a stage, read from what MLIR and LLVM print when they are told to dump it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import zstandard

from irdiff.ir.compressed_text import pack, unpack

END = "the end of the stage"
_PART_BYTES = 1 << 20

_HEADING = re.compile(
    r"^// -----// IR Dump Before (?P<name>[\w.:-]+?)(?:: (?P<new>[^\n]*?)| \((?P<old>[\w-]+)\))?"
    r" \('[^'\n]*' operation(?:: @[^\n)]*)?\) //----- //$"
    r"|^// -----//[^\n]*$"
)
_OPTIONS = re.compile(r"\{(.*)\}$", re.DOTALL)
_NOISE = re.compile(r"\bdump-intermediate-steps=\w+\s*")
OPERATION = re.compile(r'^ *(?:%[^="\n]*= )?"?([a-z]\w*(?:\.\w+)+)"?', re.MULTILINE)
"""Matches the beginning of an operation as MLIR prints it. Its group is the name of the operation."""
_BEGINS_WITH = {"TritonGPUOptimizeDotOperands": "CanonicalizerPass"}
"""Passes that run another one before their own work: what is printed between is not the end of them. No
pipeline of 3.2.0 to 3.9.0 has the second right behind the first on its own account."""

_LLVM_HEADING = re.compile(
    r"^; \*\*\* IR Dump After (?P<name>[\w.<>:, -]+?) on (?P<on>[^\n]*?) \*\*\*[^\n]*$"
)
_LLVM_FUNCTION = re.compile(r"^define .*?^\}$", re.MULTILINE | re.DOTALL)
_LLVM_NAME = re.compile(r"@[\w.$-]+")
_LLVM_NOISE = re.compile(
    r", !dbg !\d+| !dbg !\d+|[ \t]*;[^\n\"]*$|^ *#dbg_[^\n]*\n| #\d+|, ![\w.]+ !\d+", re.MULTILINE
)


class Log(Protocol):
    """Bytes, or a file that is mapped into memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: slice, /) -> bytes: ...

    def find(self, part: bytes, start: int, /) -> int: ...


@dataclass(frozen=True, kw_only=True)
class State:
    """The IR before one pass, or at the end."""

    name: str
    """The pass's class, as MLIR prints it; `END` for the last state."""
    argument: str
    """Its name on triton-opt's command line; empty where it was not printed."""
    options: str | None
    """`a=1 b=2`, sorted; None where the toolchain does not print options (before 3.8)."""
    packed: bytes
    """The text, compressed: a stage has some hundred states, 20 MB together."""
    digest: str
    """SHA-256 of the text."""

    @classmethod
    def of(
        cls,
        name: str,
        content: bytes,
        argument: str = "",
        options: str | None = None,
        *,
        after: State | None = None,
    ) -> State:
        """Shares the text of the state `after` which it comes, where the pass between them did nothing."""
        digest = hashlib.sha256(content).hexdigest()
        packed = after.packed if after and after.digest == digest else pack(content)
        return cls(name=name, argument=argument, options=options, packed=packed, digest=digest)

    @property
    def content(self) -> bytes:
        return unpack(self.packed)

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def parts(self) -> Iterator[str]:
        """The text in parts of whole lines."""
        rest = b""
        with zstandard.ZstdDecompressor().stream_reader(self.packed) as reader:
            while chunk := reader.read(_PART_BYTES):
                lines, _, rest = (rest + chunk).rpartition(b"\n")
                yield lines.decode(errors="replace")
        yield rest.decode(errors="replace")

    def operations(self) -> Iterator[str]:
        """Their names, in order."""
        return (name for part in self.parts() for name in OPERATION.findall(part))


def read_mlir_log(log: Log, final: State | None, place: tuple[bytes, bytes] = (b"", b"")) -> list[State]:
    """The states of one stage: those of the log, and the one after its last pass.

    place: a file name in the log, and what takes its place.
    """
    states: list[State] = []
    for heading, content in _sections(log, b"// -----//", _HEADING):
        if heading["name"] is None:
            continue  # a pass printing its inner steps
        if states and _BEGINS_WITH.get(states[-1].name) == heading["name"]:
            continue
        printed = heading["new"] or heading["old"] or ""
        found = _OPTIONS.search(printed)
        argument = printed[: found.start()] if found else printed
        options = " ".join(sorted(_NOISE.sub("", found[1]).split())) if found else ""
        known = options if heading["new"] else None
        before = states[-1] if states else None
        states.append(
            State.of(heading["name"], content.replace(*place).strip(b"\n"), argument, known, after=before)
        )
    return [*states, final] if final else states


def read_llvm_log(log: Log) -> list[State]:
    """One state before each pass of LLVM's optimizer but the first, from the log of `LLVM_IR_ENABLE_DUMP`.

    LLVM prints after each pass what it ran on: the function, or the module. Only kernels of one function are
    read, so that both are the same text; there are no states where the log holds several. Debug locations,
    comments and numbers of metadata and attribute groups are taken out: passes number them anew.
    """
    states: list[State] = []
    known = ""
    for heading, content in _sections(log, b"; *** IR Dump After ", _LLVM_HEADING):
        before = states[-1] if states else None
        if before:
            states[-1] = replace(before, name=heading["name"])
        functions = _LLVM_FUNCTION.findall(content.decode(errors="replace"))
        if len({_LLVM_NAME.findall(function)[0] for function in functions}) > 1:
            return []
        known = _LLVM_NOISE.sub("", functions[0]) if functions else known
        states.append(State.of(END, known.encode(), after=before))
    return states


def last_begun(log: Iterable[bytes]) -> str | None:
    """The MLIR pass whose heading is the last of a log: the one that was running when the log ended."""
    name = None
    for line in log:
        if line.startswith(b"// -----//") and (found := _HEADING.match(line.decode(errors="replace"))):
            name = found["name"] or name
    return name


def _sections(log: Log, beginning: bytes, heading: re.Pattern[str]) -> Iterator[tuple[re.Match[str], bytes]]:
    """Headings with what follows them: only one of them is in memory at a time."""
    found: re.Match[str] | None = None
    start = 0
    place = _line_with(log, beginning, 0)
    while place >= 0:
        end = log.find(b"\n", place) + 1 or len(log)
        if match := heading.match(log[place:end].decode(errors="replace")):
            if found:
                yield found, log[start:place]
            found, start = match, end
        place = _line_with(log, beginning, end)
    if found:
        yield found, log[start:]


def _line_with(log: Log, beginning: bytes, place: int) -> int:
    """Returns where the next line with this beginning begins; negative if there is none. `place` is where a
    line begins.
    """
    if log[place : place + len(beginning)] == beginning:
        return place
    before = log.find(b"\n" + beginning, max(place - 1, 0))
    return before + 1 if before >= 0 else -1
