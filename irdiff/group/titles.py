"""Titles of changes in one line: of one case, and of all cases of a group.

The causes come first, in the order of `causes.order`, then the figures of machine code that moved. A group's
title holds for each of its cases: counts and figures are ranges, and a cause of only some cases says how many
have it. Code stands in backticks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from irdiff import case_ids
from irdiff.backends.stages import BINARIES, WITHOUT_TEXT
from irdiff.compare import cases
from irdiff.compare.edits import Edit
from irdiff.findings import Finding, FindingKind, passed, without_packed
from irdiff.group import causes, figures, launch_causes, operation_names
from irdiff.model import Cause, CauseKind, ComparedCase, Launch, Sides, StageStatus, Verdict
from irdiff.stages import Stage
from irdiff.texts import title
from irdiff.words import shortened

MAX_TITLE = 180
_MAX_CAUSES = 3
_SIGNATURE = "`tt.func`"
"""The launch says which arguments are new."""
_MAX_FIGURES = 3
_MAX_VALUES = 2
_MAX_AHEAD = 2
VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+|'[^']*'|\"[^\"]*\"|/\S+")
"""The parts in which two messages of one failure may differ: numbers, names, paths."""
_VALUE = re.compile(r"(`[\w.]+`) \S.* → ")
_CODE = re.compile(r"`[^`]*`")
_WHERE = re.compile(r" in the loop$| \([^()]*\)$")
_PLACE = re.compile(r" \((?=[^()]*(?:×|in the loop))[^()]*\)")
_SHARE = re.compile(r"(?:\(|, )(in \d+ of \d+ cases)\)")
_MODIFIERS = re.compile(r"`(\w+) [^`]*`")
_NUMBERS = re.compile(r"`-?\d+` → `-?\d+`")
"""A constant of the program: an operand without a name."""

CaseCauses = tuple[ComparedCase, tuple[Cause, ...]]


def causes_of(
    case: ComparedCase, edit: Edit | None, launches: Sides[Launch | None], of_kernel: Edit | None = None
) -> tuple[Cause, ...]:
    """Never empty. of_kernel: the edit of the kernel's own IR, if `edit` is one of the launch and the source
    differs too.
    """
    if case.verdict in (Verdict.BROKEN, Verdict.FIXED):
        return (_failure(case),)
    launch = launch_causes.of_case(case, launches)
    states = _known(case, {cause.subject.strip("`") for cause in launch})
    if states is not None:
        return (*launch, *states)
    if edit is None or not edit.lines:
        return (*launch, *_unknown(case))
    if edit.stage == Stage.LAUNCH:
        named_options = {f"option {cause.subject.strip('`')}" for cause in launch}
        in_text = (cause for cause in launch_causes.of_text(edit) if cause.subject not in named_options)
        in_kernel = causes.of_edit(of_kernel) if of_kernel else ()
        return (*launch, *in_text, *(cause for cause in in_kernel if cause.subject != _SIGNATURE))
    return (*launch, *causes.of_edit(edit))


def of_case(case: ComparedCase, case_causes: Sequence[Cause]) -> str:
    return of_group([(case, tuple(case_causes))])


def of_group(members: Sequence[CaseCauses]) -> str:
    """At most MAX_TITLE characters: causes that do not fit are counted, figures left out. Never empty."""
    if _have_failed(members):
        return _of_failures(members)
    shared = _shared(members)
    title, cases_of_group = _of_shared(shared, len(members)), [case for case, _ in members]
    moved = [*figures.kept(cases_of_group, _synchronizing(shared)), *figures.moved(cases_of_group, title)]
    shown: list[str] = []
    for figure in moved[:_MAX_FIGURES]:
        longer = "; ".join(filter(None, (title, ", ".join([*shown, figure]))))
        shown += [figure] if len(longer) <= MAX_TITLE else []
    return "; ".join(filter(None, (title, ", ".join(shown)))) or "other code"


def clauses(members: Sequence[CaseCauses]) -> list[str]:
    """Omits figures."""
    return [_of_failures(members)] if _have_failed(members) else _clauses(_shared(members), len(members))


def without_place(clause: str) -> str:
    """Drops how often and where, but not in how many cases: `2 more X (1 in the loop, in 2 of 3 cases)`."""

    def share(place: re.Match[str]) -> str:
        share = _SHARE.search(place[0])
        return f" ({share[1]})" if share else ""

    return _PLACE.sub(share, clause)


def _have_failed(members: Sequence[CaseCauses]) -> bool:
    return any(cause.kind is CauseKind.FAILURE for _, own in members for cause in own)


def _of_shared(shared: Sequence[Sequence[Cause]], cases_count: int) -> str:
    """Leaves places out if a hazard or rounding would not fit beside them."""
    clauses = _clauses(shared, cases_count)
    title = _of_causes(clauses)
    risks = [_of_some_cases(alike, cases_count) for alike in shared if alike[0].kind is CauseKind.EFFECT]
    return title if all(risk in title for risk in risks) else _of_causes([*map(without_place, clauses)])


def _of_causes(words: Sequence[str]) -> str:
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
    verb = "no longer compiles" if case.verdict is Verdict.BROKEN else "now compiles"
    if failure is None:
        return Cause.uncounted(CauseKind.FAILURE, verb)
    if failure.stage == "capture":  # no compiler was reached
        verb = "no longer runs" if case.verdict is Verdict.BROKEN else "now runs; base failed"
        noun = "program" if case_ids.is_program(case.workload) else "workload"
        return Cause.uncounted(CauseKind.FAILURE, f"the {noun} {verb}", cases.reason(failure))
    subject = f"{verb} (stage {failure.stage})"
    if case.verdict is Verdict.FIXED:
        subject = f"now compiles; base failed in {failure.stage}"
    return Cause.uncounted(CauseKind.FAILURE, subject, cases.reason(failure))


def _of_failures(members: Sequence[CaseCauses]) -> str:
    subject, detail = next((cause.subject, cause.detail) for _, own in members for cause in own)
    details = {cause.detail for _, own in members for cause in own if cause.kind is CauseKind.FAILURE}
    if len(details) > 1:
        detail = VARYING.sub("…", detail)
    return shortened(f"{subject}: {detail}" if detail else subject, MAX_TITLE)


def _known(case: ComparedCase, named: Collection[str]) -> tuple[Cause, ...] | None:
    """Returns None if the texts say what changed. named: names that the title already has."""
    launch = [f.details for f in case.findings if f.kind is FindingKind.LAUNCH_DIFFERS]
    stage = case.origin.stage if case.origin else ""
    if cases.not_compared(case):
        words = "the code was not compared: the sides end in different stages"
    elif stage == Stage.LAUNCH and cases.unseen_launch(case):
        words = "the launch was not compared: the program goes around what irdiff reads of it"
    elif stage == Stage.LAUNCH and launch:
        names = [name for name in without_packed(launch[0]) if name not in named]
        words = f"the launch passes another {passed(names)}" if names else ""
    elif Finding(FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE) in case.findings:
        kind = next(kind for kind in BINARIES.values() if kind.assembly in case.stages)
        words = f"same {title(kind.assembly)}, `{kind.made_by}` allocates registers differently"
    else:
        return None
    return (Cause.uncounted(CauseKind.STATE, words),) if words else ()


def _unknown(case: ComparedCase) -> tuple[Cause, ...]:
    if Finding(FindingKind.CALLED_IN_ANOTHER_ORDER) in case.findings:
        return (Cause.uncounted(CauseKind.STATE, "called in another order"),)
    stage = case.origin.stage if case.origin else "code"
    if kind := WITHOUT_TEXT.get(stage):
        text, same = title(kind.assembly), case.stages.get(kind.assembly) is not StageStatus.CHANGED
        why = f"the {text} is the same" if same else f"the difference in {text} has no effect"
        words = f"`{kind.made_by}` makes other {title(stage)}", why
        return tuple(Cause.uncounted(CauseKind.STATE, each) for each in words)
    return (Cause.uncounted(CauseKind.STATE, f"other {stage if stage == 'code' else title(stage)}"),)


# causes of several cases


def _shared(members: Sequence[CaseCauses]) -> list[list[Cause]]:
    """The causes that at least half of the cases have, those of all cases first. All stay if they are states,
    which exclude each other. A hazard or rounding comes first, or second if not all cases have it.
    """
    alike: dict[tuple[CauseKind, str], list[Cause]] = {}
    for _, own in members:
        seen = set()
        for cause in own:
            key = cause.kind, cause.subject
            if key not in seen:  # several places of one case may have different values
                alike.setdefault(key, []).append(cause)
                seen.add(key)
    risks = [each for each in alike.values() if each[0].kind is CauseKind.EFFECT]
    others = [each for each in alike.values() if each[0].kind is not CauseKind.EFFECT]
    are_states = all(each[0].kind is CauseKind.STATE for each in others)
    kept = [each for each in others if are_states or 2 * len(each) >= len(members)] or others[:1]
    ordered = sorted(kept, key=lambda each: (len(each) < len(members), causes.order(each[0])))
    risk = sorted(risks, key=lambda each: (-len(each), causes.order(each[0])))[:1]
    if any(len(each) < len(members) for each in risk):
        return [*ordered[:1], *risk, *ordered[1:]]
    return [*risk, *ordered]


def _clauses(shared: Sequence[Sequence[Cause]], cases_count: int) -> list[str]:
    """`2 more X and 2 fewer Y` is one clause: a title that is cut shows both operations or neither."""
    exchanges = _exchanges(shared)
    words = _cause_words([alike for exchange in exchanges for alike in exchange], cases_count)
    return [_joined([next(words) for _ in exchange]) for exchange in exchanges]


def _joined(words: Sequence[str]) -> str:
    """Says once where both operations of an exchange are."""
    where = {match[0] if (match := _WHERE.search(each)) else "" for each in words}
    if len(words) > 1 and len(where) == 1:
        words = [*(each.removesuffix(*where) for each in words[:-1]), words[-1]]
    return " and ".join(words)


def _exchanges(shared: Sequence[Sequence[Cause]]) -> list[list[Sequence[Cause]]]:
    """Puts the first operation that head has less often behind one that it has more often by the same number,
    and the other way round. Any other cause stays alone.
    """
    exchanges: list[list[Sequence[Cause]]] = []
    for alike in shared:
        partner = next((each for each in exchanges if len(each) == 1 and _cancel(each[0], alike)), None)
        if partner is None:
            exchanges.append([alike])
        else:
            partner.append(alike)
    return exchanges


def _cancel(causes_of_one: Sequence[Cause], causes_of_other: Sequence[Cause]) -> bool:
    return all(cause.kind is CauseKind.NUMBER for cause in (causes_of_one[0], causes_of_other[0])) and [
        cause.count for cause in causes_of_one
    ] == [-cause.count for cause in causes_of_other]


def _cause_words(shared: Sequence[Sequence[Cause]], cases_count: int) -> Iterator[str]:
    subjects: set[str] = set()
    for alike in shared:
        words = _of_some_cases(alike, cases_count)
        if alike[0].subject in subjects:
            words = words.replace(alike[0].subject, "elsewhere", 1)
        subjects.add(alike[0].subject)
        yield words


def _of_some_cases(alike: Sequence[Cause], cases_count: int) -> str:
    words = _words(alike, in_all=len(alike) == cases_count)
    if len(alike) == cases_count:
        return words
    return _of_some(words, f"in {len(alike)} of {cases_count} cases", alike[0].kind)


def _of_some(words: str, cases: str, kind: CauseKind) -> str:
    if kind is CauseKind.EFFECT:  # reports leave out what stands in brackets, and would say it of all cases
        return f"{words} {cases}"
    return f"{words[:-1]}, {cases})" if words.endswith(")") else f"{words} ({cases})"


def _words(alike: Sequence[Cause], *, in_all: bool) -> str:
    first = alike[0]
    place = _place(alike, in_all=in_all)
    match first.kind:
        case CauseKind.NUMBER:
            return f"{_numbered(alike)}{place}"
        case CauseKind.REPLACED:
            return f"{first.subject}{_times(alike)}{place}"
        case CauseKind.VALUE:
            return f"{first.subject}{_differently([cause.detail for cause in alike])}{place}"
        case CauseKind.EFFECT:
            times = _times([replace(cause, detail="") for cause in alike]) if in_all else ""
            return f"{_effect(alike)}{times}"
        case CauseKind.LAUNCH | CauseKind.FAILURE:
            return f"{first.subject}{_differently([cause.detail for cause in alike])}"
        case CauseKind.STATE:
            return first.subject


def _effect(alike: Sequence[Cause]) -> str:
    subject = _without_modifiers(alike[0].subject)
    details = {_without_modifiers(cause.detail) for cause in alike}
    detail = details.pop()
    if details or not detail:
        return subject
    return f"{subject}: {detail}"


def _without_modifiers(text: str) -> str:
    """Drops `neg_lo:[0,0,1]` and similar if the names of instructions alone distinguish them."""
    short = _MODIFIERS.sub(r"`\1`", text)
    return short if len(set(_CODE.findall(short))) == len(set(_CODE.findall(text))) else text


def _numbered(alike: Sequence[Cause]) -> str:
    """Formats `one more X before wgmma in the loop`, `2 to 4 fewer X`."""
    counts = [cause.count for cause in alike]
    ahead = sorted({cause.ahead for cause in alike})
    before = f" before {' or '.join(ahead)}" if all(ahead) and len(ahead) <= _MAX_AHEAD else ""
    low, high = min(counts), max(counts)
    name = operation_names.plural(alike[0].subject, 1 if low == high and abs(low) == 1 else 2)
    if low < 0 < high:
        return f"more or fewer {name} ({low:+d} … {high:+d}){before}"
    few, many = sorted((abs(low), abs(high)))
    number = (
        ("one" if few == 1 else str(few))
        if few == many
        else f"{few} or {many}"
        if many == few + 1
        else f"{few} to {many}"
    )
    return f"{number} {'more' if low > 0 else 'fewer'} {name}{before}"


def _times(alike: Sequence[Cause]) -> str:
    if len({cause.detail for cause in alike}) == 1 and alike[0].detail:
        return f" ({alike[0].detail})"
    counts = [cause.count for cause in alike]
    low, high = min(counts), max(counts)
    return "" if high == 1 else f" ({low}×)" if low == high else f" ({low} to {high}×)"


def _place(alike: Sequence[Cause], *, in_all: bool) -> str:
    inside = [cause for cause in alike if cause.in_loops]
    if not inside or (len(inside) < len(alike) and not in_all):
        return ""
    if len(inside) < len(alike):
        return f" (in the loop in {len(inside)} of {len(alike)} cases)"
    if all(cause.in_loops == abs(cause.count) for cause in alike):
        return " in the loop"
    return f" ({inside[0].in_loops} in the loop)" if len(alike) == 1 else " (partly in the loop)"


def _differently(details: Sequence[str]) -> str:
    """Names the values that differ: `: num = 2 → num = 1`. For many values only the name."""
    own = list(dict.fromkeys(details))
    if len(own) > _MAX_VALUES:
        names = {match.group(1) if (match := _VALUE.match(text)) else "" for text in own}
        return f": other {names.pop()}" if len(names) == 1 and all(names) else " with other values"
    text = " or ".join(own)
    if all(_NUMBERS.fullmatch(detail) for detail in own):
        return f": constant {text}"
    return f" {text}" if not text.startswith("`") else f": {text}"


def _synchronizing(shared: Sequence[Sequence[Cause]]) -> list[str]:
    """Takes counted operations of an IR. Those of assembly are among the figures."""
    return [each[0].subject for each in shared if each[0].kind is CauseKind.NUMBER and "." in each[0].subject]
