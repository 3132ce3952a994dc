# Kernels: one fatbin a line of mma.def (sm_80 and sm_90a machine code, compressed, no PTX), embedded in
# registry.o; the FP64 reference; the kernels' source as C for the CPU (tests). Fatbins are the same for every
# kind of host build, so they lie under build/ whatever BUILD is.
BUILD     ?= build
CUDA_HOME ?= /usr/local/cuda
NVCC      ?= $(CUDA_HOME)/bin/nvcc
CC        ?= gcc
CFLAGS    ?= -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Werror
DEPFLAGS  ?= -MMD -MP

FATBINS   := build/kernels
# "GS_MMA(128, 64, 32, 4, 4, 16)" -> 128x64x32_s4_w4; align 2 -> ..._v2
MMA_TILES := $(shell sed -n 's/^GS_MMA( *\([0-9]*\), *\([0-9]*\), *\([0-9]*\), *\([0-9]*\), *\([0-9]*\), *\([0-9]*\)).*/\1x\2x\3_s\4_w\5_v\6/p' kernels/mma.def | sed 's/_v16$$//')
MMA_FATBINS := $(MMA_TILES:%=$(FATBINS)/mma_%.fatbin)

KERNEL_OBJS   := $(BUILD)/kernels/registry.o
REF_OBJS      := $(BUILD)/kernels/gemm_ref.o
EMULATED_OBJS := $(BUILD)/kernels/emulate.o $(MMA_TILES:%=$(BUILD)/kernels/emulated_%.o)

# The constants that gemm_mma.cuh wants, from a tile's name.
tile_field = $(word $(2),$(subst x, ,$(subst _, ,$(1))))
tile_flags = -DGS_TILE=$(1) -DGS_BM=$(call tile_field,$(1),1) -DGS_BN=$(call tile_field,$(1),2) \
  -DGS_BK=$(call tile_field,$(1),3) -DGS_STAGES=$(patsubst s%,%,$(call tile_field,$(1),4)) \
  -DGS_WARPS=$(patsubst w%,%,$(call tile_field,$(1),5)) -DGS_ALIGN=$(if $(filter %_v2,$(1)),2,16)

NVCC_FLAGS := -std=c++17 -Iinclude --fatbin -gencode arch=compute_80,code=sm_80 \
  -gencode arch=compute_90a,code=sm_90a -Xptxas -v -Xfatbin -compress-all -Werror all-warnings
# What ptxas says (registers, spills) is kept beside the fatbin for check-sass, and shown when it fails. The
# fatbin appears whole or not at all.
nvcc_fatbin = $(NVCC) $(NVCC_FLAGS) $(1) -MD -MP -MT $@ -MF $@.d -o $@.$$$$ $< \
  > $(@:.fatbin=.ptxas) 2>&1 && mv $@.$$$$ $@ || { cat $(@:.fatbin=.ptxas) >&2; rm -f $@.$$$$; exit 1; }

$(FATBINS)/mma_%.fatbin: kernels/mma.cu kernels/rules.mk
	@mkdir -p $(@D)
	@echo "nvcc $@"
	@$(call nvcc_fatbin,$(call tile_flags,$*))

# For check-sass where there is no cuobjdump.
$(FATBINS)/mma_%.ptx: kernels/mma.cu kernels/*.cuh
	$(NVCC) -std=c++17 -Iinclude -ptx -arch=compute_80 $(call tile_flags,$*) -o $@ $<

$(FATBINS)/gemm_ref.fatbin: kernels/gemm_ref.cu kernels/rules.mk
	@mkdir -p $(@D)
	@echo "nvcc $@"
	@$(call nvcc_fatbin)

$(BUILD)/kernels/%.o: kernels/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Iinclude -Ikernels -DGS_FATBINS='"$(FATBINS)"' $(DEPFLAGS) -c -o $@ $<
$(KERNEL_OBJS): $(MMA_FATBINS)
$(REF_OBJS): $(FATBINS)/gemm_ref.fatbin

# The kernels' own source as C: unit tests run it without a GPU.
$(BUILD)/kernels/emulated_%.o: kernels/emulated.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Iinclude -Ikernels -DGS_EMULATE $(call tile_flags,$*) $(DEPFLAGS) -c -o $@ $<
$(BUILD)/tests/unit/unit: $(EMULATED_OBJS)

# cuobjdump, and nvdisasm which it calls, are not in every toolkit; NVIDIA publishes them as Python packages.
build/tools/cuobjdump:
	@mkdir -p build/tools/cuobjdump.d
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --no-deps --upgrade --target build/tools/cuobjdump.d \
	  nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm
	cd build/tools && ln -sf $$(find cuobjdump.d -name nvdisasm -type f) $$(find cuobjdump.d -name cuobjdump -type f) .

## check-sass: no spills, no stack frame, F32 accumulation in every shipped kernel
.PHONY: check-sass
check-sass: $(MMA_FATBINS)
	@NVCC="$(NVCC)" CUDA_HOME="$(CUDA_HOME)" kernels/check_sass.sh $(MMA_FATBINS)

KERNEL_DEPS := $(MMA_FATBINS:=.d) $(FATBINS)/gemm_ref.fatbin.d \
  $(KERNEL_OBJS:.o=.d) $(REF_OBJS:.o=.d) $(EMULATED_OBJS:.o=.d)
$(KERNEL_DEPS): ;
-include $(KERNEL_DEPS)
