/* gemmshim doctor, on the stand-ins: their driver is as new as the kernels, their one GPU has a table. */
#include "cli.h"

#include <unistd.h>

SUITE(doctor);

/* A machine that lacks nothing. */
#define WELL "LD_LIBRARY_PATH=$SIM GEMMSHIM_TABLE=$TABLE"

/* The first finding of that topic whose text holds part. */
static const cJSON *finding(const cJSON *root, const char *topic, const char *part) {
  const cJSON *item;
  cJSON_ArrayForEach(item, json_at(root, "findings")) {
    if (!strcmp(string_at(item, "topic"), topic) && strstr(string_at(item, "text"), part)) return item;
  }
  cr_assert(false, "no finding on %s with \"%s\" in %s", topic, part, cJSON_Print(root));
  return NULL;
}

static cJSON *doctor(const char *environment, const char *arguments, int status) {
  result_t r = sh("%s $G doctor --json %s", environment, arguments);
  STATUS(r, status);
  cJSON *root = json(r.out);
  cr_assert(cJSON_IsBool(json_at(root, "healthy")));
  cr_assert(cJSON_IsTrue(json_at(root, "healthy")) == (status == 0));
  return root;
}

static const char *state(const cJSON *root, const char *topic, const char *part) {
  return string_at(finding(root, topic, part), "state");
}

Test(doctor, a_machine_that_lacks_nothing) {
  cJSON *root = doctor(WELL, "", 0);
  cr_assert_str_eq(state(root, "driver", "CUDA 13"), "ok");
  cr_assert_str_eq(state(root, "GPU", "gemmshim CPU stand-in, sm_90, 132 SMs"), "ok");
  cr_assert_str_eq(state(root, "cuBLAS", "13.1.0, "), "ok");
  cr_assert_str_eq(state(root, "table", "GEMMSHIM_TABLE names it"), "ok");
  cr_assert_str_eq(state(root, "table", "proven with cuBLAS 13.1.0"), "ok");
  STATUS(sh(WELL " $G doctor"), 0);
}

Test(doctor, your_own_table_comes_before_the_built_in_one) {
  STATUS(sh("mkdir -p .config/gemmshim; cp $TABLE .config/gemmshim/gemmshim-cpu-stand-in.table"), 0);
  finding(doctor("LD_LIBRARY_PATH=$SIM", "", 0), "table", "your own for this GPU");
}

Test(doctor, no_table_for_the_gpu) {
  cJSON *root = doctor("LD_LIBRARY_PATH=$SIM", "", GS_EXIT_FALSE);
  HAS(string_at(finding(root, "table", "none"), "advice"), "gemmshim tune");
}

Test(doctor, built_in_table_by_the_gpus_name) {
  result_t r = sh("LD_LIBRARY_PATH=$SIM SIM_GPU='NVIDIA H200' $G doctor --json");
  finding(json(r.out), "table", "built-in nvidia-h200 (you have none of your own for this GPU)");
}

Test(doctor, a_table_that_is_refused_says_why) {
  STATUS(sh("sed 's/^format: 1/format: 7/' $TABLE > t.table"), 0);
  cJSON *root = doctor("LD_LIBRARY_PATH=$SIM GEMMSHIM_TABLE=t.table", "", GS_EXIT_FALSE);
  finding(root, "table", "t.table:");
}

Test(doctor, another_cublas_proves_no_narrow_row) {
  cJSON *root = doctor(WELL " SIM_CUBLAS_VERSION=12.4.5", "", GS_EXIT_FALSE);
  cr_assert_str_eq(state(root, "table", "0 of them are proven with cuBLAS 12.4.5"), "bad");
}

Test(doctor, two_gpus) {
  cJSON *root = doctor(WELL " SIM_DEVICES=2", "", 0);
  finding(root, "GPU", "0: ");
  finding(root, "GPU", "1: ");
}

