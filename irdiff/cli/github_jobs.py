"""`irdiff github`: what jobs call that may run the code of a pull request. They have no token that writes.

What a step hands on is printed as `name=value` lines for GITHUB_OUTPUT; every value is made here, or checked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from irdiff import pipeline
from irdiff.cli import options, screen
from irdiff.cli.merge import merged
from irdiff.cli.options import CaseArguments
from irdiff.config import Config
from irdiff.errors import IrdiffError, UsageError
from irdiff.github import asked
from irdiff.github.asked import Asked
from irdiff.model import DEFAULT_OPTIONS, Run, Verdict
from irdiff.report import edit_coverage, escape, markdown
from irdiff.resolve import preflight, sides
from irdiff.resolve.sides import SideOptions
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import repository
from irdiff.run import failure, run_folder
from irdiff.run.failure import PartFailure

_GRAVE = (Verdict.BROKEN, Verdict.CHANGED, Verdict.ABSORBED)
_OUTPUT = re.compile(r"[ -~]*")
_LOG_LINES = 200


def _output(**rows: str) -> None:
    for name, value in rows.items():
        if not _OUTPUT.fullmatch(value):
            raise UsageError(f"{name} has characters that no output has: {value[:80]!a}")
        click.echo(f"{name}={value}")


def _side_options(tell: Callable[[str], None] = lambda _: None) -> SideOptions:
    return SideOptions(repo=None, corpus=None, triton=None, build=True, progress=tell)


@click.command("plan")
@click.option("--base", required=True, help="What the pull request goes to.")
@click.option("--head", required=True, metavar="SHA", help="Its newest commit.")
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    type=options.TIERS,
    help="Cases of the corpus, for a checkout of Triton; a repository of kernels is compared as a whole.",
)
@click.option("--merge-base", is_flag=True, help="Compare with where the history of HEAD leaves BASE.")
@click.option("--asked", "asked_path", type=options.PATH, help="What `github asked` wrote.")
@click.option("--out", type=options.PATH, required=True, help="The run, if nothing can change.")
@options.configured
def plan_command(
    *,
    base: str,
    head: str,
    tiers: tuple[str, ...],
    merge_base: bool,
    asked_path: Path | None,
    out: Path,
    config: Config,
) -> None:
    """Print what to compare, and whether anything can change at all: then no other job need start."""
    store = repository.open_store(Path.cwd(), config)
    wanted = asked.read(asked_path.read_text("utf-8"), head) if asked_path and asked_path.is_file() else None
    if wanted is None:
        wanted = Asked(base=None, tiers=None, targets=(), cases=())
    start = wanted.base or (repository.merge_base(store, base, head) if merge_base else base)
    if sides.is_revision(start):
        start = repository.commit_of(store, start)
    if sides.is_revision(head):
        head = repository.commit_of(store, head)
    if wanted.tiers is None:
        is_compiler = checkouts.is_triton(repository.snapshot(store, head, config), config)
        wanted = replace(wanted, tiers=tiers if is_compiler else ())
    nothing = _write_where_nothing_can_change(start, head, wanted, out, config)
    _output(
        base=start,
        head=head,
        tiers=" ".join(wanted.tiers or ()),
        targets=" ".join(wanted.targets),
        cases=" ".join(wanted.cases),
        nothing="true" if nothing else "false",
    )


def _write_where_nothing_can_change(base: str, head: str, wanted: Asked, out: Path, config: Config) -> bool:
    found = preflight.preflight(base, head, _side_options(), config)
    if found is None:
        return False
    for sentence in filter(
        None, (edit_coverage.differing(found.edited), edit_coverage.consequence(found.edited))
    ):
        click.echo(escape.terminal(sentence), err=True)
    if found.edited.identical:
        targets = CaseArguments(target_names=wanted.targets).targets(config)
        same = pipeline.SameCompiler(
            seen=found, targets=targets, options=DEFAULT_OPTIONS, command=tuple(sys.argv[1:])
        )
        pipeline.compare(same, config, out, lambda _step: None)
    return found.edited.identical


@click.command("key")
@click.argument("base")
@click.argument("head")
@options.configured
def key_command(*, base: str, head: str, config: Config) -> None:
    """Print what names the toolchains of both sides, for a cache."""
    _output(toolchains=preflight.cache_key(base, head, _side_options(), config))


@click.command("prepare")
@click.argument("base")
@click.argument("head")
@options.configured
def prepare_command(*, base: str, head: str, config: Config) -> None:
    """Install or build the toolchains of both sides, for the jobs that compare."""
    with screen.status_line() as tell:
        found = sides.resolve_sides(base, head, _side_options(tell), config)
    for name, side in found.items():
        click.echo(escape.terminal(f"{name}: {side.toolchain.spec}: Triton {side.toolchain.version}"))


@click.command("failed")
@click.option("--step", required=True, help="What was done, for a reader.")
@click.option("--code", required=True, type=int, help="How it ended.")
@click.option("--log", type=click.Path(path_type=Path, exists=True), required=True, help="What it printed.")
@click.option("--out", type=options.PATH, required=True, help="The folder of the run.")
def failed_command(*, step: str, code: int, log: Path, out: Path) -> None:
    """Keep the reason of a step that failed, in the place of a run or beside it."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    failure.write(out, [*failure.load(out), failure.of_output(step, code, lines)])


@click.command("finish")
@click.argument("parts", type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=options.PATH, required=True, help="The run folder to write.")
@click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the report here.")
def finish_command(*, parts: Path, out: Path, markdown_path: Path | None) -> None:
    """Join what the jobs kept, one folder each in PARTS: runs of shards, and reasons of failures."""
    folders = sorted(path for path in parts.iterdir() if path.is_dir()) if parts.is_dir() else []
    wrong = [part for folder in folders for part in failure.load(folder)]
    run: Run | None = None
    runs = [folder for folder in folders if (folder / "run.json").is_file()]
    if runs:
        try:
            run = merged(runs, out, partial=True)
        except IrdiffError as error:
            wrong.append(
                PartFailure(step="joining the shards", code=int(error.exit_code), lines=(error.what,))
            )
        else:
            missing = [note for note in run.notes if "are missing" in note]
            wrong += [PartFailure(step="some shards", code=1, lines=(note,)) for note in missing if not wrong]
    elif not wrong:
        wrong = [failure.NOTHING_KEPT]
    if wrong:
        failure.write(out, wrong)
    _output(**_outcome(run, failed=bool(wrong)))
    if markdown_path:
        text = (
            markdown.of_failures(wrong, has_run=run is not None, limit=markdown.LIMIT // 4) if wrong else ""
        )
        options.write_output(markdown_path, text + (markdown.render(run, out) if run else ""))


@click.command("outcome")
@click.argument("folder", type=click.Path(path_type=Path))
def outcome_command(*, folder: Path) -> None:
    """Print the gravest verdict of a run and its counts; `unknown` where there is none."""
    run = run_folder.load(folder) if (folder / "run.json").is_file() else None
    _output(**_outcome(run, failed=run is None or bool(failure.load(folder))))


def _outcome(run: Run | None, *, failed: bool) -> dict[str, str]:
    counts = run.summary.verdicts if run else {}
    verdict = next((verdict for verdict in _GRAVE if counts.get(verdict)), Verdict.UNCHANGED)
    return {
        "verdict": verdict.value if run else "unknown",
        "counts": json.dumps({name.value: count for name, count in counts.items()}),
        "failed": "true" if failed else "false",
    }


COMMANDS = (failed_command, finish_command, key_command, outcome_command, plan_command, prepare_command)
