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

static int run_version(const void *args, char *const *operands, size_t n)
{
    (void)args;
    (void)operands;
    (void)n;
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    printf("profpull %s\n", PROFPULL_VERSION);
    printf("libcurl %s, libevent %s, PCRE2 %s, zlib %s, libdeflate %s, ISA-L %d.%d.%d, jansson %s, "
           "libyaml %s\n",
           curl_version_info(CURLVERSION_NOW)->version, event_get_version(), pcre2, zlibVersion(),
           LIBDEFLATE_VERSION_STRING, ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION,
           jansson_version_str(), yaml_get_version_string());
    return EXIT_DONE;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "version",
    .description = "Prints the version, and on a second line those of the libraries in it.",
    .exit_codes = "Exit code: 0 done, 2 usage.",
    .run = run_version,
};
