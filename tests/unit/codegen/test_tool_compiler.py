"""What a side of a tool is made of, with tools and a compiler that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.codegen import readable, running
from irdiff.codegen.calls import LlvmCall
from irdiff.codegen.readable import Abilities
from irdiff.codegen.running import Made, error_of
from irdiff.codegen.tool_compiler import ToolCompiler
from irdiff.config import load
from irdiff.model import (
    Artifact,
    Assembler,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Outcome,
    Sides,
    Toolchain,
)
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.tools.substitute import RecordedSide, Substitute, recorded_corpus
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import Store
from tests.unit.conftest import Build

PTX = b"//\n.version 8.7\n.target sm_90a\n"
CORPUS = Corpus(root=Path("/corpus"), workloads=("matmul/tma",), digest="corpus")
RELEASE = Toolchain(
    spec="triton==3.9.0",
    version="3.9.0",
    digest="release",
    path="/t",
    python="/t/bin/python",
    root="/t/triton",
    runtime={},
    programs={"/t/ptxas": "p"},
    notes=(),
)


def tool(kind: ToolKind = ToolKind.LLVM, digest: str = "llvm") -> Tool:
    return Tool(
        kind=kind,
        spec=f"{kind}:/{digest}",
        version=f"{kind} {digest}",
        path=Path(f"/{digest}"),
        digest=digest,
        programs={"ptxas": Path(f"/{digest}")} if kind is ToolKind.PTXAS else {"llc": Path("/llc")},
        backends=frozenset({"cuda"}) if kind is ToolKind.PTXAS else frozenset({"cuda", "hip"}),
        notes=(),
    )


def substitute(one: Tool, origin: Toolchain | RecordedSide = RELEASE) -> Substitute:
    return Substitute(tool=one, origin=origin, corpus=CORPUS, ptxas=None)


@dataclass
class FakeInner:
    """The workers of a release."""

    store: Store
    asked: list[bool] = field(default_factory=list)

    def compile(self, *_: Any, fresh: bool = False) -> Outcome:
        self.asked.append(fresh)
        texts = {"ttgir": b"module {}", "llir": b"define void @k() {\n}\n", "ptx": PTX}
        return Compiled(
            handed={},
            artifacts={
                name: Artifact(stage=name, digest=self.store.put(text), size_bytes=len(text))
                for name, text in texts.items()
            },
            metadata={"shared": 4},
            stage_times_s={"ptx": 1.0},
            stage_cpu_s={"ptx": 1.0},
            assembler=Assembler(digest="p", flags=("-v", "--gpu-name=sm_90a")),
            assembler_log="",
            notes=(),
        )


@dataclass
class Bench:
    compiler: ToolCompiler
    inner: FakeInner
    store: Store
    calls: list[tuple[str, Any]]

    def compile(self, of: Substitute, target: str = "sm_90", **more: Any) -> Outcome:
        launch = Build.launch(f"matmul/tma:fp16@{target}")
        return self.compiler.compile(of.toolchain(), CORPUS, launch, Build.target(target), **more)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    calls: list[tuple[str, Any]] = []

    def generate(
        runner: running.Runner, one: Tool, text: str, call: LlvmCall, folder: Path
    ) -> Made | Failure:
        calls.append((one.digest, call))
        if one.digest == "broken":
            return error_of("ptx", "no")
        stage = "ptx" if call.header else "amdgcn"
        return Made(outputs={stage: PTX + one.digest.encode() + str(runner.randomized).encode()})

    def assemble(_: object, program: Path, name: str, text: bytes, flags: Any, folder: Path) -> Made:
        calls.append((str(program), flags))
        return Made(outputs={"cubin": str(program).encode() + text}, log="registers")

    able = Abilities(unreadable=(), newest_ptx=99, flags=readable.FLAGS)
    monkeypatch.setattr(readable, "of_tool", lambda *_: able)
    monkeypatch.setattr(running.Runner, "generate", generate)
    monkeypatch.setattr(running.Runner, "assemble", assemble)

    def make(*substitutes: Substitute) -> Bench:
        store = Store(tmp_path / "store")
        inner = FakeInner(store)
        config = load(cache=tmp_path)
        compiler = ToolCompiler(inner, substitutes, store, config, reuse=True)  # type: ignore[arg-type]
        return Bench(compiler, inner, store, calls)

    return make


def test_an_llvm_makes_the_ptx_and_the_ptxas_of_the_release_the_machine_code(bench: Any) -> None:
    side = substitute(tool())
    at = bench(side)
    made = at.compile(side)
    assert list(made.artifacts) == ["ttgir", "llir", "ptx", "cubin"]
    assert at.store.get(made.artifacts["ptx"].digest).startswith(PTX + b"llvm")
    assert [name for name, _ in at.calls] == ["llvm", "/t/ptxas"]
    assert at.calls[1][1] == ("-v", "--gpu-name=sm_90a")
    assert (made.metadata, made.assembler_log) == ({"shared": 4}, "registers")


def test_a_ptxas_assembles_the_ptx_of_the_release(bench: Any) -> None:
    side = substitute(tool(ToolKind.PTXAS, "cuda"))
    at = bench(side)
    made = at.compile(side)
    assert made.assembler == Assembler(digest="cuda", flags=("-v", "--gpu-name=sm_90a"))
    assert at.store.get(made.artifacts["ptx"].digest) == PTX
    assert [name for name, _ in at.calls] == ["/cuda"]


def test_a_result_is_kept_for_this_text_tool_and_options_alone(bench: Any) -> None:
    one, other = substitute(tool()), substitute(tool(digest="other"))
    at = bench(one, other)
    at.compile(one)
    at.compile(one)
    made = ["llvm", "/t/ptxas"]
    assert [name for name, _ in at.calls] == made
    at.compile(other)
    made += ["other", "/t/ptxas"]
    assert [name for name, _ in at.calls] == made
    at.compile(one, fresh=True)
    made += ["llvm", "/t/ptxas"]
    assert ([name for name, _ in at.calls], at.inner.asked[-1]) == (made, True)


def test_a_side_is_compiled_again_by_its_tool_and_not_taken_from_the_store(bench: Any) -> None:
    side = substitute(tool())
    at = bench(side)
    first = at.compile(side)
    launch, target = Build.launch("matmul/tma:fp16@sm_90"), Build.target("sm_90")
    again = at.compiler.recompile(side.toolchain(), CORPUS, launch, target, attempt=0)
    assert again.artifacts["ptx"].digest != first.artifacts["ptx"].digest  # this tool tells the two apart
    replayed = at.compiler.replay(
        side.toolchain(), launch.id, target, "ptx", first.artifacts["llir"].digest, attempt="randomized 0"
    )
    assert isinstance(replayed, Compiled)
    assert replayed.artifacts["ptx"].digest == again.artifacts["ptx"].digest


def test_what_a_tool_refuses_is_a_failure_with_the_stages_above(bench: Any) -> None:
    side = substitute(tool(digest="broken"))
    made = bench(side).compile(side)
    assert isinstance(made, Failed)
    assert (made.failure.message, list(made.artifacts)) == ("no", ["ttgir", "llir"])


def test_without_a_backend_a_target_is_unsupported(bench: Any) -> None:
    side = substitute(replace(tool(), backends=frozenset({"cuda"})))
    made = bench(side).compile(side, "gfx942")
    assert isinstance(made, Failed)
    assert made.failure.kind is FailureKind.UNSUPPORTED


def test_amd_without_a_linker_is_told_so(bench: Any) -> None:
    side = substitute(tool())
    made = bench(side).compile(side, "gfx942")
    assert isinstance(made, Compiled)
    assert made.notes == ("no-linker",)
    assert "hsaco" not in made.artifacts


def test_texts_of_a_run_are_those_that_it_kept(bench: Any, build: type[Build], tmp_path: Path) -> None:
    kept, gone = (build.case(f"matmul/tma:{name}@gfx942") for name in ("kept", "gone"))
    text = Store(tmp_path / "store").put(b"define void @k() {\n}\n")
    artifact = Artifact(stage="llir", digest=text, size_bytes=1)
    kept = replace(kept, artifacts=Sides(base={}, head={"llir": artifact}))
    recorded = RecordedSide(run=build.run(kept, gone), side="head")
    assert recorded_corpus(recorded).workloads == ("matmul/tma",)
    side = substitute(tool(), recorded)
    at = bench(side)
    target = Build.target("gfx942")
    catalog = at.compiler.catalog(side.toolchain(), CORPUS, "matmul/tma", target)
    assert [launch.label for launch in catalog.launches] == ["kept", "gone"]
    by_label = {
        launch.label: at.compiler.compile(side.toolchain(), CORPUS, launch, target)
        for launch in catalog.launches
    }
    assert list(by_label["kept"].artifacts) == ["llir", "amdgcn"]
    assert "the run has no llir" in by_label["gone"].failure.message
    assert not at.inner.asked
