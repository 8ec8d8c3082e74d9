#include <curl/curl.h>
#include <event2/event.h>
#include <isa-l.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdio.h>
#include <yaml.h>
#include <zlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cli/cmd.h"

struct version_args {
    bool json;
};

static int print_json(const char *pcre2)
{
    char isal[40];
    (void)snprintf(isal, sizeof(isal), "%d.%d.%d", ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION,
                   ISAL_PATCH_VERSION);
    json_t *root =
        json_pack("{s:s, s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "version", PROFPULL_VERSION,
                  "libraries", "libcurl", curl_version_info(CURLVERSION_NOW)->version, "libevent",
                  event_get_version(), "pcre2", pcre2, "zlib", zlibVersion(), "libdeflate",
                  LIBDEFLATE_VERSION_STRING, "isa-l", isal, "jansson", jansson_version_str(),
                  "libyaml", yaml_get_version_string());
    bool ok = root != NULL && json_dumpf(root, stdout, JSON_INDENT(2)) == 0;
    json_decref(root);
    puts("");
    return ok ? EXIT_DONE : EXIT_INPUT;
}

static int run_version(const void *arg, char *const *operands, size_t n)
{
    const struct version_args *args = arg;
    (void)operands;
    (void)n;
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    if (args->json) {
        return print_json(pcre2);
    }
    printf("profpull %s\n", PROFPULL_VERSION);
    printf("libcurl %s, libevent %s, PCRE2 %s, zlib %s, libdeflate %s, ISA-L %d.%d.%d, jansson %s, "
           "libyaml %s\n",
           curl_version_info(CURLVERSION_NOW)->version, event_get_version(), pcre2, zlibVersion(),
           LIBDEFLATE_VERSION_STRING, ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION,
           jansson_version_str(), yaml_get_version_string());
    return EXIT_DONE;
}

static const struct flag flags[] = {
    FLAG(BOOL, "json", 0, version_args, json, NULL, "print JSON"),
};

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "version [--json]",
    .description = "Prints the version, and on a second line those of the libraries in it.",
    .exit_codes = "Exit code: 0 done, 2 usage.",
    COMMAND_FLAGS(flags, version_args),
    .run = run_version,
};
