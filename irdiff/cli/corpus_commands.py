from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from irdiff import case_ids, process
from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments
from irdiff.cli.store_commands import parse_size
from irdiff.compile import corpus_check, selecting
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError, UsageError
from irdiff.model import EVERY_LAUNCH, CaptureFailure, Launch, Target
from irdiff.parallel import Report
from irdiff.report.tables import Column
from irdiff.resolve import corpus_archive, packs, targets
from irdiff.resolve.corpus import PACKS
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains.identity import WORKER
from irdiff.words import counted

_toolchain_option = click.option(
    "--toolchain",
    "spec",
    default="triton==3.9.0",
    help="The toolchain that captures launches and compiles them.",
)
_COLUMNS = tuple(Column(name=name) for name in ("launch", "kernel", "tier", "targets"))


@click.group("corpus")
def corpus_group() -> None:
    """List, show, check and verify workloads."""


@contextmanager
def _chosen(
    spec: str, selection: CaseArguments, config: Config
) -> Iterator[tuple[Side, tuple[Target, ...], tuple[str, ...], Report]]:
    """Yields a toolchain with its kernels, the full names of the cases, and a reporter."""
    with screen.status_line():
        side, targets = selection.side(spec, config), selection.targets(config)
    with screen.progress() as report:
        cases = selecting.flat(selecting.of_sides(selection.cases, (side,), targets, config, report))
        yield side, targets, cases, report


def _launches(spec: str, selection: CaseArguments, config: Config, *, frontend: bool = False) -> list[Launch]:
    with _chosen(spec, selection, config) as (side, targets, cases, report):
        wanted = replace(EVERY_LAUNCH, cases=cases)
        with corpus_check.opened(side, targets, wanted, config, report, frontend=frontend) as corpus:
            launches = [launch for _, launch in corpus.captured]
    for launch in launches:
        if isinstance(launch, CaptureFailure) and launch.expected:
            click.echo(f"not captured: {launch.id}: {launch.failure.message}", err=True)
    return [launch for launch in launches if isinstance(launch, Launch)]


@corpus_group.command("list")
@options.kernels_and_cases
@_toolchain_option
@options.configured
@options.json_option
def list_command(*, selection: CaseArguments, spec: str, config: Config, json_path: Path | None) -> None:
    """List every launch of the corpus, as captured for each target."""
    listed = _launches(spec, selection, config)
    if json_path:
        options.write_json(json_path, [asdict(launch) for launch in listed])
        return
    by_id: dict[str, list[Any]] = {}
    for launch in listed:
        by_id.setdefault(launch.id, []).append(launch)
    cells = []
    for launch_id, launches in sorted(by_id.items()):
        expected = " ".join(launch.target if launch.expected else f"({launch.target})" for launch in launches)
        cells.append([Text(word) for word in (launch_id, launches[0].kernel, launches[0].tier, expected)])
    screen.print_table(_COLUMNS, cells)
    kernels = {(launch.workload, launch.kernel) for launch in listed}
    counts = ((len(kernels), "kernel"), (len(by_id), "launch"), (len(listed), "case"))
    click.echo(f"{', '.join(counted(count, noun) for count, noun in counts)}; (target): known not to compile")


@corpus_group.command("show")
@click.argument("launch")
@options.kernels
@_toolchain_option
@options.configured
def show_command(*, launch: str, selection: CaseArguments, spec: str, config: Config) -> None:
    """Show all that was captured of LAUNCH (family/workload:label), as JSON."""
    names = selection.target_names or (targets.FIRST,)
    launches = _launches(spec, replace(selection, cases=(launch,), target_names=names), config)
    if not launches:
        raise UsageError(f"no launch {launch!r}", hint="see `irdiff corpus list`")
    click.echo(json.dumps([asdict(each) for each in launches], indent=1))


@corpus_group.command("packs")
@options.corpus_option
@options.configured
def packs_command(*, corpus: Path | None, config: Config) -> None:
    """List the packs: projects, versions, and how their launches last compiled."""
    folder = CaseArguments(corpus=corpus).corpus_folder(config)
    cells = []
    for name in packs.names(folder):
        pack = packs.read(folder / PACKS / name)
        seen = pack.seen.model_dump().values() if pack.seen else "?" * len(packs.Seen.model_fields)
        cells.append([Text(str(word)) for word in (name, pack.packages[0], *seen)])
    screen.print_table([Column(name=name) for name in ("pack", "project", *packs.Seen.model_fields)], cells)


