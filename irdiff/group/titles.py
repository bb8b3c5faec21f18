"""One line that says what a change is: of one case, and of all cases of a group. Pure.

The causes come first, in the order of `causes.order`, then the figures of machine code that moved. What is
said of a group holds for each of its cases: counts and figures are ranges, and a cause that not all cases
have says how many have it. Code stands in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from irdiff import case_ids
from irdiff.backends.stages import BINARIES, WITHOUT_TEXT
from irdiff.compare import cases
from irdiff.compare.edits import Edit
from irdiff.findings import Finding, FindingKind, passed
from irdiff.group import causes, figures, launch_causes, operation_names
from irdiff.model import Cause, CauseKind, ComparedCase, Launch, Sides, StageStatus, Verdict
from irdiff.stages import Stage
from irdiff.texts import title
from irdiff.words import shortened

MAX_TITLE = 160
_MAX_CAUSES = 3
_SIGNATURE = "`tt.func`"
"""The launch says which arguments are new."""
_MAX_FIGURES = 3
_MAX_VALUES = 2
_MAX_AHEAD = 2
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+|'[^']*'|\"[^\"]*\"|/\S+")
"""What differs between two messages of one failure: numbers, names, paths."""
_VALUE = re.compile(r"(`[\w.]+`) \S.* → ")
_CODE = re.compile(r"`[^`]*`")
_MODIFIERS = re.compile(r"`(\w+) [^`]*`")
_NUMBERS = re.compile(r"`-?\d+` → `-?\d+`")
"""Of an operand without a name: what a constant of the program was, and is."""

CaseCauses = tuple[ComparedCase, tuple[Cause, ...]]
"""A case with its causes."""


def causes_of(
    case: ComparedCase, edit: Edit | None, launches: Sides[Launch | None], of_kernel: Edit | None = None
) -> tuple[Cause, ...]:
    """What the title of a case is made from, and its part in the title of its group. Never empty.

    `of_kernel` is the edit of the kernel's own IR, where `edit` is one of the launch and the kernel's source
    differs as well.
    """
    if case.verdict in (Verdict.BROKEN, Verdict.FIXED):
        return (_failure(case),)
    launch = launch_causes.of_case(case, launches)
    known = _known(case, {row.subject.strip("`") for row in launch})
    if known is not None:
        return (*launch, *known)
    if edit is None or not edit.lines:
        return (*launch, _unknown(case))
    if edit.stage == Stage.LAUNCH:
        said = {f"option {row.subject.strip('`')}" for row in launch}
        in_text = (row for row in launch_causes.of_text(edit) if row.subject not in said)
        in_kernel = causes.of_edit(of_kernel) if of_kernel else ()
        return (*launch, *in_text, *(row for row in in_kernel if row.subject != _SIGNATURE))
    return (*launch, *causes.of_edit(edit))


def of_case(case: ComparedCase, found: Sequence[Cause]) -> str:
    return of_group([(case, tuple(found))])


def of_group(rows: Sequence[CaseCauses]) -> str:
    """At most MAX_TITLE characters: causes that do not fit are counted, figures left out. Never empty."""
    if _have_failed(rows):
        return _of_failures(rows)
    shared = _shared(rows)
    title, members = _of_causes(list(_cause_words(shared, len(rows)))), [case for case, _ in rows]
    moved = [*figures.kept(members, _synchronizing(shared)), *figures.moved(members, title)]
    shown: list[str] = []
    for figure in moved[:_MAX_FIGURES]:
        longer = "; ".join(filter(None, (title, ", ".join([*shown, figure]))))
        shown += [figure] if len(longer) <= MAX_TITLE else []
    return "; ".join(filter(None, (title, ", ".join(shown)))) or "other code"


def clauses(rows: Sequence[CaseCauses]) -> list[str]:
    """What the cases have in common, each cause in words, without figures."""
    return [_of_failures(rows)] if _have_failed(rows) else list(_cause_words(_shared(rows), len(rows)))


def _have_failed(rows: Sequence[CaseCauses]) -> bool:
    return any(row.kind is CauseKind.FAILURE for _, found in rows for row in found)


def _of_causes(words: Sequence[str]) -> str:
    """The first ones, and how many others there are."""
    others = ""
    for count in range(_MAX_CAUSES if len(words) <= _MAX_CAUSES else _MAX_CAUSES - 1, 0, -1):
        left = len(words) - count
        others = f", {'one other change' if left == 1 else f'{left} other changes'}" if left > 0 else ""
        text = ", ".join(words[:count]) + others
        if len(text) <= MAX_TITLE:
            return text
    return shortened(words[0], MAX_TITLE - len(others)) + others


# what is known besides the texts


def _failure(case: ComparedCase) -> Cause:
    failure = case.failures.head or case.failures.base
    verb = "no longer compiles" if case.verdict is Verdict.BROKEN else "compiles again"
    if failure is None:
        return Cause.uncounted(CauseKind.FAILURE, verb)
    if failure.stage == "capture":  # no compiler was reached
        verb = "no longer runs" if case.verdict is Verdict.BROKEN else "runs again"
        what = "program" if case_ids.is_program(case.workload) else "workload"
        return Cause.uncounted(CauseKind.FAILURE, f"the {what} {verb}", cases.reason(failure))
    return Cause.uncounted(CauseKind.FAILURE, f"{verb} ({failure.stage})", cases.reason(failure))


def _of_failures(rows: Sequence[CaseCauses]) -> str:
    subject, detail = next((r.subject, r.detail) for _, found in rows for r in found)
    details = {row.detail for _, found in rows for row in found if row.kind is CauseKind.FAILURE}
    if len(details) > 1:
        detail = VARYING.sub("…", detail)
    return shortened(f"{subject}: {detail}" if detail else subject, MAX_TITLE)


def _known(case: ComparedCase, said: Collection[str]) -> tuple[Cause, ...] | None:
    """None where the texts say what changed. `said` are names that the title has already."""
    launch = [f.details for f in case.findings if f.kind is FindingKind.LAUNCH_DIFFERS]
    stage = case.origin.stage if case.origin else ""
    if cases.not_compared(case):
        words = "the code was not compared: the sides end in different stages"
    elif stage == Stage.LAUNCH and cases.unseen_launch(case):
        words = "the launch was not compared: the program goes around what irdiff reads of it"
    elif stage == Stage.LAUNCH and launch:
        others = [name for name in launch[0] if name != "packed"]  # which packs the others
        names = [name for name in others or launch[0] if name not in said]
        words = f"the launch passes another {passed(names)}" if names else ""
    elif Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE) in case.findings:
        kind = next(kind for kind in BINARIES.values() if kind.assembly in case.stages)
        words = f"same {title(kind.assembly)}, `{kind.made_by}` allocates registers differently"
    else:
        return None
    return (Cause.uncounted(CauseKind.STATE, words),) if words else ()


def _unknown(case: ComparedCase) -> Cause:
    stage = case.origin.stage if case.origin else "code"
    if kind := WITHOUT_TEXT.get(stage):
        text, same = title(kind.assembly), case.stages.get(kind.assembly) is not StageStatus.CHANGED
        words = f"same {text}, other" if same else f"what differs in {text} has no effect; other"
        return Cause.uncounted(CauseKind.STATE, f"{words} {title(stage)} from `{kind.made_by}`")
    return Cause.uncounted(CauseKind.STATE, f"other {stage if stage == 'code' else title(stage)}")


# causes of several cases


def _shared(rows: Sequence[CaseCauses]) -> list[list[Cause]]:
    """The causes that most cases have, each as it is in those cases; causes of all cases first. With them,
    what may give a wrong result in most cases: first, or where not all cases have it second.
    """
    found: dict[tuple[CauseKind, str], list[Cause]] = {}
    for _, own in rows:
        seen = set()
        for row in own:
            key = row.kind, row.subject
            if key not in seen:  # several places of one case may have different values
                found.setdefault(key, []).append(row)
                seen.add(key)
    risks = [each for each in found.values() if each[0].kind is CauseKind.EFFECT]
    others = [each for each in found.values() if each[0].kind is not CauseKind.EFFECT]
    kept = [each for each in others if 2 * len(each) >= len(rows)] or others[:1]
    ordered = sorted(kept, key=lambda each: (len(each) < len(rows), causes.order(each[0])))
    risk = sorted(risks, key=lambda each: (-len(each), causes.order(each[0])))[:1]
    if any(len(each) < len(rows) for each in risk):
        return [*ordered[:1], *risk, *ordered[1:]]
    return [*risk, *ordered]


def _cause_words(shared: Sequence[Sequence[Cause]], cases_count: int) -> Iterator[str]:
    subjects: set[str] = set()
    for found in shared:
        words = _words(found, in_all=len(found) == cases_count)
        if found[0].subject in subjects:
            words = words.replace(found[0].subject, "others", 1)
        subjects.add(found[0].subject)
        if len(found) < cases_count:
            words = _of_some(words, f"in {len(found)} of {cases_count} cases", found[0].kind)
        yield words


def _of_some(words: str, cases: str, kind: CauseKind) -> str:
    if kind is CauseKind.EFFECT:  # reports leave out what stands in brackets, and would say it of all cases
        return f"{words} {cases}"
    return f"{words[:-1]}, {cases})" if words.endswith(")") else f"{words} ({cases})"


def _words(found: Sequence[Cause], *, in_all: bool) -> str:
    first = found[0]
    place = _place(found, in_all=in_all)
    match first.kind:
        case CauseKind.NUMBER:
            return f"{_numbered(found)}{place}"
        case CauseKind.REPLACED:
            return f"{first.subject}{_times(found)}{place}"
        case CauseKind.VALUE:
            return f"{first.subject}{_differently([row.detail for row in found])}{place}"
        case CauseKind.EFFECT:
            times = _times([replace(row, detail="") for row in found]) if in_all else ""
            return f"{_effect(found)}{times}"
        case CauseKind.LAUNCH | CauseKind.FAILURE:
            return f"{first.subject}{_differently([row.detail for row in found])}"
        case CauseKind.STATE:
            return first.subject


def _effect(found: Sequence[Cause]) -> str:
    subject = _without_modifiers(found[0].subject)
    details = {_without_modifiers(row.detail) for row in found}
    detail = details.pop()
    if details or not detail:
        return subject
    return f"{subject}: {detail}"


def _without_modifiers(text: str) -> str:
    """`v_fma_f32 neg_lo:[0,0,1]` by its name alone, where names alone differ as the instructions do."""
    short = _MODIFIERS.sub(r"`\1`", text)
    return short if len(set(_CODE.findall(short))) == len(set(_CODE.findall(text))) else text


def _numbered(found: Sequence[Cause]) -> str:
    """`one more X before wgmma in the loop`, `2 to 4 fewer X`."""
    counts = [row.count for row in found]
    ahead = sorted({row.ahead for row in found})
    before = f" before {' or '.join(ahead)}" if all(ahead) and len(ahead) <= _MAX_AHEAD else ""
    low, high = min(counts), max(counts)
    name = operation_names.plural(found[0].subject, 1 if low == high and abs(low) == 1 else 2)
    if low < 0 < high:
        return f"more or fewer {name} ({low:+d} … {high:+d}){before}"
    few, many = sorted((abs(low), abs(high)))
    number = ("one" if few == 1 else str(few)) if few == many else f"{few} to {many}"
    return f"{number} {'more' if low > 0 else 'fewer'} {name}{before}"


def _times(found: Sequence[Cause]) -> str:
    if len({row.detail for row in found}) == 1 and found[0].detail:
        return f" ({found[0].detail})"
    counts = [row.count for row in found]
    low, high = min(counts), max(counts)
    return "" if high == 1 else f" ({low}×)" if low == high else f" ({low} to {high}×)"


def _place(found: Sequence[Cause], *, in_all: bool) -> str:
    """Whether the cause lies in loops: all of it, some of it, or in some of its cases."""
    inside = [row for row in found if row.in_loops]
    if not inside or (len(inside) < len(found) and not in_all):
        return ""
    if len(inside) < len(found):
        return f" (in the loop in {len(inside)} of {len(found)} cases)"
    if all(row.in_loops == abs(row.count) for row in found):
        return " in the loop"
    return f" ({inside[0].in_loops} in the loop)" if len(found) == 1 else " (partly in the loop)"


def _differently(details: Sequence[str]) -> str:
    """Which values differ: `: num = 2 → num = 1`. Of many values only the name."""
    own = list(dict.fromkeys(details))
    if len(own) > _MAX_VALUES:
        names = {match.group(1) if (match := _VALUE.match(text)) else "" for text in own}
        return f": other {names.pop()}" if len(names) == 1 and all(names) else " with other values"
    text = " or ".join(own)
    if all(_NUMBERS.fullmatch(detail) for detail in own):
        return f": constant {text}"
    return f" {text}" if not text.startswith("`") else f": {text}"


def _synchronizing(shared: Sequence[Sequence[Cause]]) -> list[str]:
    """Counted operations of an IR. Those of assembly are among the figures."""
    return [each[0].subject for each in shared if each[0].kind is CauseKind.NUMBER and "." in each[0].subject]