Test(doctor, no_usable_gpu) {
  cJSON *root = doctor(WELL " SIM_FAIL=cuInit:*=100", "", GS_EXIT_MACHINE);
  cr_assert_str_eq(state(root, "GPU", "CUDA_ERROR_NO_DEVICE"), "bad");
}

Test(doctor, an_old_driver) {
  cJSON *root = doctor("LD_LIBRARY_PATH=" GS_BUILD "/sim/driver-old", "", GS_EXIT_MACHINE);
  finding(root, "GPU", "older than CUDA 12.0");
}

/* ---- programs ---- */

Test(doctor, a_linked_program_is_reached) {
  cJSON *root = doctor(WELL, "-- $DEMO", 0);
  cr_assert_str_eq(state(root, "program", "is linked with libcublas.so.13"), "ok");
}

Test(doctor, its_own_run_path_is_followed) {
  STATUS(sh("mkdir lib; cp " GS_BUILD
            "/sim/cuda13/libcublas*.so.13 lib/; echo 'extern int cublasGemmEx(void); int "
            "main(void) { return cublasGemmEx(); }' > a.c; cc -o a a.c lib/libcublas.so.13 "
            "lib/libcublasLt.so.13 "
            "-Wl,-rpath,'$ORIGIN/lib'"),
         0);
  result_t r = sh("LD_LIBRARY_PATH=" GS_BUILD "/sim/driver $G doctor -- ./a");
  HAS(r.out, "a is linked with libcublas.so.13");
  HAS(r.out, "/lib/libcublas.so.13");
}

Test(doctor, cuBLAS_behind_a_library_of_the_program) {
  STATUS(sh("echo 'extern int cublasGemmEx(void); int f(void) { return cublasGemmEx(); }' > l.c; cc -shared "
            "-fPIC -o "
            "libl.so l.c " GS_BUILD
            "/sim/cuda13/libcublas.so.13; echo 'int f(void); int main(void) { return f(); }' > "
            "a.c; cc -o a a.c ./libl.so -Wl,--allow-shlib-undefined"),
         0);
  finding(doctor(WELL, "-- ./a", 0), "program", "libl.so is linked with ");
}

Test(doctor, L6_look_ups_by_handle_are_told) {
  STATUS(sh("echo '#include <dlfcn.h>\nint main(void) { return !dlopen(\"libcublas.so.13\", RTLD_NOW); }' > "
            "a.c; cc -o a "
            "a.c -ldl"),
         0);
  cJSON *root = doctor(WELL, "-- ./a", 0);
  cr_assert_str_eq(state(root, "program", "opens cuBLAS at run time"), "note");
}

Test(doctor, L8_static_cublas_is_out_of_reach) {
  STATUS(sh("echo 'int cublasGemmEx(void) { return 0; } int main(void) { return cublasGemmEx(); }' > a.c; cc "
            "-o a a.c"),
         0);
  finding(doctor(WELL, "-- ./a", GS_EXIT_FALSE), "program", "holds cuBLAS statically");
}

Test(doctor, programs_that_say_nothing_and_scripts) {
  finding(doctor(WELL, "-- /bin/true", 0), "program", "do not mention cuBLAS");
  STATUS(sh("printf '#!/usr/bin/env -\\n' > b; printf '#!/usr/bin/env sh\\n' > a; chmod +x a b"), 0);
  finding(doctor(WELL, "-- ./a", 0), "program", "/sh and what it is linked with");
  finding(doctor(WELL, "-- $STATIC", GS_EXIT_FALSE), "program", "statically linked");
  finding(doctor(WELL, "-- no-such-program", GS_EXIT_MACHINE), "program", "not found");
}

