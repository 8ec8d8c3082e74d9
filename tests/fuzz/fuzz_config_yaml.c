/* Any text as a configuration: a result or errors with positions, no crash; the dump of a result
 * must load to the same. */
#include <string.h>

#include "config/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/lib/protocols.h"

#define DUMP_MAX (64 * 1024 * 1024)

static const char *env(void *arg, const char *name)
{
    (void)arg;
    return name[0] == 'A' ? "value" : NULL;
}

static const struct config_options options = {.env = env, .protocols = testing_protocols};

static struct config *parse(struct sv text)
{
    struct config_errors *errors = config_errors_new();
    struct config *c = config_parse("fuzz.yaml", text, &options, errors);
    struct buf b;
    buf_init(&b, 1024 * 1024);
    REQUIRE(config_errors_format(errors, &b) && (c == NULL) == (config_errors_count(errors) > 0));
    for (size_t i = 1; i < config_errors_count(errors); i++) {
        const struct config_pos *a = &config_errors_at(errors, i - 1)->pos;
        const struct config_pos *z = &config_errors_at(errors, i)->pos;
        REQUIRE(a->line <= z->line && (a->line != z->line || a->column <= z->column));
    }
    buf_done(&b);
    config_errors_free(errors);
    return c;
}

FUZZ(in)
{
    struct config *c = parse(in);
    if (c == NULL) {
        return;
    }
    struct buf first;
    struct buf second;
    buf_init(&first, DUMP_MAX);
    buf_init(&second, DUMP_MAX);
    if (config_dump(c, &first) && first.len <= CONFIG_FILE_MAX) {
        struct config *again = parse((struct sv){first.data, first.len});
        REQUIRE(again != NULL && config_dump(again, &second) &&
                strcmp(first.data, second.data) == 0);
        config_unref(again);
    }
    buf_done(&first);
    buf_done(&second);
    config_unref(c);
}
