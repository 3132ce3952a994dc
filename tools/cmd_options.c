/* gemmshim options: the library's options table, for people, for README and for programs. */
#include <getopt.h>
#include <stdio.h>

#include "json.h"
#include "options.h"
#include "tools.h"

static const char help[] = "usage: gemmshim options [--markdown|--json]\n\n"
                           "Lists the library's options. Each is an environment variable that a program "
                           "reads once, at its first product.\n\n"
                           "  --markdown  as README holds them\n"
                           "  --json      for programs\n\n"
                           "example: GEMMSHIM_LOG=1 gemmshim run -- ./app\n";

enum { MARKDOWN = 256, JSON };
static const struct option options[] = {
    {"markdown", no_argument, NULL, MARKDOWN},
    {"json", no_argument, NULL, JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static void range_of(char *buffer, size_t size, const gs_option_info_t *info) {
  if (info->is_text)
    snprintf(buffer, size, "text");
  else if (info->words[0])
    snprintf(buffer, size, "%s, %s", info->words[0], info->words[1]);
  else
    snprintf(buffer, size, "%ld..%ld", info->lo, info->hi);
}

static void print_text(void) {
  printf("%-20s %-8s %-14s %s\n", "option", "default", "values", "meaning");
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    char range[64];
    range_of(range, sizeof range, &gs_option_info[i]);
    printf("%-20s %-8s %-14s %s\n", gs_option_info[i].name, gs_option_info[i].initial, range,
           gs_option_info[i].help);
  }
}

static void print_markdown(void) {
  puts("| Option | Default | Values | Meaning |\n|---|---|---|---|");
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    const gs_option_info_t *info = &gs_option_info[i];
    char range[64];
    range_of(range, sizeof range, info);
    printf("| `%s` | %s | %s | ", info->name, info->initial, range);
    for (const char *c = info->help; *c; c++) printf(*c == '|' ? "\\|" : "%c", *c);
    puts(" |");
  }
}

static void print_json(void) {
  cJSON *root = cJSON_CreateArray();
  for (int i = 0; i < GS_OPT_COUNT; i++) {
    const gs_option_info_t *info = &gs_option_info[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "name", info->name);
    cJSON_AddStringToObject(object, "type", info->is_text ? "text" : info->words[0] ? "word" : "integer");
    cJSON_AddStringToObject(object, "default", info->initial);
    if (info->words[0]) {
      cJSON_AddItemToObject(object, "words", cJSON_CreateStringArray(info->words, 2));
    } else if (!info->is_text) {
      cJSON_AddNumberToObject(object, "lo", (double)info->lo);
      cJSON_AddNumberToObject(object, "hi", (double)info->hi);
    }
    cJSON_AddStringToObject(object, "help", info->help);
    cJSON_AddItemToArray(root, object);
  }
  gs_json_print(root);
}

int gs_cmd_options(int argc, char **argv) {
  void (*print)(void) = print_text;
  for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) switch (c) {
    case MARKDOWN:
      print = print_markdown;
      break;
    case JSON:
      print = print_json;
      break;
    case 'h':
      return gs_help(help);
    default:
      return gs_usage_option(argv, c);
    }
  if (optind < argc) return gs_usage(argv, "\"%s\": no argument is expected", argv[optind]);
  print();
  return GS_EXIT_OK;
}
