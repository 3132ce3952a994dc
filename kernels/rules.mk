# Kernels: one fatbin a line of mma.def, direct.def, rows.def (sm_80 and sm_90a machine code, compressed, no PTX), wgmma.def and strip.def (sm_90a),
# embedded in registry.o; the FP64 reference; the kernels' source as C for the CPU (tests). Fatbins are the same
# for every kind of host build, so they lie under build/ whatever BUILD is.
BUILD     ?= build
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CC        ?= gcc
CFLAGS    ?= -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Werror
DEPFLAGS  ?= -MMD -MP

FATBINS   := build/kernels
FAMILIES  := mma direct wgmma rows strip
# "GS_MMA(128, 64, 32, 4, 4, 16)" -> mma_128x64x32_s4_w4; align 2 -> ..._v2
# "GS_DIRECT(16, 8, 4, 8, 1)"     -> direct_16x8_u4_w8_sw; swap 0 -> without _sw
# "GS_ROWS(2, 1, 4, 8)"           -> rows_2x1_u4_w8
SHIPPED := $(shell sed -n 's/^\(GS_[A-Z]*\)(\(.*\))$$/\1,\2/p' $(FAMILIES:%=kernels/%.def) | tr -d ' ' | awk -F, '\
  $$1 == "GS_MMA" { print "mma_" $$2 "x" $$3 "x" $$4 "_s" $$5 "_w" $$6 ($$7 == 2 ? "_v2" : "") } \
  $$1 == "GS_WGMMA" { print "wgmma_" $$2 "x" $$3 "x" $$4 "_s" $$5 "_w" $$6 } \
  $$1 == "GS_STRIP" { print "strip_" $$2 "x" $$3 "x" $$4 "_s" $$5 "_w" $$6 } \
  $$1 == "GS_DIRECT" { print "direct_" $$2 "x" $$3 "_u" $$4 "_w" $$5 ($$6 == 1 ? "_sw" : "") } \
  $$1 == "GS_ROWS" { print "rows_" $$2 "x" $$3 "_u" $$4 "_w" $$5 }')
SHIPPED_FATBINS := $(SHIPPED:%=$(FATBINS)/%.fatbin)

KERNEL_OBJS   := $(BUILD)/kernels/registry.o
REF_OBJS      := $(BUILD)/kernels/gemm_ref.o
EMULATED_OBJS := $(BUILD)/kernels/emulate.o $(BUILD)/kernels/emulate_wgmma.o $(SHIPPED:%=$(BUILD)/kernels/emulated_%.o)

# The constants that a family wants, from the name of a tile with its family: "mma 128 64 32 s4 w4".
field = $(word $(2),$(subst x, ,$(subst _, ,$(1))))
tile_flags = -DGS_TILE=$(patsubst $(call field,$(1),1)_%,%,$(1)) -DGS_BM=$(call field,$(1),2) \
  $(call $(call field,$(1),1)_flags,$(1))
columns_flag = -DGS_BN=$(call field,$(1),3)
steps_flags = -DGS_BK=$(call field,$(1),4) -DGS_STAGES=$(patsubst s%,%,$(call field,$(1),5)) \
  -DGS_WARPS=$(patsubst w%,%,$(call field,$(1),6)) -DGS_ALIGN=$(if $(filter %_v2,$(1)),2,16)
mma_flags = $(columns_flag) $(steps_flags)
wgmma_flags = -DGS_IS_WGMMA $(mma_flags)
strip_flags = -DGS_IS_WGMMA -DGS_IS_STRIP -DGS_BN=64 '-DGS_SLICES=($(call field,$(1),3)/64)' $(steps_flags)
loads_flags = $(columns_flag) -DGS_STAGES=$(patsubst u%,%,$(call field,$(1),4)) -DGS_WARPS=$(patsubst w%,%,$(call field,$(1),5))
direct_flags = -DGS_IS_DIRECT $(loads_flags) -DGS_SWAP=$(if $(filter %_sw,$(1)),1,0)
rows_flags = -DGS_IS_ROWS $(loads_flags)

