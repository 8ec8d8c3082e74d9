#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cli/cmd.h"

static const char help[] =
    "Usage: profpull version\n"
    "\n"
    "Prints the version, and on a second line those of the libraries in it.\n";

int cmd_version(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        return cmd_help(help);
    }
    if (argc > 1) {
        return cmd_usage_error(argv[0], "unexpected argument: %s", argv[1]);
    }
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    printf("profpull %s\n", PROFPULL_VERSION);
    printf("libcurl %s, libevent %s, PCRE2 %s, zlib %s, libdeflate %s, jansson %s, libyaml %s\n",
           curl_version_info(CURLVERSION_NOW)->version, event_get_version(), pcre2, zlibVersion(),
           LIBDEFLATE_VERSION_STRING, jansson_version_str(), yaml_get_version_string());
    return EXIT_DONE;
}
