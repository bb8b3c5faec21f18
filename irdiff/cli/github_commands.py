"""`irdiff github` runs one step of the workflows. See reports/github/README.md.

`fetch`, `asked`, `obey` and `prune` run trusted code and have a token. The other commands run where the code
of a pull request may run, and have no token that can write. They pass on `name=value` lines for
GITHUB_OUTPUT; every value is produced here, or checked.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments
from irdiff.cli.runs_commands import merged
from irdiff.cli.store_commands import parse_size
from irdiff.comparison import SameCompiler
from irdiff.config import Config
from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.github import comment_commands
from irdiff.github.comment_commands import CommentCommand
from irdiff.model import DEFAULT_OPTIONS, Run, Verdict
from irdiff.report import edit_coverage, escape, markdown
from irdiff.resolve import sides
from irdiff.resolve.sides import SideOptions
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import repository
from irdiff.run import failure, run_archive, run_folder
from irdiff.run.failure import PartFailure

if TYPE_CHECKING:
    from irdiff.github.api import Client

# Commands import GitHub's API, and the steps of a comparison, when they need them: each is a process of its
# own, and most need neither.

COMPARING = "irdiff-pr.yml"
NIGHTLY = "irdiff-nightly.yml"
ARTIFACT = "irdiff-run"
HISTORY = "irdiff-history"
_EVENT = "give the file of a comment's event: --event $GITHUB_EVENT_PATH"
_MAX_EVENT_BYTES = 4 << 20


@click.group("github")
def github_group() -> None:
    """Run one step of the workflows that `irdiff init --github` writes."""


@github_group.command("fetch")
@click.option("--run", "run_id", type=click.IntRange(min=1), help="Id of the run of the workflow.")
@click.option("--commit", metavar="SHA", help="Instead of --run: the newest comparison of this commit.")
@click.option("--out", type=options.PATH, required=True, help="The folder to write.")
def fetch_command(run_id: int | None, commit: str | None, out: Path) -> None:
    """Download the run that a comparison kept; if there is none, OUT/failure.json says why."""
    from irdiff.github import actions, api

    hub = api.of_environment()
    if (run_id is None) == (commit is None):
        raise UsageError("name one run of the workflow", hint="give either --run ID or --commit SHA")
    if run_id is None:
        newest = actions.newest_run(hub, COMPARING, commit or "")
        if newest is None or not newest.is_done:
            raise UsageError(
                f"there is no finished comparison of {(commit or '')[:40]!a}", hint="wait for irdiff-pr"
            )
        run_id = newest.number
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="irdiff-fetch-") as scratch:
        place = Path(scratch, "run.zip")
        has_artifact = actions.fetch_artifact(hub, run_id, ARTIFACT, place)
        if has_artifact:
            try:
                run_archive.unpack(place, out)
            except RunFolderError as error:
                failure.write(out, [PartFailure(step="reading the run", code=2, lines=(str(error)[:300],))])
        if not has_artifact or failure.load(out) == (failure.NOTHING_KEPT,):  # GitHub knows which step it was
            failure.write(out, actions.failures(hub, run_id) or (failure.NOTHING_KEPT,))
    click.echo(f"fetched: {', '.join(sorted(path.name for path in out.iterdir()))}")


@github_group.command("asked")
@click.option("--pr", "number", type=click.IntRange(min=1), required=True, help="Number of the pull request.")
@click.option("--head", required=True, metavar="SHA", help="The commit that is to be compared.")
@click.option("--out", type=options.PATH, required=True, help="The record, for `github plan`.")
def asked_command(number: int, head: str, out: Path) -> None:
    """Find what a maintainer asked to compare this commit with, in the record of `github obey`."""
    from irdiff.github import api, comment

    command = comment_commands.read(
        comment.find_own(api.of_environment(), number, comment_commands.KEY), head
    )
    out.write_text(comment_commands.record(command, head) if command else "", encoding="utf-8")
    click.echo(
        f"asked for: {comment_commands.in_words(command)}"
        if command
        else "nothing was asked for at this commit"
    )


@github_group.command("obey")
@click.option("--event", type=options.PATH, required=True, help="The file of the event: GITHUB_EVENT_PATH.")
def obey_command(event: Path) -> None:
    """Carry out the command in a comment, if its author may write to the repository."""
    from irdiff.github import actions, api

    hub = api.of_environment()
    request_comment = _comment_of(event)
    if not actions.may_write(hub, request_comment["login"]):
        click.echo(f"not obeyed: {request_comment['login']} may not write to {hub.repository}")
        return
    try:
        wanted = comment_commands.parse(request_comment["body"])
    except UsageError as error:
        _answer(
            hub,
            request_comment,
            f"{escape.markdown(error.what)}\n\n{escape.fence(comment_commands.USAGE.splitlines())}",
        )
        return
    if wanted is None:
        _answer(hub, request_comment, escape.fence(comment_commands.USAGE.splitlines()))
    else:
        _compare_again(hub, request_comment, wanted)


def _comment_of(event: Path) -> dict[str, Any]:
    """Returns the comment as it was when it started the job, even if it was edited since."""
    if event.stat().st_size > _MAX_EVENT_BYTES:
        raise UsageError("the event is larger than GitHub's events are", hint=_EVENT)
    payload = json.loads(event.read_bytes())
    try:
        if payload["action"] != "created" or "pull_request" not in payload["issue"]:
            raise UsageError("the event is not of a new comment on a pull request", hint=_EVENT)
        return {
            "pull": int(payload["issue"]["number"]),
            "comment": int(payload["comment"]["id"]),
            "login": str(payload["comment"]["user"]["login"]),
            "body": str(payload["comment"]["body"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError("the event is not of a comment", hint=_EVENT) from error


def _compare_again(hub: Client, request_comment: dict[str, Any], wanted: CommentCommand) -> None:
    """Records the command for the pull request's commit, then restarts the comparison of that commit.

    The pull request's code must not run in this job, which has the rights of the default branch, whose caches
    other workflows trust.
    """
    from irdiff.github import actions

    head, _ = actions.pull_request(hub, request_comment["pull"])
    newest = actions.newest_run(hub, COMPARING, head)
    if newest is None or not newest.is_done:
        when = "when it has ended" if newest else f"when `{COMPARING}` has run for {head[:12]}"
        _answer(hub, request_comment, f"a comparison of this commit is on its way: ask again {when}.")
        return
    words, record = escape.code(comment_commands.in_words(wanted)), comment_commands.record(wanted, head)
    link = f" ([run]({escape.url(newest.url)}))" if newest.url else ""
    who = escape.code(request_comment["login"])
    text = (
        f"{record}\n{who} asked for {words} at {escape.code(head[:12])}{link}. "
        "The report is updated when it is done; if nothing starts, re-run that job by hand."
    )
    _answer(hub, request_comment, text)
    actions.rerun(hub, newest)
    actions.react(hub, request_comment["comment"], "rocket")
    click.echo(escape.terminal(f"started again: {newest.url}"))


def _answer(hub: Client, request_comment: dict[str, Any], text: str) -> None:
    from irdiff.github import comment

    posted = comment.post(hub, request_comment["pull"], lambda limit: text[:limit], key=comment_commands.KEY)
    click.echo(escape.terminal(f"answered: comment {posted.done}"))


@github_group.command("prune")
@click.option("--max-size", default="8GB", help="The most that irdiff's caches may hold.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed.")
def prune_command(max_size: str, dry_run: bool) -> None:
    """Remove caches of closed pull requests, then those unused longest. GitHub gives a repository 10 GB."""
    from irdiff.github import actions, api

    hub = api.of_environment()
    caches = [*actions.caches(hub, "irdiff-")]
    numbers = {number for cache in caches if (number := actions.pull_request_of(cache)) is not None}
    closed = {number for number in numbers if not actions.pull_request(hub, number)[1]}
    gone = actions.to_remove(caches, closed, parse_size(max_size))
    for cache in gone:
        if not dry_run:
            actions.remove_cache(hub, cache)
        click.echo(escape.terminal(f"{'would remove' if dry_run else 'removed'} {cache.key} of {cache.ref}"))
    kept = sum(cache.size_bytes for cache in caches) - sum(cache.size_bytes for cache in gone)
    click.echo(f"{len(gone)} of {len(caches)} caches removed, {kept / 1e9:.1f} GB kept")


@github_group.command("history")
@click.option("--branch", required=True, help="The branch of the nightly jobs.")
@options.db_option
def history_command(branch: str, file: Path) -> None:
    """Download the history that the branch's newest nightly job kept; if there is none, begin a new one."""
    from irdiff.github import actions, api

    with tempfile.TemporaryDirectory(prefix="irdiff-history-") as scratch:
        place = Path(scratch, "history.zip")
        night = actions.fetch_from_newest(api.of_environment(), NIGHTLY, branch, HISTORY, place)
        if night is not None:
            with zipfile.ZipFile(place) as archive, archive.open(file.name) as kept, file.open("wb") as out:
                shutil.copyfileobj(kept, out)
    click.echo(f"{file}: {'new' if night is None else f'of the run {night}'}")