Test(doctor, damaged_programs_do_no_harm) {
  for (int length = 1; length < 2000; length += 97) {
    result_t r = sh("head -c %d $DEMO > a; chmod +x a; " WELL " $G doctor -- ./a", length);
    cr_assert(r.status == GS_EXIT_FALSE || r.status == 0, "%d bytes: %d %s", length, r.status, r.err);
  }
  for (int offset = 16; offset < 64; offset++) {
    result_t r = sh("cp $DEMO a; printf '\\377\\377' | dd of=a bs=1 seek=%d conv=notrunc 2> /dev/null; " WELL
                    " $G doctor -- ./a",
                    offset);
    cr_assert(r.status == GS_EXIT_FALSE || r.status == 0, "offset %d: %d %s", offset, r.status, r.err);
  }
}

/* ---- processes ---- */

Test(doctor, a_process_without_the_library) {
  result_t r = sh("sleep 60 & " WELL " $G doctor $!; status=$?; kill $!; exit $status");
  STATUS(r, GS_EXIT_FALSE);
  HAS(r.out, "gemmshim is not in process");
  HAS(r.out, "no cuBLAS is mapped (yet)");
}

Test(doctor, a_process_with_the_library_but_no_product) {
  result_t r =
      sh("LD_PRELOAD=$SHIM sleep 60 & sleep 0.2; " WELL " $G doctor $!; status=$?; kill $!; exit $status");
  STATUS(r, 0);
  HAS(r.out, "gemmshim is in process");
  HAS(r.out, "has not called a product yet");
}

/* hold.so, preloaded, keeps a process when it ends. */
static void make_hold(void) {
  static const char text[] = "#include <unistd.h>\n__attribute__((destructor)) static void hold(void) {\n"
                             "  if (write(2, \"held\\n\", 5) > 0) sleep(60);\n}\n";
  write_file("hold.c", text, sizeof text - 1);
  STATUS(sh("cc -shared -fPIC -o hold.so hold.c"), 0);
}

Test(doctor, a_process_and_its_calls) {
  make_hold();
  STATUS(sh("mkdir calls"), 0);
  result_t r = sh(
      "LD_LIBRARY_PATH=$SIM GEMMSHIM_CALLS=calls LD_PRELOAD=$SHIM:$PWD/hold.so $DEMO > out 2> err & pid=$!; "
      "while ! grep -q held err; do sleep 0.05; done; " WELL
      " $G doctor $pid; status=$?; kill $pid; exit $status");
  STATUS(r, 0);
  HAS(r.out, "gemmshim is in process");
  HAS(r.out, "/demo is linked with cuBLAS");
  HAS(r.out, "13 products seen, 0 served");
  HAS(r.out, "12 forwarded: no_table");
}

/* A process that sleeps once it has looked cuBLAS up. */
static result_t doctor_of_lookup(const char *preload) {
  return sh("rm -f err; touch err; LD_LIBRARY_PATH=$SIM LD_PRELOAD=%s:$PWD/hold.so " GS_BUILD
            "/tests/preload/lookup gemm:13:3 > out 2> err & pid=$!; while ! grep -q held err; do sleep 0.05; "
            "done; " WELL " $G doctor $pid; status=$?; kill $pid; exit $status",
            preload);
}

Test(doctor, L6_a_process_that_looks_cublas_up) {
  make_hold();
  result_t without = doctor_of_lookup("$SHIM"), with = doctor_of_lookup("$SHIM:" GS_BUILD "/" GS_HANDLES);
  STATUS(without, GS_EXIT_FALSE);
  HAS(without.out, "it is looked up by handle");
  HAS(without.out, "gemmshim run --handles");
  STATUS(with, 0);
  HAS(with.out, "is there to reach it");
}

Test(doctor, processes_that_are_not_there) {
  result_t r = sh("sh -c 'exit 0' & pid=$!; wait $pid; " WELL " $G doctor $pid");
  STATUS(r, GS_EXIT_MACHINE);
  HAS(r.out, "there is no such process");
}

/* ---- calls: each cause of a call that is not served is told, with what to do ---- */

#define CLIENT(name) GS_BUILD "/tests/preload/" name

