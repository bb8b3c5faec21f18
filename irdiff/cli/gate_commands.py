from __future__ import annotations

import datetime
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import click

from irdiff import config as configuration
from irdiff import gate
from irdiff.cli import options, run_argument
from irdiff.cli.init_command import POLICY
from irdiff.cli.run_argument import OpenedRun
from irdiff.errors import ExitCode, UsageError
from irdiff.gate import acceptance, accepting, outputs, policy, timings
from irdiff.gate.acceptance import Accepted
from irdiff.gate.accepting import Decision
from irdiff.gate.outcome import Outcome
from irdiff.gate.outputs import Again, ReleaseRun, junit
from irdiff.gate.policy import Policy
from irdiff.resolve import kernel_repository
from irdiff.words import counted

_FILE = click.Path(path_type=Path, dir_okay=False)
_accepted_option = click.option(
    "--accepted",
    "accepted_path",
    type=_FILE,
    help="The acceptance file; default: irdiff-accepted.toml next to the policy.",
)
_USUAL = datetime.timedelta(days=90)
_ACCEPTED = "irdiff-accepted.toml"


@click.command("gate")
@run_argument.argument()
@click.option(
    "--policy",
    "policy_path",
    type=_FILE,
    help="The rules; default: irdiff-policy.toml of the current folder, else irdiff's own.",
)
@click.option(
    "--accept",
    "accept",
    multiple=True,
    metavar="NAME",
    help="Accept a change group, a case, a rule's findings, or `review`: all groups that wait for a review.",
)
@click.option("--renew", is_flag=True, help="Accept the same changes again, for this run's toolchains.")
@click.option("--owner", help="Who accepts.")
@click.option("--reason", help="Why it is accepted; with --renew the earlier reason stays.")
@click.option(
    "--issue", default="", metavar="URL", help="Issue that tracks the fix; needed to accept a rule."
)
@click.option(
    "--until", type=click.DateTime(["%Y-%m-%d"]), help="The last day on which the acceptance holds."
)
@_accepted_option
@click.option("--json", "json_path", type=options.OUTPUT, help="Write the outcome as JSON here.")
@click.option("--markdown", "markdown_path", type=options.OUTPUT, help="Write the outcome as Markdown here.")
@click.option("--junit", "junit_path", type=options.OUTPUT, help="Write the outcome as JUnit XML here.")
def gate_command(
    *,
    run: str,
    policy_path: Path | None,
    accept: tuple[str, ...],
    renew: bool,
    owner: str | None,
    reason: str | None,
    issue: str,
    until: datetime.datetime | None,
    accepted_path: Path | None,
    json_path: Path | None,
    markdown_path: Path | None,
    junit_path: Path | None,
) -> int:
    """Check RUN against a policy: the exit code is 0 if it passes, 1 if not.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. To accept a
    change group, name it by its number or id in the report: 2, g:b140.
    """
    named, policy_path = policy_path, policy_path or _usual_policy()
    rules = policy.load(policy_path)
    plan = kernel_repository.plan_above(Path().absolute())
    if policy_path == _shipped() and plan and plan.targets:
        rules = policy.for_targets(rules, plan.targets)
    file = accepted_path or policy_path.parent / _ACCEPTED
    accepted = acceptance.load(file) if file.exists() else ()
    today = datetime.datetime.now(datetime.UTC).date()
    with run_argument.opened(run) as opened:
        loaded, _ = opened.run, opened.timing
    outcome = _evaluated(opened, rules, accepted, today)
    needs_own_policy = policy_path == _shipped() and not accepted_path
    if accept or renew:
        if needs_own_policy:
            raise UsageError(
                f"acceptances are kept next to your own policy, and there is no {POLICY} here",
                hint=f"cp {policy_path} ., then accept again",
            )
        decision = _decision(owner, reason, until.date() if until else None, today, needs_reason=bool(accept))
        if issue and not acceptance.is_url(issue):
            raise UsageError(f"--issue: {issue!r} is not the URL of an issue", hint="it begins with https://")
        entries = accepting.accept(loaded, outcome, accept, replace(decision, issue=issue))
        entries += accepting.renew(loaded, accepted + entries, decision) if renew else ()
        acceptance.append(file, entries, accepted)
        click.echo(f"accepted in {file}: {_counted(entries)}; commit it with the policy", err=True)
        outcome = _evaluated(opened, rules, accepted + entries, today)
    forms = (
        (json_path, outputs.as_json(outcome)),
        (markdown_path, outputs.markdown(outcome)),
        (junit_path, junit(outcome)),
    )
    for path, content in forms:
        if path:
            options.write_output(path, content)
    again = Again(
        call=opened.call,
        policy="" if needs_own_policy else str(named or ""),
        until=today + _USUAL,
        shipped_policy=str(policy_path) if needs_own_policy else "",
    )
    click.echo(outputs.text(outcome, again), nl=False)
    return ExitCode.DONE if outcome.passed else ExitCode.ANSWER_IS_NO


