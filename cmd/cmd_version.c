#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <yaml.h>
#include <zlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cmd/cmd.h"

int cmd_version(int argc, char **argv)
{
    if (argc > 1) {
        return cmd_usage_error(argv[0], "unexpected argument: %s", argv[1]);
    }
    char pcre2[64];
    pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    printf("profpull %s\n", PROFPULL_VERSION);
    printf("libcurl %s, libevent %s, PCRE2 %s, zlib %s, jansson %s, libyaml %s\n",
           curl_version_info(CURLVERSION_NOW)->version, event_get_version(), pcre2, zlibVersion(),
           jansson_version_str(), yaml_get_version_string());
    return EXIT_DONE;
}
