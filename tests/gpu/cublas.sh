# For scripts that a machine with a GPU runs: sets CUBLAS, the folder of the cuBLAS that torch brings, else the
# toolkit's, and CUBLAS_FILE in it. PYTHON names the python3 with torch.
cublas_folder() {
  for folder in $("$PYTHON" -c 'import glob, os, sys
for path in sys.path: print(*glob.glob(os.path.join(path, "nvidia/*/lib")))' 2> /dev/null) \
    "${CUDA_HOME:-/usr/local/cuda}/lib64"; do
    ls "$folder"/libcublas.so.1? > /dev/null 2>&1 && { echo "$folder"; return; }
  done
}
CUBLAS=$(cublas_folder)
CUBLAS_FILE=$(ls "$CUBLAS"/libcublas.so.1? 2> /dev/null | head -1)
