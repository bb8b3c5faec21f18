"""Run folders made on the GPU host, with the Triton that is installed there, through irdiff's own worker."""

import dataclasses
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from pydantic import TypeAdapter

from irdiff.compare import radius
from irdiff.model import (
    DEFAULT_OPTIONS,
    SCHEMA,
    Artifact,
    Case,
    Launch,
    Revision,
    Run,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from irdiff.run import run_folder
from irdiff.store import Store

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONHASHSEED": "0", "TRITON_DEFAULT_FP_FUSION": "1"}


@dataclasses.dataclass(frozen=True)
class Built:
    launch: Launch
    metadata: dict
    digest: str
    size: int


class Builder:
    """Compiles launches of workloads for one target into a store."""

    def __init__(self, store, target="sm_90"):
        row = tomllib.loads((ROOT / f"targets/{target}.toml").read_text())
        self.row = row | {"name": target}
        self.store = store
        command = [sys.executable, "-s", str(ROOT / "irdiff/worker/__main__.py"), "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True
        )
        self.process.stdout.readline()
        self.count = 0

    def ask(self, **request):
        self.count += 1
        folder = Path(tempfile.mkdtemp())
        everything = {"tiers": [], "labels": [], "frontend": True, "configs": None}
        bounds = {"timeout_s": 200, "memory_bytes": 32 << 30}
        place = {"workloads": ".", "imports": []}
        row = request | {"id": self.count, "folder": str(folder), "select": everything} | bounds | place
        self.process.stdin.write(json.dumps(row | {"target": self.row}) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        return json.loads((folder / "result.json").read_text()), folder

    def build(self, root, workload, labels=None):
        """Label → what was built."""
        catalog, _ = self.ask(op="catalog", root=str(root), workload=workload)
        found = {}
        for row in catalog["launches"]:
            if labels is not None and row["label"] not in labels:
                continue
            made, folder = self.ask(
                op="compile", root=str(root), workload=workload, launch=row["id"], digest=row["digest"]
            )
            content = (folder / "cubin").read_bytes()
            text = row["launched"].encode()
            launched = {"stage": "launch", "digest": self.store.put(text), "size_bytes": len(text)}
            found[row["id"]] = Built(
                launch=TypeAdapter(Launch).validate_python(row | {"launched": launched}),
                metadata=made["metadata"],
                digest=self.store.put(content),
                size=len(content),
            )
        return found

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)

    def write(self, folder, pairs):
        """A run folder with one changed case for each (id, base, head)."""
        target = Target(**{"sources": {}, "facts": {}, **{k: self.row[k] for k in self.row}})
        launches, cases = {}, []
        for name, base, head in pairs:
            launches[base.launch.key] = base.launch
            launches[head.launch.key] = head.launch
            cases.append(_case(f"{name}@{target.name}", target.name, base, head))
        revision = Revision(spec="here", version="", digest="", corpus="", ptxas={}, note="", revision="")
        run = Run(
            schema=SCHEMA, irdiff_version="test", normalizer_version="", created="", command=(), options=DEFAULT_OPTIONS,
            base=revision, head=revision, targets=(target,), environment={},
            summary=radius.summarize(cases, (target,)),
            cases=tuple(cases), launches=launches, groups=(), reach=None,
            edited=None, edited_lines=None, cut_from="", runtime=(), notes=(), duration_s=0.0,
        )  # fmt: skip
        run_folder.write(folder, run, self.store, [digest for case in cases for digest in _digests(case)])
        return run


def _digests(case):
    return [side["cubin"].digest for side in (case.artifacts.base, case.artifacts.head)]


def _case(name, target, base, head):
    def artifacts(side):
        return {"cubin": Artifact(stage="cubin", digest=side.digest, size_bytes=side.size)}

    return Case(
        id=name, workload=base.launch.workload, kernel=base.launch.kernel, target=target, tier="core",
        verdict=Verdict.CHANGED, origin=None, stages={"sass": StageStatus.CHANGED},
        facts=Sides(base={}, head={}), findings=(), nondeterministic=(), error=None,
        failures=Sides(base=None, head=None),
        artifacts=Sides(base=artifacts(base), head=artifacts(head)),
        launches=Sides(base=base.launch.key, head=head.launch.key),
        metadata=Sides(base=base.metadata, head=head.metadata), compile_s=Sides(base={}, head={}),
        renamed_from=None, group=None, edit=None, summary=None,
    )  # fmt: skip


def store_in(folder):
    return Store(Path(folder))