# steps without a token


_GRAVE = (Verdict.BROKEN, Verdict.CHANGED, Verdict.IR_ONLY)
_OUTPUT = re.compile(r"[ -~]*")
_LOG_LINES = 200


def _output(**values: str) -> None:
    for name, value in values.items():
        if not _OUTPUT.fullmatch(value):
            raise UsageError(
                f"the output {name} of a workflow may only have printable ASCII characters: {value[:80]!a}",
                hint="rename the branch, file or side that has the other characters",
            )
        click.echo(f"{name}={value}")


_SIDE_OPTIONS = SideOptions(repo=None, corpus=None, triton=None, build=True)


@github_group.command("plan")
@click.option("--base", required=True, help="What the pull request is merged into.")
@click.option("--head", required=True, metavar="SHA", help="Its newest commit.")
@click.option(
    "--tier",
    "tiers",
    multiple=True,
    type=options.TIERS,
    help="Cases of the corpus, for a checkout of Triton; a repository of kernels is compared as a whole.",
)
@click.option("--merge-base", is_flag=True, help="Compare with the merge base of BASE and HEAD.")
@click.option("--asked", "asked_path", type=options.PATH, help="What `github asked` wrote.")
@click.option("--out", type=options.PATH, required=True, help="The run's folder, if nothing can change.")
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
    """Print what to compare, and whether anything can change: if not, no other job need start."""
    store = repository.open_store(Path.cwd(), config)
    wanted = (
        comment_commands.read(asked_path.read_text("utf-8"), head)
        if asked_path and asked_path.is_file()
        else None
    )
    wanted = wanted or CommentCommand(base=None, tiers=None, targets=(), cases=())
    start = wanted.base or (repository.merge_base(store, base, head) if merge_base else base)
    start, head = (
        repository.commit_of(store, side) if sides.is_revision(side) else side for side in (start, head)
    )
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