NVCC_FLAGS := -std=c++17 -Iinclude --fatbin -gencode arch=compute_90a,code=sm_90a -Xptxas -v \
  -Xfatbin -compress-all -Werror all-warnings
SM_80 := -gencode arch=compute_80,code=sm_80
FOR_HOPPER := wgmma strip
$(foreach family,$(FOR_HOPPER),$(eval $(FATBINS)/$(family)_%.fatbin: SM_80 :=))
# What ptxas says (registers, spills) is kept beside the fatbin for check-sass, and shown when it fails. The
# fatbin appears whole or not at all.
nvcc_fatbin = $(NVCC) $(NVCC_FLAGS) $(SM_80) $(1) -MD -MP -MT $@ -MF $@.d -o $@.$$$$ $< \
  > $(@:.fatbin=.ptxas) 2>&1 && mv $@.$$$$ $@ || { cat $(@:.fatbin=.ptxas) >&2; rm -f $@.$$$$; exit 1; }

define family_rules
$(FATBINS)/$(1)_%.fatbin: kernels/$(1).cu kernels/rules.mk
	@mkdir -p $$(@D)
	@echo "nvcc $$@"
	@$$(call nvcc_fatbin,$$(call tile_flags,$(1)_$$*))
# For check-sass where there is no cuobjdump.
$(FATBINS)/$(1)_%.ptx: kernels/$(1).cu kernels/*.cuh
	$$(NVCC) -std=c++17 -Iinclude -ptx -arch=compute_$(if $(filter $(FOR_HOPPER),$(1)),90a,80) $$(call tile_flags,$(1)_$$*) -o $$@ $$<
endef
$(foreach family,$(FAMILIES),$(eval $(call family_rules,$(family))))

$(FATBINS)/gemm_ref.fatbin: kernels/gemm_ref.cu kernels/rules.mk
	@mkdir -p $(@D)
	@echo "nvcc $@"
	@$(call nvcc_fatbin)

$(BUILD)/kernels/%.o: kernels/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Iinclude -Ikernels -DGS_FATBINS='"$(FATBINS)"' $(DEPFLAGS) -c -o $@ $<
$(KERNEL_OBJS): $(SHIPPED_FATBINS)
$(REF_OBJS): $(FATBINS)/gemm_ref.fatbin

# The kernels' own source as C: unit tests run it without a GPU.
$(BUILD)/kernels/emulated_%.o: kernels/emulated.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Iinclude -Ikernels -DGS_EMULATE -DGS_NAME=$* $(call tile_flags,$*) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/tests/unit/unit: $(EMULATED_OBJS)

# The command line carries the sources, for NVRTC.
$(BUILD)/tools/generate.o: $(FAMILIES:%=kernels/%.cu) $(wildcard kernels/*.cuh) kernels/tiles.h

# cuobjdump, and nvdisasm which it calls, are not in every toolkit; NVIDIA publishes them as Python packages.
build/tools/cuobjdump: kernels/cuobjdump.txt
	@mkdir -p build/tools/cuobjdump.d
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --no-deps --upgrade --require-hashes --target build/tools/cuobjdump.d \
	  -r kernels/cuobjdump.txt
	cd build/tools && ln -sf $$(find cuobjdump.d -name nvdisasm -type f) $$(find cuobjdump.d -name cuobjdump -type f) .

## check-sass: no spills, no stack frame, F32 accumulation in every shipped kernel
.PHONY: check-sass
check-sass: $(SHIPPED_FATBINS)
	@NVCC="$(NVCC)" CUDA_HOME="$(CUDA_HOME)" kernels/check_sass.sh $(SHIPPED_FATBINS)

KERNEL_DEPS := $(SHIPPED_FATBINS:=.d) $(FATBINS)/gemm_ref.fatbin.d \
  $(KERNEL_OBJS:.o=.d) $(REF_OBJS:.o=.d) $(EMULATED_OBJS:.o=.d)
$(KERNEL_DEPS): ;
-include $(KERNEL_DEPS)
