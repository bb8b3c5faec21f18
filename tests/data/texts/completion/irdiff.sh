#!/bin/sh
# what click answers: whole words that begin like the one at the cursor
word=$(printf '%s\n' "$COMP_WORDS" | sed -n "$((COMP_CWORD + 1))p")
for known in triton==3.8.0 g:08df norm/rms:fp16/k#1@sm_90 explain; do
    case $known in "${word#--triton=}"*) echo "plain,$known" ;; esac
done
