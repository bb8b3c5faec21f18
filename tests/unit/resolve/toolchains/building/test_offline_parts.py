"""What a setup.py would download is read from its text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.resolve.toolchains.building import offline_parts

SETUP = """\
def download_and_copy_dependencies():
    exe_extension = sysconfig.get_config_var("EXE")
    download_and_copy(
        name="nvcc",
        src_func=lambda system, arch, version: f"cuda_nvcc-{system}-{arch}-{version}-archive/bin/ptxas{exe_extension}",
        dst_path="bin/ptxas",
        variable="TRITON_PTXAS_PATH",
        version=NVIDIA_TOOLCHAIN_VERSION["ptxas"],
        url_func=lambda system, arch, version: f"https://host.example/{version}.tar.xz",
    )
    crt = "crt" if int(NVIDIA_TOOLCHAIN_VERSION["cudacrt"].split(".")[0]) >= 13 else "nvcc"
    download_and_copy(
        name="nvcc",
        src_func=lambda system, arch, version: f"cuda_{crt}-{system}-{arch}-{version}-archive/include",
        dst_path="include",
        variable="TRITON_CUDACRT_PATH",
        version=NVIDIA_TOOLCHAIN_VERSION["cudacrt"],
        url_func=lambda system, arch, version: f"https://host.example/{crt}.tar.xz",
    )
"""
VERSIONS = '{"ptxas": "12.9.86", "cudacrt": "13.1.80"}'


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[offline_parts.Download]:
    monkeypatch.setattr(offline_parts.platform, "machine", lambda: "x86_64")
    return offline_parts.downloads(SETUP, VERSIONS)


def test_each_call_is_read(wanted: list[offline_parts.Download]) -> None:
    assert [(one.folder, one.source, one.place, one.variable, one.version) for one in wanted] == [
        (
            "nvcc",
            "cuda_nvcc-linux-x86_64-12.9.86-archive/bin/ptxas",
            "bin/ptxas",
            "TRITON_PTXAS_PATH",
            "12.9.86",
        ),
        (
            "nvcc",
            "cuda_crt-linux-x86_64-13.1.80-archive/include",
            "include",
            "TRITON_CUDACRT_PATH",
            "13.1.80",
        ),
    ]


def test_an_include_is_told_by_its_archive(wanted: list[offline_parts.Download]) -> None:
    assert [one.title for one in wanted] == ["ptxas", "include of nvcc"]


def test_another_way_of_writing_it_is_not_guessed_at() -> None:
    assert offline_parts.downloads("fetch_everything()", VERSIONS) == []
    assert offline_parts.downloads(SETUP, "no JSON") == []


def test_a_release_provides_what_is_missing(wanted: list[offline_parts.Download], tmp_path: Path) -> None:
    environment = {"TRITON_HOME": str(tmp_path / "home")}
    assert offline_parts.missing(wanted, environment) == wanted
    assert offline_parts.missing(wanted, {**environment, "TRITON_PTXAS_PATH": "/x"}) == wanted[1:]
    backend = tmp_path / "nvidia"
    (backend / "bin").mkdir(parents=True)
    (backend / "bin" / "ptxas").write_text("assembler")
    (backend / "bin" / "ptxas").chmod(0o755)
    lacking = offline_parts.provide(wanted, backend, tmp_path / "home")
    assert [one.place for one in lacking] == ["include"]
    assert offline_parts.missing(wanted, environment) == wanted[1:]
    copied = wanted[0].path(tmp_path / "home")
    assert copied.read_text() == "assembler"
    assert copied.stat().st_mode & 0o111


def test_of_two_parts_of_one_archive_the_first_is_for_both(
    wanted: list[offline_parts.Download], tmp_path: Path
) -> None:
    newer = replace(wanted[0], place="bin/ptxas-blackwell", variable="TRITON_PTXAS_BLACKWELL_PATH")
    backend = tmp_path / "nvidia"
    (backend / "bin").mkdir(parents=True)
    (backend / "bin" / "ptxas").write_text("first")
    (backend / "bin" / "ptxas-blackwell").write_text("second")
    assert offline_parts.provide([wanted[0], newer], backend, tmp_path) == []
    assert wanted[0].path(tmp_path).read_text() == "first"
