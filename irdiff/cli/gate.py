"""`irdiff gate RUN --policy FILE`."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from irdiff import gate, run_archive, run_folder
from irdiff.cli import options
from irdiff.errors import ExitCode, UsageError
from irdiff.gate import acceptance, outputs, policy, timings
from irdiff.gate.acceptance import Accepted
from irdiff.gate.junit import junit
from irdiff.gate.outcome import Outcome
from irdiff.gate.sarif import sarif
from irdiff.model import Run
from irdiff.timing import results

F = TypeVar("F", bound=Callable[..., Any])


def _output(name: str, what: str) -> Callable[[F], F]:
    return click.option(name, type=click.Path(path_type=Path), help=f"Write {what} here (- for stdout).")


@click.command("gate")
@click.argument("run")
@click.option(
    "--policy",
    "policy_path",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The rules, as in reports/irdiff-policy.toml.",
)
@click.option("--accept", "accept", multiple=True, metavar="GROUP", help="Accept a change group of this run.")
@click.option("--owner", help="Who accepts; needed with --accept.")
@click.option("--reason", help="Why it is accepted; needed with --accept.")
@click.option(
    "--accepted",
    "accepted_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The acceptance file; default: irdiff-accepted.toml beside the policy.",
)
@_output("--json", "the outcome as JSON")
@_output("--markdown", "the outcome as Markdown")
@_output("--junit", "the outcome as JUnit XML")
@_output("--sarif", "the outcome as SARIF")
def gate_command(
    *,
    run: str,
    policy_path: Path,
    accept: tuple[str, ...],
    owner: str | None,
    reason: str | None,
    accepted_path: Path | None,
    json: Path | None,
    markdown: Path | None,
    junit: Path | None,
    sarif: Path | None,
) -> int:
    """Ask whether RUN holds to a policy: ends with 0 where it passes and with 1 where it does not.

    RUN is a run folder, its run.json, a zip or tar file of it, or `last`.
    """
    rules = policy.load(policy_path)
    file = accepted_path or policy_path.parent / "irdiff-accepted.toml"
    accepted = acceptance.parse(policy.read_toml(file), str(file)) if file.exists() else ()
    today = datetime.datetime.now(datetime.UTC).date()
    with run_archive.opened(options.run_path(run)) as folder:
        loaded = run_folder.load(folder)
        measured = results.load(folder if folder.is_dir() else folder.parent)
    if accept:
        accepted += _accept(
            loaded, accept, owner=owner, reason=reason, file=file, known=accepted, today=today
        )
    outcome = gate.evaluate(
        loaded,
        rules,
        timings=timings.of_results(measured) if measured else (),
        notes=timings.reasons_not_timed(measured) if measured else (),
        accepted=accepted,
        today=today,
    )
    _write(outcome, loaded, json=json, markdown=markdown, junit_path=junit, sarif_path=sarif)
    click.echo(outputs.text(outcome), nl=False)
    return ExitCode.DONE if outcome.passed else ExitCode.ANSWER_IS_NO


def _accept(
    run: Run,
    groups: tuple[str, ...],
    *,
    owner: str | None,
    reason: str | None,
    file: Path,
    known: tuple[Accepted, ...],
    today: datetime.date,
) -> tuple[Accepted, ...]:
    if not owner or not reason or len(reason) < 10:
        raise UsageError("--accept needs --owner, and a --reason of at least 10 characters")
    entries = acceptance.accept(run, groups, owner=owner, reason=reason, on=today)
    acceptance.append(file, entries, known)
    click.echo(f"{len(entries)} groups accepted in {file}; commit it with the policy", err=True)
    return entries


def _write(
    outcome: Outcome,
    run: Run,
    *,
    json: Path | None,
    markdown: Path | None,
    junit_path: Path | None,
    sarif_path: Path | None,
) -> None:
    wanted = [
        (json, outputs.as_json(outcome) if json else ""),
        (markdown, outputs.markdown(outcome) if markdown else ""),
        (junit_path, junit(outcome) if junit_path else ""),
        (sarif_path, sarif(outcome, run) if sarif_path else ""),
    ]
    for path, content in wanted:
        if path:
            options.write_output(path, content)