static const struct {
  const char *environment, *command, *reason, *advice;
} causes[] = {
    {"", "$DEMO", "no_table", "gemmshim tune app.calls"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("serve"), "no_row", "gemmshim tune app.calls measures these shapes"},
    {"GEMMSHIM_TABLE=$TABLE SIM_CUBLAS_VERSION=12.4.5", "$DEMO", "unproven", "gemmshim requalify"},
    {"GEMMSHIM_TABLE=$TABLE GEMMSHIM_ROWS=0", "$DEMO", "skipped", "unset GEMMSHIM_ONLY"},
    {"GEMMSHIM_TABLE=$TABLE GEMMSHIM_SERVE=0", "$DEMO", "off", "unset GEMMSHIM_SERVE"},
    {"GEMMSHIM_TABLE=$TABLE GEMMSHIM_INVARIANT=1", "$DEMO", "batch_invariant", "CUBLAS_WORKSPACE_CONFIG"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("entries"), "entry", "cublasLtMatmul are served"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("errors"), "degenerate", "there is nothing to multiply"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("nested"), "type", "kernels multiply fp16 and bf16"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("contexts"), "context", "current before the call"},
    {"GEMMSHIM_TABLE=$TABLE", CLIENT("contexts"), "math_mode", "cublasSetMathMode"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("special"), "alignment", "multiples of 16 bytes"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("special"), "overlap", "lies over an operand"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("lt algorithms"), "autotuning", "TunableOp"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("lt aux"), "attribute", "aux outputs"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("lt gradient"), "epilogue", "with this epilogue"},
    {"GEMMSHIM_TABLE=own.table", CLIENT("lt vector_scalars"), "scalars", "vectors of scalars"},
    {"GEMMSHIM_TABLE=own.table GEMMSHIM_VRAM_MB=0", CLIENT("plain 2"), "workspace", "raise GEMMSHIM_VRAM_MB"},
    {"GEMMSHIM_TABLE=$TABLE SIM_FAIL=cuLaunchKernel:*=901", CLIENT("plain 2"), "capture",
     "before the capture"},
    {"GEMMSHIM_TABLE=$TABLE SIM_FAIL=cuLaunchKernel:*=701", CLIENT("plain 2"), "launch_failed",
     "gemmshim verify"},
    {"GEMMSHIM_TABLE=$TABLE SIM_FAIL=cuLibraryLoadData:*=209", CLIENT("plain 2"), "load_failed",
     "update the driver"},
    {"GEMMSHIM_TABLE=$TABLE LD_LIBRARY_PATH=" GS_BUILD "/sim/driver-old:$SIM", CLIENT("plain 2"), "not_ready",
     "CUDA 12.0"},
};

Test(doctor, each_cause_of_a_forwarded_call_is_told) {
  STATUS(
      sh("(grep -v '^[TN]' $TABLE; printf 'T\\tN\\t64\\t64\\tf16\\tf16\\t32f\\tdefault\\tsingle\\t1\\t32\\t"
         "mma_f16_f16_tn_64x64x64_s4_w4\\t1\\t1\\t8\\t10\\t0\\t0\\n'; printf 'T\\tN\\t128\\t128\\tf16\\tf16"
         "\\t32f\\tdefault\\tsingle\\t1\\t32\\tmma_f16_f16_tn_64x64x64_s4_w4\\t9\\t1\\t8\\t10\\t0\\t0\\n') > "
         "own.table"),
      0);
  for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
    char reason[64];
    sh("rm -rf kept; LD_LIBRARY_PATH=$SIM; export LD_LIBRARY_PATH; %s $G run --keep kept -- %s",
       causes[i].environment, causes[i].command);
    result_t r = sh(WELL " $G doctor kept");
    STATUS(r, 0);
    snprintf(reason, sizeof reason, " forwarded: %s: ", causes[i].reason);
    cr_expect(strstr(r.out, reason), "%s: no%sin %s", causes[i].command, reason, r.out);
    cr_expect(strstr(r.out, causes[i].advice), "%s: no \"%s\" in %s", causes[i].reason, causes[i].advice,
              r.out);
  }
}