def _counted(entries: tuple[Accepted, ...]) -> str:
    """Formats as `3 changed cases, 1 other finding`."""
    cases = counted(len({change for entry in entries for change in entry.changes.items()}), "changed case")
    others = sum(len(entry.subjects) for entry in entries)
    return f"{cases}, {counted(others, 'other finding')}" if others else cases


def _evaluated(
    opened: OpenedRun, rules: Policy, accepted: tuple[Accepted, ...], today: datetime.date
) -> Outcome:
    measured = opened.timing
    return gate.evaluate(
        opened.run,
        rules,
        timings=timings.of_results(measured) if measured else (),
        notes=timings.reasons_not_timed(measured) if measured else (),
        accepted=accepted,
        today=today,
    )


def answer(opened: OpenedRun, policy_path: Path) -> str:
    """Applies the acceptance file next to the policy."""
    file = policy_path.parent / _ACCEPTED
    accepted = acceptance.load(file) if file.exists() else ()
    today = datetime.datetime.now(datetime.UTC).date()
    outcome = _evaluated(opened, policy.load(policy_path), accepted, today)
    return outputs.text(outcome, Again(call=opened.call, policy=str(policy_path), until=today + _USUAL))


def _usual_policy() -> Path:
    here = Path(POLICY)
    if here.is_file():
        return here
    click.echo(f"irdiff: there is no {POLICY} here; the rules are irdiff's own", err=True)
    click.echo(f"  next, to change them, or to accept a change group: cp {_shipped()} .", err=True)
    return _shipped()


def _shipped() -> Path:
    return configuration.load().shipped / "reports" / POLICY


def _decision(
    owner: str | None,
    reason: str | None,
    until: datetime.date | None,
    today: datetime.date,
    *,
    needs_reason: bool,
) -> Decision:
    """Raises UsageError unless the user says who accepts, why, and until when."""
    hint = f"as in --owner YOU --reason WHY --until {today + _USUAL}"
    if not owner or until is None or (needs_reason and not reason):
        raise UsageError("accepting needs --owner, --reason and --until", hint=hint)
    if len(owner) > 200 or (reason is not None and not 10 <= len(reason) <= 1000):
        raise UsageError("--owner may have 200 characters, and --reason 10 to 1000", hint=hint)
    if until < today:
        raise UsageError(f"--until {until} is past: nothing would be accepted", hint=hint)
    return Decision(owner=owner, reason=reason or "", issue="", on=today, expires=until)


@click.command("release-report")
@run_argument.argument("runs", nargs=-1, required=True)
@click.option("--policy", "policy_path", type=_FILE, help="The release's rules.")
@_accepted_option
@click.option("--out", type=options.OUTPUT, default="-", help="Write the Markdown here; default: stdout.")
def release_report_command(
    *, runs: tuple[str, ...], policy_path: Path | None, accepted_path: Path | None, out: Path
) -> int:
    """Write one document over several RUNs: what changed, what regressed, what was accepted,
    what is not known. Ends with 1 if the gate fails for one of them.
    """
    rules = policy.load(policy_path) if policy_path else None
    file = accepted_path or (policy_path.parent / _ACCEPTED if policy_path else None)
    accepted = acceptance.load(file) if file and (accepted_path or file.exists()) else ()
    today = datetime.datetime.now(datetime.UTC).date()
    with ExitStack() as opened:
        parts = [
            ReleaseRun(
                run=opened_run.run,
                folder=opened_run.folder,
                timing=opened_run.timing,
                outcome=_evaluated(opened_run, rules, accepted, today) if rules else None,
            )
            for opened_run in (opened.enter_context(run_argument.opened(run)) for run in runs)
        ]
        options.write_output(out, outputs.render(parts))
    failed = any(part.outcome and not part.outcome.passed for part in parts)
    return ExitCode.ANSWER_IS_NO if failed else ExitCode.DONE
