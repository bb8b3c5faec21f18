from threading import Thread
def work(thread):
    for n in range(50):
        store.put_record("own", f"{sys.argv[1]}-{thread}-{n}", store.put(f"{n}".encode()))
        store.put_record("shared", str(n), n)
        assert store.get_record("shared", str(n)) == n
threads = [Thread(target=work, args=(thread,)) for thread in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
