"""Gets sides, attribution, source lines and commands from a run and its toolchains, for `irdiff explain`."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import backends, process
from irdiff.attribute.attribution import Attribution, CaseToReplay, is_attributed
from irdiff.attribute.attributor import Attributor
from irdiff.attribute.edit_reader import EditReader
from irdiff.attribute.llvm_passes import with_llvm_pass
from irdiff.attribute.replayer import Replayer
from irdiff.backends.stages import INPUT, TEXTS
from irdiff.capture import kernel_sources
from irdiff.codegen.tool_runner import llc_words
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.errors import ExitCode, IrdiffError, RunFolderError, UsageError
from irdiff.explain.kernel_lines import Locations
from irdiff.ir.llir import llvm_process
from irdiff.model import EVERY_LAUNCH, Case, Launch, Revision, Run, Sides
from irdiff.resolve import packs, settings, tools
from irdiff.resolve.sides import Side, SideOptions, is_revision, resolve_sides
from irdiff.resolve.toolchains import environments
from irdiff.run import run_folder
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.worker_client.worker_requests import Requests
from irdiff.worker_client.workers import Workers

_AFRESH = "TRITON_ALWAYS_COMPILE"
_OF_THE_TARGET = frozenset({"arch", "backend_name", "warp_size"})
_PLAIN = re.compile(r"True|False|-?\d+(\.\d+)?")
_COLLECTION = ("(", "[", "{")
_OPTIONS = ".options.json"
_CALL = re.compile(r"^call \d+$", re.MULTILINE)


def sides_again(run: Run, case: Case, corpus: Path | None, config: Config) -> Sides[Side]:
    """For one case. Raises IrdiffError where a side cannot be had again, or is another one by now."""
    if any(tools.is_tool(revision.spec) for revision in (run.base, run.head)):
        raise IrdiffError(
            "this run compares two tools, which run none of Triton's passes",
            hint="`irdiff diff RUN CASE` shows what each tool made of the stored text",
        )
    shipped = config.shipped / "corpus"
    chosen = packs.named_by(case.id, corpus or shipped)
    if not run.head.revision:  # of a repository of kernels its own are taken, as far as somebody is there
        corpus = corpus or shipped
    wanted = SideOptions(repo=None, corpus=corpus, triton=None, build=False, packs=chosen)
    revisions = Sides(base=run.base, head=run.head)
    specs = revisions.map(lambda revision: _spec_again(revision, config))
    sides = resolve_sides(specs.base, specs.head, wanted, config)
    for name, (side, revision) in sides.zip(revisions).items():
        if side.toolchain.digest != revision.digest:
            raise IrdiffError(
                f"{name}: {revision.spec} is not the toolchain that the run used",
                hint="compare again: irdiff compare BASE HEAD",
            )
        if corpus and case.workload not in side.corpus.workloads:
            raise IrdiffError(
                f"{name}: {corpus} has no {case.workload}, so none of its stages can be run again",
                hint="name the folder of kernels that was compared: --corpus DIR",
            )
    return sides


def _spec_again(revision: Revision, config: Config) -> str:
    """Returns a spec of the toolchain of a run: a branch may have moved and a working tree changed since.

    A compiler that was built for a revision is found by its digest, or with settings by its own spec. Raises
    UsageError if it is not installed any more.
    """
    if is_revision(revision.spec):
        plain, chosen = settings.split(revision.spec)
        for environment in environments.list_all(config):
            is_it = environment.state["digest"] == revision.digest
            if is_it or (chosen and environment.state["spec"] == plain):
                return f"python:{environment.python}{settings.suffix(chosen)}"
        raise UsageError(
            f"the compiler of {revision.spec} is not installed any more",
            hint="compare again: irdiff compare BASE HEAD",
        )
    return revision.spec


def attribute(run: Run, folder: Path, case: Case, sides: Sides[Side], config: Config) -> Attribution | None:
    """With the pass of LLVM's optimizer, which a comparison does not look for. The rest comes from the store
    where the run has been attributed. None for a case whose code did not change.
    """
    store = Store(config.store)
    for artifacts in case.artifacts:
        for artifact in artifacts.values():
            content = run_folder.artifact(folder, artifact.digest)
            if content is not None:
                store.put(content)
    if not is_attributed(case):
        return None
    subject = to_replay(run, case, sides)
    with closing(Workers(config)) as workers, llvm_process.opened(config) as llvm:
        wanted = replace(EVERY_LAUNCH, cases=tuple(filter(None, (case.id, case.renamed_from))))
        replayer = Replayer(WorkerCompiler(Requests(config, workers), store, wanted, reuse=True))
        attribution = Attributor(EditReader(ArtifactComparator(store, llvm.reprint)), replayer).attribute(
            subject
        )
        return with_llvm_pass(attribution, subject, replayer)


def to_replay(run: Run, case: Case, sides: Sides[Side]) -> CaseToReplay:
    target = next(target for target in run.targets if target.name == case.target)
    launches = case.launches.map(lambda key: run.launches.get(key or ""))
    return CaseToReplay(case=case, sides=sides, launches=launches, target=target)


def calls(folder: Path, case: Case) -> int:
    """Counts the calls that share the case's compiled kernel: each has a heading in the launch's text."""
    launch = case.artifacts.head.get(Stage.LAUNCH) or case.artifacts.base.get(Stage.LAUNCH)
    text = run_folder.artifact(folder, launch.digest) if launch else None
    return len(_CALL.findall(text.decode(errors="replace"))) if text else 0


def corpus_roots(run: Run, corpus: Path | None, config: Config) -> Sides[Path]:
    """Where the files of each side's kernels lie: those of its revision, or of the corpus that both had."""
    shared = corpus or config.shipped / "corpus"
    revisions = Sides(base=run.base, head=run.head)
    return revisions.map(lambda revision: kernel_sources.root_of(revision.corpus, config) or shared)


