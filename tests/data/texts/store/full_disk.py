import resource
from irdiff.errors import StoreError
resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
for n in range(100):
    try:
        store.put_record("kind", str(n), "x" * 3000)
    except StoreError as error:
        assert "cannot be written" in str(error)
        break
assert all(store.get_record("kind", str(m)) == "x" * 3000 for m in range(n))
print(n)
