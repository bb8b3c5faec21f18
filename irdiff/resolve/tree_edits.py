"""What differs between two revisions: files, whether one counts, and what an edited C++ source is about.

Read from the trees alone, before anything is installed or built. A file counts where code that is compared
could follow from it. Where none counts, a report says that nothing else differs; no kernel is called
unchanged.

Two revisions of a checkout of Triton make the same compiler if they differ only in files that are neither
native nor installed (`checkout.py`). In any other case both are built and compared by digest.

In a repository of kernels every file counts, whatever its name: a workload may import it, open it, or read a
pin in it. What was read is known once the workloads are captured.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange, Sides
from irdiff.resolve import kernel_repository
from irdiff.resolve.toolchains import checkout, repository
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import Snapshot

_ANY_FILE = "files of the repository"
_PASS = re.compile(r"^\s*def\s+(\w+)\s*:\s*Pass<", re.MULTILINE)
_BASE = re.compile(r"\b(\w+)Base\b")
_SOURCES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".td")
_OP = r"(?:[A-Z]+_)?([A-Z]\w*[a-z]\w*Op)\b"
_NAMED = re.compile(rf"\b(?:\w+::)*{_OP}(?!\w|::create)")
_MATCHED = re.compile(
    r"\b(?:isa|cast|dyn_cast|getDefiningOp|getOps|Case)\w*<([^<>()]*)>|\((?:\w+::)*(\w+Op) \w+"
)
_CALLED = re.compile(r"(\w+)\s*(?:<[^<>]*>)?\(")
_STRUCT = re.compile(r"\b(?:struct|class|def) (\w+)")
_PARAMETER = re.compile(r"\btypename (\w+)")
_EVERYWHERE = frozenset({"ModuleOp", "FuncOp", "ReturnOp", "CallOp", "LLVMFuncOp"})
"""They say nothing of what a function is about."""


def between(sides: Sides[Snapshot], config: Config) -> Edited | None:
    """None where the two are not of one kind. Raises UsageError where git cannot read them."""
    if all(checkouts.is_triton(snap, config) for snap in sides):
        return of_compilers(sides.map(lambda snap: checkouts.read(snap, config)))
    if all(kernel_repository.has_plan(snap, config) for snap in sides):
        return _of_kernels(sides, config)
    return None


def of_compilers(sides: Sides[Checkout]) -> Edited:
    read_at = sides.map(lambda side: {**side.tree, **side.files})
    contents = read_at.map(lambda entries: {(path, *entry.content) for path, entry in entries.items()})
    feeds: dict[str, set[str]] = defaultdict(set)
    for path in {path for path, *_ in contents.base ^ contents.head}:
        for entry in (side[path] for side in read_at if path in side):
            feeds[entry.path] |= _fed_by(path, sides)  # what lies behind a link has its own path, too
    trees = sides.map(lambda side: side.tree)
    files = tuple(
        EditedFile(
            path=path,
            change=_change(path in trees.base, path in trees.head),
            feeds=tuple(sorted(words)) or (checkout.purpose(path) or "other files",),
            counts=bool(words),
        )
        for path, words in sorted(feeds.items())
    )
    return Edited(files=files, of_kernels=False, identical=not any(file.counts for file in files))


def _fed_by(path: str, sides: Sides[Checkout]) -> set[str]:
    """What a compiler makes of a file; a file may feed two parts."""
    words = {"native code"} if any(path in side.native for side in sides) else set()
    place = checkout.place_of(path)
    if place is None:
        return words
    folders = place.split("/")
    of_backend = folders[1] == "backends" and len(folders) > 3
    return words | {f"Python of the backend {folders[2]}" if of_backend else "Python"}


@dataclass(frozen=True, kw_only=True)
class EditedCode:
    """What an edited native source is about, by names at head."""

    passes: list[str]
    """MLIR passes that it defines."""
    operations: list[str]
    """C++ classes of the operations that the edited functions match: `AtomicRMWOp`."""


def edited_code(sides: Sides[Checkout]) -> dict[str, EditedCode]:
    """Of each edited native source.

    A `.td` file defines a pass with `def NAME : Pass<…>`, and the file that implements it names `NAMEBase`.
    Only a file's own text counts: which passes call a function of it is not known.
    """
    edited = [path for path in checkouts.differing_native(sides) if path.endswith(_SOURCES)]
    head = sides.head
    tables = checkouts.texts(head.files, (path for path in head.native if path.endswith(".td") and edited))
    known = {name for text in tables.values() for name in _PASS.findall(text)}
    before, after = (checkouts.texts(side.files, edited) for side in sides)
    patterns = {path: _PASS if path.endswith(".td") else _BASE for path in edited}
    return {
        path: EditedCode(
            passes=sorted(known.intersection(patterns[path].findall(after.get(path, "")))),
            operations=operations(before.get(path, ""), after.get(path, "")),
        )
        for path in edited
    }


def _of_kernels(sides: Sides[Snapshot], config: Config) -> Edited:
    for snap in sides:
        kernel_repository.plan_of(snap, config)  # a mistake in it is said before anything is installed
    trees = sides.map(lambda snap: {row.path: row.content for row in repository.entries(snap, config)})
    files = tuple(
        EditedFile(
            path=path,
            change=_change(path in trees.base, path in trees.head),
            feeds=(_ANY_FILE,),
            counts=True,
        )
        for path in sorted({path for path, _ in trees.base.items() ^ trees.head.items()})
    )
    return Edited(files=files, of_kernels=True, identical=not files)


def _change(in_base: bool, in_head: bool) -> FileChange:
    if in_base and in_head:
        return FileChange.CHANGED
    return FileChange.REMOVED if in_base else FileChange.ADDED


def operations(before: str, after: str) -> list[str]:
    """Which operations the edited functions match: C++ classes, `AtomicRMWOp`, in order.

    `before` and `after` are the whole texts of one file. A rewrite pattern names its operation
    (`struct X : OpRewritePattern<triton::LoadOp>`), and so do parameters, `isa<…>` and `dyn_cast<…>`. A
    function that names none counts for those of its file that call it. Triton's sources are formatted by
    clang-format: what begins a line in column 0, or in column 2 of a struct, is whole at the next `}` or `;`
    in that column.
    """
    if not after:
        return []
    old, new = before.split("\n"), after.split("\n")
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    # where lines were only removed, the line that follows stands for them
    edited = {
        line
        for kind, _, _, first, last in changes
        if kind != "equal"
        for line in range(first, max(last, first + 1))
    }
    blocks = list(_blocks(new, 0))
    pending = [block for block in blocks if edited & set(block)]
    found: set[str] = set()
    seen = []
    while pending:
        block = pending.pop()
        seen.append(block)
        named, own = _matched([new[line] for line in block], [line - block.start for line in edited], after)
        found |= named
        if not named:
            pending += [other for other in blocks if other not in seen and _calls(new, other, own)]
    return sorted(found)


def _blocks(lines: Sequence[str], indent: int) -> Iterator[range]:
    first = 0
    for number, line in enumerate(lines):
        body = line[indent:]
        at_margin = line[:indent].isspace() or not indent
        if at_margin and body and (body[0] == "}" or (not body[0].isspace() and body.endswith(";"))):
            yield range(first, number + 1)
            first = number + 1
        elif body.startswith("namespace"):
            first = number + 1


def _matched(block: Sequence[str], edited: Collection[int], file: str) -> tuple[set[str], str]:
    """The operations of a function or struct, and its name."""
    text = "\n".join(line for line in block if not line.lstrip().startswith("//"))
    head = text.partition("{")[0] if "{" in text else ""
    struct = _STRUCT.search(head)
    named = _operations(head) - set(_PARAMETER.findall(head))
    if struct and not named:
        # a template is for what it is used with; else what the edited members match
        uses = re.findall(rf"\b{struct[1]}<\s*((?:\w+::)*\w+Op)\b", file)
        members = [row for row in _blocks(block, 2) if {*row} & {*edited}]
        text = "\n".join(block[line] for row in members for line in row)
        named = _operations(" ".join(uses))
    called = _CALLED.search(head)
    name = struct or called
    matched = " ".join(first or second for first, second in _MATCHED.findall(text))
    return named or _operations(matched), name[1] if name else ""


def _operations(text: str) -> set[str]:
    return set(_NAMED.findall(text)) - _EVERYWHERE


def _calls(lines: Sequence[str], block: range, name: str) -> bool:
    text = "\n".join(lines[line] for line in block)
    return bool(name) and re.search(rf"\b{name}\b", text) is not None
