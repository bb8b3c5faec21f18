from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff.backends.stages import WITHOUT_TEXT
from irdiff.bisect.code_bisect import CodeBisection, FirstBadCommits
from irdiff.bisect.commit_search import GitHistory, History, SideList
from irdiff.cli import diff_command, options, screen, tool_sides
from irdiff.cli.commit_comparisons import CommitComparisons
from irdiff.cli.diff_command import View
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.config import Config
from irdiff.diffs import stage_diff
from irdiff.errors import NormalizeError, UsageError
from irdiff.report import escape
from irdiff.resolve import targets
from irdiff.resolve.sides import Resolver, Side, is_revision, resolve_sides
from irdiff.resolve.toolchains import repository

_MAX_LINES = 80
_VIEW = View(context=3, raw=False, side_by_side=False, width=0)
_FAILURE_LINES = 30


@click.command("bisect")
@click.argument("sides", nargs=-1, required=True, metavar="GOOD [SIDE…] BAD")
@click.option("--case", "case_id", required=True, metavar="ID", help="family/workload:label@target")
@click.option("--stage", help="Look for the first change of this stage's canonical text.")
@options.origin_option
@options.assembler_option
@options.checkout
@options.gathered("selection", CaseArguments, options.corpus_option, options.targets_folder_option)
@options.json_option
@options.limited
def bisect_command(
    *,
    sides: tuple[str, ...],
    case_id: str,
    stage: str | None,
    origin: str | None,
    assembler: str | None,
    checkout: CheckoutArguments,
    selection: CaseArguments,
    json_path: Path | None,
    config: Config,
) -> None:
    """Find the first commit after GOOD, up to BAD, that changes the code of a case.

    Without --stage the machine code decides. Commits that cannot be built, or that lack the case, are
    skipped. A list of releases (triton==3.7.1 triton==3.8.0 …), or of LLVMs or assemblers
    (llvm:PATH llvm:PATH … --from triton==3.9.0), is searched in the order it is given in.
    """
    name = case_id.partition("@")[2]
    if not name or ":" not in case_id:
        hint = f"write it as in elementwise/vector_add:fp32-16m@{targets.FIRST}"
        raise UsageError(f"there is no case {case_id!r}", hint=hint)
    target = replace(selection, target_names=(name,)).targets(config)[0]
    with (
        screen.status_line() as report,
        tempfile.TemporaryDirectory(prefix="irdiff-bisect-") as root,
    ):
        tools = tool_sides.ToolSides(
            origin=origin, assembler=assembler, wanted=checkout.side_options(selection)
        )
        store, history, side_of = _searched(sides, tools, config)
        comparisons = CommitComparisons(
            case_id=case_id, target=target, side_of=side_of, config=config, report=report, root=Path(root)
        )
        finding = CodeBisection(
            good=sides[0],
            bad=sides[-1],
            case_id=case_id,
            stage=stage,
            history=history,
            compare=comparisons.compare,
            report=report,
        ).run()
        diff = _diff(finding, comparisons.folder_of(finding.before, finding.after), stage)
        titles = [_title(store, commit) if store else _version(side_of(commit)) for commit in finding.commits]
    if json_path:
        options.write_json(json_path, _as_json(finding, diff))
    if str(json_path) != "-":
        _show(finding, diff, titles)


def _searched(
    sides: tuple[str, ...], tools: tool_sides.ToolSides, config: Config
) -> tuple[repository.GitStore | None, History, Callable[[str], Side]]:
    """Returns no repository for sides that are listed instead of two revisions."""
    if len(sides) == 2 and all(map(is_revision, sides)):
        store = repository.open_store(tools.wanted.repo or Path.cwd(), config)
        return store, GitHistory(store), functools.cache(Resolver(store, tools.wanted, config).side)
    return None, SideList(sides), _listed(sides, tools, config).__getitem__


def _listed(names: tuple[str, ...], tools: tool_sides.ToolSides, config: Config) -> dict[str, Side]:
    if len(set(names)) < max(2, len(names)):
        raise UsageError(
            "a list of at least two sides is needed, each once", hint="irdiff bisect GOOD SIDE BAD --case ID"
        )
    if wrong := [name for name in names if is_revision(name)]:
        raise UsageError(
            f"{wrong[0]} is a revision: git knows the commits between two of them",
            hint="irdiff bisect GOOD BAD --case ID",
        )
    if tool_sides.is_tool(*names):
        sides = tool_sides.of_list(names, tools, config)
    else:
        sides = [resolve_sides(name, name, tools.wanted, config).head for name in names]
    return dict(zip(names, sides, strict=True))


def _version(side: Side) -> str:
    toolchain = side.toolchain
    return toolchain.spec + (f" ({toolchain.version})" if toolchain.version not in toolchain.spec else "")


def _as_json(finding: FirstBadCommits, diff: list[Text]) -> dict[str, object]:
    case = finding.case
    return {
        "commits": finding.commits,
        "case": case.id,
        "verdict": case.verdict,
        "origin": case.origin.stage if case.origin else None,
        "error": case.error,
        "diff": [line.plain for line in diff],
        "tried": finding.tried,
        "skipped": finding.skipped,
        "changes_again": finding.changes_again,
    }


def _title(store: repository.GitStore, commit: str) -> str:
    return store.git("log", "-1", "--format=%h %an: %s", commit).decode(errors="replace").strip()


def _show(finding: FirstBadCommits, diff: list[Text], titles: list[str]) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    case = finding.case
    if len(finding.commits) == 1:
        console.print(f"first commit that changes {case.id}:")
    else:
        console.print(f"one of these changes {case.id}; the others could not be built or compiled:")
    for title in titles:
        console.print("  " + escape.terminal(title), style="bold")
    where = f" from {case.origin.stage} on" if case.origin else ""
    console.print(f"{case.verdict}{where}; {len(finding.tried)} tried, {len(finding.skipped)} skipped")
    if finding.changes_again:
        console.print("The code of BAD is another one: the case changes again later.")
    if case.error:
        console.print(escape.terminal(case.error))
    for line in [*diff[:_MAX_LINES], *([Text("…")] if len(diff) > _MAX_LINES else [])]:
        console.print(line)


def _diff(finding: FirstBadCommits, folder: Path, stage: str | None) -> list[Text]:
    """Returns the compiler's error output if a side failed."""
    case = finding.case
    shown = (case.origin.stage if case.origin else stage) or ""
    shown = WITHOUT_TEXT[shown].assembly if shown in WITHOUT_TEXT else shown
    base, head = (stage_diff.read_text(folder, case, side, shown) for side in ("base", "head"))
    if base is None or head is None:
        failure = case.failures.head or case.failures.base
        lines = failure.stderr.splitlines()[-_FAILURE_LINES:] if failure else []
        return [Text(escape.terminal(line)) for line in lines]
    try:
        diff = stage_diff.compare(shown, base, head)
    except NormalizeError:
        diff = stage_diff.of_lines(shown, base.splitlines(), head.splitlines())
    return list(diff_command.lines(diff, _VIEW))
