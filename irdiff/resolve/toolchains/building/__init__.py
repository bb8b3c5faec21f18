"""What a native build is made with, and how it goes: LLVM, compilers, progress, failures, kept trees."""
