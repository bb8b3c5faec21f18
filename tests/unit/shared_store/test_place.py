from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.config import StoreMode
from irdiff.errors import UsageError
from irdiff.shared_store import signatures
from irdiff.shared_store.place import Place, PlaceError


def test_a_folder_is_a_place(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "new"))
    place.put("packs/a", b"content")
    assert place.get("packs/a") == b"content"
    assert place.get("packs/a", range(3, 5)) == b"te"
    assert place.get_if_there("packs/b") is None
    assert [(entry.path, entry.size_bytes) for entry in place.entries("packs/")] == [("packs/a", 7)]
    place.delete(["packs/a"])
    assert place.entries("packs/") == []


def test_what_a_client_raises_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="does not answer"):
        Place(str(tmp_path)).get("packs/none")


def test_the_names_of_packs_are_left_for_who_cannot_list(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    place.put("scopes/t/f/w@sm_90/digest-unsigned", b"")
    place.leave_list("t")
    assert place.get("scopes/t.txt") == b"f/w@sm_90/digest-unsigned"


@pytest.mark.parametrize("url", ["ftp://host/path", "nonsense://x"])
def test_what_is_no_place_is_said(url: str) -> None:
    with pytest.raises(UsageError, match="is no shared store"):
        Place(url)


def test_a_key_that_is_none_is_said() -> None:
    with pytest.raises(UsageError, match="IRDIFF_STORE_PUBLIC_KEY is not a key"):
        signatures.Verifier("abc")


def test_builders_are_not_given_the_signing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRDIFF_STORE", "s3://b/p")
    monkeypatch.setenv("IRDIFF_STORE_SIGNING_KEY", "secret")
    config = configuration.load()
    assert config.shared_store is not None
    assert config.shared_store.mode is StoreMode.READ
    assert "secret" not in str(config)
    assert "secret" not in {*config.tool_environment.values(), *config.compiler_environment.values()}


def test_a_list_that_another_writer_overtook_is_left_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, other = Place(str(tmp_path)), Place(str(tmp_path))
    place.put("scopes/t/f/w@sm_90/one-unsigned", b"")
    put = place.put

    def put_late(path: str, content: bytes) -> None:
        if other.get_if_there("scopes/t.txt") is None:
            other.put("scopes/t/f/w@sm_90/two-unsigned", b"")
            other.leave_list("t")
        put(path, content)

    monkeypatch.setattr(place, "put", put_late)
    place.leave_list("t")
    assert place.packs_of("t") == ["f/w@sm_90/one-unsigned", "f/w@sm_90/two-unsigned"]


def test_a_toolchain_without_a_list_is_listed(tmp_path: Path) -> None:
    place = Place(str(tmp_path))
    assert place.packs_of("t") == []
    place.put("scopes/t/f/w@sm_90/digest-unsigned", b"")
    assert place.packs_of("t") == ["f/w@sm_90/digest-unsigned"]