def source_lines(raw: str, numbers: Sequence[int], corpus_root: Path, sources: Collection[str]) -> list[str]:
    """`file:line: text` of the lines of source behind lines of raw IR, each once, in order.

    Of a function that a kernel calls it is the function's line, and the lines that call it:
    `helper.py:7: return x * 3, called at kernel.py:20: y = helper(x)`.

    sources: the files of the launch. Launches with equal inputs are compiled once, so the locations in the IR
    may name the kernel of another one; they are left out.
    """
    locations = Locations(raw)
    chains = (chain for chain in map(locations.of_line, numbers) if chain and _is_of(sources, chain[-1][0]))
    return [
        ", called at ".join(f"{path}:{line}: {_line(corpus_root / path, line)}" for path, line in chain)
        for chain in dict.fromkeys(chains)
    ]


def _is_of(sources: Collection[str], path: str) -> bool:
    """Locations are absolute for files outside of the corpus, and `sources` are not."""
    return any(path == source or path.endswith(f"/{source}") for source in sources)


def launching_lines(kernel: str, root: Path, changed: Sequence[str]) -> list[str]:
    """`file:line: text` of the lines below a corpus that launch a kernel by its name; those of changed files,
    where any is among them.
    """
    launches = re.compile(rf"\b{re.escape(kernel)}\s*\[")
    for paths in ([root / path for path in changed], sorted(root.rglob("*.py"))):
        lines = [
            f"{path.relative_to(root)}:{number}: {line.strip()}"
            for path in paths
            if path.suffix == ".py" and path.is_file()
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
            if launches.search(line)
        ]
        if lines:
            return lines
    return []


def _line(path: Path, number: int) -> str:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    return lines[number - 1].strip() if number <= len(lines) else ""


@dataclass(frozen=True, kw_only=True)
class Alone:
    """One side alone: the IR that enters the first changed stage, compiled again. It needs no GPU."""

    side: str
    file: str
    """One of those of `save`."""
    code: str
    """Python, for the side's own interpreter in the folder of the file."""
    variables: Mapping[str, str]
    """Those that a user gave the side."""
    options: Mapping[str, object]
    """Options of the launch by name; the code reads them from a file."""

    def command(self, python: str) -> str:
        variables = (shlex.quote(f"{name}={value}") for name, value in self.variables.items())
        return " ".join([f"{_AFRESH}=1", *variables, shlex.join([python, "-c", self.code])])

    def run(self, python: str, folder: Path, config: Config) -> str:
        """Returns what it prints. Raises NotCompiledError with the last lines of a compiler that fails."""
        own = {_AFRESH: "1", "TRITON_CACHE_DIR": str(folder / "cache")}
        environment = {**config.compiler_environment, **self.variables, **own}
        try:
            return process.run([python, "-c", self.code], env=environment, cwd=folder)
        except process.CommandFailed as failed:
            raise NotCompiledError(
                f"{self.side} does not compile {self.file}:\n{failed.tail(40)}",
                hint=f"the command was: {self.command(python)}",
            ) from failed


class NotCompiledError(IrdiffError):
    """A side, run alone, failed: that is the answer."""

    exit_code = ExitCode.ANSWER_IS_NO


