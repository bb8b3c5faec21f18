import sys
sys.audit("subprocess.Popen", None, ["/usr/bin/python3.11", "child.py"], None, None)
sys.audit("subprocess.Popen", "/bin/sh", ["/bin/sh", "-c", "python child.py"], None, None)
sys.audit("subprocess.Popen", "git", ["git", "rev-parse"], None, None)
sys.audit("os.fork")
sys.audit("import", "multiprocessing.popen_spawn_posix", None, None, None, None)
sys.audit("import", "multiprocessing.pool", None, None, None, None)
