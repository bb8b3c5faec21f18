from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import click

import irdiff
from irdiff import config as configuration
from irdiff.cli import init_toml, options
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.gate import policy as gate_policy
from irdiff.github import workflows
from irdiff.github.workflows import Setup
from irdiff.resolve import kernel_repository, programs
from irdiff.resolve.targets import DEFAULT
from irdiff.resolve.toolchains import checkout, repository


@click.command("init")
@click.argument("folder_or_program", metavar="[FOLDER|PROGRAM]", default=".")
@click.option("--github", is_flag=True, help="Write GitHub workflows and a release policy.")
@click.option(
    "--action", metavar="OWNER/NAME@COMMIT", help="The irdiff that the jobs use; default: this one."
)
@click.option(
    "--shards",
    type=click.IntRange(1, 64),
    help="Jobs that share one comparison; default: 4 for a checkout of Triton, else 1.",
)
@click.option(
    "--time", "timing", is_flag=True, help="Also write the workflow that times on your GPU runners."
)
@options.packages_option
@options.target_option
@click.option("--force", is_flag=True, help="Replace files that are there and differ.")
def init_command(
    folder_or_program: str,
    target_names: tuple[str, ...],
    github: bool,
    action: str | None,
    shards: int | None,
    timing: bool,
    packages: tuple[str, ...],
    force: bool,
) -> None:
    """Prepare a repository: write irdiff.toml and what else is asked for; files that exist stay as they are.

    The repository is FOLDER, or the current folder if PROGRAM is given. PROGRAM launches the kernels:
    bench/run.py, "bench/run.py --small", "pytest tests/test_norm.py", "-m package.bench".
    """
    config = configuration.load()
    folder, program = (
        (Path(folder_or_program), None) if Path(folder_or_program).is_dir() else (Path(), folder_or_program)
    )
    if program:
        first = programs.words_of(program)[0]
        if first != "-m" and not Path(first).is_file():
            raise UsageError(f"there is no folder and no program {first}", hint="irdiff init bench/run.py")
    is_compiler = (folder / checkout.PACKAGE_MARK).exists()
    files, unnamed = _project_file(folder, packages, program, target_names, is_requested=not github)
    if github:
        files |= github_files(action, shards, config, is_compiler=is_compiler, timing=timing)
        plan = kernel_repository.plan_above(folder.absolute())
        targets = (plan.targets if plan else ()) or target_names
        files[POLICY] = _for_targets(files[POLICY], targets)
    if not files:
        raise UsageError("nothing to write", hint="irdiff init --github")
    for path, content in _to_write(folder, files, force).items():
        options.write_output(path, content)
        click.echo(f"wrote {path}")
    if unnamed:
        click.echo(
            f"\nThe program also imports {', '.join(unnamed)}, which no requirements of the repository name. "
            f"irdiff installs nothing by a guess: name the packages in {kernel_repository.FILE}."
        )
    if github:
        action = action or own_action(config) or ""
        click.echo(f"\nThe jobs run {action}. What you must still do:")
        steps = _still_to_do(folder, action, is_compiler=is_compiler, timing=timing)
        for number, step in enumerate(steps, 1):
            click.echo(f"  {number}. {step}")


