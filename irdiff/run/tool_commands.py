"""The command that makes one side of a tool alone, from the files that `explain --save` writes."""

from __future__ import annotations

import shlex
from pathlib import Path

from irdiff.codegen.calls import llvm_call, ptxas_flags
from irdiff.codegen.tool_runner import llc_words
from irdiff.model import Case, Launch, Run
from irdiff.resolve import tools
from irdiff.run import run_folder
from irdiff.stages import Stage


def of_case(run: Run, folder: Path, case: Case) -> list[str]:
    """`base: llc …`, for each side that is a tool. A text that an LLVM cannot read was respelled for it: the
    notes of the run say how.
    """
    rows = []
    for name, revision in (("base", run.base), ("head", run.head)):
        key = case.launches.of(name)
        if key and tools.is_tool(revision.spec) and case.artifacts.of(name):
            words = _words(run, folder, case, name, run.launches[key])
            rows.append(f"{name}: {shlex.join(words)}")
    return rows


def _words(run: Run, folder: Path, case: Case, name: str, launch: Launch) -> list[str]:
    revision = run.base if name == "base" else run.head
    kind, _, path = revision.spec.partition(":")
    target = next(target for target in run.targets if target.name == case.target)
    version = str(case.metadata.of(name).get("triton_version", ""))
    artifact = case.artifacts.of(name).get(Stage.PTX)
    ptx = (run_folder.artifact(folder, artifact.digest) or b"").decode(errors="replace") if artifact else ""
    if kind == "ptxas":
        return [path, *ptxas_flags(launch, version, ptx), f"{name}.ptx", "-o", f"{name}.cubin"]
    call = llvm_call(launch, target, version, ptx)
    made = Stage.PTX if call.header else Stage.AMDGCN
    program = Path(path) / "bin" / "llc" if not Path(path).name.startswith("llc") else Path(path)
    return [str(program), *llc_words(call), f"{name}.llir", "-o", f"{name}.{made}"]
