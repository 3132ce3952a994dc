# The CPU stand-ins: $(BUILD)/sim/cuda12 and cuda13 (libcublas, libcublasLt, libcudart), $(BUILD)/sim/driver (libcuda),
# $(BUILD)/sim/driver-old (a driver before CUDA 12: no library loading) and driver-12.0, and the demo. Included by the top
# Makefile; `make -f tests/sim/rules.mk sim` works alone where $(BUILD)/libgs.a exists.
BUILD     ?= build
CUDA_HOME ?= /usr/local/cuda
LIBGS     ?= $(BUILD)/libgs.a

SIM        := $(BUILD)/sim
SIM_CFLAGS := -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Werror $(SAN_FLAGS) -MMD -MP -Iinclude -Itests/sim \
              -isystem $(CUDA_HOME)/include
SIM_SHARED := reference record
SIM_DRIVER := cuda_compare cuda_device cuda_memory cuda_stream cuda_graph cuda_kernel
SIM_DRIVERS := $(foreach d,driver driver-12.0 driver-old,$(SIM)/$(d)/libcuda.so.1)
SIM_NVML   := $(SIM)/driver/libnvidia-ml.so.1
SIM_CUBLAS := $(foreach v,12 13,$(SIM)/cuda$(v)/libcublas.so.$(v) $(SIM)/cuda$(v)/libcublasLt.so.$(v))
SIM_CUDART := $(foreach v,12 13,$(SIM)/cuda$(v)/libcudart.so.$(v))
SIM_DEMO   := $(SIM)/demo

## sim: the CPU stand-ins for libcublas, libcublasLt and libcuda
.PHONY: sim
sim: $(SIM_DRIVERS) $(SIM_NVML) $(SIM_CUBLAS) $(SIM_CUDART) $(SIM_DEMO)

$(SIM)/obj/%.o: tests/sim/%.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -c -o $@ $<

# libcuda: plain symbols; the older ones lack what CUDA 12.3 and 12.4, and 12, brought.
$(SIM)/driver-12.0/libcuda.map: SIM_LACKS := cuGraphNodeGetDependentNodes_v2 cuKernelGetParamInfo
$(SIM)/driver-old/libcuda.map: SIM_LACKS := cuLibraryLoadData cuLibraryUnload cuLibraryGetKernel cuKernelGetFunction \
                                            cuKernelSetAttribute cuKernelGetAttribute cuGraphNodeGetDependentNodes_v2 \
                                            cuKernelGetParamInfo
$(SIM_DRIVERS:.so.1=.map): %.map: tests/sim/rules.mk
	@mkdir -p $(@D)
	echo '{ global: cu*; sim_*; local: $(SIM_LACKS:%=%;) *; };' > $@
$(SIM_DRIVERS): %/libcuda.so.1: $(foreach o,$(SIM_SHARED) $(SIM_DRIVER),$(SIM)/obj/$(o).o) $(LIBGS) %/libcuda.map
	$(CC) $(SAN_FLAGS) -shared -o $@ -Wl,-soname,libcuda.so.1 -Wl,--version-script=$*/libcuda.map $(filter %.o,$^) $(LIBGS) \
	  -lm -lpthread

$(SIM_NVML): $(SIM)/obj/nvml.o
	@mkdir -p $(@D)
	$(CC) $(SAN_FLAGS) -shared -o $@ -Wl,-soname,$(@F) $^

# libcublas and libcublasLt, once per major: every symbol in a version node named after its library.
define SIM_MAJOR_RULES
$(SIM)/obj$(1)/%.o: tests/sim/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(SIM_CFLAGS) -DSIM_MAJOR=$(1) -c -o $$@ $$<

$(SIM)/cuda$(1)/%.map:
	@mkdir -p $$(@D)
	echo '$$*.so.$(1) { global: cublas*; sim_*; local: *; };' > $$@

$(SIM)/cuda$(1)/libcublasLt.so.$(1): $(foreach o,lt lt_objects handle $(SIM_SHARED),$(SIM)/obj$(1)/$(o).o) \
    $(SIM)/cuda$(1)/libcublasLt.map
	$$(CC) $(SAN_FLAGS) -shared -o $$@ -Wl,-soname,$$(@F) -Wl,--version-script=$(SIM)/cuda$(1)/libcublasLt.map \
	  $$(filter %.o,$$^) -ldl -lm -lpthread

$(SIM)/cuda$(1)/libcublas.so.$(1): $(foreach o,cublas handle $(SIM_SHARED),$(SIM)/obj$(1)/$(o).o) \
    $(SIM)/cuda$(1)/libcublas.map $(SIM)/cuda$(1)/libcublasLt.so.$(1)
	$$(CC) $(SAN_FLAGS) -shared -o $$@ -Wl,-soname,$$(@F) -Wl,--version-script=$(SIM)/cuda$(1)/libcublas.map \
	  -Wl,-rpath,'$$$$ORIGIN' $$(filter %.o,$$^) $(SIM)/cuda$(1)/libcublasLt.so.$(1) -ldl -lm -lpthread

$(SIM)/cuda$(1)/libcudart.map:
	@mkdir -p $$(@D)
	echo 'libcudart.so.$(1) { global: cuda*; sim_*; local: *; };' > $$@
$(SIM)/cuda$(1)/libcudart.so.$(1): $(SIM)/obj$(1)/cudart.o $(SIM)/cuda$(1)/libcudart.map
	$$(CC) $(SAN_FLAGS) -shared -o $$@ -Wl,-soname,$$(@F) -Wl,--version-script=$(SIM)/cuda$(1)/libcudart.map \
	  $$(filter %.o,$$^) -ldl
endef
$(foreach v,12 13,$(eval $(call SIM_MAJOR_RULES,$(v))))

# The demo is an ordinary CUDA program: it would run on a GPU, linked with the real libraries.
$(SIM_DEMO): tests/sim/demo.c $(SIM)/cuda13/libcublas.so.13 $(SIM)/driver/libcuda.so.1
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror $(SAN_FLAGS) -MMD -MP -isystem $(CUDA_HOME)/include -o $@ $< \
	  $(SIM)/cuda13/libcublas.so.13 $(SIM)/cuda13/libcublasLt.so.13 $(SIM)/driver/libcuda.so.1 -lm

.SECONDARY: $(SIM_DRIVERS:.so.1=.map)
-include $(wildcard $(SIM)/obj/*.d $(SIM)/obj12/*.d $(SIM)/obj13/*.d $(SIM)/*.d)
