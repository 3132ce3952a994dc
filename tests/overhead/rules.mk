# The overhead of a call: $(OVERHEAD) runs under LD_PRELOAD, on the stand-ins (make bench-overhead) or a GPU.
OVERHEAD := $(BUILD)/tests/overhead/overhead

$(BUILD)/tests/overhead/overhead.o: tests/overhead/overhead.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -Itools $(DEPFLAGS) -c -o $@ $<
$(OVERHEAD): $(BUILD)/tests/overhead/overhead.o $(LIBGS)
	$(CC) $(CFLAGS) -o $@ $^ -lm -ldl -lpthread

-include $(BUILD)/tests/overhead/overhead.d