def reproduction(run: Run, case: Case) -> list[Alone]:
    """Both sides, each alone."""
    stage = case.origin.stage if case.origin else Stage.TTGIR
    before = Stage.TTGIR if stage == Stage.LAUNCH else INPUT.get(stage, Stage.TTIR)
    if before == Stage.SOURCE:  # what Triton's own compiler takes begins with TTIR
        before = Stage.TTIR
    target = next(target for target in run.targets if target.name == case.target)
    kind = backends.of(target.backend).BINARY
    wanted = stage if stage in TEXTS or kind is None else kind.artifact
    sides = []
    for side, revision in (("base", run.base), ("head", run.head)):
        name = f"{side}.{before}"
        backend, arch, file, stage_name = map(json.dumps, (target.backend, target.arch, name, str(wanted)))
        options = _options(run, case, side)
        given = f', options=json.load(open("{side}{_OPTIONS}"))' if options else ""
        code = (  # with double quotation marks: a shell takes it in single ones
            f"import {'json, ' if options else ''}triton; from triton.backends.compiler import GPUTarget; "
            f"gpu = GPUTarget({backend}, {arch}, {target.warp_size}); "
            f"print(triton.compile({file}, target=gpu{given}).asm[{stage_name}])"
        )
        chosen = settings.split(revision.spec)[1]
        variables = {name: value for name, value in chosen.items() if name.isupper()}
        sides.append(Alone(side=side, file=name, code=code, variables=variables, options=options))
    return sides


def _options(run: Run, case: Case, side: str) -> dict[str, object]:
    """Returns options of the launch. The IR does not hold them all, and a command has no room for them."""
    launch = run.launches.get(case.launches.of(side) or "")
    options = launch.options if launch else {}
    return {
        name: ast.literal_eval(text) if _PLAIN.fullmatch(text) else text
        for name, text in options.items()
        if name not in _OF_THE_TARGET and text not in ("", "None") and not text.startswith(_COLLECTION)
    }


def held(folder: Path, run: Run, case: Case) -> dict[str, bytes]:
    """The files that `reproduction` names, as far as the run folder has them. Raises RunFolderError for a
    damaged run. A side that was not launched, or ended before that stage, has none.
    """
    files: dict[str, bytes] = {}
    for alone in reproduction(run, case):
        artifact = case.artifacts.of(alone.side).get(alone.file.partition(".")[2])
        content = run_folder.artifact(folder, artifact.digest) if artifact else None
        if content is not None:
            files[alone.file] = content
            if alone.options:
                options = json.dumps(alone.options, indent=1)
                files[f"{alone.side}{_OPTIONS}"] = options.encode()
    return files


def save(folder: Path, run: Run, case: Case, out: Path) -> list[Path]:
    """Writes the files that `reproduction` names and the run folder has.

    Raises RunFolderError for a damaged run or one that has none of them, and UsageError, before anything is
    written, where one of the files is there with other content: somebody may have edited it.
    """
    files = {out / name: content for name, content in held(folder, run, case).items()}
    if not files:
        names = " or ".join(alone.file for alone in reproduction(run, case))
        raise RunFolderError(
            f"the run folder holds no {names} of this case, so there is nothing to save or to compile",
            hint="choose a case whose code changed",
        )
    try:
        for path, content in files.items():
            if path.is_symlink() or (path.exists() and (not path.is_file() or path.read_bytes() != content)):
                hint = "name another folder: --save DIR"
                raise UsageError(f"{path} exists and has other content; nothing was written", hint=hint)
        out.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{out} cannot be written: {error.strerror or error}", hint="name another folder: --save DIR"
        ) from error
    return list(files)


def tool_commands(run: Run, folder: Path, case: Case) -> list[str]:
    """`base: llc …`, for each side that is a tool: makes it from the files that `explain --save` writes.

    A text that an LLVM cannot read was respelled for it: the notes of the run say how.
    """
    commands = []
    for name, revision in (("base", run.base), ("head", run.head)):
        key = case.launches.of(name)
        if key and tools.is_tool(revision.spec) and case.artifacts.of(name):
            words = _tool_words(run, folder, case, name, run.launches[key])
            commands.append(f"{name}: {shlex.join(words)}")
    return commands


def _tool_words(run: Run, folder: Path, case: Case, name: str, launch: Launch) -> list[str]:
    kind, _, path = (run.base if name == "base" else run.head).spec.partition(":")
    target = next(target for target in run.targets if target.name == case.target)
    version = str(case.metadata.of(name).get("triton_version", ""))
    backend, assembler = backends.of(target.backend), backends.ASSEMBLERS.get(kind)
    code, generation = backend.BINARY, backend.CODE_GENERATION
    assert code and generation, "a tool compiles for backends that irdiff knows"
    artifact = case.artifacts.of(name).get(code.assembly)
    text = (run_folder.artifact(folder, artifact.digest) or b"").decode(errors="replace") if artifact else ""
    if assembler:
        flags = assembler.flags(launch, version, text)
        return [path, *flags, f"{name}.{code.assembly}", "-o", f"{name}.{code.artifact}"]
    call = generation.llvm_call(launch, target, version, text)
    program = Path(path) if Path(path).name.startswith("llc") else Path(path, "bin", "llc")
    return [str(program), *llc_words(call), f"{name}.llir", "-o", f"{name}.{code.assembly}"]
