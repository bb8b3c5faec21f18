from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irdiff import backends
from irdiff import config as configuration
from irdiff.config import DAY_S, Config
from irdiff.errors import UsageError
from irdiff.resolve import targets, tools
from irdiff.run import run_place

if TYPE_CHECKING:
    from irdiff.model import Target
    from irdiff.resolve.sides import Side, SideOptions

Decorator = Callable[[Callable[..., Any]], Any]
_TOOLS = ", ".join(f"{kind}PATH" for kind in tools.KINDS)
TIERS = click.Choice(["gate", "core", "extended"])
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S}


def gathered(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Decorates a command that takes these options as one argument, built by `make`."""
    taken = inspect.signature(make).parameters.keys()

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            own = {key: values.pop(key) for key in taken & values.keys()}
            return function(**{name: make(**own)}, **values)

        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# types


class OutputFile(click.Path):
    """Accepts a plain file, or `-` for standard output, before the command does any work."""

    def __init__(self) -> None:
        super().__init__(readable=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        check_output(path)
        return path


class CorpusFolder(click.Path):
    """Accepts a folder of workloads, or an archive of them, which is unpacked into the cache."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from irdiff.resolve import corpus_archive

        if corpus_archive.is_archive(value):
            cache = ctx.params.get("cache") if ctx else None  # eager: it is read before
            config = configuration.load(cache=cache if isinstance(cache, Path) else None)
            return corpus_archive.unpacked(str(value), config)
        return Path(str(super().convert(value, param, ctx)))


class CasePattern(click.ParamType):  # type: ignore[type-arg]
    """Refuses an empty pattern, which would select every case: a script's variable may be empty."""

    name = "pattern"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> str:
        if not str(value).strip():
            raise UsageError(
                "--case has an empty pattern", hint="name a case, or leave out --case for all of them"
            )
        return str(value)


class Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds: `90s`, `10m`, `1.5h`, `2d`, or a plain number."""

    name = "time"

    def convert(self, value: Any, _: click.Parameter | None, __: click.Context | None) -> float:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smhd]?)", str(value).lower())
        seconds = float(match[1]) * _UNITS_S[match[2] or "s"] if match else 0.0
        if not seconds:
            raise UsageError(f"{value!r} is not a time", hint="write it as 90s, 10m or 1h")
        return seconds


PATH = click.Path(path_type=Path)
OUTPUT = OutputFile()
DURATION = Duration()

# options


cache_option = click.option(
    "--cache", type=PATH, is_eager=True, help="Folder for toolchains and the store (IRDIFF_CACHE)."
)
_store_mode_option = click.option(
    "--store-mode",
    type=click.Choice(["read", "write"]),
    help="read: use results of the shared store (IRDIFF_STORE). write: also add to it. Default: read.",
)
corpus_option = click.option(
    "--corpus",
    type=CorpusFolder(),
    metavar="FOLDER|FILE.tar.gz|URL",
    help="Workloads, as a folder or as an archive of recorded ones; default: the shipped corpus.",
)
pack_option = click.option(
    "--pack",
    "packs",
    multiple=True,
    metavar="NAME",
    help="Use the kernels of a published package instead of the corpus (`all`: of all packages); repeatable.",
)
bump_option = click.option(
    "--bump",
    is_flag=True,
    help="Add what helps to judge a new release: distributions of figures, outliers, families.",
)
markdown_option = click.option("--markdown", "markdown_path", type=OUTPUT, help="Write Markdown here.")
origin_option = click.option(
    "--from",
    "origin",
    metavar="SIDE|RUN",
    help=f"If both sides are tools ({_TOOLS}): the release or run whose LLVM IR or assembly they compile.",
)
ASSEMBLERS = tuple(f"--{name}" for name in backends.ASSEMBLERS)
assembler_option = click.option(
    *ASSEMBLERS,
    "assembler",
    metavar="PATH",
    help=f"The {' or '.join(backends.ASSEMBLERS)} that assembles what llvm:PATH makes.",
)
repo_option = click.option("--repo", type=PATH, help="A checkout; default: that of the current folder.")
triton_option = click.option(
    "--triton", metavar="SPEC", help="The compiler, if sides are revisions of kernels."
)
no_build_option = click.option(
    "--no-build", is_flag=True, help="Fail rather than build a libtriton.so that is missing."
)
case_option = click.option(
    "--case",
    "cases",
    multiple=True,
    type=CasePattern(),
    metavar="PATTERN",
    help="Only these cases: family/workload:label@target; parts and globs work; repeatable.",
)
tier_option = click.option(
    "--tier", "tiers", multiple=True, type=TIERS, help="Only cases of this tier; repeatable."
)
target_option = click.option(
    "--target",
    "target_names",
    multiple=True,
    metavar="NAME",
    help=f"A target, repeatable; `all` for every known one. Default: {' '.join(targets.DEFAULT)}.",
)
targets_folder_option = click.option(
    "--targets-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of target files (*.toml).",
)
json_option = click.option("--json", "json_path", type=OUTPUT, help="Write JSON here (- for stdout).")
limit_option = click.option("--limit", type=click.IntRange(min=1), help="Show at most N groups and cases.")
python_option = click.option(
    "--python", metavar="PYTHON", help="An interpreter with Triton and all that the kernels import."
)
packages_option = click.option(
    "--with",
    "packages",
    multiple=True,
    metavar="PACKAGE",
    help="Also install this package, for workloads that import it: torch, torch==2.13.0; repeatable.",
)
context_option = click.option(
    "--context", "-U", type=click.IntRange(min=0), default=3, help="Lines around a change."
)
attribute_option = click.option(
    "--attribute/--no-attribute",
    default=True,
    help="Look for the pass and the component behind each change (about one more compilation a case).",
)
recheck_option = click.option(
    "--recheck/--no-recheck",
    default=True,
    help="Compile one changed case of each group again, to see whether a side gives the same code twice.",
)
api_url_option = click.option("--api-url", help="A GitHub Enterprise API; default: GITHUB_API_URL.")
db_option = click.option(
    "--db",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    default="irdiff-history.duckdb",
    help="The history, one file.",
)
_limits = (
    click.option(
        "--jobs",
        "-j",
        type=click.IntRange(min=1),
        help="How many compilers run at a time; default: one for each core.",
    ),
    click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        default=300.0,
        help="Seconds that a case may take.",
    ),
    click.option(
        "--memory",
        "memory_mib",
        type=click.IntRange(min=1),
        default=8192,
        help="Memory of a case, in MiB.",
    ),
)

# options together


@dataclass(frozen=True, kw_only=True)
class CaseArguments:
    corpus: Path | None = None
    packs: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    targets_dir: Path | None = None

    def targets(self, config: Config, repo: Path | None = None) -> tuple[Target, ...]:
        """Leaves out targets that the patterns of cases exclude. Without named targets, takes those of
        `repo`'s irdiff.toml; `repo` is a folder of a repository of kernels.
        """
        folders = [config.shipped / "targets", *([self.targets_dir] if self.targets_dir else [])]
        names = self.target_names
        if repo and not names and not self.corpus and not self.packs:
            from irdiff.resolve import kernel_repository

            plan = kernel_repository.plan_above(repo.absolute())
            names = plan.targets if plan else ()
        return targets.selected(names, self.cases, folders)

    def corpus_folder(self, config: Config) -> Path:
        return self.corpus or config.shipped / "corpus"

    def side(self, spec: str, config: Config) -> Side:
        from irdiff.resolve import packs, toolchains
        from irdiff.resolve.sides import Side

        kernels = packs.load(self.corpus_folder(config), self.packs)
        toolchain = toolchains.resolve(spec, config)
        return Side(toolchain=toolchain, corpus=packs.install(kernels, toolchain, config), note="")


@dataclass(frozen=True, kw_only=True)
class CheckoutArguments:
    """The repository of revisions, and the compiler for revisions of kernels."""

    repo: Path | None
    triton: str | None
    no_build: bool

    def side_options(self, selection: CaseArguments, **more: Any) -> SideOptions:
        from irdiff.resolve.sides import SideOptions

        return SideOptions(
            repo=self.repo,
            corpus=selection.corpus,
            triton=self.triton,
            build=not self.no_build,
            packs=selection.packs,
            **more,
        )


configured = gathered("config", configuration.load, cache_option)
limited = gathered("config", configuration.load, cache_option, *_limits)
limited_and_sharing = gathered("config", configuration.load, cache_option, _store_mode_option, *_limits)
checkout = gathered("checkout", CheckoutArguments, repo_option, triton_option, no_build_option)
_kernels = (corpus_option, pack_option, target_option, targets_folder_option)
kernels = gathered("selection", CaseArguments, *_kernels)
kernels_and_cases = gathered("selection", CaseArguments, *_kernels, case_option)
selection = gathered("selection", CaseArguments, *_kernels, case_option, tier_option)
only_targets = gathered("selection", CaseArguments, target_option, targets_folder_option)


# output


def write_output(path: Path, content: str | bytes) -> None:
    """Raises UsageError if the path cannot be written. `-` is standard output."""
    check_output(path)
    try:
        if str(path) != "-":
            path.parent.mkdir(parents=True, exist_ok=True)
        with click.open_file(str(path), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()  # standard output stays open
    except OSError as error:
        raise _unwritable(path, error) from error


def write_json(path: Path, content: object) -> None:
    write_output(path, json.dumps(content, indent=1, default=list) + "\n")


def check_output(path: Path) -> None:
    """Raises UsageError unless `path` is `-`, a writable plain file, or a free name for one."""
    if str(path) == "-":
        return
    try:
        if not path.exists():
            run_place.try_to_write(path)
        elif path.is_file():
            path.open("ab").close()
        else:
            raise UsageError(f"{path} is not a file to write", hint="name a file, or - for stdout")
    except OSError as error:
        raise _unwritable(path, error) from error


def free_path(path: Path) -> Path:
    """Returns the first free one of `path`, `path-2`, `path-3`, … A dangling link is not free."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))
    paths = itertools.chain([path], numbered)
    return next(free for free in paths if not free.exists() and not free.is_symlink())


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror or error}", hint="name another file")


def check_outside(run: Path, outputs: Iterable[Path | None]) -> None:
    """Raises UsageError if an output lies inside a run folder, which is replaced as a whole."""
    for path in outputs:
        if path and str(path) != "-" and path.resolve().is_relative_to(run.resolve()):
            raise UsageError(
                f"{path} lies in the run folder {run}, which is replaced as a whole",
                hint="write it next to the run",
            )
