"""Shows what changed in one stage of one case: lines of canonical text, aligned, with raw line numbers.

Made when a report is rendered, from the artifacts of the run folder. Layouts and other long attributes
that a text repeats are shown by a short name of their own; the legend says what each stands for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from irdiff.backends.stages import BINARIES, WITHOUT_TEXT
from irdiff.compare.line_alignment import Aligned, DiffRow, Kind, align, in_numbering_of_head
from irdiff.diffs import visible
from irdiff.errors import IrdiffError
from irdiff.ir.mlir.lines import closing
from irdiff.ir.opcode_classes import UNTELLING
from irdiff.model import Case
from irdiff.run import run_folder
from irdiff.texts import canonicalize, ir_of
from irdiff.words import counted

_NO_TEXTS = frozenset({*BINARIES, *WITHOUT_TEXT})
_LONG_ATTRIBUTE = 24
_LIMIT = 6000
"""The most characters of a line that are shown. One of inline assembly with 256 operands has 5,000."""
OTHERS = "less important differences: moved lines, integer arithmetic, addresses, declarations"
"""The heading of the hunks that `telling_first` gives last."""
_LONGEST = 200_000
"""Characters of a line that are compared."""
_BEFORE_MARK = 200
"""Characters of a longer line that are shown before the first part that differs."""
_ATTRIBUTE = re.compile(r"#[A-Za-z_][\w.$]*<")
_DECLARATION = re.compile(
    r"\s*(?:define|declare|attributes|module|tt\.func|func\.func|llvm\.func|source_filename|[@!#;.])"
)
_TOKEN = re.compile(r"[\w.$%#!]+|\s+|.")
_MARKED = 50_000
"""The most rows of a diff in which changed parts of lines are marked. Real diffs have a few thousand."""
_ALIKE = 0.4
"""The share of tokens that two lines must have in common for marks within them to help a reader."""


@dataclass(frozen=True, kw_only=True)
class DiffLine:
    """One line of the diff, cleaned for showing. Numbers are of the raw text, from 1; 0 where it has none."""

    kind: Kind
    base_number: int
    head_number: int
    text: str
    raw: str
    marks: tuple[tuple[int, int], ...]
    """Parts of `text` that differ from the line it replaces."""


@dataclass(frozen=True, kw_only=True)
class StageDiff:
    """Every line of both sides, in order; `hunks` selects those near a change, `line` makes one to show."""

    stage: str
    legend: tuple[tuple[str, str], ...]
    _aligned: Aligned
    _texts: Sequence[Sequence[str]]
    _numbers: Sequence[Sequence[int]]
    _raws: Sequence[Sequence[str]]

    @property
    def rows(self) -> tuple[DiffRow, ...]:
        return self._aligned.rows

    def count(self, kind: Kind) -> int:
        return sum(diff_row.kind is kind for diff_row in self.rows)

    def changed(self) -> frozenset[Kind]:
        """The kinds of rows shown as changes. Other registers alone count only where nothing else changed."""
        hard = frozenset({Kind.REMOVED, Kind.ADDED})
        return hard if any(diff_row.kind in hard for diff_row in self.rows) else hard | {Kind.RENAMED}

    def hunks(self, context: int) -> Iterator[range]:
        """Index ranges of the rows within `context` of a change, in order and not touching."""
        kinds, last = self.changed(), len(self.rows)
        hunk: range | None = None
        for index in (index for index, diff_row in enumerate(self.rows) if diff_row.kind in kinds):
            start, end = max(0, index - context), min(last, index + context + 1)
            if hunk and start > hunk.stop:
                yield hunk
                hunk = None
            hunk = range(hunk.start if hunk else start, end)
        if hunk:
            yield hunk

    def telling_first(self, context: int) -> tuple[list[range], list[range]]:
        """The hunks that a reader looks for, and the others, each in order.

        A hunk is telling if one of its lines stands on one side more often than on the other, whatever the
        numbers of its values, and is more than integer arithmetic, an address, a move or a declaration.
        """
        is_telling = self._telling_rows()
        telling, others = list[range](), list[range]()
        for hunk in self.hunks(context):
            (telling if any(is_telling(index) for index in hunk) else others).append(hunk)
        return telling, others

    def left_out(self, rows: range) -> str:
        """`… 12 lines without a change`, where rows between two hunks are not shown."""
        kinds = self.changed()
        changed = any(self.rows[index].kind in kinds for index in rows)
        return f"… {counted(len(rows), 'line')}{'' if changed else ' without a change'}"

    def _telling_rows(self) -> Callable[[int], bool]:
        ir = ir_of(self.stage)
        kinds = self.changed()

        def shape_of(index: int) -> str:
            return ir.NAMES.sub("", self._text_of(index))

        shapes = {
            index: shape_of(index) for index, diff_row in enumerate(self.rows) if diff_row.kind in kinds
        }
        removed, added = (
            Counter(shape for index, shape in shapes.items() if self.rows[index].kind is kind)
            for kind in (Kind.REMOVED, Kind.ADDED)
        )

        def is_telling(index: int) -> bool:
            shape = shapes.get(index)
            if shape is None or removed[shape] == added[shape] or _DECLARATION.match(shape):
                return False
            return ir.parse(self._text_of(index)).klass not in UNTELLING

        return is_telling

    def _text_of(self, index: int) -> str:
        diff_row = self.rows[index]
        side, place = (1, diff_row.head) if diff_row.head is not None else (0, diff_row.base)
        assert place is not None
        return self._texts[side][place]

    def line(self, index: int) -> DiffLine:
        diff_row = self.rows[index]
        side, place = (1, diff_row.head) if diff_row.head is not None else (0, diff_row.base)
        assert place is not None
        text = self._text(side, place)
        marks = self._marks_of(diff_row, side, text)
        if len(text) > _LIMIT:  # from shortly before the first part that differs
            start = max(0, marks[0][0] - _BEFORE_MARK) if marks else 0
            text = f"{'… ' * (start > 0)}{text[start : start + _LIMIT]} …"
            moved = start - 2 * (start > 0)
            marks = tuple((one - moved, other - moved) for one, other in marks if other - start <= _LIMIT)
        return DiffLine(
            kind=diff_row.kind,
            base_number=self._number(0, diff_row.base),
            head_number=self._number(1, diff_row.head),
            text=text,
            raw=visible.clean(self._raw(side, self._number(side, place)), limit=_LIMIT),
            marks=marks,
        )

    def _number(self, side: int, place: int | None) -> int:
        numbers = self._numbers[side]
        return numbers[place] if place is not None and place < len(numbers) else 0

    def _raw(self, side: int, number: int) -> str:
        raws = self._raws[side]
        return raws[number - 1].strip() if 0 < number <= len(raws) else ""

    def _marks_of(self, diff_row: DiffRow, side: int, text: str) -> tuple[tuple[int, int], ...]:
        if diff_row.kind is Kind.SAME or len(self.rows) > _MARKED:
            return ()
        other, place = (0, diff_row.base) if diff_row.kind is Kind.RENAMED else (1 - side, diff_row.partner)
        return () if place is None else _marks(text, self._text(other, place))

    def _text(self, side: int, place: int) -> str:
        text = self._texts[side][place]
        if side == 0 and self._aligned.names:  # a diff has one numbering
            text = in_numbering_of_head(self.stage, text, self._aligned.names)
        return visible.clean(text, limit=_LONGEST)


def read_text(folder: Path, case: Case, side: str, stage: str) -> str | None:
    """The raw artifact of one side. None where the run does not hold it, or it is not a text."""
    artifact = case.artifacts.of(side).get(stage)
    if artifact is None or stage in _NO_TEXTS:
        return None
    content = run_folder.artifact(folder, artifact.digest)
    return None if content is None else content.decode("utf-8", "replace")


def read(folder: Path, case: Case, stage: str) -> StageDiff | str:
    """The diff of a stage, or a sentence that says why there is none."""
    try:
        base, head = (read_text(folder, case, side, stage) for side in ("base", "head"))
        if base is None or head is None:
            missing = " and ".join(name for name, text in (("base", base), ("head", head)) if text is None)
            return f"the run folder holds no {stage} text of {missing}"
        return compare(stage, base, head)
    except IrdiffError as error:
        return error.what.replace(str(folder), "the run")  # a report is the same wherever the run lies


def compare(stage: str, base: str, head: str) -> StageDiff:
    """Raises NormalizeError where a text is not of the stage's IR."""
    canonical = [canonicalize(stage, text) for text in (base, head)]
    texts = [text.lines for text in canonical]
    shown, legend = _abbreviate(texts)
    return StageDiff(
        stage=stage,
        legend=legend,
        _aligned=align(stage, *texts),
        _texts=shown,
        _numbers=[text.numbers for text in canonical],
        _raws=[text.splitlines() for text in (base, head)],
    )


