"""The whole story of one case on a terminal: stages, the responsible pass and its edit, facts, commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from irdiff import normalize
from irdiff.attribute.attribution import Attribution
from irdiff.cli import diff_view, disassembly
from irdiff.cli.diff_view import View
from irdiff.config import Config
from irdiff.diffs import launch_changes, stage_diff
from irdiff.diffs.renumbering import Kind
from irdiff.diffs.stage_diff import StageDiff
from irdiff.errors import IrdiffError
from irdiff.model import Case, Run, Sides, StageStatus, Verdict
from irdiff.report import commands, escape, group_names, phrases
from irdiff.report.phrases import moved_facts
from irdiff.resolve.sides import Side
from irdiff.run import explanation, tool_commands
from irdiff.stages import Stage, in_stage_order
from irdiff.store import Store
from irdiff.timing import timing_file
from irdiff.timing.results import CaseTiming

if TYPE_CHECKING:
    from rich.console import Console

_MAX_DIFF_LINES = 120
_MAX_SOURCE_LINES = 12
_RECORDED = (
    "a recorded workload calls the kernel as it was: record it again with irdiff capture, "
    "or compare with --program"
)


@dataclass(frozen=True, kw_only=True)
class CaseStory:
    console: Console
    run: Run
    case: Case
    folder: Path
    """The run folder."""
    call: str
    """What commands take for the run."""
    context: int
    """Lines around a change."""

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(escape.terminal(text), style=style), soft_wrap=True)

    def title(self, text: str) -> None:
        self.console.print()
        self.say(text, "bold")

    def tell(
        self, attribution: Attribution | None, sides: Sides[Side] | None, config: Config, corpora: Sides[Path]
    ) -> None:
        case, run = self.case, self.run
        self.say(f"{case.id}: {case.verdict.value}", "bold")
        self.say(f"base {phrases.side(run.base)}   head {phrases.side(run.head)}", "dim")
        if case.renamed_from:
            self.say(f"at base it is {case.renamed_from}", "dim")
        if case.summary:
            self.say(case.summary.title.replace("`", ""))
            self.say(f"{case.summary.severity} ({'; '.join(case.summary.reasons)})")
        row = next((row for row in group_names.named(run) if row.group.id == case.group), None)
        if row:
            count = len(row.group.members)
            place = f"one of {count} cases in group" if count > 1 else "the only case in group"
            self.say(f"{place} {row.number} ({row.short}): {row.group.title.replace('`', '')}", "dim")
        if case.error:
            self.say(case.error, "red")
        head = case.failures.head
        if case.verdict is Verdict.BROKEN and head and head.stage == "capture" and run.head.revision:
            self.say(_RECORDED, "dim")
        rows = [f"{name} {status.value}" for name, status in in_stage_order(case.stages)]
        self.say("stages:  " + " → ".join(rows))
        self._origin(attribution)
        self._edit(attribution, Store(config.store), corpora)
        self._facts()
        self._findings(config)
        self._launch()
        self._timing()
        self._alone(sides)

    def _alone(self, sides: Sides[Side] | None) -> None:
        """What can be done with the files that the run folder has; nothing where it has none."""
        files = explanation.held(self.folder, self.run, self.case)
        if not files:
            return
        self.title("each side alone, from the IR that enters that stage")
        by_tools = tool_commands.of_case(self.run, self.folder, self.case)
        for command in by_tools:
            self.say(command)
        rows = [row for row in explanation.reproduction(self.run, self.case) if row.file in files]
        for row in () if by_tools else rows:
            python = sides.of(row.side).toolchain.python if sides else "PYTHON"
            self.say(f"{row.side}: {row.command(python)}")
        words = commands.explain(self.call, self.case.id)
        self.say(f"files:    {words} --save DIR")
        if not by_tools:
            self.say(f"run here: {words} --exec {rows[-1].side}", "dim")

    def _origin(self, attribution: Attribution | None) -> None:
        origin = attribution.origin if attribution else self.case.origin
        if origin is None:
            return
        self.say(
            f"origin:  {origin.stage}" + (f", pass {origin.pass_name}" if origin.pass_name else ""), "bold"
        )
        if attribution and attribution.step and attribution.step.argument:
            known = attribution.step.options
            self.say(f"         {attribution.step.argument}" + (f" {{{known}}}" if known else ""))
        if origin.charged:
            self.say("charged: " + ", ".join(component.value for component in origin.charged))
        if origin.masked:
            self.say("masked:  differed and came together again: " + ", ".join(origin.masked), "dim")
        if origin.note:
            self.say(f"note:    {origin.note}")

    def _edit(self, attribution: Attribution | None, store: Store, corpora: Sides[Path]) -> None:
        texts = _texts_of_step(attribution, store)
        stage = Stage.TTGIR if texts else self.case.origin.stage if self.case.origin else ""
        if not texts:
            read = [stage_diff.read_text(self.folder, self.case, side, stage) for side in ("base", "head")]
            texts = (read[0], read[1]) if read[0] is not None and read[1] is not None else None
        if not texts:
            self.say(f"no text of {stage or 'any stage'} to show", "dim")
            return
        diff = stage_diff.compare(stage, *texts)
        self.say(
            f"\nedit of {attribution.origin.pass_name}"
            if attribution and attribution.step
            else f"\nedit in {stage}",
            "bold",
        )
        view = View(context=self.context, raw=False, side_by_side=False, width=self.console.width)
        for index, line in enumerate(diff_view.lines(diff, view)):
            if index == _MAX_DIFF_LINES:
                self.say(f"… the rest: {commands.diff(self.call, self.case.id)}", "dim")
                break
            self.console.print(line, soft_wrap=True, highlight=False)
        self._source(diff, texts, corpora)

    def _source(self, diff: StageDiff, texts: tuple[str, str], corpora: Sides[Path]) -> None:
        shown: list[str] = []
        for side, (kind, root) in enumerate(zip((Kind.REMOVED, Kind.ADDED), corpora, strict=True)):
            places = [row.head if side else row.base for row in diff.rows if row.kind is kind]
            numbers = normalize.canonicalize(diff.stage, texts[side]).numbers
            raw = [numbers[place] for place in places if place is not None and place < len(numbers)]
            shown += explanation.source_lines(texts[side], raw, root)
        unique = list(dict.fromkeys(shown))
        if unique:
            self.title("kernel lines behind it")
            for line in unique[:_MAX_SOURCE_LINES]:
                self.say(line)
            if len(unique) > _MAX_SOURCE_LINES:
                self.say(f"… and {len(unique) - _MAX_SOURCE_LINES} more", "dim")

    def _facts(self) -> None:
        moved = moved_facts(self.case.facts.base, self.case.facts.head)
        if moved:
            self.title("facts that moved")
            for name, (before, after) in moved.items():
                self.say(f"{name:28} {before} → {after}")

    def _findings(self, config: Config) -> None:
        """What was seen beside the edit; of SASS, which only nvdisasm shows, it is looked for here."""
        words = [phrases.finding(found) for found in self.case.findings]
        if self.case.stages.get(Stage.SASS) is StageStatus.CHANGED and self.case.artifacts.base.get(
            Stage.CUBIN
        ):
            try:
                texts = disassembly.of_case(self.folder, self.case, config)
                found = normalize.equivalent(Stage.SASS, texts.base, texts.head)
                words += ["machine code: the disassembly is the same"] * found.equal
                words += [f"machine code: {phrases.finding(row)}" for row in found.findings]
            except IrdiffError as error:
                words.append(f"machine code: not disassembled: {error.what}")
        if words:
            self.title("also seen")
            for line in dict.fromkeys(words):
                self.say(line)

    def _launch(self) -> None:
        found = launch_changes.of_case(self.case, self.run)
        if found:
            self.title("what the launch and its options have otherwise")
        for change in found:
            self.say(str(change))

    def _timing(self) -> None:
        timings = timing_file.load(self.folder if self.folder.is_dir() else self.folder.parent)
        rows = [row for row in timings.cases if row.case == self.case.id] if timings else []
        if rows:
            self.title("timing")
        for row in rows:
            self.say(f"{row.gpu}: {_measured(row)}; outputs {row.outputs.status.value}")


def _measured(row: CaseTiming) -> str:
    found = row.measurement
    if found is None:
        return f"not measured: {row.note or row.outputs.message}"
    ratio = f"head / base {found.ratio:.4f} [{found.ratio_low:.4f}, {found.ratio_high:.4f}]"
    noise = f"noise floor {found.noise_floor:.4f}"
    words = f"{found.speed.value}: {found.why}" if found.why else found.speed.value
    return f"{found.base_us:.2f} → {found.head_us:.2f} µs, {ratio}, {noise}: {words}"


def _texts_of_step(attribution: Attribution | None, store: Store) -> tuple[str, str] | None:
    if attribution is None or attribution.edit is None:
        return None
    base, head = store.get(attribution.edit.base), store.get(attribution.edit.head)
    return (base.decode(), head.decode()) if base is not None and head is not None else None
