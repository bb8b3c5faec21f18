"""`irdiff corpus list|show|check`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from irdiff import config as configuration
from irdiff import process
from irdiff.cli import case_patterns, options, progress, verified
from irdiff.cli.corpus_gaps import gaps_command
from irdiff.compile import corpus_check
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError, UsageError
from irdiff.model import Launch, Toolchain
from irdiff.report import tables
from irdiff.report.tables import Column
from irdiff.resolve import packs as packages
from irdiff.resolve import toolchains
from irdiff.resolve.corpus import Corpus

_DEFAULT_TOOLCHAIN = "triton==3.9.0"

toolchain_option = click.option(
    "--toolchain",
    "spec",
    default=_DEFAULT_TOOLCHAIN,
    show_default=True,
    help="The toolchain whose frontend captures launches.",
)
case_option = click.option(
    "--case", "cases", multiple=True, metavar="PATTERN", help="family/workload:label@target."
)


_COLUMNS = tuple(Column(name=name) for name in ("launch", "kernel", "tier", "targets"))


@click.group("corpus")
def corpus_group() -> None:
    """List, show, check and verify workloads."""


def _launches(
    spec: str,
    corpus: Path | None,
    packs: tuple[str, ...],
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    cases: tuple[str, ...],
    cache: Path | None,
) -> list[Launch]:
    config = configuration.load(cache=cache)
    toolchain, kernels = _sources(spec, corpus, packs, config)
    chosen = options.selected_targets(target_names, targets_dir, config, cases)
    with progress.shown(Console(stderr=True)) as report:
        cases = case_patterns.of_corpus(cases, (toolchain, kernels), chosen, config, report)
        return corpus_check.captured(toolchain, kernels, chosen, cases, config, report)


def _sources(
    spec: str, corpus: Path | None, packs: tuple[str, ...], config: Config
) -> tuple[Toolchain, Corpus]:
    kernels = packages.load(options.corpus_folder(corpus, config), packs)
    toolchain = toolchains.resolve(spec, config)
    return toolchain, packages.install(kernels, toolchain, config)


def _as_json(rows: Sequence[Launch]) -> Iterator[bytes]:
    """One after another: nobody holds all of them as text."""
    yield b"["
    for number, row in enumerate(rows):
        yield f"{',' if number else ''}\n{indent(json.dumps(asdict(row), indent=1), ' ')}".encode()
    yield b"\n]\n" if rows else b"]\n"


def _print(lines: Iterator[Text], console: Console) -> None:
    """A pipe takes them as they are: to lay out ten thousand for no terminal takes seconds."""
    for line in lines:
        if console.is_terminal:
            console.print(line, soft_wrap=True, highlight=False)
        else:
            console.file.write(f"{line.plain}\n")


@corpus_group.command("list")
@options.corpus_option
@options.pack_option
@options.target_option
@options.targets_folder_option
@case_option
@toolchain_option
@options.cache_option
@options.json_option
def list_command(
    corpus: Path | None,
    packs: tuple[str, ...],
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    cases: tuple[str, ...],
    spec: str,
    cache: Path | None,
    json_path: Path | None,
) -> int:
    """List every launch of the corpus, as captured for each target."""
    rows = _launches(spec, corpus, packs, target_names, targets_dir, cases, cache)
    if json_path:
        options.write_output(json_path, _as_json(rows))
        return ExitCode.DONE
    by_id: dict[str, list[Any]] = {}
    for row in rows:
        by_id.setdefault(row.id, []).append(row)
    cells = []
    for launch_id, launches in sorted(by_id.items()):
        expected = " ".join(row.target if row.expected else f"({row.target})" for row in launches)
        cells.append([Text(word) for word in (launch_id, launches[0].kernel, launches[0].tier, expected)])
    console = Console()
    _print(tables.lines(_COLUMNS, cells, console.width if console.is_terminal else None), console)
    kernels = {(row.workload, row.kernel) for row in rows}
    console.print(
        f"{len(kernels)} kernels, {len(by_id)} launches, {len(rows)} cases; (target): not meant to compile"
    )
    return ExitCode.DONE


@corpus_group.command("show")
@click.argument("launch")
@options.corpus_option
@options.pack_option
@options.target_option
@options.targets_folder_option
@toolchain_option
@options.cache_option
def show_command(
    launch: str,
    corpus: Path | None,
    packs: tuple[str, ...],
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    spec: str,
    cache: Path | None,
) -> int:
    """Show all that was captured of LAUNCH (family/workload:label), as JSON."""
    rows = _launches(spec, corpus, packs, target_names or ("sm_90",), targets_dir, (launch,), cache)
    if not rows:
        raise UsageError(f"no launch {launch!r}", hint="see `irdiff corpus list`")
    click.echo(json.dumps([asdict(row) for row in rows], indent=1))
    return ExitCode.DONE


@corpus_group.command("check")
@options.corpus_option
@options.pack_option
@options.target_option
@options.targets_folder_option
@click.option("--all-targets", is_flag=True, help="Every known target.")
@case_option
@toolchain_option
@options.cache_option
@options.json_option
@options.limit_options
def check_command(
    corpus: Path | None,
    packs: tuple[str, ...],
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    all_targets: bool,
    cases: tuple[str, ...],
    spec: str,
    cache: Path | None,
    json_path: Path | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """Compile every launch and say where that differs from what its workload declares.

    Ends with 1 where a launch fails that should compile, or compiles where it should not.
    """
    config = configuration.load(cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib)
    toolchain, kernels = _sources(spec, corpus, packs, config)
    chosen = options.selected_targets(("all",) if all_targets else target_names, targets_dir, config, cases)
    with progress.shown(Console(stderr=True)) as report:
        cases = case_patterns.of_corpus(cases, (toolchain, kernels), chosen, config, report)
        rows = corpus_check.check(toolchain, kernels, chosen, cases, config, report)
    if json_path:
        options.write_output(json_path, json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    surprises = [row for row in rows if row.surprising]
    for row in surprises:
        click.echo(f"{'fails' if row.expected else 'compiles, unexpectedly'}: {row.id}: {row.message[:200]}")
    for target in chosen:
        mine = [row for row in rows if row.target == target.name]
        compiled = sum(row.compiled for row in mine)
        seconds = sum(row.compile_s for row in mine)
        click.echo(
            f"{toolchain.version} {target.name:8} {compiled:4} of {len(mine):4} compile, "
            f"{sum(row.surprising for row in mine)} surprises, {seconds:.1f} s"
        )
    return ExitCode.ANSWER_IS_NO if surprises else ExitCode.DONE


@corpus_group.command("verify")
@options.corpus_option
@click.option("--workload", default="*", help="Pattern of FAMILY/NAME.")
@click.option("--target", default="sm_90", show_default=True, help="Which target this machine's GPU is.")
@click.option(
    "--python", default=sys.executable, help="An interpreter that has torch and triton; default: this one."
)
@click.option("--markdown", "markdown_path", type=options.OutputFile(), help="Also write the table here.")
@options.cache_option
@options.json_option
def verify_command(
    corpus: Path | None,
    workload: str,
    target: str,
    python: str,
    markdown_path: Path | None,
    cache: Path | None,
    json_path: Path | None,
) -> int:
    """Run every launch on this machine's GPU and compare it with its PyTorch reference.

    Prints errors, how much of its tolerance a launch used, its time and its share of the GPU's peak.
    Ends with 1 where a launch is wrong or does not run.
    """
    config = configuration.load(cache=cache)
    rows: list[dict[str, Any]] = []

    def on_line(line: str) -> None:
        if line.startswith("{"):
            if not rows:
                click.echo(verified.heading())
            rows.append(json.loads(line))
            click.echo(verified.line(rows[-1]))

    words: list[str | Path] = [
        python,
        corpus_check.VERIFIER,
        "--corpus",
        options.corpus_folder(corpus, config),
        "--target",
        target,
    ]
    words += ["--targets", config.shipped / "targets", "--workload", workload]
    log = config.cache / "irdiff-verify.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    code = process.run_logged(words, log=log, env=config.tool_environment, on_line=on_line)
    if json_path:
        options.write_output(json_path, json.dumps(rows, indent=1) + "\n")
    if not rows and code == 0:
        raise NothingComparedError(
            f"nothing was verified: no launch of {workload} is one for {target} and this release of Triton",
            hint="`irdiff corpus list --json -` says what each launch expects",
        )
    if not rows:
        lines = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise NothingComparedError(
            f"nothing was verified: the verifier ended with {code}:\n" + "\n".join(lines),
            hint="it needs a GPU, torch and triton: name an interpreter that has them with --python",
            log_path=str(log),
        )
    if markdown_path:
        options.write_output(markdown_path, verified.markdown(rows))
    click.echo(verified.last_line(rows))
    return ExitCode.DONE if all(row["ok"] for row in rows) else ExitCode.ANSWER_IS_NO


corpus_group.add_command(gaps_command)
