"""Writes the verdict of a run in sentences, the first line of every report. What is broken comes first.
Nothing nondeterministic, broken or not compared is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from irdiff.capture import program_failures
from irdiff.compare import cases as case_forms
from irdiff.compare.cases import failed_program
from irdiff.group import short_titles
from irdiff.group.launch_causes import CONFIG
from irdiff.group.report_classes import ReportClass
from irdiff.model import BOUNDS, Case, ChangeGroup, Run, StageStatus, Verdict
from irdiff.report import conclusion, distinct_edits, divergence, edit_coverage, error_clusters, phrases
from irdiff.report.distinct_edits import DistinctEdit
from irdiff.stages import Stage
from irdiff.words import counted, first_few, shortened

_SHOWN = 3
_PROGRAMS = 2
_HAZARD = 160
_TITLE = 60
"""Characters of an edit within a sentence."""
_MORE = {
    Verdict.FIXED: ("now compiles", "now compile", ""),
    Verdict.ADDED: ("is launched", "are launched", "at head only"),
    Verdict.REMOVED: ("is launched", "are launched", "at base only"),
    Verdict.FAILING: ("compiles", "compile", "on neither side"),
    Verdict.UNSUPPORTED: ("has", "have", "no backend"),
}


def of(run: Run, edits: Sequence[DistinctEdit] | None = None, timed: str = "") -> str:
    """`edits` of the run if already computed; `timed` is the sentence about its timings."""
    return " ".join(sentences_of(run, edits, timed))


def sentences_of(run: Run, edits: Sequence[DistinctEdit] | None = None, timed: str = "") -> list[str]:
    if run.edited and edit_coverage.same_compiler(run):
        return [edit_coverage.identical(run.edited)]
    broken = [case for case in run.cases if case.verdict is Verdict.BROKEN and not failed_program(case)]
    changed = [case for case in run.cases if case.verdict is Verdict.CHANGED]
    compared = run.summary.compared
    sentences = []
    for cases, words in _broken(broken):
        compiled_at_base = counted(compared + len(broken), "case")
        sentences.append(
            f"{len(cases)} of {compiled_at_base} that compiled at base {words}{_where(cases, run)}."
        )
    if new := [case for case in run.cases if conclusion.is_new_and_fails(case) and not failed_program(case)]:
        verb = "does" if len(new) == 1 else "do"
        sentences.append(f"{counted(len(new), 'new case')} {verb} not compile{_where(new, run)}.")
    sentences += [*_hazards(run), *_failed_programs(run)]
    if timed:
        sentences.append(f"{timed}.")
    if changed:
        words = f"{len(changed)} of {_compared_cases(run)} changed"
        sentences.append(f"{words}{_which(changed, run)}{_where(changed, run)}{_by(changed, run)}.")
    elif compared:
        sentences.append(_nothing_changed(run))
    elif not run.cases:
        sentences.append("nothing was compared.")
    sentences += [
        *_meaning(run, distinct_edits.of(run) if edits is None else edits),
        *_not_compared(run),
        *_ir_only(run),
        *_more(run, is_first=not sentences),
    ]
    return [_capitalized(text) for text in sentences]


def _broken(cases: Sequence[Case]) -> Iterator[tuple[list[Case], str]]:
    """Separates cases that reached a time or memory limit: more time may cure them."""
    ended = [case for case in cases if case.failures.head and case.failures.head.kind in BOUNDS]
    others = [case for case in cases if case not in ended]
    if others:
        yield others, f"no longer {'compiles' if len(others) == 1 else 'compile'}"
    if ended:
        yield ended, "ran out of time or memory at head"


def _capitalized(sentence: str) -> str:
    """Leaves a path as it is."""
    return sentence if re.search(r"^\S*[/.]\w", sentence) else f"{sentence[0].upper()}{sentence[1:]}"


def _hazards(run: Run) -> Iterator[str]:
    hazards = [
        (case, case.summary.effects.hazards[0])
        for case in run.cases
        if case.summary and case.summary.severity == ReportClass.HAZARD and case.summary.effects
    ]
    if hazards:
        case, hazard = hazards[0]
        words = shortened(hazard.what.replace("`", ""), _HAZARD)
        first = f"{case.id} {words}"
        others = f", and {len(hazards) - 1} more" if len(hazards) > 1 else ""
        yield f"{counted(len(hazards), 'hazard')}: {first}{others}."


def _meaning(run: Run, edits: Sequence[DistinctEdit]) -> Iterator[str]:
    yield from _intended(run, edits)
    changed = [case for case in run.cases if case.verdict is Verdict.CHANGED]
    undecided = sum(case.summary.severity == ReportClass.NOT_SHOWN for case in changed if case.summary)
    if undecided:
        compute = "it computes" if undecided == 1 else "they compute"
        yield f"for {counted(undecided, 'case')} irdiff could not decide whether {compute} the same."
    if changed and all(case.summary and case.summary.severity == ReportClass.SAME for case in changed):
        yield f"{'It is' if len(changed) == 1 else 'All of them are'} proved to compute the same."


def _intended(run: Run, edits: Sequence[DistinctEdit]) -> Iterator[str]:
    cases = {case.id: case for case in run.cases}
    intended = [group for edit in edits for group in edit.groups if group.severity == ReportClass.INTENDED]
    choices = [group for group in intended if _is_choice(group, cases)]
    others = [
        [group for group in edit.groups if group in intended and group not in choices] for edit in edits
    ]
    first = [groups[0] for groups in others if groups]
    noun = "edit" if all(edit.files for edit in edits) else "change group"
    which = f"{len(first)} of {len(edits)} {noun}s" if len(edits) > 1 else f"the {noun}"
    if first:
        titles = (short_titles.of(group, cases).clauses[0].replace("`", "") for group in first)
        words = list(dict.fromkeys(shortened(title, _TITLE) for title in titles))
        verb, plural = (
            ("changes", "change")
            if noun == "edit"
            else ("comes from an edit that changes", "come from edits that change")
        )
        changes = verb if len(first) == 1 else plural
        yield f"{which} {changes} what is computed or launched: {first_few(words, _SHOWN)}."
    if choices:
        count = sum(len(group.members) for group in choices)
        whose = "its autotuner has" if count == 1 else "their autotuners have"
        yield f"{counted(count, 'case')} with the same code: {whose} other configs to choose from."


def _is_choice(group: ChangeGroup, cases: Mapping[str, Case]) -> bool:
    """True if nothing differs but the configs from which an autotuner chooses."""
    return all(map(_has_only_other_configs, (cases[name] for name in group.members)))


def _has_only_other_configs(case: Case) -> bool:
    changed = {name for name, status in case.stages.items() if status is StageStatus.CHANGED}
    causes = case.summary.causes if case.summary else ()
    return changed == {Stage.LAUNCH} and {cause.subject for cause in causes} == {CONFIG}


def _failed_programs(run: Run) -> Iterator[str]:
    """Launches after a program's end are unknown. One sentence for each of the first, one for all others."""
    by_reason: dict[tuple[str, str, str], list[Case]] = {}
    for case in run.cases:
        if failure := failed_program(case):
            only = "head" if case.failures.head else "base"
            sides = "on both sides" if all(case.failures) else f"at {only}"
            why = program_failures.of(failure, case.workload)
            by_reason.setdefault((why.program, sides, why.reason), []).append(case)
    rest = "What it launches after that was not compared."
    for (program, sides, reason), cases in list(by_reason.items())[:_PROGRAMS]:
        yield (
            f"{program} fails {sides}{_where(cases, run)}: {reason}. "
            f"{rest if run.summary.compared else 'No kernel was compared.'}"
        )
    others = {program for program, _, _ in list(by_reason)[_PROGRAMS:]}
    if others:
        verb = "fails" if len(others) == 1 else "fail"
        yield f"{counted(len(others), 'more program')} {verb}. What they launch after that was not compared."


