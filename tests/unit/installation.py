"""An installed Triton that is files alone, described as a worker describes the one that it has loaded."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from irdiff.worker import loaded

MACHINE_CODE = b"\x7fELF"
PTXAS = "triton/backends/nvidia/bin/ptxas"
FILES = {
    "triton/__init__.py": b"",
    "triton/__pycache__/__init__.cpython-311.pyc": b"compiled",
    "triton/_C/libtriton.so": b"library",
    "triton/language/core.py": b"",
    "triton/compiler/compiler.py": b"",
    "triton/runtime/jit.py": b"",
    "triton/backends/nvidia/compiler.py": b"",
    "triton/backends/nvidia/driver.c": b"",
    PTXAS: MACHINE_CODE,
    "tiny/__init__.py": b"",
    "tiny/backend/__init__.py": b"",
    "tiny/backend/compiler.py": b"",
    "tiny/backend/driver.py": b"",
    "tiny/passes/one.py": b"",
    "tiny_tables/table.json": b"{}",
    "tiny-1.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny\nVersion: 1\n",
    "tiny-1.dist-info/entry_points.txt": b"[triton.backends]\ntiny = tiny.backend\n",
    "tiny-1.dist-info/RECORD": b"tiny/__init__.py,,\ntiny_tables/table.json,,\ntiny-1.dist-info/METADATA,,\n",
    "patched/__init__.py": b"",
    "not_loaded/__init__.py": b"",
}


@dataclass
class Installation:
    """`tiny` is a backend of another distribution; `patched` is a module that a `.pth` file brought in."""

    site: Path
    modules: dict[str, str] = field(default_factory=dict)
    """Name → file of what was imported."""
    libraries: list[Path] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    interpreter: Path | None = None

    @classmethod
    def at(cls, folder):
        made = cls(site=folder / "lib" / "site-packages")
        for name, content in FILES.items():
            made.write(name, content)
        (made.site / PTXAS).chmod(0o755)
        made.modules = {
            "triton": str(made.site / "triton/__init__.py"),
            "tiny.backend.compiler": str(made.site / "tiny/backend/compiler.py"),
            "patched": str(made.site / "patched/__init__.py"),
            "json.decoder": str(sys.modules["json"].__file__),
        }
        made.libraries = [made.site / "triton/_C/libtriton.so", made.write("../libc.so.6", b"libc")]
        made.interpreter = made.write("../../bin/python", MACHINE_CODE)
        return made

    def write(self, name, content):
        path = Path(os.path.normpath(self.site / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def described(self):
        """The reply of its interpreter."""
        own = {
            f"{name}.compiler": SimpleNamespace(
                __file__=str(self.site / name.replace(".", "/") / "compiler.py")
            )
            for name in ("triton.backends.nvidia", "tiny.backend")
        }
        backends = {
            name: SimpleNamespace(compiler=type("Backend", (), {"__module__": module}))
            for name, module in zip(("nvidia", "tiny"), own, strict=True)
        }
        triton = SimpleNamespace(
            __file__=str(self.site / "triton/__init__.py"),
            __version__="9",
            backends=SimpleNamespace(backends=backends),
            knobs=SimpleNamespace(nvidia=SimpleNamespace(ptxas=SimpleNamespace(path=str(self.site / PTXAS)))),
        )
        modules = {name: SimpleNamespace(__file__=path) for name, path in self.modules.items()}
        modules["__main__"] = SimpleNamespace(__file__="/somewhere/__main__.py")
        maps = "".join(f"7f00-7f01 r-xp 00000000 08:01 7 {path}\n" for path in self.libraries)
        with (
            mock.patch.dict(sys.modules, own),
            mock.patch.object(sys, "path", [str(self.site), *sys.path]),
            mock.patch.dict("os.environ", self.environment),
        ):
            reply = loaded.describe(triton, modules, maps + "7f00-7f01 r-xp 0 0 0 [vdso]\n")
        reply["files"]["interpreter"] = str(self.interpreter)
        return reply
