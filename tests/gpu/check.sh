#!/bin/bash
# What `make gpu-check` runs on a machine with a GPU: build/ is carried there ready-made, nothing is installed.
# TAP on stdout, a short table last; details in $OUT (build/gpu). Status 1 where a check failed.
#   BUILD  the build folder (build)      PYTHON  a python3 with torch (python3)
#   TABLE  the table to serve from in the torch program and the overhead bench (one that serves everything)
#   STEPS  which of the steps below, in that order (all)      TIMES  captures a mode (10000)
#   RANKED products that ranking searches (30), in RANKING_SECONDS (300)
BUILD=${BUILD:-build}
OUT=${OUT:-build/gpu}
PYTHON=${PYTHON:-python3}
STEPS=${STEPS:-kernels verify peer generated extras torch captures vllm_start relaunch early random probation requalify reach ranking overhead memcheck initcheck synccheck racecheck}
CLI=$BUILD/gemmshim
here=$(dirname "$0")

mkdir -p "$OUT" || exit 1
nvidia-smi -L > "$OUT/gpu.txt" 2>&1 || { echo "Bail out! no GPU here: $(head -1 "$OUT/gpu.txt")"; exit 1; }
[ -x "$CLI" ] || { echo "Bail out! $CLI is missing: run make first, or set BUILD"; exit 1; }

. "$here/cublas.sh"

count=0 failed=0 table=
# step NAME SECONDS COMMAND...: its output goes to $OUT/NAME.txt; its last line is the detail.
step() {
  local name=$1 limit=$2 begun=$SECONDS status word detail
  shift 2
  case " $STEPS " in *" $name "*) ;; *) return ;; esac
  timeout "$limit" "$@" > "$OUT/$name.txt" 2>&1
  status=$?
  count=$((count + 1))
  detail=$(grep -v '^[[:space:]]*$' "$OUT/$name.txt" | tail -1 | cut -c1-100)
  [ $status = 124 ] && detail="not done after $limit s"
  word=ok
  if [ $status != 0 ]; then
    word='not ok' failed=$((failed + 1))
    grep -E '^(FAIL|not ok|Bail)|^========= (Error|ERROR|Invalid|Race|Uninit)' "$OUT/$name.txt" | head -12 | sed 's/^/# /'
  fi
  echo "$word $count - $name: $detail"
  table+=$(printf '%-10s %-6s %4d s  %s' "$name" "$word" $((SECONDS - begun)) "$detail")$'\n'
}

torch_program() {
  local folder
  rm -rf "$OUT/torch"
  mkdir -p "$OUT/torch"
  "$PYTHON" "$here/../e2e/torch_mlp.py" --build "$BUILD" --out "$OUT/torch" ${TABLE:+--table "$TABLE"} || return 1
  rm -f "$OUT"/torch/*/*.pt # large, and judged
}

# Our own calls against bare ones; any table that serves something will do.
overhead() {
  local served=$TABLE
  [ -n "$served" ] || served=$(ls "$OUT"/torch/*/forced.table 2> /dev/null | head -1)
  [ -n "$served" ] || { echo "no table that serves anything: run the step torch first, or set TABLE"; return 1; }
  LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH GEMMSHIM_TABLE=$served LD_PRELOAD=$BUILD/libgemmshim.so \
    "$BUILD/tests/overhead/overhead"
}

# forced_table SPLIT_K [KERNEL [M]]: a table for this GPU and cuBLAS whose one row serves the products of tests/gpu/captures.
forced_table() {
  local found
  found=$(LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH "$CLI" doctor)
  echo "format: 1"
  printf '%s\n' "$found" | sed -n 's/^.* GPU  *0: \(.*\), \(sm_[0-9]*\), \([0-9]*\) SMs$/gpu: \1\narch: \2\nsms: \3/p'
  printf '%s\n' "$found" | sed -n 's/^.* cuBLAS  *\([0-9.]*\), .*/cublas: \1/p' | head -1
  printf 'method: forced, for tests\ndate: 2026-11-29\n'
  printf 'T\tN\t%d\t1024\tf16\tf16\t32f\tdefault\tsingle\t1\t64\t%s\t%d\t1\t8\t10\t0\t0\n' \
    "${3:-512}" "${2:-mma_f16_f16_tn_64x64x64_s4_w4}" "$1"
}

