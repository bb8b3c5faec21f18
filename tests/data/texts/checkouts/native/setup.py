from setuptools import setup

setup(name="triton")
