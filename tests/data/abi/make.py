"""Makes the artifacts of this folder: `python make.py VERSION=INTERPRETER …` with one Triton a version.

Each file is zstd-compressed JSON: the captured launch, Triton's metadata, and the binary in base64.
"""

import base64
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import zstandard

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "TRITON_DEFAULT_FP_FUSION": "1"}


class Worker:
    def __init__(self, python):
        command = [python, "-s", str(ROOT / "irdiff/worker/__main__.py"), "serve"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True
        )
        self.process.stdout.readline()
        self.count = 0

    def ask(self, **request):
        self.count += 1
        folder = Path(tempfile.mkdtemp())
        row = dict(
            request,
            id=self.count,
            folder=str(folder),
            timeout_s=100,
            memory_bytes=8 << 30,
            root=str(HERE / "workloads"),
            workloads=".",
            imports=(),
            workload="parameters",
        )
        self.process.stdin.write(json.dumps(row) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        return json.loads((folder / "result.json").read_text()), folder


def main():
    for version, python in (word.split("=", 1) for word in sys.argv[1:]):
        for name, stage in (("sm_90", "cubin"), ("gfx942", "hsaco")):
            target = tomllib.loads((ROOT / f"targets/{name}.toml").read_text()) | {"name": name}
            worker = Worker(python)
            catalog, _ = worker.ask(op="catalog", target=target)
            for launch in catalog["launches"]:
                made, folder = worker.ask(
                    op="compile", target=target, launch=launch["id"], digest=launch["digest"]
                )
                if stage not in made.get("artifacts", ()):
                    print(version, name, launch["id"], made["outcome"], made.get("message"))
                    continue
                metadata = {key: value for key, value in made["metadata"].items() if key != "extern_libs"}
                row = {
                    "version": version,
                    "target": name,
                    "launch": {**launch, "launched": {"stage": "launch", "digest": "", "size_bytes": 0}},
                    "metadata": metadata,
                    "binary": base64.b85encode((folder / stage).read_bytes()).decode(),
                }
                packed = zstandard.ZstdCompressor(level=19).compress(json.dumps(row, sort_keys=True).encode())
                (HERE / f"{version}-{name}-{launch['label']}.json.zst").write_bytes(packed)
            worker.process.stdin.close()


if __name__ == "__main__":
    main()
