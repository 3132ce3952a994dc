# libFuzzer over the parsers: clang and its runtime are needed for `make fuzz` alone. The corpus lies in the source tree;
# what a run adds goes to $(BUILD)/fuzz, and what breaks a promise is left there as crash-*.
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_TARGETS := table calls options operands
FUZZ_DIR     := $(BUILD)/fuzz
# Instrumented anew; all else comes from the archive.
FUZZ_SOURCES := tests/fuzz/targets.c src/table.c src/gemm.c src/algo.c src/options.c tools/calls.c tools/histfile.c tools/tools.c \
                tools/operands.c tools/gate.c tools/json.c tools/progress.c

$(FUZZ_TARGETS:%=$(FUZZ_DIR)/%): $(FUZZ_DIR)/%: $(FUZZ_SOURCES) $(wildcard src/*.h tools/*.h include/*.h) $(LIBGS)
	@mkdir -p $(@D)
	$(FUZZ_CC) -std=gnu11 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -w $(CPPFLAGS) -Itools \
	  -DFUZZ_TARGET=fuzz_$* -o $@ $(FUZZ_SOURCES) $(LIBGS) -lcjson -lm -ldl -lpthread

## fuzz: the parsers of tables, .calls files, options and dumped operands under libFuzzer, FUZZ_SECONDS each
.PHONY: fuzz
fuzz: $(FUZZ_TARGETS:%=$(FUZZ_DIR)/%)
	@set -e; for target in $(FUZZ_TARGETS); do echo "== $$target"; mkdir -p $(FUZZ_DIR)/corpus/$$target; \
	  $(FUZZ_DIR)/$$target -max_total_time=$(FUZZ_SECONDS) -max_len=16384 -timeout=10 -close_fd_mask=2 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ_DIR)/$$target- $(FUZZ_DIR)/corpus/$$target tests/fuzz/$$target 2>&1 | \
	    grep -E 'ERROR|SUMMARY|Test unit written|stat::(number|average)|cov:.*DONE' ; \
	  if ls $(FUZZ_DIR)/$$target-* 2> /dev/null; then exit 1; fi; done