def _nothing_changed(run: Run) -> str:
    """If code on the host changed, or may have, only code for the GPU is called the same."""
    others = "the other " if run.summary.verdicts.get(Verdict.BROKEN) else ""
    cases = f"{others}{counted(run.summary.compared, 'case')}".replace("other 1 ", "other ")
    none = f"none of {cases} changed" if run.summary.compared > 1 else f"{cases} did not change"
    if edit_coverage.none_read(run) or edit_coverage.no_line_ran(run):
        return f"{none}, and this run says nothing about the edit."
    same = f"the code of {cases} is the same"
    if files := edit_coverage.files_read(run):
        read = f"{same}, though launches read {counted(files, 'changed file')}"
        return f"{read}; the values of tensors are not compared."
    return f"{same}." if run.runtime or run.unexamined else f"{none}."


def _not_compared(run: Run) -> list[str]:
    unstable = error_clusters.unstable(run.cases)
    parts = [
        f"at least {len(cases)} {'is' if len(cases) == 1 else 'are'} nondeterministic: {words}"
        for words, cases in unstable
    ]
    if blind := sum(map(case_forms.not_compared, run.cases)):
        parts.append(f"the code of {blind} could not be compared")
    if blind := sum(bool(case_forms.unseen_launch(case)) for case in run.cases):
        parts.append(f"the launch of {blind} could not be compared")
    if run.options.shard != (1, 1):
        parts.append("cases of other shards are not in this run")
    if most := run.options.configs:
        first = f"first {most} configs" if most > 1 else "first config"
        parts.append(f"only the {first} of each autotuner {'were' if most > 1 else 'was'} compared")
    parts += edit_coverage.not_looked_at(run)
    return [f"{part}." for part in parts]


