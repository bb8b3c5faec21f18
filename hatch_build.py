"""Puts into a package which commit of which repository it is built from, as in direct_url.json (PEP 610).

`irdiff init --github` writes that commit into workflows where the package came from an index.
"""

import json
import subprocess
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "built_from.json"


class BuiltFrom(BuildHookInterface):
    def initialize(self, version, build_data):  # noqa: ARG002 - hatchling's signature
        found = Path(self.root, NAME)  # of a source distribution
        if Path(self.root, ".git").exists():
            origin = {"url": self._git("config", "--get", "remote.origin.url")}
            origin["vcs_info"] = {"vcs": "git", "commit_id": self._git("rev-parse", "HEAD")}
            self._folder = tempfile.TemporaryDirectory()  # gone when the build is
            found = Path(self._folder.name, NAME)
            found.write_text(json.dumps(origin), encoding="utf-8")
        if found.is_file():
            inside = NAME if self.target_name == "sdist" else f"irdiff/_shipped/{NAME}"
            build_data["force_include"][str(found)] = inside

    def _git(self, *words):
        return subprocess.run(
            ["git", "-C", self.root, *words], capture_output=True, text=True, check=False
        ).stdout.strip()