Test(doctor, calls_without_reasons_captured_ones_and_none) {
  STATUS(sh("LD_LIBRARY_PATH=$SIM $G run -o app.calls -- $DEMO"), 0);
  HAS(sh(WELL " $G doctor app.calls").out, "for reasons that .calls files do not keep");
  STATUS(sh("LD_LIBRARY_PATH=$SIM $G run --keep graphs --table $TABLE -- " CLIENT("graph global")), 0);
  HAS(sh(WELL " $G doctor graphs").out, "were captured into CUDA graphs");
  STATUS(sh("mkdir none; " WELL " $G doctor none"), GS_EXIT_FALSE);
  STATUS(sh(WELL " $G doctor no-such-file"), GS_EXIT_USAGE);
}

Test(doctor, L8_a_process_that_binds_deeply) {
  make_hold();
  STATUS(sh("mkdir calls"), 0);
  result_t r = sh(
      "LD_LIBRARY_PATH=$SIM GEMMSHIM_CALLS=calls LD_PRELOAD=$SHIM:$PWD/hold.so " CLIENT("host") " -d " CLIENT(
          "plugin-13.so:plugin_run:2") " > out 2> err & pid=$!; while ! grep -q held err; do kill -0 $pid || "
                                       "exit 77; sleep 0.05; "
                                       "done; " WELL " $G doctor $pid; status=$?; kill $pid; exit $status");
  if (r.status == 77 && sh("grep -q 'incompatible with sanitizer' err").status == 0)
    cr_skip_test("the sanitizer refuses RTLD_DEEPBIND");
  HAS(r.out, "has not called a product yet");
  HAS(r.out, "RTLD_DEEPBIND");
}

Test(doctor, bundle_holds_what_was_found_and_nobodys_name) {
  STATUS(sh("mkdir secretfolder; cp $TABLE secretfolder/t.table; LD_LIBRARY_PATH=$SIM $G run --keep kept -- "
            "$DEMO"),
         0);
  result_t r = sh("umask 0; LD_LIBRARY_PATH=$SIM GEMMSHIM_TABLE=$PWD/secretfolder/t.table "
                  "CUDA_HOME=/opt/secretfolder/cuda "
                  "PASSWORD=hidden $G doctor --bundle b.tar.gz kept");
  STATUS(r, 0);
  HAS(r.err, "written: b.tar.gz");
  STATUS(sh("tar -xzf b.tar.gz"), 0);
  static const char *const wanted[] = {
      "grep -q 'gemmshim CPU stand-in' gemmshim-doctor/doctor.txt",
      "grep -q '13 products seen' gemmshim-doctor/doctor.txt",
      "grep -q '^CUDA_HOME=.../cuda$' gemmshim-doctor/environment.txt",
      "grep -q '^GEMMSHIM_TABLE=.../t.table$' gemmshim-doctor/environment.txt",
      "grep -q '^gemmshim ' gemmshim-doctor/versions.txt",
      "grep -q '^cublasGemmEx' gemmshim-doctor/calls.txt",
      "test $(grep -c 'mma_f16' gemmshim-doctor/table.txt) = 6",
      "! grep -rq -e secretfolder -e PASSWORD -e \"$(hostname)\" gemmshim-doctor",
      "test \"$(stat -c %a b.tar.gz)\" = 600",
      "test -z \"$(tar --numeric-owner -tvzf b.tar.gz | grep -v ' 0/0 ')\""};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
    cr_expect(sh("%s", wanted[i]).status == 0, "%s: %s", wanted[i], sh("grep -r '' gemmshim-doctor").out);
}

Test(doctor, T5_bundle_follows_no_link) {
  STATUS(sh("echo precious > p; ln -s p b.tar.gz; " WELL " $G doctor --bundle b.tar.gz"), GS_EXIT_FALSE);
  STATUS(sh("grep -q precious p"), 0);
  STATUS(sh(WELL " $G doctor --bundle nowhere/b.tar.gz"), GS_EXIT_FALSE);
}
