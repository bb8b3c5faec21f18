for n in range(100_000):
    store.put_record("kind", str(n), "x" * 20000)
    print(n + 1, flush=True)
