"""What a record that irdiff's own code made is kept under: another irdiff makes it anew."""

from __future__ import annotations

from pathlib import Path

from irdiff.store import key_of, sha256


def digest_of_folders(*folders: str) -> str:
    """The digest of irdiff's own modules in some of its folders, `""` for those at the top."""
    package = Path(__file__).parents[1]
    files = [path for folder in folders for path in sorted((package / folder).glob("*.py"))]
    return key_of([sha256(path.read_bytes()) for path in files])