@corpus_group.command("merge")
@click.argument("corpora", nargs=-1, required=True, type=options.CorpusFolder())
@click.option("--out", type=options.OUTPUT, required=True, help="The archive to write, FILE.tar.gz.")
@click.option("--max-size", metavar="SIZE", help="Leave out the largest files until the rest fits: 2MB.")
@options.gathered("selection", CaseArguments, options.case_option, options.target_option)
@_toolchain_option
@options.configured
def merge_command(
    corpora: tuple[Path, ...],
    *,
    out: Path,
    max_size: str | None,
    selection: CaseArguments,
    spec: str,
    config: Config,
) -> None:
    """Join recorded CORPORA (folders, archives, URLs) into one archive.

    Of launches with equal input digests the first is kept; `--case FAMILY` keeps one project.
    """
    bound = parse_size(max_size) if max_size else None
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        corpus_archive.join(corpora, root)
        launches = _launches(spec, replace(selection, corpus=root, cases=()), config, frontend=True)
        named = {f"{launch.id}@{launch.target}": launch for launch in launches}
        patterns = case_ids.literally(selection.cases, named)
        chosen = [launch for name, launch in named.items() if case_ids.selects(patterns, name)]
        kept = corpus_archive.distinct(chosen)
        corpus_archive.drop(root, {corpus_archive.entry_of(launch) for launch in launches} - kept)
        left_out = corpus_archive.shrink(root, bound) if bound is not None else []
        options.write_output(out, corpus_archive.packed(root))
    again = len({corpus_archive.entry_of(launch) for launch in chosen}) - len(kept)
    click.echo(f"{out}: {counted(len(kept), 'launch')}; {again} more equal one of these")
    for name in left_out:
        click.echo(f"left out for its size: {name}")


@corpus_group.command("check")
@options.kernels_and_cases
@_toolchain_option
@options.json_option
@options.limited
def check_command(*, selection: CaseArguments, spec: str, json_path: Path | None, config: Config) -> int:
    """Compile every launch and compare the outcome with what its workload declares.

    Ends with 1 if a launch fails that should compile, or compiles that should not.
    """
    with _chosen(spec, selection, config) as (side, targets, cases, report):
        checked = corpus_check.check(side, targets, cases, config, report)
    if json_path:
        options.write_json(json_path, [asdict(launch) for launch in checked])
    surprises = [launch for launch in checked if launch.surprising]
    for launch in surprises:
        click.echo(
            f"{'fails' if launch.expected else 'compiles, unexpectedly'}: {launch.id}: {launch.message[:200]}"
        )
    for target in targets:
        mine = [launch for launch in checked if launch.target == target.name]
        compiled = sum(launch.compiled for launch in mine)
        surprising, distinct = (
            sum(launch.surprising for launch in mine),
            {launch.digest for launch in mine} - {None},
        )
        seconds = sum(launch.compile_s for launch in mine)
        click.echo(
            f"{side.toolchain.version} {target.name:8} {compiled:4} of {len(mine):4} compile, "
            f"{len(distinct)} distinct, {surprising} surprises, {seconds:.1f} s"
        )
    return ExitCode.ANSWER_IS_NO if surprises else ExitCode.DONE


