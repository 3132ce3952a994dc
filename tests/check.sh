#!/bin/sh
# What `make check` holds true of the tree and of what was built; BUILD is the first argument.
# One line a check; the last line reads "N passed, N failed".
BUILD=${1:-build}
SHIM=$BUILD/libgemmshim.so
HANDLES=$BUILD/libgemmshim-handles.so
GRAPHS=$BUILD/libgemmshim-graphs.so
# The fatbins that the library holds: make names them; without it, all of every family that lie there.
SHIPPED=${SHIPPED:-$(echo build/kernels/*_*x*.fatbin)}
passed=0 failed=0

# check NAME COMMAND...: the command prints what is wrong, and nothing when all is well.
check() {
  name=$1
  shift
  faults=$("$@" 2>&1)
  if [ -z "$faults" ]; then
    echo "ok   $name"
    passed=$((passed + 1))
  else
    echo "FAIL $name"
    printf '%s\n' "$faults" | head -20 | sed 's/^/     /'
    failed=$((failed + 1))
  fi
}

sources() { git ls-files '*.c' '*.h' '*.cu' '*.cuh'; }

formatted() { sources | xargs clang-format --dry-run 2>&1 | grep 'warning:' | cut -d: -f1 | sort -u; }

short_files() {
  git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.py' '*.sh' '*.mk' Makefile | while read -r file; do
    lines=$(wc -l < "$file")
    [ "$lines" -le 500 ] || echo "$file has $lines lines"
  done
}

# floor_of NAME: the floor that the Makefile puts a module of src/ on.
floor_of() { sed -n "s/^FLOOR_\([0-9]\) :=.*\<$1\>.*/\1/p" Makefile; }

floors() {
  for file in src/*.c src/*.h; do
    module=$(basename "$file" | sed 's/\.[ch]$//')
    own=$(floor_of "$module")
    case $module in hash | compat | handles | graph_events | graph_hooks) own=0 ;; esac
    [ -n "$own" ] || { echo "$file is on no floor of the Makefile"; continue; }
    sed -n 's/^#include "\([a-z_0-9]*\)\.h"$/\1/p' "$file" | while read -r included; do
      case $included in gs_* | hash | compat | graph_events | '') continue ;; esac
      other=$(floor_of "$included")
      [ "${other:-9}" -le "$own" ] || echo "$file (floor $own) includes $included.h (floor ${other:-none})"
    done
  done
}

one_getenv() { grep -ln 'getenv *(' src/*.c | grep -v -e src/options.c -e src/choice.c; }

exports() {
  wanted=$(tr ' ;' '\n\n' < "$BUILD/exports.map" | grep -e '^cu' -e '^gemmshim_' -e '^dlclose$' | sort)
  found=$(nm -D --defined-only "$SHIM" | awk '{ print $3 }' | sort)
  [ "$wanted" = "$found" ] || printf '%s\n%s\n' "$wanted" "$found" | sort | uniq -u
  [ "$(nm -D --defined-only "$HANDLES" | awk '{ print $3 }')" = dlsym ] || nm -D --defined-only "$HANDLES"
  echo '#include "src/graphs.def"' | cc -E -P -x c -I. -D'GS_GRAPH_HOOK(name,kind)=name;' - | grep -o 'cu[a-zA-Z0-9_]*' > "$BUILD/graphs-exports"
  echo gemmshim_graphs_hooked >> "$BUILD/graphs-exports"
  nm -D --defined-only "$GRAPHS" | awk '{ print $3 }' | sort > "$BUILD/graphs-found"
  sort "$BUILD/graphs-exports" | diff - "$BUILD/graphs-found"
}

needed() {
  readelf -d "$SHIM" "$HANDLES" "$GRAPHS" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
    grep -v -x -e 'libc\.so\.6' -e 'libdl\.so\.2' -e 'libpthread\.so\.0'
}

old_glibc() {
  readelf -V "$SHIM" "$HANDLES" "$GRAPHS" | grep -o 'Name: GLIBC_[0-9A-Z.]*' | sed 's/Name: GLIBC_//' | sort -u |
    while read -r version; do
      newest=$(printf '%s\n2.28\n' "$version" | sort -V | tail -1)
      [ "$newest" = 2.28 ] || echo "needs GLIBC_$version, newer than 2.28"
    done
}

# The loader would take a file with cuBLAS's SONAME for cuBLAS, which has private symbols that ours lacks.
sonames() {
  for file in "$SHIM" "$HANDLES" "$GRAPHS"; do
    readelf -d "$file" | grep -q "SONAME.*\[$(basename "$file")\]" || readelf -d "$file" | grep SONAME
  done
}

traps() { tests/traps.sh 2>&1 | diff tests/TRAPS.md - | sed -n 's/^[<>] //p' | head -4; }

# Of every family; a fatbin holds a tile's kernels of all types and layouts, for all architectures.
shipped_size() {
  kernels=$("$BUILD/gemmshim" kernels | grep -c '^[a-z]*_[a-z0-9]*_[a-z0-9]*_[nt][nt]_')
  bytes=$(du -cb $SHIPPED 2>/dev/null | tail -1 | cut -f1)
  [ "$kernels" -gt 0 ] && [ "$kernels" -le 720 ] || echo "$kernels kernels of at most 720 are shipped"
  [ "${bytes:-0}" -gt 0 ] && [ "$bytes" -le $((4 << 20)) ] || echo "they take ${bytes:-no} bytes of at most 4 MiB"
}

readme_options() {
  sed -n '/<!-- options -->/,/<!-- \/options -->/p' README.md | sed '1d;$d' > "$BUILD/readme-options"
  "$BUILD/gemmshim" options --markdown | diff - "$BUILD/readme-options"
}

# Every subcommand and every make target that README names exists.
readme_commands() {
  grep -o '`gemmshim [a-z]*' README.md | sed 's/.* //' | sort -u | while read -r command; do
    "$BUILD/gemmshim" "$command" --help > /dev/null 2>&1 || echo "README names gemmshim $command, which has no --help"
  done
  grep -o '`make [a-z-]*' README.md | sed 's/.* //' | sort -u | while read -r target; do
    make -n "$target" > /dev/null 2>&1 || echo "README names make $target, which is not there"
  done
}

tables() {
  for table in kernels/tables/*.table tests/sim/sim.table; do
    "$BUILD/gemmshim" table check "$table" > "$BUILD/table-check" 2>&1 || cat "$BUILD/table-check"
  done
}

check "sources follow .clang-format" formatted
check "no file is longer than 500 lines" short_files
check "files of src/ include only their own floor and lower ones" floors
check "the environment is read in one place" one_getenv
check "the libraries export what they hook and nothing else" exports # L1
check "the libraries need libc, libdl and libpthread alone" needed # L7
check "the libraries need nothing newer than glibc 2.28" old_glibc # L13
check "the libraries have names of their own" sonames # L10
check "each trap has its tests, and TRAPS.md names them (make traps)" traps
check "the shipped kernels are 720 at most, and within 4 MiB" shipped_size
check "README's options are those of the code" readme_options
check "README's commands and targets exist" readme_commands
check "the shipped tables are valid" tables
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