def _compared_cases(run: Run) -> str:
    """`14 compared cases` if the run has others, which the sentence does not count."""
    cases = counted(run.summary.compared, "case")
    return cases if len(run.cases) == run.summary.compared else cases.replace(" ", " compared ")


def _ir_only(run: Run) -> Iterator[str]:
    count, compared = run.summary.verdicts.get(Verdict.IR_ONLY, 0), run.summary.compared
    if not count:
        return
    cases = _compared_cases(run)
    which = f"{count} of {cases}" if count < compared else f"all {cases}" if count > 1 else "the case"
    yield f"{which} {'differs' if count == 1 else 'differ'} in IR alone."


def _more(run: Run, *, is_first: bool) -> Iterator[str]:
    """Counts the cases that are not among those compared."""
    cases = (case for case in run.cases if not (failed_program(case) or conclusion.is_new_and_fails(case)))
    counts = Counter(case.verdict for case in cases)
    parts = [
        (count, f"{one if count == 1 else many} {words}{_reason(verdict, count, run)}".rstrip())
        for verdict, (one, many, words) in _MORE.items()
        if (count := counts[verdict])
    ]
    if parts:
        opening = "no case compiles on both sides: "
        (count, words), *others = parts
        first = f"{opening}{count}" if is_first else counted(count, "more case")
        yield ", ".join([f"{first} {words}", *(f"{count} {words}" for count, words in others)]) + "."


def _reason(verdict: Verdict, count: int, run: Run) -> str:
    """If no workload was edited, it is the same workload that launches a case with one Triton only."""
    without = {Verdict.ADDED: "base", Verdict.REMOVED: "head"}
    if verdict not in without or run.is_of_kernel_repository:
        return ""
    one_or_many = "it" if count == 1 else "them"
    return f" (the workload does not launch {one_or_many} with the Triton of {without[verdict]})"


def _which(cases: Sequence[Case], run: Run) -> str:
    if not phrases.of_kernels(run):
        return ""
    return f" ({first_few(sorted({case.kernel for case in cases}), _SHOWN)})"


def _where(cases: Sequence[Case], run: Run) -> str:
    on = {case.target for case in cases}
    names = [target.name for target in run.targets if target.name in on] or sorted(on)
    if len(run.targets) == 1:
        return f" on {names[0]}"
    if len(names) == len(run.targets):
        return f", on {'both' if len(names) == 2 else f'all {len(names)}'} targets"
    return f", all on {_listed(names)}" if len(names) <= _SHOWN else f", on {len(names)} targets"


def _by(cases: Sequence[Case], run: Run) -> str:
    """Names the pass or component to ask about."""
    if _which(cases, run):
        return ""
    first = f": {'its' if len(cases) == 1 else 'their'} code first differs in"
    if not any(case.origin and (case.origin.pass_name or case.origin.charged) for case in cases):
        stages = Counter(case.origin.stage if case.origin else "no stage" for case in cases).most_common()
        return f"{first} {_listed([f'{stage} ({count})' for stage, count in stages])}"
    counts = Counter(map(divergence.of_case, cases)).most_common()
    name, most = counts[0]
    if len(counts) == 1:
        return f"{first} {name}"
    if len(counts) <= _SHOWN:
        return f"{first} {_listed([f'{name} ({count})' for name, count in counts])}"
    return f"{first} {len(counts)} different passes or parts of the toolchain, most often in {name} ({most})"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