# Graphs, contexts and devices, with split-K and without; nearly all of it must have been served.
captures() {
  local split share untraced replayed modes
  for split in 1 8 9; do # a cluster; more parts than one has, hence by a workspace
    [ $split = 8 ] && modes="update mixed" || modes=
    rm -rf "$OUT/captures-$split"
    forced_table $split > "$OUT/captures-$split.table"
    LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH "$CLI" run --sample 0 --table "$OUT/captures-$split.table" \
      --keep "$OUT/captures-$split" -o "$OUT/captures-$split.calls" -- "$BUILD/tests/gpu/captures" --times "${TIMES:-10000}" $modes || return 1
    LD_LIBRARY_PATH=$CUBLAS:${CUDA_HOME:-/usr/local/cuda}/lib64:$LD_LIBRARY_PATH GEMMSHIM_TABLE=$OUT/captures-$split.table LD_PRELOAD=$BUILD/libgemmshim.so \
      "$BUILD/tests/gpu/captures" --runtime --times 2000 update mixed || return 1
    "$CLI" report --prometheus "$OUT/captures-$split" > "$OUT/captures-$split.prom"
    share=$(awk '/^gemmshim_products_total/ { all += $2; if (/"served"/) served += $2 }
      END { print all ? int(100 * served / all) : 0 }' "$OUT/captures-$split.prom")
    read -r untraced replayed < <(awk '/^gemmshim_untraced_products_total/ { untraced = $2 }
      /^gemmshim_replayed_products_total/ { replayed = $2 } END { print untraced, replayed }' "$OUT/captures-$split.prom")
    echo "split-K $split: $share% of the products served; $replayed run by replays, $untraced captured ones not traced"
    [ "$share" -ge 95 ] && [ "$untraced" = 0 ] && [ "$replayed" -gt 0 ] || return 1
  done
}

# Products of every family behind whatever may be ahead of them on their stream.
early() {
  local kernel split
  while read -r kernel split; do
    forced_table "$split" "$kernel" 1024 > "$OUT/early.table"
    rm -f "$OUT/early.log"
    GEMMSHIM_EARLY=1 GEMMSHIM_TABLE=$OUT/early.table GEMMSHIM_LOG_FILE=$OUT/early.log preloaded "$BUILD/tests/gpu/early" > "$OUT/early-calls.txt" || { cat "$OUT/early-calls.txt"; return 1; }
    echo "$kernel in $split: $(grep -c ^ok "$OUT/early-calls.txt") ways right,$(grep -o ' [0-9]* served by gemmshim ([0-9.]*%)' "$OUT/early.log")"
    grep -q ' served by gemmshim (9[0-9.]*%)' "$OUT/early.log" || return 1
  done << 'END'
mma_f16_f16_tn_64x64x64_s4_w4 1
mma_f16_f16_tn_64x64x64_s4_w4 8
mma_f16_f16_tn_64x64x64_s4_w4 9
wgmma_f16_f16_tn_64x64x64_s8_w4 1
wgmma_f16_f16_tn_64x64x64_s12_w4 4
direct_f16_f16_tn_16x8_u2_w8_sw 1
direct_f16_f16_tn_16x8_u4_w4_sw 4
rows_f16_f16_tn_2x1_u4_w8 1
END
}

# Two processes that start as vLLM does, alone and under the library: within the bound, and nothing fails.
vllm_start() {
  local bare bound=24
  rm -rf "$OUT/vllm"
  forced_table 9 | sed 's/\t1\t64\tmma/\t1\t384\tmma/' > "$OUT/vllm.table"
  LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH "$BUILD/tests/gpu/vllm_start" > "$OUT/vllm-bare.txt" || { cat "$OUT/vllm-bare.txt"; return 1; }
  bare=$(sed -n 's/^# grown: //p' "$OUT/vllm-bare.txt")
  echo "alone: device memory grew by $bare bytes"
  # Beside workspace, the code of two kernels in each of two processes.
  LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH GEMMSHIM_VRAM_MB=$bound "$CLI" run --sample 0 --table "$OUT/vllm.table" \
    --keep "$OUT/vllm" -o "$OUT/vllm.calls" -- "$BUILD/tests/gpu/vllm_start" \
    --allow $(((bare + 1048575) / 1048576 + 2 * bound + 16)) || return 1
  "$CLI" report --prometheus "$OUT/vllm" > "$OUT/vllm.prom"
  awk -F'[" ]' '/^gemmshim_products_total/ { n[$4] = $NF } END {
    print n["served"] " served, " n["workspace"] " forwarded for want of memory, " n["launch_failed"] " refused"
    exit !(n["served"] && n["workspace"] && !n["launch_failed"]) }' "$OUT/vllm.prom"
}

# Algorithms of cuBLASLt's own from the built-in table, two products of each, TN, and as many that split k (all of those at
# small m and n, k from 8192 on; at most 8 MiB of workspace) as others: their launches are learnt, most of them, and what they
# compute is what cuBLAS computes. Every product has streams of its own, whose workspace stays theirs: more than the usual bound.
relaunch() {
  local rows
  "$CLI" table show nvidia-h200 > "$OUT/relaunch.table"
  rows=$(awk -F'\t' '$1 == "T" && $2 == "N" && $5 $6 $7 $8 $9 == "f16f1632fdefaultsingle" && \
    $12 ~ /^lt_/ && $3 * $10 <= 5e6 && ($3 + $10) * $4 <= 3e7 && ($12 !~ /_r2_/ || ($4 >= 8192 && $3 * $10 * $13 <= 2097152)) && \
    n[$12]++ < 2 && taken[$12 ~ /_r2_/]++ < 20 { print $3, $10, $4 }' "$OUT/relaunch.table")
  rm -f "$OUT/relaunch.log"
  GEMMSHIM_VRAM_MB=1024 GEMMSHIM_TABLE=$OUT/relaunch.table GEMMSHIM_LOG_FILE=$OUT/relaunch.log preloaded "$BUILD/tests/gpu/relaunch" $rows > "$OUT/relaunch-calls.txt"
  grep -v "^ok" "$OUT/relaunch-calls.txt"
  sed 's/^[^:]*: //' "$OUT/relaunch.log"
  awk '/algorithms of cuBLASLt/ { of = $3; learnt = $(NF - 2) } END { exit !(of > 0 && learnt > of / 2) }' "$OUT/relaunch.log" &&
    ! grep -q 'GEMMSHIM_VRAM_MB would be passed' "$OUT/relaunch.log" && ! grep -q "^not ok" "$OUT/relaunch-calls.txt" && grep -q "^1\.\.[1-9]" "$OUT/relaunch-calls.txt"
}

# The gate has to refuse a kernel that sums in fp16, and let pass the same one that sums in fp32.
peer() {
  local folder=$BUILD/tests/gpu right wrong
  [ -e "$folder/mma_f16.so" ] || make BUILD="$BUILD" gpu-peers || return 1
  right=$("$CLI" verify --peer "$folder/mma_f32.so") || { echo "$right"; echo "FAIL sums in fp32 were refused"; return 1; }
  wrong=$("$CLI" verify --peer "$folder/mma_f16.so") && { echo "FAIL sums in fp16 were let pass"; return 1; }
  printf 'sums in fp32:\n%s\nsums in fp16:\n%s\n' "$right" "$wrong" | sed 's/^FAIL/refused/'
  for case in normal integers; do
    echo "$wrong" | grep -q "^FAIL .* $case" || { echo "FAIL no case '$case' noticed it"; return 1; }
  done
  echo "fp32: $(echo "$right" | tail -1); fp16: $(echo "$wrong" | tail -1)"
}

# Kernels that are not shipped: compiled, and put through the gate.
generated() {
  local for_hopper=
  nvidia-smi --query-gpu=compute_cap --format=csv,noheader | grep -q '^9.0' &&
    for_hopper="wgmma_64x128x64_s3_w8 wgmma_256x64x64_s2_w4 strip_256x512x64_s5_w4 strip_64x256x192_s2_w4 strip_128x512x64_s3_w8"
  "$CLI" verify ${CUBLAS_FILE:+--cublas "$CUBLAS_FILE"} --quick mma_48x64x32_s3_w2 mma_96x64x64_s3_w4 \
    mma_64x96x32_s5_w4_v2 mma_16x32x64_s4_w2 mma_32x16x32_s3_w1 mma_128x160x32_s4_w8 \
    mma_160x128x32_s4_w8 mma_128x192x32_s3_w8 mma_256x128x32_s3_w8 mma_128x256x64_s3_w8 direct_16x16_u3_w2 direct_16x32_u2_w4 direct_32x8_u2_w2_sw \
    rows_1x1_u4_w4 rows_8x2_u1_w8 $for_hopper
}

# Kernels that are not shipped, searched for and measured, win, lie beside their table, and serve from there.
extras() {
  local folder=$OUT/extras
  rm -rf "$folder"
  mkdir -p "$folder/there"
  export LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH
  "$CLI" run -o "$folder/demo.calls" -- "$BUILD/sim/demo" &&
    "$CLI" tune --search=8 --kernels direct_16x16_u2_w2,direct_16x16_u2_w4,direct_32x16_u2_w4 \
      -o "$folder/demo.table" "$folder/demo.calls" &&
    "$CLI" table copy "$folder/demo.table" "$folder/there/demo.table" || return 1
  ls "$folder/there/demo.table.d" || { echo "FAIL no kernel that is not shipped won"; return 1; }
  GEMMSHIM_TABLE=$folder/there/demo.table GEMMSHIM_LOG=2 LD_PRELOAD=$BUILD/libgemmshim.so "$BUILD/sim/demo" \
    > "$folder/demo.txt" 2> "$folder/demo.log" || { tail -3 "$folder/demo.log" "$folder/demo.txt"; return 1; }
  ls "$folder/there/demo.table.d" | sed 's/-.*//' > "$folder/names"
  echo "$(cat "$folder/demo.txt"); $(grep -c ': kernel ' "$folder/demo.log") served," \
    "$(grep ': kernel ' "$folder/demo.log" | grep -c -F -f "$folder/names") by kernels beside the table"
  grep ': kernel ' "$folder/demo.log" | grep -q -F -f "$folder/names"
}

# With our library before the program, and the real ones behind it.
preloaded() {
  LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH GEMMSHIM_LOG=${logged:-1} LD_PRELOAD=$BUILD/libgemmshim.so "$@" 2>&1
}

# Products drawn at random, served and forwarded, each checked on the host, with every byte around the result, and memory
# for leaks: a few compared with cuBLAS's own on the GPU too; then many, of which none that was served may be off by more
# than one rounding, which cuBLAS's are now and then: the same again by cuBLAS alone.
random_calls() {
  local status alone
  (forced_table 1 | sed '/^[NT]\t/d'; LD_LIBRARY_PATH=$CUBLAS:$LD_LIBRARY_PATH "$BUILD/tests/preload/random" rows) \
    > "$OUT/random.table"
  export GEMMSHIM_TABLE=$OUT/random.table GEMMSHIM_SHAPES=65536 GEMMSHIM_VRAM_MB=256
  GEMMSHIM_VERIFY=1 preloaded "$BUILD/tests/preload/random" 5000 2 > "$OUT/random-compared.txt" || return 1
  cat "$OUT/random-compared.txt"
  grep -q ' 0 off' "$OUT/random-compared.txt" || return 1
  GEMMSHIM_SERVE=0 preloaded "$BUILD/tests/preload/random" "${CALLS:-100000}" 1 > "$OUT/random-alone.txt"
  grep -q '^wrong: 0$' "$OUT/random-alone.txt" || { cat "$OUT/random-alone.txt"; return 1; }
  alone=$(sed -n 's/^loose: //p' "$OUT/random-alone.txt")
  : > "$OUT/random.log"
  GEMMSHIM_LOG_FILE=$OUT/random.log GEMMSHIM_LOG_RATE=1000000 logged=2 \
    preloaded "$BUILD/tests/preload/random" "${CALLS:-100000}" 1 "$OUT/random.log" > "$OUT/random-calls.txt"
  status=$?
  tail -20 "$OUT/random.log" | grep -v ']: cublas' > "$OUT/random-summary.txt"
  rm -f "$OUT/random.log" # a line a call
  grep -v '^calls' "$OUT/random-calls.txt"
  awk -F': ' -v alone="$alone" '{ n[$1] = $2 } END {
    print n["ours"] " of " n["calls"] " served, " n["wrong"] " wrong, off by two roundings: " n["ours loose"] " of ours, " \
      n["loose"] - n["ours loose"] " forwarded, " alone " by cuBLAS alone"
    exit !(n["ours"] > 0 && n["deep"] > 0 && n["loose"] <= alone) }' "$OUT/random-calls.txt" || return 1
  return $status
}

