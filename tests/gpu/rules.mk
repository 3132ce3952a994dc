# verify, kernels and tune on the CPU stand-ins: more tests for the command line's runner (tests/cli).
$(BUILD)/tests/gpu/%.o: tests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -Iinclude -Isrc -Itools -Itests/cli \
	  -DGS_BUILD='"$(abspath $(BUILD))"' -DGS_SOURCE='"$(CURDIR)"' -DGS_PEERS='"$(abspath $(BUILD)/tests/gpu)"' -MMD -MP -c -o $@ $<

# Foreign kernels for verify --peer, one wrong in each way; a word of a peer's line is an option of the compiler.
PEER_right   :=
PEER_half    := -DPEER_SUM=_Float16
PEER_corner  := -DPEER_LEAVES='i==m-1&&j==n-1'
PEER_refuses := -DPEER_FIRST='return(1)'
PEER_picks   := -DPEER_FIRST='if(k>256)return(1);puts("chatter")'
PEER_fickle  := -DPEER_FIRST='if(calls%2==0)return(1)'
PEER_drifts  := -DPEER_FIRST='if(calls%2==0)k-=1'
PEER_spills  := -DPEER_FIRST='result[(long)m*n]=1'
PEER_b_t     := -DPEER_FIRST='((_Float16*)b_t)[-1]=1'
PEER_crashes := -DPEER_FIRST='if(n==128)abort()'
PEER_leaves  := -DPEER_FIRST='if(n==128)exit(0)'
PEER_nameless := -Dgemm_peer=gemm_other
PEERS := $(patsubst %,$(BUILD)/tests/gpu/%.so,right half corner refuses picks fickle drifts spills b_t crashes leaves nameless)
$(PEERS): $(BUILD)/tests/gpu/%.so: tests/gpu/peer_sums.c tests/gpu/rules.mk
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-misleading-indentation -fPIC -shared \
	  $(PEER_$*) -o $@ $<

# Ordinary CUDA programs, as the demo is: on a GPU they run with the real libraries.
GPU_CAPTURES := $(BUILD)/tests/gpu/captures $(BUILD)/tests/gpu/vllm_start $(BUILD)/tests/gpu/relaunch $(BUILD)/tests/gpu/early
$(GPU_CAPTURES): $(BUILD)/tests/gpu/%: tests/gpu/%.c tests/gpu/product.c tests/gpu/product.h $(SIM)/cuda13/libcublas.so.13 $(SIM)/driver/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror $(SAN_FLAGS) -isystem $(CUDA_HOME)/include -o $@ $(filter %.c,$^) \
	  $(SIM)/cuda13/libcublas.so.13 $(SIM)/cuda13/libcublasLt.so.13 $(SIM)/driver/libcuda.so.1 -ldl -lpthread

# Peers that run on a GPU, right and wrong, for the step `peer` of check.sh.
GPU_PEERS := $(BUILD)/tests/gpu/mma_f32.so $(BUILD)/tests/gpu/mma_f16.so
$(BUILD)/tests/gpu/mma_f16.so: PEER_FLAGS := -DPEER_HALF
$(GPU_PEERS): tests/gpu/peer_mma.cu tests/gpu/rules.mk
	@mkdir -p $(@D)
	$(NVCC) -std=c++17 -O2 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -Werror all-warnings \
	  -Xcompiler -fPIC -shared $(PEER_FLAGS) -o $@ $<
## gpu-peers: two foreign kernels, one that sums in fp32 and one in fp16, for verify --peer on a GPU
.PHONY: gpu-peers
gpu-peers: $(GPU_PEERS)

GPU_TESTS := $(patsubst tests/gpu/%.c,$(BUILD)/tests/gpu/%.o,$(wildcard tests/gpu/test_*.c))
$(CLI_RUNNER): $(GPU_TESTS) | $(PEERS) $(GPU_CAPTURES)

-include $(GPU_TESTS:.o=.d)
