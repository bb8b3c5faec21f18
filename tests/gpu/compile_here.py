"""Run folders made on the GPU host, with the Triton that is installed there, through irdiff's own worker."""

import dataclasses
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from pydantic import TypeAdapter

from irdiff.model import Artifact, Launch, Sides, StageStatus, Target, Verdict
from irdiff.run import run_folder
from irdiff.store import Store
from tests.unit import runs

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONHASHSEED": "0", "TRITON_DEFAULT_FP_FUSION": "1"}


@dataclasses.dataclass(frozen=True)
class Built:
    launch: Launch
    metadata: dict
    artifact: Artifact


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
            launch = TypeAdapter(Launch).validate_python(row | {"launched": launched})
            artifact = Artifact(stage="cubin", digest=self.store.put(content), size_bytes=len(content))
            found[row["id"]] = Built(launch, made["metadata"], artifact)
        return found

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)

    def write(self, folder, pairs):
        """A run folder with one changed case for each (id, base, head)."""
        cases, launches = [], {}
        for name, *pair in pairs:
            sides = Sides(base=pair[0], head=pair[1])
            launches |= {side.launch.key: side.launch for side in sides}
            artifacts = sides.map(lambda side: {"cubin": side.artifact})
            keys, metadata = sides.map(lambda side: side.launch.key), sides.map(lambda side: side.metadata)
            more = {"stages": {"sass": StageStatus.CHANGED}, "artifacts": artifacts, "metadata": metadata}
            cases.append(runs.case(f"{name}@{self.row['name']}", Verdict.CHANGED, launches=keys, **more))
        target = Target(**{"sources": {}, "facts": {}, **self.row})
        run = runs.run(*cases, targets=(target,), launches=launches)
        digests = [side["cubin"].digest for case in cases for side in case.artifacts]
        run_folder.write(folder, run, self.store, digests)
        return run


def store_in(folder):
    return Store(Path(folder))
