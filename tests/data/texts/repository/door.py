
import sys
from pathlib import Path

started = []

def watch(event, arguments):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty"):
        frame, files = sys._getframe(1), []
        while frame:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        by_door = any(name.endswith("irdiff/process.py") for name in files)
        started.append((by_door, str(arguments[0])))

sys.addaudithook(watch)
from irdiff import config as configuration
from irdiff.resolve import remote_repositories
from irdiff.resolve.remote_repositories import Remote
from irdiff.resolve.toolchains import repository

here = configuration.load(cache=Path(sys.argv[2]))
store = repository.open_store(Path(sys.argv[1]), here)
for spec in ("HEAD", "."):
    snap = repository.snapshot(store, spec, here)
    assert repository.read(repository.entries(snap, here)), snap.title
assert not any(name == "GIT_PYTHON_REFRESH" for name in __import__("os").environ)
print([name for by_door, name in started if by_door][:1], [name for by_door, name in started if not by_door])
