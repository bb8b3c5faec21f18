import os

from irdiff.errors import StoreError
from irdiff.store import key_of, sha256

assert store.get(sha256(b"one")) == store.get(store.put(b"one")) and list(store.notes()) == []
os.setuid(65534)
store = Store(store.root)
assert store.get_record("kind", key_of("a")) == 1
assert store.get(sha256(b"one")) == b"one"
assert store.put(b"one") == sha256(b"one")
assert list(store.notes()) == []
try:
    store.put_record("kind", "more", 1)
except StoreError as error:
    print(error.what)
