"""What a worker finds, compiles and leaves for a request, with a Triton of one file."""

import _posixsubprocess
import inspect
import json
import os
import py_compile
import sys
import tempfile
import threading
from importlib.machinery import EXTENSION_SUFFIXES
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace

import pytest

from irdiff.worker import run_program
from tests.texts import text_of
from tests.unit.golden import golden
from tests.unit.worker.conftest import TARGET

TUNED = text_of("worker/tuned.py.template")


SHOWN = ("id", "kernel", "grid", "signature", "constexprs", "digest", "expected", "places", "sources")
"""Of a launch."""


@pytest.mark.parametrize("row", golden("worker")["workload"], ids=itemgetter("why"))
def test_what_is_found_and_compiled(worker, row, snapshot):
    worker.write(row.get("text", ""), row["launches"])
    for name, text in row.get("files", {}).items():
        (worker.root / name).parent.mkdir(exist_ok=True)
        (worker.root / name).write_text(text)
    said, digests = [], {}
    for select in row.get("select", [{}]):
        found = worker.serve("catalog", select=select, note_calls="note_calls" in row)
        digests |= {one["id"]: one["digest"] for one in found["launches"]}
        for one in found["launches"]:
            assert one["workload"] == worker.name
            one["digest"] = one["digest"] and "some"
            said.append({name: one[name] for name in SHOWN})
        said += [*found["failures"], *([{"called": found["called"]}] if "note_calls" in row else [])]
    for asked in row.get("compile", ()):
        name, target = f"{worker.name}:{asked['label']}", {**TARGET, **asked.get("target", {})}
        digest = asked.get("digest", digests.get(name)) or None
        made = worker.serve("compile", launch=name, digest=digest, target=target)
        shown = ("outcome", "stage", "message", "transient", "unsupported", "launcher_args", "texts")
        said.append({name: made[name] for name in shown if name in made})
    lines = [json.dumps(one, sort_keys=True) for one in said]
    assert "\n".join(lines).replace(worker.name, "WORKLOAD") == snapshot


def digests(worker, text, launches='"a": launch(run)'):
    worker.write(text, launches)
    return [row["digest"] for row in worker.launches().values()]


def test_the_digest_holds_what_the_stages_are_given_and_nothing_else(worker, tmp_path):
    plugin = tmp_path / "plugin.so"
    plugin.write_text("one")
    call = f'scale[(1,)](*ARGUMENTS, BLOCK=32, plugin="{plugin}")'
    (plain,) = digests(worker, "def run():\n    " + call)
    assert plain is not None
    assert digests(worker, f"# a comment\ndef run():\n    {call}") == [plain]
    assert digests(worker, "def run():\n    " + call.replace("(1,)", "(2,)")) == [plain], "the grid is not"
    edits = [call.replace("BLOCK=32", "BLOCK=64"), f"{call[:-1]}, num_warps=8)", f"{call[:-1]}, debug=True)"]
    for edit in edits:
        assert plain not in digests(worker, "def run():\n    " + edit)
    assert digests(worker, "def run():\n    " + call.replace("plugin.so", "")) == [None], "a folder has none"
    lists = [call.replace(str(plugin), f"{plugin}{mark}{plugin}") for mark in ":;, "]
    before = [digests(worker, "def run():\n    " + several) for several in lists]
    plugin.write_text("other")
    assert plain not in digests(worker, "def run():\n    " + call)
    for several, known in zip(lists, before, strict=True):
        assert digests(worker, "def run():\n    " + several) != known


SETTINGS = {
    "variable": ('import os\ndef run():\n    os.environ["LLVM_SWITCH"] = "1"\n', True),
    "knob": ("def run():\n    triton.knobs.nvidia.level = 0\n", True),
    "where things are kept": ("def run():\n    triton.knobs.cache.folder = 'x'\n", None),
    "size of the terminal": ("import os\ndef run():\n    os.putenv('COLUMNS', '7')\n", None),
    "library of the frontend": ("import inspect\ndef run():\n    inspect.getfile = inspect.getfile.__call__\n", None),
    "who shows a warning": (
        "import warnings\ndef run():\n    with warnings.catch_warnings(record=True):\n        inner()\ndef inner():\n", None
    ),
    "library of a stage": ("import warnings\ndef run():\n    warnings.other = len\n", False),
    "function": ("from triton.backends.tiny import REGISTRY\ndef run():\n    REGISTRY['stage'] = lambda: 'mine'\n", False),
    "class": ("from triton.compiler import code_generator as it\ndef run():\n    it.Mine = type('Mine', (), {})\n", False),
}  # fmt: skip


