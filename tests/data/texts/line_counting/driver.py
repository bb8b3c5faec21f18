import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
library.f(1)                        # as the library is loaded
library.irdiff_coverage_mark()
library.f(5)                        # the capture of another launch
for name, value in (("low", 2), ("high", 5)):
    if os.fork() == 0:
        library.irdiff_coverage_begin(f"{sys.argv[2]}/{name}".encode())
        library.f(value)
        os._exit(library.irdiff_coverage_end())
    assert os.wait()[1] == 0
