import os, shutil, tempfile
open(os.path.expanduser("~/cache.py"), "w").close()
open(tempfile.gettempdir() + "/x.py", "w").close(); open(tempfile.gettempdir() + "/x.py").close()
tempfile.NamedTemporaryFile().close()
open("kernels.py", "w").close(); os.mkdir("build"); shutil.rmtree("build")
open("/proc/cpuinfo").close(); open("/dev/null", "w").close(); open(os.__file__).close()
open(mine + "/sizes.json").close()
os.makedirs(shared, exist_ok=True)
open(mine + "/kernels.py").close()  # mine
open(mine + "/new.json", "w").close()  # mine
open("outside.py").close()  # mine
open(shared + "/of_an_earlier_run/sizes.json").close()  # shared/of_an_earlier_run
os.makedirs(shared + "/new/deep")  # shared/new
os.symlink("kernels.py", shared + "/one.py")  # shared/one.py
os.rename("kernels.py", shared + "/two.py")  # shared/two.py
open("link/three", "w").close()  # shared/three
os.remove(shared + "/old")  # shared/old
shutil.rmtree(shared + "/of_an_earlier_run")  # shared/of_an_earlier_run
