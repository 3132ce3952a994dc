# Client programs and the tests that run them under the preload, with the CPU stand-ins.
PRELOAD_DIR    := $(BUILD)/tests/preload
PRELOAD_RUNNER := $(PRELOAD_DIR)/preload
PRELOAD_CFLAGS  = -std=gnu11 $(OPT) -g -Wall -Wextra -Werror $(SAN_FLAGS) -MMD -MP -Iinclude -Itests/sim \
                  -isystem $(CUDA_HOME)/include
# The sanitizer's runtime must come before the library that needs it.
PRELOAD_FIRST  := $(if $(SANITIZE),$(foreach s,$(filter address thread,$(SANITIZE)),$(shell $(CC) -print-file-name=lib$(patsubst address,asan,$(patsubst thread,tsan,$(s))).so):))
TOOLKIT_LIBS   := $(firstword $(wildcard $(CUDA_HOME)/lib64/libcublas.so.1[0-9] $(CUDA_HOME)/lib/libcublas.so.1[0-9]))

# Programs that link a stand-in in the ordinary way: NAME with cuBLAS 13, NAME-12 with 12.
PRELOAD_LINKED := plain forker threads entries nested serve special lt errors graph captures contexts shapes
PRELOAD_OLD    := plain-12 lt-12
PRELOAD_CLIENTS := $(PRELOAD_LINKED) $(PRELOAD_OLD) weak host plugin-12.so plugin-13.so extension.so libstub.so \
                   plugin-stub.so $(if $(TOOLKIT_LIBS),null_handle)
PRELOAD_TESTS  := $(wildcard tests/preload/test_*.c)

CUDA12 := $(BUILD)/sim/cuda12/libcublas.so.12 $(BUILD)/sim/cuda12/libcublasLt.so.12
CUDA13 := $(BUILD)/sim/cuda13/libcublas.so.13 $(BUILD)/sim/cuda13/libcublasLt.so.13
DRIVER := $(BUILD)/sim/driver/libcuda.so.1
CLIENT := $(PRELOAD_DIR)/client.o $(BUILD)/sim/obj/reference.o

$(PRELOAD_DIR)/%.o: tests/preload/%.c
	@mkdir -p $(@D)
	$(CC) $(PRELOAD_CFLAGS) -fPIC -c -o $@ $<

$(PRELOAD_LINKED:%=$(PRELOAD_DIR)/%): %: %.o $(CLIENT) $(CUDA13) $(DRIVER)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lm -ldl -lpthread
$(PRELOAD_OLD:%=$(PRELOAD_DIR)/%): %-12: %.o $(CLIENT) $(CUDA12) $(DRIVER)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lm -ldl -lpthread
$(PRELOAD_DIR)/weak: $(PRELOAD_DIR)/weak.o
	$(CC) $(SAN_FLAGS) -o $@ $^
$(PRELOAD_DIR)/host: $(PRELOAD_DIR)/host.o
	$(CC) $(SAN_FLAGS) -o $@ $^ -ldl
$(PRELOAD_DIR)/null_handle: $(PRELOAD_DIR)/null_handle.o
	$(CC) $(SAN_FLAGS) -o $@ $^ $(TOOLKIT_LIBS) $(subst libcublas,libcublasLt,$(TOOLKIT_LIBS)) \
	  -Wl,-rpath,$(dir $(TOOLKIT_LIBS)) -Wl,--allow-shlib-undefined
$(PRELOAD_DIR)/plugin-12.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(CUDA12) $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -lm
$(PRELOAD_DIR)/plugin-13.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(CUDA13) $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -lm
$(PRELOAD_DIR)/extension.so: $(PRELOAD_DIR)/extension.o $(PRELOAD_DIR)/plugin-13.so
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $^
$(PRELOAD_DIR)/libstub.so: $(PRELOAD_DIR)/stub.o
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ -ldl
$(PRELOAD_DIR)/plugin-stub.so: $(PRELOAD_DIR)/plugin.o $(CLIENT) $(PRELOAD_DIR)/libstub.so $(DRIVER)
	$(CC) $(SAN_FLAGS) -shared -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@ $^ -lm

$(PRELOAD_RUNNER): $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o) $(PRELOAD_DIR)/run.o
	$(CC) -o $@ $^ -lcriterion
# Only what the tests run is built for a sanitizer: Criterion itself does not start under the thread sanitizer.
$(PRELOAD_DIR)/run.o $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o): SAN_FLAGS :=
$(PRELOAD_DIR)/run.o $(PRELOAD_TESTS:tests/preload/%.c=$(PRELOAD_DIR)/%.o): PRELOAD_CFLAGS += -Ikernels \
  -DBUILD='"$(BUILD)"' -DPRELOAD='"$(PRELOAD_FIRST)$(BUILD)/libgemmshim.so"'

# What the tests run.
$(PRELOAD_RUNNER): | $(PRELOAD_CLIENTS:%=$(PRELOAD_DIR)/%) $(BUILD)/libgemmshim.so $(SIM_DRIVERS) $(SIM_DEMO) \
    $(BUILD)/tests/overhead/overhead

## test-preload: client programs under the preload, without a GPU
.PHONY: test-preload
test-preload: $(PRELOAD_RUNNER) $(BUILD)/libgemmshim.so sim
	$(PRELOAD_RUNNER) $(CRITERION_FLAGS)

-include $(wildcard $(PRELOAD_DIR)/*.d)
