# Client programs and the tests that run them under the preload, with the CPU stand-ins.
PRELOAD_DIR    := $(BUILD)/tests/preload
PRELOAD_RUNNER := $(PRELOAD_DIR)/preload
PRELOAD_CFLAGS  = -std=gnu11 $(OPT) -g -Wall -Wextra -Werror $(SAN_FLAGS) -MMD -MP -Iinclude -Itests/sim \
                  -isystem $(CUDA_HOME)/include
# The sanitizer's runtime must come before the library that needs it.
PRELOAD_FIRST  := $(if $(SANITIZE),$(foreach s,$(filter address thread,$(SANITIZE)),$(shell $(CC) -print-file-name=lib$(patsubst address,asan,$(patsubst thread,tsan,$(s))).so):))
TOOLKIT_LIBS   := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcublas.so.1[0-9] $(CUDA_HOME)/lib/libcublas.so.1[0-9]))

# The real ones, without a GPU: the toolkit's, and what `make majors` fetched. NULL_HANDLE of each links it.
REAL_LIBS    := $(TOOLKIT_LIBS) $(wildcard $(BUILD)/cublas/*/libcublas.so.1[0-9])
REAL_RUNTIME := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcudart.so.1[0-9] $(CUDA_HOME)/lib/libcudart.so.1[0-9]))
REAL_CLIENTS := $(if $(REAL_RUNTIME),runtime_errors) $(foreach l,$(REAL_LIBS),null_handle-$(subst .,,$(suffix $(l))))

# Programs that link a stand-in in the ordinary way: NAME with cuBLAS 13, NAME-12 with 12.
PRELOAD_LINKED := plain forker threads entries nested serve special lt errors graph captures contexts shapes algo graphs \
                   places
PRELOAD_LINKED += probe scenario random replays settings crowd
PRELOAD_OLD    := plain-12 lt-12
PRELOAD_CLIENTS := $(PRELOAD_LINKED) $(PRELOAD_OLD) weak host plugin-12.so plugin-13.so extension.so libstub.so \
                   plugin-stub.so $(REAL_CLIENTS) lookup scopes scope-local.so handles-O0.so \
                   hooker-chains.so hooker-skips.so replays-12.so replays-13.so
PRELOAD_TESTS  := $(wildcard tests/preload/test_*.c)

CUDA12 := $(BUILD)/sim/cuda12/libcublas.so.12 $(BUILD)/sim/cuda12/libcublasLt.so.12
CUDA13 := $(BUILD)/sim/cuda13/libcublas.so.13 $(BUILD)/sim/cuda13/libcublasLt.so.13
DRIVER := $(BUILD)/sim/driver/libcuda.so.1
CLIENT := $(PRELOAD_DIR)/client.o $(BUILD)/sim/obj/reference.o

$(PRELOAD_DIR)/%.o: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) $(PRELOAD_CFLAGS) -fPIC -c -o $@ $<

# Its table names the shipped kernels.
$(PRELOAD_DIR)/random.o: PRELOAD_CFLAGS += -Ikernels
$(PRELOAD_LINKED:%=$(PRELOAD_DIR)/%): %: %.o $(CLIENT) $(CUDA13) $(DRIVER)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lm -ldl -lpthread
$(PRELOAD_OLD:%=$(PRELOAD_DIR)/%): %-12: %.o $(CLIENT) $(CUDA12) $(DRIVER)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lm -ldl -lpthread
$(PRELOAD_DIR)/weak: $(PRELOAD_DIR)/weak.o
	$(CC) $(SAN_FLAGS) -o $@ $^
$(PRELOAD_DIR)/host: $(PRELOAD_DIR)/host.o
	$(CC) $(SAN_FLAGS) -o $@ $^ -ldl
$(PRELOAD_DIR)/null_handle-%: $(PRELOAD_DIR)/null_handle.o
	$(CC) $(SAN_FLAGS) -o $@ $^ $(filter %.$*,$(REAL_LIBS)) $(subst libcublas.,libcublasLt.,$(filter %.$*,$(REAL_LIBS))) \
	  -Wl,-rpath,$(abspath $(dir $(filter %.$*,$(REAL_LIBS)))) -Wl,--allow-shlib-undefined -ldl
$(PRELOAD_DIR)/runtime_errors: $(PRELOAD_DIR)/runtime_errors.o
	$(CC) $(SAN_FLAGS) -o $@ $^ $(REAL_RUNTIME) -Wl,-rpath,$(abspath $(dir $(REAL_RUNTIME))) -ldl
$(PRELOAD_DIR)/plugin-12.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(CUDA12) $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -lm
$(PRELOAD_DIR)/plugin-13.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(CUDA13) $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -lm
# With the CUDA runtime, too.
$(PRELOAD_DIR)/replays: $(BUILD)/sim/cuda13/libcudart.so.13
$(PRELOAD_DIR)/replays-12.so: $(CUDA12) $(BUILD)/sim/cuda12/libcudart.so.12
$(PRELOAD_DIR)/replays-13.so: $(CUDA13) $(BUILD)/sim/cuda13/libcudart.so.13
$(PRELOAD_DIR)/replays-%.so: tests/preload/replays.c $(CLIENT) $(DRIVER)
	$(CC) $(PRELOAD_CFLAGS) -fPIC -fvisibility=hidden -DREPLAYS_PLUGIN='"$*"' -shared -Wl,-soname,$(@F) -o $@ $(filter-out %.h,$^) -lm
$(PRELOAD_DIR)/extension.so: $(PRELOAD_DIR)/extension.o $(PRELOAD_DIR)/plugin-13.so
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $^
$(PRELOAD_DIR)/libstub.so: $(PRELOAD_DIR)/stub.o
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -ldl
$(PRELOAD_DIR)/plugin-stub.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(PRELOAD_DIR)/libstub.so $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lm

# Look-ups by handle, and other preloads that hook dlsym. SCOPE_* as in scope.c.
$(PRELOAD_DIR)/lookup: $(PRELOAD_DIR)/lookup.o $(BUILD)/sim/obj/reference.o $(DRIVER)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lm -ldl -lpthread
$(PRELOAD_DIR)/scope-%.so: tests/preload/scope.c
	$(CC) $(PRELOAD_CFLAGS) -fPIC -shared -Wl,-soname,$(@F) -DSCOPE_$(shell echo $* | tr a-z A-Z) -o $@ $< $(SCOPE_NEEDS) -ldl
$(PRELOAD_DIR)/scope-local.so: $(PRELOAD_DIR)/scope-last.so
$(PRELOAD_DIR)/scope-local.so: private SCOPE_NEEDS := -Wl,--no-as-needed $(PRELOAD_DIR)/scope-last.so -Wl,-rpath,'$$ORIGIN'
$(PRELOAD_DIR)/scopes: $(PRELOAD_DIR)/scopes.o $(PRELOAD_DIR)/scope-first.so $(PRELOAD_DIR)/scope-next.so
	$(CC) $(SAN_FLAGS) -o $@ $< -Wl,--no-as-needed $(filter %.so,$^) -Wl,-rpath,'$$ORIGIN' -ldl
$(PRELOAD_DIR)/handles-O0.so: src/handles.c
	$(CC) -std=gnu11 -O0 -g -fPIC -fvisibility=hidden -Isrc -shared -o $@ $< -ldl
$(PRELOAD_DIR)/hooker-%.so: tests/preload/hooker.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Werror -shared -D$(if $(filter chains,$*),HOOKER_CHAINS,HOOKER_SKIPS) -o $@ $< -ldl

# A kernel that is not shipped, as it lies beside a table.
PRELOAD_EXTRA := mma_48x64x32_s3_w2
$(PRELOAD_DIR)/extra.cubin: kernels/mma.cu $(wildcard kernels/*.cuh) kernels/rules.mk include/gs_kernel.h
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -Iinclude -cubin -arch=sm_90a $(call tile_flags,$(PRELOAD_EXTRA)) -o $@ $<
$(PRELOAD_RUNNER): | $(PRELOAD_DIR)/extra.cubin

$(PRELOAD_RUNNER): $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o) $(PRELOAD_DIR)/run.o
	$(CC) -o $@ $^ -lcriterion
# Only what the tests run is built for a sanitizer: Criterion itself does not start under the thread sanitizer.
$(PRELOAD_DIR)/run.o $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o): SAN_FLAGS :=
$(PRELOAD_DIR)/run.o $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o): PRELOAD_CFLAGS += -Ikernels \
  -DBUILD='"$(BUILD)"' -DFIRST='"$(PRELOAD_FIRST)"' -DPRELOAD='"$(PRELOAD_FIRST)$(BUILD)/libgemmshim.so"'

# What the tests run.
$(PRELOAD_DIR)/faulty.so: $(PRELOAD_DIR)/faulty.o
	$(CC) -shared -Wl,-soname,$(@F) -o $@ $^ -ldl

$(PRELOAD_RUNNER): | $(PRELOAD_DIR)/faulty.so $(PRELOAD_CLIENTS:%=$(PRELOAD_DIR)/%) $(BUILD)/libgemmshim.so $(HANDLES) $(GRAPHS) $(SIM_DRIVERS) $(SIM_DEMO) \
    $(BUILD)/tests/overhead/overhead

## majors: fetch cuBLAS 11 and 12 as published for pip (1 GB); the tests then run on them too
.PHONY: majors test-majors
majors: $(foreach v,11 12,$(BUILD)/cublas/$(v)/fetched)
$(BUILD)/cublas/%/fetched:
	@mkdir -p $(@D)
	python3 -m pip download --no-deps --only-binary :all: -q -d $(@D) nvidia-cublas-cu$*
	cd $(@D) && python3 -m zipfile -e nvidia_cublas_cu$**.whl . && mv nvidia/cublas/lib/libcublas*.so.$* . && \
	  rm -r nvidia nvidia_cublas* && touch fetched

## test-majors: what needs no GPU, on the cuBLAS majors that `make majors` fetched
test-majors: $(PRELOAD_RUNNER) $(UNIT)
	@for library in $(abspath $(REAL_LIBS)); do echo "== $$library"; GS_CUBLAS=$$library $(UNIT) --filter 'lt/*' || exit 1; done
	$(PRELOAD_RUNNER) --filter 'real/*'

## test-aarch64: the dlsym hook on AArch64 (needs aarch64-linux-gnu-gcc and qemu-aarch64)
.PHONY: test-aarch64
ARM_DIR := $(BUILD)/tests/aarch64
ARM_CC  := aarch64-linux-gnu-gcc -std=gnu11 $(OPT) -Wall -Wextra -Werror
ARM_RUN := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64:
	@mkdir -p $(ARM_DIR)
	$(ARM_CC) -fPIC -shared -fvisibility=hidden -Isrc -o $(ARM_DIR)/handles.so src/handles.c -ldl
	$(ARM_CC) -fPIC -shared -o $(ARM_DIR)/fake.so tests/preload/lookup_fake.c
	for part in first next last; do \
	  $(ARM_CC) -fPIC -shared -Wl,-soname,scope-$$part.so -DSCOPE_$$(echo $$part | tr a-z A-Z) \
	    -o $(ARM_DIR)/scope-$$part.so tests/preload/scope.c -ldl || exit 1; done
	$(ARM_CC) -fPIC -shared -DSCOPE_LOCAL -o $(ARM_DIR)/scope-local.so tests/preload/scope.c \
	  -Wl,--no-as-needed $(ARM_DIR)/scope-last.so -Wl,-rpath,'$$ORIGIN' -ldl
	$(ARM_CC) -o $(ARM_DIR)/scopes tests/preload/scopes.c -Wl,--no-as-needed $(ARM_DIR)/scope-first.so \
	  $(ARM_DIR)/scope-next.so -Wl,-rpath,'$$ORIGIN' -ldl
	$(ARM_RUN) $(ARM_DIR)/scopes $(ARM_DIR)/scope-local.so | sed 's/by handle: 4/by handle: 5/' > $(ARM_DIR)/wanted
	$(ARM_RUN) -E LD_PRELOAD=$(ARM_DIR)/fake.so:$(ARM_DIR)/handles.so $(ARM_DIR)/scopes \
	  $(ARM_DIR)/scope-local.so | diff $(ARM_DIR)/wanted -
	$(ARM_CC) -fPIC -shared -fvisibility=hidden -Isrc -o $(ARM_DIR)/graphs.so src/graph_hooks.c -ldl
	$(ARM_RUN) -E LD_PRELOAD=$(ARM_DIR)/fake.so:$(ARM_DIR)/handles.so:$(ARM_DIR)/graphs.so $(ARM_DIR)/scopes \
	  $(ARM_DIR)/scope-local.so | diff $(ARM_DIR)/wanted -
	@echo "the dlsym hook is right on AArch64, and the hooks of graphs load"

## random-calls: a million calls drawn at random (CALLS, SEED), served and forwarded, each checked
.PHONY: random-calls
CALLS ?= 1000000
SEED  ?= 1
random-calls: $(PRELOAD_DIR)/random $(BUILD)/libgemmshim.so sim
	(sed '/^[NT]/d' tests/sim/sim.table; $(SIM_PATHS) $(PRELOAD_DIR)/random rows) > $(PRELOAD_DIR)/random.table
	: > $(PRELOAD_DIR)/random.log
	$(SIM_PATHS) GEMMSHIM_TABLE=$(PRELOAD_DIR)/random.table GEMMSHIM_LOG=2 GEMMSHIM_LOG_RATE=1000000 GEMMSHIM_VRAM_MB=256 \
	  GEMMSHIM_LOG_FILE=$(PRELOAD_DIR)/random.log LD_PRELOAD=$(BUILD)/libgemmshim.so \
	  $(PRELOAD_DIR)/random $(CALLS) $(SEED) $(PRELOAD_DIR)/random.log
	@grep -v ']: cublas' $(PRELOAD_DIR)/random.log; rm $(PRELOAD_DIR)/random.log

## test-preload: client programs under the preload, without a GPU
.PHONY: test-preload
test-preload: $(PRELOAD_RUNNER) $(BUILD)/libgemmshim.so sim
	$(PRELOAD_RUNNER) $(CRITERION_FLAGS)

-include $(wildcard $(PRELOAD_DIR)/*.d)
