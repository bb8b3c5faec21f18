import types
from importlib.metadata import entry_points

backends = {}
for point in entry_points(group="triton.backends"):
    backends[point.name] = types.SimpleNamespace(compiler=point.load().Compiler)