def _project_file(
    folder: Path,
    packages: tuple[str, ...],
    program: str | None,
    targets: tuple[str, ...],
    *,
    is_requested: bool,
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns an `irdiff.toml` for a repository of kernels that has none, and the imported modules whose
    package nothing names.
    """
    if (folder / kernel_repository.FILE).exists() or (folder / checkout.PACKAGE_MARK).exists():
        if program:
            raise UsageError(
                f"{folder / kernel_repository.FILE} exists already",
                hint=f"write into its table [kernels]: program = {json.dumps(program)}",
            )
        return {}, ()
    surroundings = init_toml.look_around(folder, packages, program, targets or DEFAULT)
    if not is_requested and not surroundings.kernels:
        return {}, ()
    return {kernel_repository.FILE: init_toml.irdiff_toml(surroundings)}, surroundings.unnamed


def _to_write(folder: Path, files: dict[str, str], force: bool) -> dict[Path, str]:
    """Raises UsageError if a file exists and differs; nothing is written then."""
    wanted: dict[Path, str] = {}
    for name, content in files.items():
        path = folder / name
        if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == content:
            continue
        options.check_output(path)
        if path.exists() and not force:
            raise UsageError(f"{path} is there and differs; nothing was written", hint="--force replaces it")
        wanted[path] = content
    return wanted


POLICY = "irdiff-policy.toml"
_ACTION = Path(".github", "actions", "irdiff", "action.yml")
_REQUIRED_TARGETS = re.compile(r"^required_targets = (.*)$", re.MULTILINE)
_ADDRESS = re.compile(r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)[^/:]+[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?")


def github_files(
    action: str | None, shards: int | None, config: Config, *, is_compiler: bool, timing: bool
) -> dict[str, str]:
    """Maps paths to content. Raises UsageError if nothing says which irdiff the jobs run."""
    reports = config.shipped / "reports"
    jobs_action = action or own_action(config)
    if jobs_action is None:
        raise UsageError(
            "the jobs need a commit of irdiff, and this irdiff was not installed from a repository",
            hint="irdiff init --github --action OWNER/NAME@COMMIT, irdiff's repository on GitHub",
        )
    wanted = Setup(
        action=jobs_action,
        version=f"irdiff {irdiff.__version__}",
        is_compiler=is_compiler,
        shards=shards or (4 if is_compiler else 1),
        timing=timing,
    )
    policy = (reports / POLICY).read_text(encoding="utf-8")
    return {**workflows.rendered(reports / "github", wanted), POLICY: policy}


def _for_targets(policy: str, targets: Sequence[str]) -> str:
    """Edits the policy's text as `gate.policy.for_targets` does, and keeps the comments."""

    def required(match: re.Match[str]) -> str:
        return f"required_targets = {json.dumps(gate_policy.required(json.loads(match[1]), targets))}"

    return _REQUIRED_TARGETS.sub(required, policy) if targets else policy


def own_action(config: Config) -> str | None:
    """Returns OWNER/NAME@COMMIT of the running irdiff, as recorded when it was built (`hatch_build.py`), or
    from its checkout.
    """
    built_from = config.shipped / "built_from.json"
    if built_from.is_file():
        origin = json.loads(built_from.read_text(encoding="utf-8"))
        return _at(origin["url"], origin["vcs_info"]["commit_id"])
    folder = Path(irdiff.__file__).parents[1]
    if not (folder / _ACTION).is_file() or not (folder / ".git").exists():
        return None
    try:
        store = repository.open_store(folder, config)
        address = store.git("config", "--get", "remote.origin.url").decode().strip()
        return _at(address, repository.commit_of(store, "HEAD"))
    except UsageError:
        return None


def _at(address: str, commit: str) -> str | None:
    match = _ADDRESS.fullmatch(address)
    return f"{match[1]}@{commit}" if match else None


def _still_to_do(folder: Path, action: str, *, is_compiler: bool, timing: bool) -> list[str]:
    """Lists the steps that no file can do, in order."""
    own = []
    plan = None if is_compiler else kernel_repository.plan_above(folder)
    if (plan and plan.program) or (not is_compiler and init_toml.look_around(folder).has_workloads):
        own = [f"Read {kernel_repository.FILE}: what launches the kernels, and where Triton is pinned."]
    elif not is_compiler:
        own = [f'In {kernel_repository.FILE}, name what launches the kernels: program = "bench/run.py".']
    environment = (
        "Before you commit: runners (self-hosted, gpu), and an environment irdiff-gpu with required "
        "reviewers. GitHub makes a missing one without. Its approval protects the workflow irdiff-time "
        "alone, and any other workflow may name the runner: put the runner into a group of its own that "
        "only .github/workflows/irdiff-time.yml of the default branch may use."
    )
    labels = "the label `irdiff: all` (compare everything)" + (" and `irdiff: time`" if timing else "")
    return [
        *([environment] if timing else []),
        *own,
        f"Read {POLICY}: which kernels and targets hold a release.",
        "Commit the files to the default branch: comments and commands start from there alone.",
        f"Settings, Actions, General: allow actions/* and {action.partition('@')[0]}, and require approval "
        "for workflows of all outside contributors. A first pull request from a fork then has no check of "
        "irdiff until somebody approves its run; a draft has none until it is ready, or has the label.",
        f"Make {labels}; let only maintainers set labels.",
        *(
            ["Set the repository variable IRDIFF_TIME_LABEL to `irdiff: time`: comments then name it."]
            if timing
            else []
        ),
    ]
