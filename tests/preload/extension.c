/* Links a plugin, which links cuBLAS: two levels, as a Python extension over its own runtime library. */
int plugin_run(int calls);
int plugin_version(void);

__attribute__((visibility("default"))) int extension_run(int calls) {
  return plugin_run(calls);
}
__attribute__((visibility("default"))) int extension_version(void) {
  return plugin_version();
}