def test_a_label_is_not_the_name_of_a_launch_below_another_label(worker):
    worker.write(
        "def run():\n    scale[(1,)](*ARGUMENTS, BLOCK=32)", '"a": launch(run), "a/scale": launch(run)'
    )
    assert "a label of LAUNCHES has no /: a/scale" in worker.serve("catalog")["message"]


@pytest.mark.parametrize(("recorded_for", "is_replay"), [(TARGET["name"], False), ("sm_7", True)])
def test_a_launch_recorded_for_another_target_is_a_replay(worker, recorded_for, is_replay):
    run = "def run():\n    scale[(1,)](*ARGUMENTS, BLOCK=32)"
    worker.write(f"RECORDED_FOR = '{recorded_for}'\n{run}", '"a": launch(run)')
    words = f"workloads recorded for {recorded_for} are replayed for {TARGET['name']}"
    assert worker.serve("catalog")["caveats"] == [["", 0, words]] * is_replay


@pytest.mark.parametrize("name", SETTINGS)
def test_what_a_program_sets_for_the_compiler_belongs_to_the_launch(worker, name, monkeypatch):
    monkeypatch.setattr(inspect, "getfile", inspect.getfile)
    text, has_digest = SETTINGS[name]
    call = "    scale[(1,)](*ARGUMENTS, BLOCK=32)\n"
    (plain,) = digests(worker, "def run():\n" + call)
    (found,) = digests(worker, text + call)
    settings = {row["settings"] for row in worker.launches().values()}
    assert (settings != {""}) is (has_digest is True)
    worker.module("settings")._at_first[0].restore()
    if has_digest is None:
        assert found == plain
    elif has_digest:
        assert found not in (None, plain)
    else:
        assert found is None, "an object that replaced one of the compiler: compiled each time, never kept"


def test_each_launch_compiles_under_what_was_set_when_it_was_made(worker):
    knobs = sys.modules["triton"].knobs
    registry = sys.modules["triton.backends.tiny"].REGISTRY
    worker.stage(lambda: f"level {knobs.nvidia.level} with {sorted(registry)}")
    text = (
        "from triton.backends.tiny import REGISTRY\nREGISTRY.update(first=1, second=2)\n"
        "def run():\n    scale[(1,)](*ARGUMENTS, BLOCK=32)\n    triton.knobs.nvidia.level = 0\n"
        "    REGISTRY['first'] = REGISTRY.pop('first')\n    scale[(1,)](*ARGUMENTS, BLOCK=64)\n    REGISTRY.clear()\n"
    )
    worker.write(text, '"a": launch(run)')
    request = worker.request("catalog")
    operations = worker.module("operations")
    assert operations.prepare(request) and list(operations._prepared)
    digest = {row[0]: row[1].digest for row in operations._prepared[0][2].captures}
    assert set(digest) == {"/scale#1", "/scale#2"}
    for suffix, level in (("/scale#1", 3), ("/scale#2", 0), ("/scale#1", 3)):
        made = worker.serve("compile", launch=f"{worker.name}:a{suffix}", digest=digest[suffix])
        assert f"level {level} with ['first', 'second']" in made["texts"]["tinyasm"]


def test_modules_from_outside_are_part_of_the_digest_by_content(worker, tmp_path):
    """A stage may use them, and no toolchain's digest holds them; the repository's own are not counted."""
    call = "def run():\n    scale[(1,)](*ARGUMENTS, BLOCK=32)\n"
    (plain,) = digests(worker, call)
    (worker.root / "of_repository.py").write_text("")
    assert digests(worker, "import of_repository\n" + call) == [plain]
    site = tmp_path / "site-packages"
    site.mkdir()
    found = []
    for content in ("A = 1", "A = 2"):
        (site / "elsewhere.py").write_text(content)
        worker.module("outside")._digests.clear()
        sys.modules.pop("elsewhere", None)
        found += digests(worker, f"import sys\nsys.path.append({str(site)!r})\nimport elsewhere\n{call}")
    assert len({plain, *found}) == 3 and None not in found
    made = worker.compile()
    assert made["outcome"] == "compiled" and made["from_outside"] == []


