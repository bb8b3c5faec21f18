"""The pass after which two pipelines differ for good, from the IR that each printed between its passes.

A difference often appears and heals again: a layout chosen otherwise and cleaned up by a later pass. So the
states are compared from the end back to the last equal pair; what lies behind it is responsible. Passes are
aligned by name, so that one that was added, removed or moved is named as such.

Synchronization is inserted by a pass of its own in one release and by the lowering in another. A pass that
only inserts barriers or fences which a later pass inserts on the other side is not responsible for what
differs after both: the later one is, and the note says what moved.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import zstandard

from irdiff.normalize.compressed_text import pack, unpack

_HEADING = re.compile(
    r"^// -----// IR Dump Before (?P<name>[\w.:-]+?)(?:: (?P<new>[^\n]*?)| \((?P<old>[\w-]+)\))?"
    r" \('[^'\n]*' operation(?:: @[^\n)]*)?\) //----- //$"
    r"|^// -----//[^\n]*$"
)
_OPTIONS = re.compile(r"\{(.*)\}$", re.DOTALL)
_NOISE = re.compile(r"\bdump-intermediate-steps=\w+\s*")
_OPERATION = re.compile(r'^ *(?:%[^="\n]*= )?"?([a-z]\w*(?:\.\w+)+)', re.MULTILINE)
_SYNCHRONIZATION = re.compile(r"\bbar\.|barrier|fence")
_BAR = re.compile(r"bar\.(?<!\wbar\.)")
"""The first of these, as a word: the pattern begins with letters, so that a search is a search for them."""
_PART_BYTES = 1 << 20
_BEGINS_WITH = {"TritonGPUOptimizeDotOperands": "CanonicalizerPass"}
"""Passes that run another one before their own work: what is printed between is not the end of them. No
pipeline of 3.2.0 to 3.9.0 has the second right behind the first on its own account."""
END = "the end of the stage"


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
    def of(cls, name: str, argument: str, options: str | None, content: bytes | bytearray) -> State:
        digest = hashlib.sha256(content).hexdigest()
        return cls(name=name, argument=argument, options=options, packed=pack(content), digest=digest)

    def followed_by(self, name: str, argument: str, options: str | None, content: bytes | bytearray) -> State:
        """The next state, which shares the text of this one where the pass between them did nothing."""
        if hashlib.sha256(content).hexdigest() != self.digest:
            return State.of(name, argument, options, content)
        return replace(self, name=name, argument=argument, options=options)

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


Same = Callable[[State, State], bool]


@dataclass(frozen=True, kw_only=True)
class Culprit:
    """What made the states differ for good."""

    name: str
    note: str
    """How it differs where the pass itself is another one: added, removed, moved, other options."""
    masked: tuple[str, ...]
    entering: tuple[int, int]
    """States of base and head, by index, that enter the step; equal but for what the note says has moved."""
    leaving: tuple[int, int]


def operations(state: State) -> Iterator[str]:
    """By name, in their order."""
    return (name for part in state.parts() for name in _OPERATION.findall(part))


def read_log(log: Iterable[bytes], final: State | None) -> list[State]:
    """The states of one replayed stage: those of the log's lines, and the one after its last pass."""
    states: list[State] = []
    for heading, content in sections(log, b"// -----//", _HEADING):
        if heading["name"] is None:
            continue  # a pass printing its inner steps
        if states and _BEGINS_WITH.get(states[-1].name) == heading["name"]:
            continue
        argument = heading["new"] or heading["old"] or ""
        found = _OPTIONS.search(argument)
        options = " ".join(sorted(_NOISE.sub("", found.group(1)).split())) if found else ""
        make = states[-1].followed_by if states else State.of
        states.append(
            make(
                heading["name"],
                argument[: found.start()] if found else argument,
                options if heading["new"] else None,
                content.strip(b"\n"),
            )
        )
    return [*states, final] if final else states


def last_begun(log: Iterable[bytes]) -> str | None:
    """The pass whose heading is the last of a log: the one that was running when the log ended."""
    name = None
    for line in log:
        if line.startswith(b"// -----//") and (found := _HEADING.match(line.decode(errors="replace"))):
            name = found["name"] or name
    return name


def sections(
    log: Iterable[bytes], beginning: bytes, heading: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], bytearray]]:
    """Headings with what follows them, read line by line: only one of them is in memory at a time."""
    found: re.Match[str] | None = None
    content = bytearray()
    for line in log:
        match = heading.match(line.decode(errors="replace")) if line.startswith(beginning) else None
        if match is None:
            content += line
            continue
        if found:
            yield found, content
        found, content = match, bytearray()
    if found:
        yield found, content


