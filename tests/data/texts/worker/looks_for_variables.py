import os
from os import environ

os.environ.get("FAST")  # FAST
os.getenv("TILE", "64"), "STAGES" in environ  # STAGES, TILE
os.environ.setdefault("OWN", "1")  # OWN
os.environ["OWN"], os.environ.get("THERE")
os.environb.get(b"BYTES")  # BYTES
try:
    environ["NEEDED"]  # NEEDED
except KeyError:
    pass
del os.environ["OWN"]