def test_a_stage_that_loads_a_module_from_outside_says_so(worker, tmp_path, monkeypatch):
    (tmp_path / "late.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    worker.stage(lambda: __import__("late").__name__ + str(__import__("wave")))
    assert worker.compile()["from_outside"] == ["late"]


def test_files_of_irdiff_are_its_own_in_each_folder_of_the_worker(worker, tmp_path):
    """By the module that a stage loads, and by the code that opens a file: neither is an input of a stage."""
    loaded, outside, noted = map(worker.module, ("loaded", "outside", "noted"))
    assert Path(loaded.WORKER) == Path(run_program.__file__).parent
    (tmp_path / "table").write_text("")
    noted.watch_files()
    for folder, is_own in ((loaded.WORKER, True), (f"{loaded.WORKER}deeper/", True), (f"{tmp_path}/", False)):
        place = f"{folder}m.py"
        assert (outside.path_of(SimpleNamespace(__file__=place)) is None) is is_own
        noted.begin_stages(tmp_path)
        exec(compile(f"open({str(tmp_path / 'table')!r}).close()", place, "exec"))
        assert noted.end_stages() is not is_own


def _llvm():
    return sys.modules["triton._C.libtriton"].llvm


def test_what_a_compilation_leaves_for_the_next_one_of_its_process(worker, tmp_path, monkeypatch):
    """Nothing, unless it opens a file, loads a module, gives LLVM other flags, or is under settings."""
    assert worker.compile()["is_as_before"]
    worker.stage(lambda: _llvm().optimize_module("", ["short-pointers"]))
    assert worker.compile()["is_as_before"]
    worker.stage(lambda: _llvm().attach_datalayout("") + _llvm().optimize_module("", ["short-pointers"]))
    assert not worker.compile()["is_as_before"], (
        "the first call of the next launch would find other flags set"
    )
    worker.stage(lambda: _llvm().optimize_module("", ["sink"]))
    assert not worker.compile()["is_as_before"], "earlier launches gave LLVM other flags"
    worker.stage(str)
    assert worker.compile()["is_as_before"]
    (tmp_path / "table").write_text("")
    worker.module("noted").watch_files()
    worker.stage(lambda: (tmp_path / "table").read_text())
    assert not worker.compile()["is_as_before"]
    (tmp_path / "later.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    worker.stage(lambda: __import__("later").__name__)
    assert not worker.compile()["is_as_before"]
    worker.stage(str)
    worker.write("import os\nos.environ['DISABLE_LLVM_OPT'] = '1'")
    assert not worker.compile()["is_as_before"]


def test_a_launch_that_is_compiled_twice_in_a_process_gets_its_ir_again(worker):
    launch, digest = f"{worker.name}:a", worker.launches()["a"]["digest"]
    assert not worker.module("operations").prepare(worker.request("compile", launch=launch))
    first, second = (worker.serve("compile", launch=launch, digest=digest) for _ in range(2))
    assert first["texts"] == second["texts"] and second["outcome"] == "compiled"


def test_an_autotuner_is_shown_with_all_that_it_chooses_from(worker):
    text = TUNED.replace("MORE", "")
    worker.write(text, '"a": launch(tuned[(1,)], X, 64)')
    rows = worker.launches()
    assert [row["constexprs"]["BLOCK"] for row in rows.values()] == ["32", "64"]
    assert "autotuner's config: BLOCK 64, num_warps 8\n" in rows["a/tuned#1"]["launched"]
    worker.write(TUNED.replace("MORE", ', triton.Config({"BLOCK": 16})'), '"a": launch(tuned[(1,)], X, 64)')
    more = worker.launches()
    assert len(more) == 3
    assert more["a/tuned#1"]["digest"] == rows["a/tuned#1"]["digest"]
    assert more["a/tuned#1"]["launched"] != rows["a/tuned#1"]["launched"], "another list is another launch"
    result = worker.serve("catalog", select={"configs": 1})
    assert (len(result["launches"]), result["left_out"]) == (1, {"tuned": 2})


@pytest.mark.parametrize(("line", "said"), golden("recording")["exits"])
def test_how_a_program_ends(tmp_path, monkeypatch, line, said):
    from irdiff.worker import run_program

    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "run.py").write_text(
        f"import sys\nimport beside\nassert sys.argv[1:] == ['--small']\n{line}\n"
    )
    before = sys.argv[:], sys.path[:]
    if said:
        with pytest.raises(run_program.EndedEarly, match=said):
            run_program.run("run.py", "--small")
    else:
        run_program.run("run.py", "--small")
        run_program.run("-m", "run", "--small")
    assert (sys.argv, sys.path) == before


@pytest.mark.parametrize(
    ("error", "outcome", "transient"),
    [
        (MemoryError(), "memory", None),
        (OSError("the disk is full"), "error", True),
        (ValueError("no " * 400), "error", False),
    ],
)
def test_what_a_stage_raises(worker, error, outcome, transient):
    def fails():
        raise RuntimeError("wrapped") from error

    worker.stage(fails)
    result = worker.compile()
    assert (result["outcome"], result.get("transient")) == (outcome, transient)
    assert (result["stage"], result["artifacts"]) == ("tinyasm", ["ttir"])


def test_a_workload_imports_what_has_no_source(worker):
    """Bytecode alone, and an extension: this one is not a library, and the loader that says so found it."""
    (worker.root / "own.py").write_text("BLOCK = 16\n")
    py_compile.compile(str(worker.root / "own.py"), cfile=str(worker.root / "own.pyc"), doraise=True)
    (worker.root / "own.py").unlink()
    (worker.root / f"native{EXTENSION_SUFFIXES[-1]}").write_text("not a library")
    worker.write("import own\ntry:\n    import native\nexcept ImportError as error:\n    assert error.path")
    assert len(worker.launches()) == 1


def test_what_a_workload_opens_below_a_folder_is_listed(worker):
    noted = worker.module("noted")
    sys.addaudithook(lambda event, arguments: noted._on_event(event, arguments))
    for name in ("repository/kernels/shapes.json", "repository-2/other.json"):
        (worker.root.parent / name).parent.mkdir(parents=True)
        (worker.root.parent / name).write_text("{}")
    repository = str(worker.root.parent / "repository")
    noted.begin_files(repository)
    open(f"{repository}/kernels/../kernels/shapes.json").close()
    open(f"{repository}-2/other.json").close()
    assert noted.end_files() == ["kernels/shapes.json"]
    open(f"{repository}/kernels/shapes.json").close()
    assert noted.end_files() == []


def test_the_stages_of_a_backend_of_an_older_interface(worker):
    class Old:
        def add_stages(self, stages, options):
            stages["ttir"] = options

    staged = worker.module("staged_compile")
    assert staged.of_backend(Old(), "options", None) == {"ttir": "options"}
    triton = sys.modules["triton"]
    backend = triton.Backend(triton.GPUTarget("tiny", "t1", 32))
    source = type("Source", (), {"language": "triton"})
    assert list(staged.of_backend(backend, triton.Options(), source)) == ["ttir", "tinyasm", "tinybin"]


PROGRAM = text_of("worker/starts.py")


def test_processes_that_a_program_starts_are_named(load, tmp_path, monkeypatch):
    noted = load("noted")
    monkeypatch.setattr(_posixsubprocess, "fork_exec", lambda *_: 0)
    noted.watch_files()
    noted.begin_files(str(tmp_path))
    exec(compile(PROGRAM, "bench/run.py", "exec"), {})
    exec(compile(PROGRAM, str(tmp_path / "tests" / "test_run.py"), "exec"), {})  # as pytest names it
    exec(compile(PROGRAM, "/site-packages/torch/_inductor/cpu_vec_isa.py", "exec"), {})
    noted.end_files()
    sys.audit("os.fork")
    assert [(path, line) for path, line, _ in noted.caveats(is_compared=False)] == [
        (path, n) for path in ("bench/run.py", "tests/test_run.py") for n in (2, 3, 5, 6)
    ]


STARTED = {
    "git rev-parse HEAD 2>/dev/null | head -1": None,
    "nvidia-smi -L; ls build && uname -a": None,
    "c++ -I/usr/include/python3.12 -shared -o build/x.so x.cc": None,
    "./nvidia-smi": "nvidia-smi",
    "bench/run.sh": "run.sh",
    "cd bench && make": "make",
    "A=1 git log": "A=1",
    "echo $(./run.sh)": "sh",
    "cat > /tmp/kernels.py": "sh",
    "python3 bench/run.py": "another Python process",
    "env A=1 /opt/bin/python3.12 run.py": "another Python process",
}


@pytest.mark.parametrize(("command", "name"), STARTED.items())
def test_each_program_that_may_launch_kernels_is_told_from_compilers_and_tools(
    load, tmp_path, monkeypatch, command, name
):
    monkeypatch.chdir(tmp_path)
    load("shared_files").begin(str(tmp_path))
    may_launch = load("started_programs").may_launch
    assert may_launch(None, command) == may_launch("/bin/sh", ["/bin/sh", "-c", command]) == name
    if "A=1" not in command and name != "sh" and not set(command) & set(";&|>"):
        assert may_launch(command.split()[0], command.split()) == name


SHARED = text_of("worker/shares.py")
"""Lines that end in a comment use a file that the other side may see; others do not."""


def test_files_that_both_sides_share_are_named(load, tmp_path, monkeypatch):
    repository, shared = tmp_path / "repository", tmp_path / "shared"
    for folder in (repository, shared / "of_an_earlier_run", tmp_path / "mine"):
        folder.mkdir(parents=True)
    names = ("shared/of_an_earlier_run/sizes.json", "mine/sizes.json", "mine/kernels.py", "shared/old")
    for name in names:
        (tmp_path / name).write_text("1")
    (repository / "link").symlink_to(shared)
    (repository / "outside.py").symlink_to(tmp_path / "mine" / "kernels.py")
    monkeypatch.chdir(repository)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    load("own_folder").enter()
    noted = load("noted")
    noted.watch_files()
    monkeypatch.setattr(load("shared_files"), "_is_open", lambda folder: folder == str(shared))  # not /tmp
    noted.begin_files(str(repository))
    exec(compile(SHARED, "bench/run.py", "exec"), {"shared": str(shared), "mine": str(tmp_path / "mine")})
    noted.end_files()
    expected = {
        (n, line.partition("  # ")[2]) for n, line in enumerate(SHARED.splitlines(), 1) if "  # " in line
    }
    uncompared = {
        (line, words.removeprefix("uses ").partition(", which both")[0].removeprefix(f"{tmp_path}/"))
        for _, line, words in noted.caveats(is_compared=False)
    }
    assert uncompared == expected
    load("own_folder").entered.clear()  # as in the process that started it
    load("own_folder").remove(os.getpid())
    assert not (tmp_path / str(os.getpid())).exists()


def test_a_file_that_an_earlier_capture_changed_is_named(load, tmp_path, monkeypatch):
    shared_files = load("shared_files")
    monkeypatch.setattr(shared_files, "_is_open", lambda folder: False)  # /tmp
    data = tmp_path / "data" / "tuned.json"
    for name in ("repository", "kept"):
        (tmp_path / name).mkdir()
    places = []
    for changes in (False, True, False):
        shared_files.begin(str(tmp_path / "repository"), str(tmp_path / "kept"))
        data.parent.mkdir(exist_ok=True)
        data.write_text("{}")
        places += [shared_files.place_of_read(str(data))]
        places += [shared_files.place_of_changed(str(data))] if changes else []
    assert places == ["", "", str(data.parent), str(data.parent)]
    looked_at = map(shared_files.place_of_looked_at, [str(data), str(data.parent), str(tmp_path)])
    assert list(looked_at) == [str(data.parent), str(data.parent), ""]


LOOKS_AT_HOME = text_of("worker/looks_at_home.py")


def test_files_that_only_the_home_folder_of_the_user_has_are_named(load, tmp_path, monkeypatch):
    repository, users = tmp_path / "repository", tmp_path / "users"
    repository.mkdir()
    names = ("asked.json", "listed/a.json", "mine/module.py", "opened.json", "scanned/b.json")
    for name in (*names, "made/c.json", "of_a_package.json"):
        (users / name).parent.mkdir(parents=True, exist_ok=True)
        (users / name).write_text("{}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    load("own_folder").enter()
    noted = load("noted")
    monkeypatch.setattr(noted.pwd, "getpwuid", lambda number: SimpleNamespace(pw_dir=str(users)))
    noted.watch_files()
    noted.begin_files(str(repository))
    exec(compile(LOOKS_AT_HOME, "bench/run.py", "exec"), {})
    exec(compile(LOOKS_AT_HOME.replace("asked", "of_a_package"), "/opt/package.py", "exec"), {})
    noted.end_files()
    says = ": your home folder has it, programs get an empty one"
    notes = [words.partition(says)[0] for _, _, words in noted.caveats() if says in words]
    shown = ("asked.json", "listed", "mine/module.py", "opened.json", "scanned")
    assert notes == [f"a program looked for ~/{name}" for name in shown]


LOOKS = text_of("worker/looks_for_variables.py")
"""Lines that end in a comment look for a variable that is not there; others do not."""


def test_variables_that_a_line_of_the_repository_looks_for_are_listed(load, tmp_path, monkeypatch):
    monkeypatch.setenv("THERE", "1")
    settings = load("settings")
    noted, absent_variables = load("noted"), load("absent_variables")
    noted.begin_files(str(tmp_path))
    exec(compile(LOOKS, "bench/run.py", "exec"), {})
    exec(compile("import os; os.environ.get('OF_A_PACKAGE')", "/opt/package.py", "exec"))
    changed = settings.Settings().changed
    noted.end_files()
    exec(compile("import os; os.environ.get('LATER')", "bench/run.py", "exec"))
    expected = [
        ("bench/run.py", n, name)
        for n, line in enumerate(LOOKS.splitlines(), 1)
        for name in line.partition("  # ")[2].split(", ")
        if name
    ]
    assert absent_variables.looked_for() == expected
    assert [name for name, _ in changed] == ["THERE"]


def test_what_a_program_calls_is_noted_in_each_of_its_threads(load):
    noted, names = load("noted"), {}
    exec(compile("def own(): pass\n\ndef other(): pass\ndef late(): pass", "bench/run.py", "exec"), names)
    with noted.calls():
        names["own"]()
        thread = threading.Thread(target=names["other"])
        thread.start()
        thread.join()
    names["late"]()
    assert noted.called() == ["bench/run.py:1:own", "bench/run.py:3:other"]


def test_pytest_gives_the_modules_of_tests_absolute_paths(load, tmp_path):
    noted, names = load("noted"), {}
    noted.begin_files(str(tmp_path))
    exec(compile("def test(): pass", str(tmp_path / "tests" / "test_k.py"), "exec"), names)
    with noted.calls():
        names["test"]()
    noted.end_files()
    assert "tests/test_k.py:1:test" in noted.called()


def test_pytest_whose_tests_fail_has_come_to_its_end(monkeypatch):
    from irdiff.worker import run_program

    for code, words in ((1, "pytest ended with 1: tests failed"), (2, "the program ended with 2")):
        monkeypatch.setattr(run_program, "run_as_main", lambda *words, code=code: sys.exit(code))
        with pytest.raises(run_program.EndedEarly, match=words):
            run_program.run("-m", "pytest", "tests")


def test_what_dynamo_traces_counts_as_called(load):
    """Its calls while it compiles are not noted, and the graph has what it traced."""
    noted, names = load("noted"), {}
    exec(compile("def traced(): pass\n\ndef other(): pass", "bench/run.py", "exec"), names)
    begin = load("inductor")._noting(lambda translator, code: setattr(translator, "f_code", code))
    with noted.calls(), noted.paused():
        begin(SimpleNamespace(), names["traced"].__code__)
        names["other"]()
    assert noted.called() == ["bench/run.py:1:traced"]
