#!/bin/sh
# Which test holds which trap: prints tests/TRAPS.md anew, its first two columns as they are, the third from the
# names of the tests (Test(suite, L2_C3_name)) and from the remarks behind the lines of tests/check.sh and
# tests/gpu/check.sh (# S9). Status 1, and a line on stderr, where a trap has no test. `make traps` writes it.
cd "$(dirname "$0")/.." || exit 1

# ID <tab> test, sorted.
tests() {
  git ls-files -co --exclude-standard 'tests/*.c' | xargs awk '
    /^(Parameterized)?Test\(/ {
      if (match($0, /\([^)]*[,)]/) == 0) next
      split(substr($0, 1, 200), part, /[(,)] */)
      suite = part[2]; name = part[3]
      if ($0 ~ /^ParameterizedTest\(/) { suite = part[3]; name = part[4] }
      folder = FILENAME; sub(/^tests\//, "", folder); sub(/\/.*/, "", folder)
      count = split(name, word, "_")
      for (i = 1; i <= count && word[i] ~ /^[LCST][0-9]+$/; i++) print word[i] "\t" folder ": " suite "/" name
    }'
  sed -n 's/^check "\([^"]*\)".*# \([LCST][LCST0-9 ]*\)$/\2\tmake check: \1/p' tests/check.sh | spread
  sed -n 's/^step \([a-z0-9_-]*\) .*# \([LCST][LCST0-9 ]*\)$/\2\tmake gpu-check: \1/p' tests/gpu/check.sh | spread
}
spread() { awk -F'\t' '{ count = split($1, id, " "); for (i = 1; i <= count; i++) print id[i] "\t" $2 }'; }

tests | LC_ALL=C sort -u | awk -F'\t' '
  FNR == NR { held[$1] = held[$1] (held[$1] ? "<br>" : "") $2; next }
  /^\| [LCST][0-9]+ \|/ {
    split($0, column, / *\| */)
    if (!held[column[2]]) { print "trap " column[2] " has no test" > "/dev/stderr"; bad = 1 }
    print "| " column[2] " | " column[3] " | " held[column[2]] " |"
    next
  }
  { print }
  END { exit bad }' - tests/TRAPS.md
