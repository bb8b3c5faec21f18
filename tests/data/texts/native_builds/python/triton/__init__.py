from triton._C import native

__version__ = '9.9.9'
VALUE = native.VALUE
