#!/bin/sh
# check_sass.sh FATBIN...: no spills and no stack frame (from ptxas, kept beside each fatbin), and nothing but
# F32 accumulators in the tensor core instructions, of which family rows has none: it multiplies by FMA in F32 (from the
# machine code, else from the PTX).
set -u
PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin:$PWD/build/tools"
objdump=$(command -v cuobjdump)
faults=0
kernels=0
what=nothing
for fatbin; do
  name=$(basename "$fatbin" .fatbin)
  # One line a tile: kernels (each counts once an architecture), registers, what is wrong.
  line=$(cat "${fatbin%.fatbin}.ptxas" | awk -v name="$name" '
    /Compiling entry function/ { match($0, /sm_[0-9a-z]+/); arch = substr($0, RSTART, RLENGTH); n++ }
    / bytes stack frame/ { if ($1 || $5 || $9) bad++ }
    / Used [0-9]+ registers/ { r = $5 + 0; if (r > most[arch]) most[arch] = r }
    END { if (!n) bad++; printf "%d %d %-28s", n, bad, name; for (a in most) printf " %s %d registers", a, most[a] }')
  count=${line%% *}; line=${line#* }
  bad=${line%% *}; line=${line#* }
  case $name in rows_*) rows=1 ;; *) rows=0 ;; esac
  if [ -n "$objdump" ]; then
    what=SASS
    wrong=$("$objdump" --dump-sass "$fatbin" | awk -v rows="$rows" '
      /Function : / { if (seen && !mma) wrong++; seen = 1; mma = 0 }
      rows && / FFMA / { mma++ }
      rows && / H(G?MMA|MUL2|ADD2)[ .]/ && !/ HADD2\.F32 / { wrong++ }
      / H(G)?MMA\./ { mma++; for (i = 1; i <= NF; i++) if ($i ~ /^H(G)?MMA\./ && $i !~ /\.F32(\.BF16)?$/) wrong++ }
      END { if (!seen || !mma) wrong++; print wrong + 0 }')
  else
    what=PTX
    wrong=$(make -s -f kernels/rules.mk "build/kernels/$name.ptx" && awk -v rows="$rows" '
      rows && /fma\.rn\.f32/ { mma++ }
      /mma\.sync|mma_async/ { mma++; if ($0 !~ /\.f32\.(f16\.f16|bf16\.bf16)(\.f32)?/) wrong++ }
      END { if (!mma) wrong++; print wrong + 0 }' "build/kernels/$name.ptx")
  fi
  echo "$line, $count kernels, spills or stack in $bad, accumulation not F32 in ${wrong:-?} ($what)"
  kernels=$((kernels + count))
  faults=$((faults + bad + ${wrong:-1}))
done
echo "$kernels kernels, $faults faults in their $what"
[ "$what" = SASS ] || echo "no cuobjdump here, so the PTX was read, not the machine code: make build/tools/cuobjdump fetches one"
[ "$faults" = 0 ] && [ "$kernels" -gt 0 ]
