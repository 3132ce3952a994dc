# gemmshim. `make list` explains the targets; everything that is made lies under build/.
VERSION   := 0.1.0
BUILD     ?= build
PREFIX    ?= /usr/local
DESTDIR   ?=
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda) /usr/local/cuda)
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CC        ?= gcc

# Sanitizers rebuild the host code in a folder of their own: make asan, ubsan, tsan.
SANITIZE  ?=
SAN_FLAGS := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all)
OPT       ?= -O2 -g

# Every object may end in the library, so all are made for it.
CFLAGS    := -std=gnu11 $(OPT) -fPIC -fvisibility=hidden -Wall -Wextra -Werror $(SAN_FLAGS)
CPPFLAGS  := -DGS_VERSION='"$(VERSION)"' -Iinclude -Isrc -isystem $(CUDA_HOME)/include
DEPFLAGS   = -MMD -MP

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# On all cores, where nobody said on how many. Not where several goals were given: `make clean all` means one after another.
ifeq ($(MAKELEVEL)$(filter -j% --jobs% --jobserver%,$(MAKEFLAGS) $(shell echo "$$MAKEFLAGS"))$(word 2,$(MAKECMDGOALS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

ifeq ($(filter deps list clean,$(MAKECMDGOALS)),)
ifeq ($(wildcard $(CUDA_HOME)/include/cublas_v2.h),)
$(error no CUDA toolkit at CUDA_HOME=$(CUDA_HOME): install one (12.0 or newer, with cuBLAS headers) or say where it is: make CUDA_HOME=/path)
endif
endif

include kernels/rules.mk

# ---- the library: floors 0 to 3 are an archive, which the tools link too; floor 4 makes it a preload ----
FLOOR_0 := status options log file sha256
FLOOR_1 := gemm algo histogram extras
FLOOR_2 := row table builtin device real clock choice workspace
FLOOR_3 := dispatch probation shadow dump launch library relaunch lt graphs clusters
FLOOR_4 := hooks preload graph_updates

LIBGS   := $(BUILD)/libgs.a
SHIM    := $(BUILD)/libgemmshim.so
HANDLES := $(BUILD)/libgemmshim-handles.so
GRAPHS  := $(BUILD)/libgemmshim-graphs.so
CLI     := $(BUILD)/gemmshim
OBJ_OF   = $(patsubst %,$(BUILD)/src/%.o,$(1))
GS_OBJS   := $(call OBJ_OF,$(FLOOR_0) $(FLOOR_1) $(FLOOR_2) $(FLOOR_3)) $(KERNEL_OBJS) $(BUILD)/kernels/compare.o
HOOK_OBJS := $(call OBJ_OF,$(FLOOR_4))

# Calls come with cold caches, where the length of the code counts: as one unit the library takes a fifth less
# time there. Files whose assembler names symbols cannot take part; the tools link the ordinary code.
LTO := $(if $(SANITIZE),,-flto=auto)
$(filter-out %/real.o %/device.o %/builtin.o %/preload.o,$(call OBJ_OF,$(FLOOR_0) $(FLOOR_1) $(FLOOR_2) $(FLOOR_3) $(FLOOR_4))): \
  CFLAGS += $(if $(LTO),$(LTO) -ffat-lto-objects)

## all: the libraries, the command line and the kernels (the default)
.PHONY: all
all: $(SHIM) $(HANDLES) $(GRAPHS) $(CLI)

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(DEPFLAGS) -c -o $@ $<

# Comparing descriptors is one loop that wants vectors.
$(BUILD)/src/lt.o: CFLAGS += $(if $(SANITIZE),,-O3)

# A square root is an instruction, where nobody looks at errno; libm stays out.
$(BUILD)/src/shadow.o: CFLAGS += -fno-math-errno

$(BUILD)/src/builtin.o: CPPFLAGS += -Ikernels/tables -DGS_TABLES='"kernels/tables"'
$(BUILD)/src/builtin.o: $(wildcard kernels/tables/*.table)

# The kernels that compare results (GEMMSHIM_VERIFY).
$(FATBINS)/compare.fatbin: kernels/compare.cu
	@mkdir -p $(@D)
	@echo "nvcc $@"
	@$(call nvcc_fatbin)
$(BUILD)/kernels/compare.o: $(FATBINS)/compare.fatbin
-include $(FATBINS)/compare.fatbin.d

$(LIBGS): $(GS_OBJS)
	rm -f $@
	$(AR) rcs $@ $^

# Updates of executable graphs, which both hook.
$(BUILD)/src/graph_updates.o: src/graph_hooks.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) $(DEPFLAGS) -DGS_UPDATES_ALONE -c -o $@ $<

# The exports are the hooked functions of real.def, updates of graphs, dlclose, and what the two libraries beside it ask; nothing
# else.
$(BUILD)/exports.map: src/real.def src/graph_updates.def Makefile
	@mkdir -p $(@D)
	(echo '{ global: gemmshim_lookup; gemmshim_graph; dlclose;'; printf '#include "%s"\n' $(filter %.def,$^) | \
	  $(CC) -E -P -x c -I. -D'GS_HOOKED(name)=name;' -D'GS_ASKED(name)=' -D'GS_GRAPH_HOOK(name,kind)=name;' - ; \
	  echo 'local: *; };') > $@

# glibc 2.34 moved libdl and libpthread into libc; naming them keeps older systems able to load this.
OLD_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--as-needed
$(SHIM): $(HOOK_OBJS) $(LIBGS) $(BUILD)/exports.map
	$(CC) $(CFLAGS) $(LTO) -shared -o $@ $(HOOK_OBJS) $(LIBGS) -Wl,--version-script=$(BUILD)/exports.map \
	  -Wl,-soname,libgemmshim.so -Wl,-z,defs -Wl,-z,now -Wl,-z,relro $(OLD_LIBS)

# The dlsym hook: opt-in, and never under a sanitizer, whose own start-up looks symbols up.
$(HANDLES): src/handles.c
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SAN_FLAGS),$(CFLAGS)) $(CPPFLAGS) $(DEPFLAGS) -MF $(BUILD)/src/handles.d -shared -o $@ $< \
	  -Wl,-soname,libgemmshim-handles.so -Wl,-z,now -Wl,-z,relro $(OLD_LIBS)
-include $(BUILD)/src/handles.d

# The hooks of graphs, which `gemmshim run` adds.
$(GRAPHS): src/graph_hooks.c
	@mkdir -p $(@D)
	$(CC) $(filter-out $(SAN_FLAGS),$(CFLAGS)) $(CPPFLAGS) $(DEPFLAGS) -MF $(BUILD)/src/graph_hooks.d -shared -o $@ $< \
	  -Wl,-soname,libgemmshim-graphs.so -Wl,-z,now -Wl,-z,relro $(OLD_LIBS)
-include $(BUILD)/src/graph_hooks.d

# ---- the command line ----
TOOL_OBJS := $(patsubst tools/%.c,$(BUILD)/tools/%.o,$(wildcard tools/*.c))
$(BUILD)/tools/%.o: tools/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -Itools -Ikernels -Ikernels/tables $(DEPFLAGS) -c -o $@ $<

# libcjson lies beside the executable where a machine lacks it (make carry).
$(CLI): $(TOOL_OBJS) $(REF_OBJS) $(LIBGS)
	$(CC) $(CFLAGS) -o $@ $^ -Wl,-rpath,'$$ORIGIN' -lcjson -lm -ldl -lpthread

-include tests/fuzz/rules.mk tests/sim/rules.mk tests/preload/rules.mk tests/overhead/rules.mk tests/cli/rules.mk tests/gpu/rules.mk

# ---- tests ----
UNIT := $(BUILD)/tests/unit/unit
UNIT_OBJS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%.o,$(wildcard tests/unit/*.c))
$(BUILD)/tests/unit/%.o: tests/unit/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -Itools -Ikernels -Itests/sim $(DEPFLAGS) -c -o $@ $<
$(BUILD)/tests/fuzz/targets.o: tests/fuzz/targets.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -Itools $(DEPFLAGS) -c -o $@ $<
$(UNIT): $(UNIT_OBJS) $(BUILD)/tests/fuzz/targets.o $(filter-out $(BUILD)/tools/gemmshim.o,$(TOOL_OBJS)) $(REF_OBJS) $(LIBGS) $(SIM)/obj/reference.o
	$(CC) $(CFLAGS) -o $@ $^ -lcriterion -lcjson -lm -ldl -lpthread

-include $(GS_OBJS:.o=.d) $(HOOK_OBJS:.o=.d) $(TOOL_OBJS:.o=.d) $(UNIT_OBJS:.o=.d) $(BUILD)/tests/fuzz/targets.d

## list: this list
.PHONY: list
list:
	@sed -n 's/^## \([a-z-]*\): /\1\t/p' $(MAKEFILE_LIST) | sort -u | awk -F'\t' '{ printf "  %-16s %s\n", $$1, $$2 }'

# ---- what to type ----
PACKAGES := gcc g++ make git libcriterion-dev uthash-dev libcjson-dev gnuplot-nox clang-format binutils python3-pip libjemalloc2 libfaketime
## deps: install what is missing from Debian, and say which CUDA toolkit was found
.PHONY: deps
deps:
	@missing=$$(for p in $(PACKAGES); do dpkg -s $$p 2>/dev/null | grep -q '^Status: install ok' || echo $$p; done); \
	install="apt-get install -y --no-install-recommends $$(echo $$missing)"; \
	if [ -z "$$missing" ]; then echo "deps: all Debian packages are here"; \
	elif [ $$(id -u) = 0 ]; then apt-get update -q && DEBIAN_FRONTEND=noninteractive $$install; \
	elif sudo -n true 2>/dev/null; then sudo apt-get update -q && sudo DEBIAN_FRONTEND=noninteractive $$install; \
	else echo "deps: run this, then try again:"; echo "  sudo $$install"; exit 1; fi
	@if [ -x $(NVCC) ]; then echo "deps: CUDA toolkit $$($(NVCC) --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') at $(CUDA_HOME)"; \
	else echo "deps: no nvcc at $(NVCC): install a CUDA toolkit (12.0 or newer) or set CUDA_HOME=/path"; exit 1; fi

# Everything is made by a second make, because the first one may have installed what the makefile looks for.
GPU_HERE := $(shell nvidia-smi -L 2>/dev/null | head -1)
GPU_PATHS := LD_LIBRARY_PATH=$(CUDA_HOME)/lib64:$$LD_LIBRARY_PATH
SIM_PATHS := LD_LIBRARY_PATH=$(BUILD)/sim/cuda13:$(BUILD)/sim/driver
## demo: install what is missing, build, run a program under gemmshim: on the GPU, else on CPU stand-ins
.PHONY: demo
demo: deps
	@$(MAKE) --no-print-directory all sim
ifneq ($(GPU_HERE),)
	@echo "demo: on $(GPU_HERE)"
	$(GPU_PATHS) $(CLI) run -o $(BUILD)/demo.calls -- $(BUILD)/sim/demo
	$(GPU_PATHS) $(CLI) tune -o $(BUILD)/demo.table --again $(BUILD)/demo.calls
	@if [ -s $(BUILD)/demo.table ]; then \
	  $(GPU_PATHS) $(CLI) run --table $(BUILD)/demo.table -o $(BUILD)/demo.calls -- $(BUILD)/sim/demo; \
	else echo "demo: no kernel won here, so nothing is served"; fi
else
	@echo "demo: no GPU here: CPU stand-ins (tests/sim) compute what cuBLAS and the kernels would"
	$(SIM_PATHS) $(CLI) run --sample 1 --table tests/sim/sim.table -o $(BUILD)/demo.calls -- $(BUILD)/sim/demo
endif
	$(CLI) report $(BUILD)/demo.calls

TEST_ENV := GS_BUILD=$(BUILD)
# Criterion does not start inside a program under the thread sanitizer; the other runners are not built with it.
RUNNERS = $(if $(filter thread,$(SANITIZE)),,$(UNIT)) $(PRELOAD_RUNNER) $(CLI_RUNNER)
## test: every test that needs no GPU
.PHONY: test
test: all sim $(RUNNERS)
	@set -e; for runner in $(RUNNERS); do echo "== $$runner"; $(TEST_ENV) $$runner $(CRITERION_FLAGS); done

## asan: the tests again under the address sanitizer
## ubsan: the tests again under the undefined-behaviour sanitizer
## tsan: the tests again under the thread sanitizer
.PHONY: asan ubsan tsan
asan ubsan tsan:
	$(MAKE) BUILD=build/$@ SANITIZE=$(if $(filter asan,$@),address,$(if $(filter ubsan,$@),undefined,thread)) OPT='-O1 -g' test

# check-sass reads the machine code: with the toolkit's cuobjdump, else NVIDIA's package. Where neither is to be had it
# reads the PTX, and says so.
.PHONY: disassembler
disassembler:
	@PATH="$$PATH:$(CUDA_HOME)/bin:build/tools" command -v cuobjdump > /dev/null || \
	  PIP_RETRIES=1 PIP_DEFAULT_TIMEOUT=15 $(MAKE) -s build/tools/cuobjdump || true
check-sass: disassembler

## check: format, floors, file sizes, exports, symbol versions, README, SASS
.PHONY: check
check: all check-sass
	@SHIPPED="$(SHIPPED_FATBINS)" tests/check.sh $(BUILD)

## traps: write tests/TRAPS.md anew: which test holds which trap
.PHONY: traps
traps:
	@mkdir -p $(BUILD)
	tests/traps.sh > $(BUILD)/TRAPS.md && cp $(BUILD)/TRAPS.md tests/TRAPS.md

## bench-overhead: ns that a forwarded and a served call cost above a direct one
.PHONY: bench-overhead
bench-overhead: all sim $(OVERHEAD)
	$(SIM_PATHS) SIM_NOCOMPUTE=1 GEMMSHIM_TABLE=tests/sim/sim.table LD_PRELOAD=$(SHIM) $(OVERHEAD) $(OVERHEAD_FLAGS)

## carry: what a GPU machine without our packages needs beside build/
.PHONY: carry
carry: all $(OVERHEAD) $(GPU_CAPTURES) $(PRELOAD_DIR)/random $(PRELOAD_DIR)/probe sim gpu-peers
	cp -L $$(ldconfig -p | sed -n 's/.*=> \(.*libcjson.so.1\)$$/\1/p' | head -1) $(BUILD)/

## gpu-check: on a machine with a GPU: the gate, a torch model, graphs, memory, overhead, compute-sanitizer
.PHONY: gpu-check
gpu-check:
	tests/gpu/check.sh

## gpu-sanitize: on a machine with a GPU: every kernel under compute-sanitizer, those of f16 under racecheck too
.PHONY: gpu-sanitize
gpu-sanitize:
	STEPS="memcheck initcheck synccheck racecheck" tests/gpu/check.sh

## gpu-bench: on a machine with a GPU: products through the library against every way to ask cuBLAS, and torch
.PHONY: gpu-bench
gpu-bench:
	tests/gpu/bench.sh

## format: clang-format on all sources
.PHONY: format
format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

## install: library and command line under PREFIX (DESTDIR is honoured)
.PHONY: install uninstall
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(CLI) $(DESTDIR)$(PREFIX)/bin/gemmshim
	install -m 644 $(SHIM) $(HANDLES) $(GRAPHS) $(DESTDIR)$(PREFIX)/lib/
## uninstall: what install put there
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/gemmshim $(addprefix $(DESTDIR)$(PREFIX)/lib/,$(notdir $(SHIM) $(HANDLES) $(GRAPHS)))

## clean: remove build/
.PHONY: clean
clean:
	rm -rf build