# Rows made out to be of another cuBLAS, tried in place: a wrong tile for a large product, and the built-in table's
# best row. trial M N K VERDICT
trial() {
  rm -rf "$OUT/trial"
  mkdir -p "$OUT/trial"
  GEMMSHIM_CALLS=$OUT/trial GEMMSHIM_UNPROVEN=probation GEMMSHIM_TABLE=$OUT/trial.table \
    preloaded "$BUILD/tests/preload/probe" "$1" "$2" "$3" "${CALLS:-400}" unchecked || return 1
  "$CLI" report --json "$OUT/trial" > "$OUT/trial.json"
  "$PYTHON" - "$OUT/trial.json" "$4" << 'END'
import json, sys
shape = json.load(open(sys.argv[1]))["shapes"][0]
trial, verdicts = shape["trial"], shape["verdicts"]
served, most = verdicts.get("served", 0), 17
print(f"{sys.argv[2]}: {trial}, {verdicts}")
sys.exit(not (trial.get(sys.argv[2]) and (served <= most) == (sys.argv[2] == "lost")))
END
}

probation() {
  local best side=${SIDE:-4096}
  forced_table 1 | sed '/^[NT]\t/d; s/^cublas: .*/cublas: 11.0.0/' > "$OUT/trial-header"
  (cat "$OUT/trial-header"
    printf 'T\tN\t%d\t%d\tf16\tf16\t32f\tdefault\tsingle\t%d\t%d\tmma_f16_f16_tn_32x32x64_s4_w4\t1\t1\t8\t10\t0\t0\n' \
      "$side" "$side" "$side" "$side") > "$OUT/trial.table"
  trial "$side" "$side" "$side" lost || return 1
  best=$("$CLI" table show nvidia-h200 | awk -F'\t' '$1 == "T" && $2 == "N" && $5 $6 $7 $8 $9 == "f16f1632fdefaultsingle" && \
    $15 > 0 && $16 / $15 > most { most = $16 / $15; best = $0 } END { print best }')
  (cat "$OUT/trial-header"; printf '%s\n' "$best") > "$OUT/trial.table"
  set -- $best
  trial "$3" "${10}" "$4" won
}