def find_culprit(base: Sequence[State], head: Sequence[State], same: Same) -> Culprit | None:
    """None where the states are equal at the end, or never were equal, or one side has none."""
    pairs = _aligned([state.name for state in base], [state.name for state in head])
    if not pairs:
        return None
    equal = {}

    def is_equal(number: int) -> bool:
        if number not in equal:
            i, j = pairs[number]
            equal[number] = same(base[i], head[j])
        return equal[number]

    last = len(pairs) - 1
    if is_equal(last):
        return None
    while last >= 0 and not is_equal(last):
        last -= 1
    masked = _healed(base, pairs, last, is_equal)
    i, j = pairs[last] if last >= 0 else (0, 0)
    if last < 0 and not same(base[0], head[0]):
        return None
    found = _within(base, head, ((i, j), pairs[last + 1]), masked, same, first_aligned=last >= 0)
    return _after_moved_synchronization(found, base, head, pairs)


def _aligned(base: Sequence[str], head: Sequence[str]) -> list[tuple[int, int]]:
    """Indices of states before the same pass (and of both ends), increasing on both sides."""
    blocks = SequenceMatcher(None, base, head, autojunk=False).get_matching_blocks()
    return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]


def _healed(
    base: Sequence[State], pairs: Sequence[tuple[int, int]], last: int, is_equal: Callable[[int], bool]
) -> tuple[str, ...]:
    """Passes that began a difference which a later pass took back, before the pair `last`."""
    found = []
    for number in range(1, last + 1):
        if is_equal(number - 1) and not is_equal(number):
            found.append(base[pairs[number][0] - 1].name)
    return tuple(dict.fromkeys(found))


def _within(
    base: Sequence[State],
    head: Sequence[State],
    gap: tuple[tuple[int, int], tuple[int, int]],
    masked: tuple[str, ...],
    same: Same,
    *,
    first_aligned: bool,
) -> Culprit:
    """Between an equal pair of states and the next pair, which differs: one pass of each side, or more."""
    (i, j), (i_end, j_end) = gap
    if first_aligned:
        if not same(base[i + 1], head[j + 1]):
            note = _option_change(base[i], head[j])
            return Culprit(
                name=base[i].name, note=note, masked=masked, entering=(i, j), leaving=(i + 1, j + 1)
            )
        i, j = i + 1, j + 1  # the common pass is innocent: what follows it runs on one side only
    removed, added = _working(base[i : i_end + 1], same), _working(head[j : j_end + 1], same)
    name, note = _one_sided(base, head, removed, added)
    return Culprit(name=name, note=note, masked=masked, entering=(i, j), leaving=(i_end, j_end))


def _after_moved_synchronization(
    found: Culprit, base: Sequence[State], head: Sequence[State], pairs: Sequence[tuple[int, int]]
) -> Culprit:
    """The step after which both sides synchronize as often again, where the pass found did nothing else."""
    before = found.leaving
    if not _only_synchronizes(base[before[0]], head[before[1]]):
        return found
    for i, j in pairs:
        if i <= before[0] or j <= before[1]:
            continue
        if _synchronizations(base[i]) == _synchronizations(head[j]):
            name = base[i - 1].name
            note = (
                f"{found.note or found.name}: the barriers and fences that {name} inserts on the other side"
            )
            return Culprit(name=name, note=note, masked=found.masked, entering=before, leaving=(i, j))
        before = i, j
    return found


def _only_synchronizes(base: State, head: State) -> bool:
    """Whether two states differ in barriers and fences, and in no other operation."""
    ours, theirs = Counter(operations(base)), Counter(operations(head))
    differing = (ours - theirs) + (theirs - ours)
    return bool(differing) and all(_SYNCHRONIZATION.search(name) for name in differing)


def _synchronizations(state: State) -> Counter[str]:
    """How many barriers and how many fences a state has, whatever dialect or assembly spells them."""
    found: Counter[str] = Counter()
    for part in state.parts():
        found["fence"] += part.count("fence")
        found["barrier"] += part.count("barrier")
        if "bar." in part:
            found["barrier"] += len(_BAR.findall(part))
    return found


def _working(states: Sequence[State], same: Same) -> list[str]:
    """The passes that made any difference to their input; the last state is only an output."""
    pairs = list(itertools.pairwise(states))
    working = [before.name for before, after in pairs if not same(before, after)]
    return working or [before.name for before, _ in pairs]


def _one_sided(
    base: Sequence[State], head: Sequence[State], removed: Sequence[str], added: Sequence[str]
) -> tuple[str, str]:
    ours, theirs = Counter(s.name for s in base), Counter(s.name for s in head)
    notes = [f"{name} {'moved' if theirs[name] >= ours[name] else 'removed'}" for name in removed]
    notes += [f"{name} {'moved' if ours[name] >= theirs[name] else 'added'}" for name in added]
    return next(iter([*added, *removed]), END), ", ".join(dict.fromkeys(notes))


def _option_change(base: State, head: State) -> str:
    if base.options is None or head.options is None or base.options == head.options:
        return ""
    ours, theirs = base.options.split(), head.options.split()
    gone = " ".join(word for word in ours if word not in theirs)
    new = " ".join(word for word in theirs if word not in ours)
    return f"other options: {gone or '(none)'} → {new or '(none)'}"
