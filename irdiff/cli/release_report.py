"""`irdiff release-report RUN…`."""

from __future__ import annotations

import datetime
from contextlib import ExitStack
from pathlib import Path

import click

from irdiff.cli import options, run_argument
from irdiff.cli.gate import FILE, accepted_option, evaluate
from irdiff.gate import acceptance, policy, release_document
from irdiff.gate.acceptance import Accepted
from irdiff.gate.release_document import ReleaseRun


@click.command("release-report")
@run_argument.argument("runs", nargs=-1, required=True)
@click.option("--policy", "policy_path", type=FILE, help="The release's rules.")
@accepted_option
@click.option("--out", type=options.OUTPUT, default="-", help="Write the Markdown here; default: stdout.")
def release_report_command(
    *, runs: tuple[str, ...], policy_path: Path | None, accepted_path: Path | None, out: Path
) -> None:
    """Write one document over several RUNs: what changed, what regressed, what is waived,
    what is not known.
    """
    rules = policy.load(policy_path) if policy_path else None
    accepted: tuple[Accepted, ...] = ()
    file = accepted_path or (policy_path.parent / "irdiff-accepted.toml" if policy_path else None)
    if file and (accepted_path or file.exists()):
        accepted = acceptance.load(file)
    today = datetime.datetime.now(datetime.UTC).date()
    with ExitStack() as opened:
        parts = [
            ReleaseRun(
                run=given.run,
                folder=given.folder,
                timing=given.timing,
                outcome=evaluate(given, rules, accepted, today) if rules else None,
            )
            for given in (opened.enter_context(run_argument.opened(run)) for run in runs)
        ]
        options.write_output(out, release_document.render(parts))
