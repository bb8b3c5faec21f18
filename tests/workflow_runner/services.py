"""Caches and artifacts on disk, as GitHub keeps them: scopes, immutable entries, names."""

import os
import shutil
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT = "refs/heads/main"


@dataclass
class Caches:
    """Entries by scope and key. A job reads its own scope, then the default branch's, and writes its own."""

    root: Path
    saved: list[tuple[str, str]] = field(default_factory=list)

    def restore(self, scope, paths, key, prefixes):
        """The key that was found; its files are where they were."""
        for where in dict.fromkeys((scope, DEFAULT)):
            mine = [
                saved for place, saved in self.saved if place == where and self._paths(place, saved) == paths
            ]
            for wanted in (key, *prefixes):
                found = [saved for saved in mine if saved == key] if wanted == key else []
                found = found or [saved for saved in reversed(mine) if saved.startswith(wanted)]
                if found:
                    self._unpack(where, found[0])
                    return found[0]
        return None

    def save(self, scope, paths, key):
        """False where the entry is there already, or there is nothing to keep."""
        present = [path for path in paths if Path(path).exists()]
        if (scope, key) in self.saved or not present:
            return False
        folder = self._folder(scope, key)
        folder.mkdir(parents=True)
        (folder / "paths").write_text("\n".join(paths))
        subprocess.run(["tar", "-cPf", folder / "files.tar", *present], check=True)
        self.saved.append((scope, key))
        return True

    def _unpack(self, scope, key):
        subprocess.run(["tar", "-xPf", self._folder(scope, key) / "files.tar"], check=True)

    def _paths(self, scope, key):
        return (self._folder(scope, key) / "paths").read_text().split("\n")

    def _folder(self, scope, key):
        return self.root / scope.replace("/", "-") / key.replace("/", "-")


@dataclass
class Artifacts:
    """Of one run of a workflow: zip files by name."""

    root: Path

    def names(self):
        return sorted(path.stem for path in self.root.glob("*.zip"))

    def place(self, name):
        return self.root / f"{name}.zip"

    def upload(self, name, paths, *, overwrite):
        """What lies below the folders; nothing, with a warning, where none of them is there."""
        folders = [Path(path) for path in paths if Path(path).exists()]
        if not folders:
            print(f"    warning: no files were found for {name}")
            return
        assert overwrite or not self.place(name).exists(), f"an artifact {name} is there already"
        self.root.mkdir(parents=True, exist_ok=True)
        root = folders[0] if len(folders) == 1 else Path(os.path.commonpath(folders))
        with zipfile.ZipFile(self.place(name), "w", zipfile.ZIP_DEFLATED) as archive:
            for folder in folders:
                for file in sorted(folder.rglob("*")):
                    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
                    if file.is_file() and not hidden:
                        archive.write(file, file.relative_to(root))

    def download(self, name, place):
        place.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(self.place(name)) as archive:
            archive.extractall(place)


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
