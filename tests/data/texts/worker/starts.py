import _posixsubprocess, sys
sys.audit("subprocess.Popen", "/usr/bin/python3.11", ["/usr/bin/python3.11", "child.py"], None, None)
sys.audit("subprocess.Popen", "/bin/sh", ["/bin/sh", "-c", "python child.py"], None, None)
sys.audit("subprocess.Popen", "git", ["git", "rev-parse"], None, None)
sys.audit("os.fork")
_posixsubprocess.fork_exec([b"/usr/bin/python3.11", b"-c", b"from multiprocessing.spawn import spawn_main"], [b"/usr/bin/python3.11"])
_posixsubprocess.fork_exec([b"/usr/bin/python3.11", b"-c", b"from multiprocessing.resource_tracker import main"], [b"/usr/bin/python3.11"])