# requalify, in a few seconds: the built-in table's rows as if of another cuBLAS.
requalified() {
  (forced_table 1 | sed '/^[NT]\t/d; s/^cublas: .*/cublas: 11.0.0/'; "$CLI" table show nvidia-h200 | grep '^[NT]') \
    > "$OUT/old.table"
  rm -f "$OUT/requalified.table"
  "$CLI" requalify --budget "${BUDGET:-30}" ${CUBLAS_FILE:+--cublas "$CUBLAS_FILE"} -o "$OUT/requalified.table" "$OUT/old.table" &&
    "$CLI" table check "$OUT/requalified.table"
}

# sanitize TOOL PATTERN: a few cases of every kernel that PATTERN names, at small sizes.
sanitize() {
  compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 \
    "$CLI" verify --one-process --quick --sizes small --cublas none --kernel "$2"
}
export -f torch_program overhead sanitize forced_table captures vllm_start relaunch early peer generated extras \
  preloaded random_calls trial probation requalified
export BUILD OUT PYTHON TABLE CLI CUBLAS here CUBLAS_FILE

step kernels 60 "$CLI" kernels
step verify 240 "$CLI" verify ${CUBLAS_FILE:+--cublas "$CUBLAS_FILE"}
step peer 120 bash -c peer
step generated 120 bash -c generated
step extras 240 bash -c extras
step torch 240 bash -c torch_program
step captures 400 bash -c captures # S1 S2 S4 S6 S8
step vllm_start 120 bash -c vllm_start # S8
step relaunch 120 bash -c relaunch # S2 S3
step early 120 bash -c early # S1 S3
step random 600 bash -c random_calls # C3 C5 C6
step probation 120 bash -c probation
step requalify 120 bash -c requalified
step reach 300 "$PYTHON" "$here/../e2e/reach.py" --build "$BUILD" --cublas "$CUBLAS" # L2 L6
# The tuner's choices against all shipped kernels and splits; status 1 where one is off by more than 3%.
step ranking "${RANKING_SECONDS:-300}" "$CLI" tune --grid --exhaustive "${RANKED:-30}" -o "$OUT/ranking.table" \
  ${CUBLAS_FILE:+--cublas "$CUBLAS_FILE"}
step overhead 120 bash -c overhead
step memcheck 150 bash -c 'sanitize memcheck "*"' # S9 C5
step initcheck 150 bash -c 'sanitize initcheck "*"' # S9
step synccheck 150 bash -c 'sanitize synccheck "*"' # S9
# Slow: other types are the same source with another type.
step racecheck 250 bash -c 'sanitize racecheck "*_f16_f16_*"' # S9

echo "1..$count"
echo
cat "$OUT/gpu.txt"
printf '%s' "$table"
echo "$count checks, $failed failed; details in $OUT"
[ $failed = 0 ]
