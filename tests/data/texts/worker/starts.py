import _posixsubprocess, sys
sys.audit("subprocess.Popen", None, ["/usr/bin/python3.11", "child.py"], None, None)
sys.audit("subprocess.Popen", "/bin/sh", ["/bin/sh", "-c", "python child.py"], None, None)
sys.audit("subprocess.Popen", "git", ["git", "rev-parse"], None, None)
sys.audit("os.fork")
_posixsubprocess.fork_exec([b"/usr/bin/python3.11", b"-c", b"from multiprocessing.spawn import spawn_main"])
_posixsubprocess.fork_exec([b"/usr/bin/python3.11", b"-c", b"from multiprocessing.resource_tracker import main"])
