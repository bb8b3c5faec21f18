"""`irdiff release-report RUN…`."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from irdiff import gate
from irdiff.cli import options, run_argument
from irdiff.errors import ExitCode
from irdiff.gate import acceptance, policy, release, timings
from irdiff.gate.acceptance import Accepted
from irdiff.gate.policy import Policy
from irdiff.gate.release import ReleaseRun
from irdiff.run import run_folder
from irdiff.timing import timing_file


@click.command("release-report")
@run_argument.argument("runs", nargs=-1, required=True)
@click.option(
    "--policy", "policy_path", type=click.Path(path_type=Path, dir_okay=False), help="The release's rules."
)
@click.option(
    "--accepted",
    "accepted_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The acceptance file; default: irdiff-accepted.toml beside the policy.",
)
@click.option(
    "--out", type=options.OutputFile(), default="-", help="Write the Markdown here; default: stdout."
)
def release_report_command(
    runs: tuple[str, ...], policy_path: Path | None, accepted_path: Path | None, out: Path
) -> int:
    """Write one document over several RUNs: what changed, what regressed, what is waived,
    what is not known.
    """
    rules = policy.load(policy_path) if policy_path else None
    accepted: tuple[Accepted, ...] = ()
    file = accepted_path or (policy_path.parent / "irdiff-accepted.toml" if policy_path else None)
    if file and (accepted_path or file.exists()):
        accepted = acceptance.load(file)
    today = datetime.datetime.now(datetime.UTC).date()
    parts = [_part(run, rules, accepted, today) for run in runs]
    options.write_output(out, release.render(parts))
    return ExitCode.DONE


def _part(run: str, rules: Policy | None, accepted: tuple[Accepted, ...], today: datetime.date) -> ReleaseRun:
    with run_argument.opened(run) as given:
        loaded = run_folder.load(given.folder)
        measured = timing_file.load(given.folder if given.folder.is_dir() else given.folder.parent)
    outcome = None
    if rules:
        outcome = gate.evaluate(
            loaded,
            rules,
            timings=timings.of_results(measured) if measured else (),
            notes=timings.reasons_not_timed(measured) if measured else (),
            accepted=accepted,
            today=today,
        )
    return ReleaseRun(run=loaded, timing=measured, outcome=outcome)
