#!/bin/bash
# What `make gpu-bench` runs on a machine with a GPU: gemmshim bench in BUDGET seconds, torch.matmul beside it, a short
# table last. CSV files and summaries stay in $OUT; a second run goes on with them.
#   BUDGET  seconds in all (240), shared by the steps
#   STEPS   of: grid (the 1,000 shapes, in random order), models (tests/gpu/models.tsv), rows (of the table), torch
#   TABLE   the table to serve from: a file, or the name of a built-in one (that of this GPU)
#   SEED    of the order in which the grid is sampled (1)     CLOCKS  to read (gpu,wall,server)
#   PUBLISHED  files of published speed-ups, to stand beside  PEER    a folder of foreign kernels
#   BUILD   the build folder (build)   OUT  (build/gpu-bench)  PYTHON  a python3 with torch (python3)
BUILD=${BUILD:-build}
OUT=${OUT:-build/gpu-bench}
PYTHON=${PYTHON:-python3}
BUDGET=${BUDGET:-240}
STEPS=${STEPS:-grid models rows torch}
SEED=${SEED:-1}
CLOCKS=${CLOCKS:-gpu,wall,server}
CLI=$BUILD/gemmshim
here=$(dirname "$0")

mkdir -p "$OUT" || exit 1
nvidia-smi -L > "$OUT/gpu.txt" 2>&1 || { echo "no GPU here: $(head -1 "$OUT/gpu.txt")"; exit 1; }
[ -x "$CLI" ] || { echo "$CLI is missing: run make first, or set BUILD"; exit 1; }
. "$here/cublas.sh"
table=${TABLE:-$(sed 's/^GPU 0: //; s/ (UUID.*//' "$OUT/gpu.txt" | tr 'A-Z ' 'a-z-')}
beside=()
for file in $PUBLISHED; do beside+=(--published "$file"); done

count=$(wc -w <<< "$STEPS")
share=$((BUDGET / count))
status=0
# bench NAME OPTION...: measures into $OUT/NAME.csv; the summary goes to $OUT/NAME.txt.
bench() {
  local name=$1
  shift
  timeout $((share + 60)) "$CLI" bench -o "$OUT/$name.csv" --budget "$share" --clocks "$CLOCKS" --seed "$SEED" \
    ${CUBLAS_FILE:+--cublas "$CUBLAS_FILE"} ${TABLE:+--table "$TABLE"} ${PEER:+--peer "$PEER"} "$@" \
    > "$OUT/$name.txt" 2> "$OUT/$name.log" || { status=1; sed "s/^/# $name: /" "$OUT/$name.log" | tail -12; }
}

for step in $STEPS; do
  case $step in
  grid) bench grid --grid "${beside[@]}" ;;
  models) bench models --models "$here/models.tsv" ;;
  rows) bench rows --rows "$table" ;;
  torch)
    if ! "$PYTHON" -c 'import torch' 2> /dev/null; then
      echo "# torch: $PYTHON has none, so its column is left out"
    elif [ -s "$OUT/grid.csv" ]; then
      "$PYTHON" "$here/../e2e/torch_matmul.py" "$OUT/grid.csv" -o "$OUT/torch.csv" --budget "$share" 2> "$OUT/torch.log" ||
        { status=1; sed 's/^/# torch: /' "$OUT/torch.log" | tail -3; }
      "$CLI" bench --summary --torch "$OUT/torch.csv" "${beside[@]}" --plot "$OUT/grid" "$OUT/grid.csv" \
        > "$OUT/grid.txt" 2>> "$OUT/torch.log"
    fi
    ;;
  *) echo "no such step: $step"; exit 1 ;;
  esac
done

# The header and the lines that carry a claim.
for name in grid models rows; do
  [ -s "$OUT/$name.txt" ] || continue
  echo
  echo "== $name"
  grep -E '^# (gpu|driver|cublas|table|clocks|date): |^[0-9]+ products:|^clock against|^(gpu|wall|server) +(gemmex|lt|auto) +max ' \
    "$OUT/$name.txt"
  sed -n '/^gpu, auto max, by/,/^$/p; /^torch.matmul/,/^$/p; /published speed-ups/,/^$/p; /^model, by time/,$p
    /^foreign kernels/p; /served products lost/,/^$/p' "$OUT/$name.txt"
  grep -hE "table's rows|: lost, |not served \(|seconds: " "$OUT/$name.log"
done
exit $status
