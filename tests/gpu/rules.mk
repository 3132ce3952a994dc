# verify, kernels and tune on the CPU stand-ins: more tests for the command line's runner (tests/cli).
$(BUILD)/tests/gpu/%.o: tests/gpu/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 $(OPT) -Wall -Wextra -Werror -Iinclude -Isrc -Itools -Itests/cli -MMD -MP -c -o $@ $<
$(CLI_RUNNER): $(BUILD)/tests/gpu/test_standin.o

-include $(BUILD)/tests/gpu/test_standin.d
