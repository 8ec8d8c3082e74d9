#include "cli/import/named.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/held.h"
#include "base/log.h"
#include "symbols/helper.h"

struct import_names {
    const struct config *config;
    struct symbols_sources sources; /* with the time that a profile may wait */
    struct symbols_helper *helper;
    struct log *log; /* says why names are missing */
    struct naming *naming;
};

struct import_names *import_names_new(const struct config *config, struct err *err)
{
    const struct symbols_settings *s = &config->symbols;
    if (s->sources.debuginfod.n + s->sources.directories.n == 0) {
        return NULL;
    }
    struct import_names *names = calloc(1, sizeof(*names));
    if (names == NULL) {
        err_memory(err);
        return NULL;
    }
    const struct symbols_helper_options options = {
        .max_memory = s->max_memory,
        .max_file = s->max_file_size,
        .timeout_ms = (unsigned)s->timeout_ms,
        .sandbox = true,
    };
    names->config = config;
    names->sources = s->sources;
    names->sources.wait_ms = s->timeout_ms;
    names->log = log_new(STDERR_FILENO, LOG_WARN, config->log.format);
    names->helper = names->log != NULL ? symbols_helper_start(&options, err) : NULL;
    if (names->helper == NULL) {
        (void)(names->log != NULL || err_memory(err));
        return import_names_free(names);
    }
    return names;
}

bool import_names_open(struct import_names *names, struct loop *loop, struct err *err)
{
    if (names == NULL) {
        return true;
    }
    const struct naming_options options = {
        .config = names->config, .loop = loop, .log = names->log, .helper = names->helper};
    names->naming = naming_new(&options, err);
    return names->naming != NULL;
}

struct import_names *import_names_free(struct import_names *names)
{
    if (names != NULL) {
        naming_free(names->naming);
        symbols_helper_stop(names->helper);
        log_free(names->log);
        free(names);
    }
    return NULL;
}

void import_names_add(struct import_names *names, char **data, size_t *size)
{
    char *named = NULL;
    size_t n = 0;
    if (names == NULL) {
        return;
    }
    const struct naming_source source = {.sources = &names->sources, .owner = names->config};
    if (held_name(names->naming, &source, (struct sv){*data, *size}, &named, &n)) {
        free(*data);
        *data = named;
        *size = n;
    }
}
