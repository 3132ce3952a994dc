"""One product through ctypes, which looks cuBLAS up by handle; prints "status: N"."""
import ctypes

cublas = ctypes.CDLL("libcublas.so.13")
handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
assert cublas.cublasCreate_v2(ctypes.byref(handle)) == 0
memory = [ctypes.create_string_buffer(2 * 128 * 128 + 256) for _ in range(3)]
a, b, c = (ctypes.c_void_p((ctypes.addressof(m) + 255) // 256 * 256) for m in memory)
HALF, SINGLE, DEFAULT = 2, 68, -1
status = cublas.cublasGemmEx(handle, 1, 0, 128, 8, 128, ctypes.byref(one), a, HALF, 128, b, HALF, 128,
                             ctypes.byref(zero), c, HALF, 128, SINGLE, DEFAULT)
print(f"status: {status}")