def _write_where_nothing_can_change(
    base: str, head: str, wanted: CommentCommand, out: Path, config: Config
) -> bool:
    from irdiff import pipeline

    sides_edit = sides.preflight(base, head, _SIDE_OPTIONS, config)
    if sides_edit is None:
        return False
    for sentence in filter(
        None, (edit_coverage.differing(sides_edit.edited), edit_coverage.consequence(sides_edit.edited))
    ):
        click.echo(escape.terminal(sentence), err=True)
    if sides_edit.edited.identical:
        targets = CaseArguments(target_names=wanted.targets).targets(config, Path.cwd())
        same = SameCompiler(
            seen=sides_edit, targets=targets, options=DEFAULT_OPTIONS, command=tuple(sys.argv[1:])
        )
        pipeline.compare(same, config, out, lambda _step: None)
    return sides_edit.edited.identical


@github_group.command("key")
@click.argument("base")
@click.argument("head")
@options.configured
def key_command(*, base: str, head: str, config: Config) -> None:
    """Print a cache key that names the toolchains of both sides."""
    _output(toolchains=sides.cache_key(base, head, _SIDE_OPTIONS, config))


@github_group.command("prepare")
@click.argument("base")
@click.argument("head")
@options.configured
def prepare_command(*, base: str, head: str, config: Config) -> None:
    """Install or build the toolchains of both sides, for the jobs that compare."""
    with screen.status_line():
        both_sides = sides.resolve_sides(base, head, _SIDE_OPTIONS, config)
    for name, side in both_sides.items():
        click.echo(escape.terminal(f"{name}: {side.toolchain.spec}: Triton {side.toolchain.version}"))


@github_group.command("failed")
@click.option("--step", required=True, help="What the step does, in words.")
@click.option("--code", required=True, type=int, help="Its exit code.")
@click.option("--log", type=click.Path(path_type=Path, exists=True), required=True, help="Its output.")
@click.option("--out", type=options.PATH, required=True, help="The folder of the run.")
def failed_command(*, step: str, code: int, log: Path, out: Path) -> None:
    """Write why a step failed into the folder of the run, where later steps look for it."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    failure.write(out, [*failure.load(out), failure.of_output(step, code, lines)])


@github_group.command("finish")
@click.argument("parts", type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=options.PATH, required=True, help="The run folder to write.")
@click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the report here.")
def finish_command(*, parts: Path, out: Path, markdown_path: Path | None) -> None:
    """Join what the jobs left in PARTS, one folder each: runs of shards, and why jobs failed."""
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


@github_group.command("outcome")
@click.argument("folder", type=click.Path(path_type=Path))
def outcome_command(*, folder: Path) -> None:
    """Print the gravest verdict of a run and its counts; `unknown` if there is no run."""
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
