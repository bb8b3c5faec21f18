#!/bin/sh
echo started >> {count}
echo "Used 16 registers: $*" >&2
if grep -q refused kernel.ptx; then exit 255; fi
cat "$0" kernel.ptx > kernel.cubin