def of_lines(stage: str, base: Sequence[str], head: Sequence[str]) -> StageDiff:
    """The diff of lines that are not IR and are shown as they are."""
    texts = (base, head)
    return StageDiff(
        stage=stage,
        legend=(),
        _aligned=align(stage, base, head),
        _texts=texts,
        _numbers=[range(1, len(text) + 1) for text in texts],
        _raws=texts,
    )


def _marks(text: str, other: str) -> tuple[tuple[int, int], ...]:
    tokens, others = _TOKEN.findall(text), _TOKEN.findall(other)
    matcher = SequenceMatcher(None, tokens, others, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return ()
    starts = [0]
    for token in tokens:
        starts.append(starts[-1] + len(token))
    return tuple(
        (starts[i], starts[n]) for tag, i, n, _, _ in matcher.get_opcodes() if tag != "equal" and n > i
    )


# short names


def _abbreviate(texts: Sequence[Sequence[str]]) -> tuple[list[list[str]], tuple[tuple[str, str], ...]]:
    """Long attributes `#dialect.name<…>` as `#name.1`, the same definition by the same name on both sides."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}

    def name(attribute: str) -> str:
        if attribute not in names:
            kind = attribute[1 : attribute.index("<")].rsplit(".", 1)[-1]
            counts[kind] = counts.get(kind, 0) + 1
            names[attribute] = f"#{kind}.{counts[kind]}"
        return names[attribute]

    shown = [[_replace_attributes(line, name) for line in lines] for lines in texts]
    return shown, tuple((short, visible.clean(full)) for full, short in names.items())


def _replace_attributes(line: str, name: Callable[[str], str]) -> str:
    parts: list[str] = []
    position = 0
    while match := _ATTRIBUTE.search(line, position):
        end = closing(line, match.end())
        if end - match.start() < _LONG_ATTRIBUTE:
            parts.append(line[position : match.end()])
            position = match.end()
            continue
        parts += [line[position : match.start()], name(line[match.start() : end])]
        position = end
    return "".join([*parts, line[position:]])
