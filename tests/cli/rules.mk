# Tests of the command line: one Criterion program that runs $(BUILD)/gemmshim in folders of its own.
# Included by the top Makefile, which knows how to make $(CLI), $(SHIM) and the stand-ins.
BUILD     ?= build
CUDA_HOME ?= /usr/local/cuda
LIBGS     ?= $(BUILD)/libgs.a
CLI       ?= $(BUILD)/gemmshim
SHIM      ?= $(BUILD)/libgemmshim.so
SIM       ?= $(BUILD)/sim
OPT       ?= -O2 -g

CLI_RUNNER := $(BUILD)/tests/cli/cli
CLI_STATIC := $(BUILD)/tests/cli/static
CLI_OBJS   := $(patsubst tests/cli/%.c,$(BUILD)/tests/cli/%.o,$(filter-out tests/cli/static.c,$(wildcard tests/cli/*.c)))

$(BUILD)/tests/cli/%.o: tests/cli/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror $(SAN_FLAGS) -Iinclude -Isrc -Itools -isystem $(CUDA_HOME)/include \
	  -DGS_BUILD='"$(abspath $(BUILD))"' -DGS_SOURCE='"$(CURDIR)"' -MMD -MP -c -o $@ $<
$(CLI_RUNNER): $(CLI_OBJS) $(LIBGS) | $(CLI_STATIC)
	$(CC) $(SAN_FLAGS) -o $@ $^ -lcriterion -lcjson -lm -ldl -lpthread
$(CLI_STATIC): tests/cli/static.c
	@mkdir -p $(@D)
	$(CC) -static -o $@ $<

## test-cli: the command line's tests
.PHONY: test-cli
test-cli: $(CLI_RUNNER) $(CLI) $(SHIM) $(SIM_DEMO) $(SIM_DRIVERS)
	$(CLI_RUNNER) -j2

-include $(wildcard $(BUILD)/tests/cli/*.d)