@corpus_group.command("verify")
@options.gathered("selection", CaseArguments, options.corpus_option, options.pack_option)
@click.option("--workload", default="*", help="Pattern of FAMILY/NAME.")
@click.option("--part", default="1/1", help="2/8: the second, tenth, … launch alone.")
@click.option("--target", default=targets.FIRST, help="Which target this machine's GPU is.")
@click.option("--python", default=sys.executable, help="An interpreter that has torch and triton.")
@options.markdown_option
@options.configured
@options.json_option
def verify_command(
    *,
    selection: CaseArguments,
    workload: str,
    part: str,
    target: str,
    python: str,
    markdown_path: Path | None,
    config: Config,
    json_path: Path | None,
) -> int:
    """Run every launch on this machine's GPU and compare it with its PyTorch reference.

    Prints the error of each launch, the share of its tolerance that it used, its time, and its share of the
    GPU's peak. Ends with 1 if a launch is wrong or does not run. The packages of a pack must be installed for
    the interpreter, with a torch for its GPU.
    """
    verified: list[dict[str, Any]] = []

    def on_line(line: str) -> None:
        if line.startswith("{"):
            if not verified:
                click.echo(_HEADING)
            verified.append(json.loads(line))
            click.echo(_verified_line(verified[-1]))

    kernels = packs.load(selection.corpus_folder(config), selection.packs)
    patterns = [f"{name}/*" for name in kernels.packs] if workload == "*" and kernels.packs else [workload]
    log = config.cache / "irdiff-verify.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    code = 0
    for pattern in patterns:
        words: list[str | Path] = [python, WORKER, "verify", "--target", target, "--workload", pattern]
        words += ["--corpus", kernels.root, "--targets", config.shipped / "targets", "--part", part]
        code = process.run_logged(words, log=log, env=config.tool_environment, on_line=on_line) or code
    if json_path:
        options.write_json(json_path, verified)
    if not verified and code == 0:
        raise NothingComparedError(
            f"nothing was verified: no launch of {workload} is one for {target} and this release of Triton",
            hint="`irdiff corpus list --json -` says what each launch expects",
        )
    if not verified:
        lines = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise NothingComparedError(
            f"nothing was verified: the verifier ended with {code}:\n" + "\n".join(lines),
            hint="it needs a GPU, torch and triton: name an interpreter that has them with --python",
            log_path=str(log),
        )
    if markdown_path:
        table = "\n".join([_HEADING, *map(_verified_line, verified)])
        options.write_output(markdown_path, f"{_agreement(verified)}. {_LEGEND}\n\n{table}\n")
    click.echo(_agreement(verified))
    return ExitCode.DONE if all(launch["ok"] for launch in verified) else ExitCode.ANSWER_IS_NO


# launches that ran on a GPU next to their reference: a Markdown table, in a terminal too


_PEAKS = {"memory_tb_per_s": "memory", **{f"peak_{kind}_tflops": kind for kind in ("fp16", "tf32", "fp8")}}
_ROW = "| {:62} | {} | {:>11} | {:>8} | {:>6} | {:>6} | {:>6} | {:>12} | {:>13} | {:>16} |"
_TITLES = ("max abs err", "rel err", "rtol", "atol", "used", "time", "rate", "of peak")
_HEADING = f"{_ROW.format('launch', '  ', *_TITLES)}\n{_ROW.format('---', '--', *['--:'] * len(_TITLES))}"
_LEGEND = (
    "*rel err*: norm of the error over the norm of the reference; *used*: the largest error of an "
    "element over what `atol + rtol × |reference|` allows; *time*: median of 20 calls with a cold L2, "
    "everything that a call launches; *of peak*: the larger share, of the memory's peak or of that of "
    "the multiplied type."
)


def _verified_line(launch: Mapping[str, Any]) -> str:
    reason = str(launch.get("why"))[:160].replace("|", "\\|")
    state = "ok" if launch["ok"] else f"**wrong**: {reason}"
    return _ROW.format(f"`{launch['id']}`", state, *_verified_cells(launch))


def _agreement(verified: Sequence[Mapping[str, Any]]) -> str:
    right = sum(bool(launch["ok"]) for launch in verified)
    verb = "agrees" if right == 1 else "agree"
    return f"{right} of {counted(len(verified), 'launch')} {verb} with the reference"


def _verified_cells(launch: Mapping[str, Any]) -> list[str]:
    """Returns one text for each column; `-` stands for what was not measured."""
    used = launch.get("tolerance_used")
    rate = ("gb_per_s", ".0f", " GB/s") if launch.get("peak_of") == "memory_tb_per_s" else None
    rate = rate if rate and launch.get("gb_per_s") is not None else ("tflops", ".1f", " TFLOP/s")
    columns = (
        ("max_abs_error", ".1e", ""),
        ("relative_norm", ".1e", ""),
        ("rtol", "g", ""),
        ("atol", "g", ""),
        ("tolerance_used", ".2f", ""),
        ("median_us", ".1f", " us"),
        rate,
        ("peak_percent", ".1f", f" % {_PEAKS.get(launch.get('peak_of', ''), launch.get('peak_of'))}"),
    )
    cells = ["-" if launch.get(key) is None else f"{launch[key]:{form}}{unit}" for key, form, unit in columns]
    if used is not None and used > 999:
        cells[4] = ">999"
    return cells
