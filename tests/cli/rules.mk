# Tests of the command line: one Criterion program that runs $(BUILD)/gemmshim in folders of its own. It is never
# sanitized itself.
# Included by the top Makefile, which knows how to make $(CLI), $(SHIM) and the stand-ins.
BUILD     ?= build
CUDA_HOME ?= /usr/local/cuda
CLI       ?= $(BUILD)/gemmshim
SHIM      ?= $(BUILD)/libgemmshim.so
SIM       ?= $(BUILD)/sim
OPT       ?= -O2 -g

CLI_RUNNER := $(BUILD)/tests/cli/cli
CLI_STATIC := $(BUILD)/tests/cli/static
CLI_OBJS   := $(patsubst tests/cli/%.c,$(BUILD)/tests/cli/%.o,$(filter-out tests/cli/static.c,$(wildcard tests/cli/*.c)))

$(BUILD)/tests/cli/%.o: tests/cli/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -Iinclude -Isrc -Itools -isystem $(CUDA_HOME)/include \
	  -DGS_BUILD='"$(abspath $(BUILD))"' -DGS_SOURCE='"$(CURDIR)"' -MMD -MP -c -o $@ $<
$(CLI_RUNNER): $(CLI_OBJS) | $(CLI_STATIC) $(BUILD)/tests/preload/probe
	$(CC) -o $@ $^ -lcriterion -lcjson -lm
$(CLI_STATIC): tests/cli/static.c
	@mkdir -p $(@D)
	$(CC) -static -o $@ $<

## test-cli: the command line's tests
.PHONY: test-cli
test-cli: $(CLI_RUNNER) $(CLI) $(SHIM) $(HANDLES) $(GRAPHS) $(SIM_DEMO) $(SIM_DRIVERS) $(BUILD)/tests/preload/lookup $(BUILD)/tests/preload/probe $(BUILD)/tests/preload/replays
	$(CLI_RUNNER) -j2

-include $(wildcard $(BUILD)/tests/cli/*.d)
