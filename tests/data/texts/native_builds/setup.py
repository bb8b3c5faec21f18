import os, subprocess
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext


class Slow(build_ext):
    def run(self):
        # as ninja does: a job in a group of its own
        until = os.environ.get("STAND_IN_UNTIL", "/")
        job = "echo '[1/3] Configuring'; until [ -e \"$0\" ]; do sleep 0.05; done"
        subprocess.run(["sh", "-c", job, until], process_group=0)
        print("[2/3] Building C object native.c.o", flush=True)
        super().run()
        print("[3/3] Linking", flush=True)


setup(
    name="triton",
    version="9.9.9",
    packages=[*find_packages("python"), "triton.backends.stand"],
    package_dir={"": "python", "triton.backends.stand": "third_party/stand/backend"},
    ext_modules=[Extension("triton._C.native", ["lib/native.c"], include_dirs=["include"])],
    entry_points={"triton.backends": ["stand = triton.backends.stand"]},
    cmdclass={"build_ext": Slow},
)
