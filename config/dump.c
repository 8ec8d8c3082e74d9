/* Writes a configuration as normalised YAML: every row of the schemas except optional ones that
 * have their default. Texts are quoted, "${" in them is escaped, secrets become "<secret>". */
#include "config/dump.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/utf8.h"
#include "config/parts.h"

#define SECRET "<secret>"
/* The longest document that is only hashed. */
#define DUMP_MAX ((size_t)256 * 1024 * 1024)

struct dumper {
    yaml_emitter_t emitter;
    const struct config *config;
    struct buf *out;
    bool hashes; /* texts and secrets are written as hashes */
    bool failed;
};

const struct config *dump_config(const struct dumper *d)
{
    return d->config;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int append_output(void *arg, unsigned char *text, size_t n)
{
    struct dumper *d = arg;
    buf_append(d->out, text, n);
    return buf_ok(d->out);
}

/* Emits an event. ok: false if the event could not be made. */
static void emit(struct dumper *d, yaml_event_t *event, int ok)
{
    if (ok && d->failed) {
        yaml_event_delete(event);
    }
    d->failed = d->failed || !ok || !yaml_emitter_emit(&d->emitter, event);
}

static void put_scalar(struct dumper *d, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;
    size_t n = strlen(text);
    bool fits = n <= INT_MAX;
    emit(d, &event,
         fits && yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)n,
                                              1, 1, style));
}

static void put_key(struct dumper *d, const char *key)
{
    if (key != NULL) {
        put_scalar(d, key, YAML_PLAIN_SCALAR_STYLE);
    }
}

void dump_begin_mapping(struct dumper *d, const char *key)
{
    yaml_event_t event;
    put_key(d, key);
    emit(d, &event,
         yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE));
}

void dump_end_mapping(struct dumper *d)
{
    yaml_event_t event;
    emit(d, &event, yaml_mapping_end_event_initialize(&event));
}

void dump_begin_list(struct dumper *d, const char *key, bool flow)
{
    yaml_event_t event;
    put_key(d, key);
    emit(d, &event,
         yaml_sequence_start_event_initialize(
             &event, NULL, NULL, 1, flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
}

void dump_end_list(struct dumper *d)
{
    yaml_event_t event;
    emit(d, &event, yaml_sequence_end_event_initialize(&event));
}

/* ---- values ---------------------------------------------------------------------------------- */

void dump_word(struct dumper *d, const char *key, const char *word)
{
    put_key(d, key);
    put_scalar(d, word, YAML_PLAIN_SCALAR_STYLE);
}

void dump_number(struct dumper *d, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    dump_word(d, key, text);
}

void dump_duration(struct dumper *d, const char *key, int64_t ms)
{
    char text[32];
    format_duration_ms(ms, text, sizeof(text));
    dump_word(d, key, text);
}

static void put_hash(struct dumper *d, const char *text)
{
    char hash[48];
    snprintf(hash, sizeof(hash), "%zu/%016" PRIx64, strlen(text),
             hash_bytes(text, strlen(text), 0));
    put_scalar(d, hash, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* Writes a text that may hold bytes that YAML cannot, such as a name from the command line. */
static void put_quoted(struct dumper *d, const char *text)
{
    if (d->hashes) {
        put_hash(d, text);
        return;
    }
    struct buf valid;
    buf_init(&valid, d->out->max);
    d->failed = !utf8_repair(sv_from(text), &valid) || d->failed;
    put_scalar(d, valid.data, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    buf_done(&valid);
}

void dump_name(struct dumper *d, const char *name)
{
    put_quoted(d, name);
}

/* Appends a URL without its password, which is before the last "@" of its authority, and without
 * its query, which may hold a token. */
static void hide_in_url(struct buf *out, const char *url)
{
    const char *slashes = strstr(url, "//");
    const char *authority = slashes == NULL ? url : slashes + 2;
    const char *query = strchr(authority, '?');
    const char *at = authority + strcspn(authority, "/?#");
    while (at > authority && *at != '@') {
        at--;
    }
    buf_append(out, url, (size_t)(authority - url));
    if (*at == '@') {
        buf_puts(out, SECRET);
        authority = at;
    }
    if (query == NULL) {
        buf_puts(out, authority);
    } else {
        buf_append(out, authority, (size_t)(query + 1 - authority));
        buf_puts(out, SECRET);
    }
}

static void escape_variables(struct buf *out, const char *text)
{
    for (const char *dollar; (dollar = strstr(text, "${")) != NULL; text = dollar + 2) {
        buf_append(out, text, (size_t)(dollar - text));
        buf_puts(out, "$${");
    }
    buf_puts(out, text);
}

void dump_text(struct dumper *d, const char *key, const struct text_kind *kind, const char *text)
{
    if (kind->word) {
        dump_word(d, key, text);
        return;
    }
    if (d->hashes) {
        put_key(d, key);
        put_hash(d, text);
        return;
    }
    struct buf shown;
    struct buf escaped;
    buf_init(&shown, d->out->max);
    buf_init(&escaped, d->out->max);
    if (kind->secret) {
        text = SECRET;
    } else if (kind->url) {
        hide_in_url(&shown, text);
        text = shown.data;
    }
    if (!kind->raw) {
        escape_variables(&escaped, text);
        text = escaped.data;
    }
    d->failed = d->failed || !buf_ok(&shown) || !buf_ok(&escaped);
    put_key(d, key);
    put_quoted(d, text);
    buf_done(&shown);
    buf_done(&escaped);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool dump(struct dumper *d, const struct schema *schema, const void *record,
                 dump_record *write)
{
    yaml_event_t event;
    if (!yaml_emitter_initialize(&d->emitter)) {
        return false;
    }
    yaml_emitter_set_output(&d->emitter, append_output, d);
    yaml_emitter_set_unicode(&d->emitter, 1);
    yaml_emitter_set_width(&d->emitter, -1);
    emit(d, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(d, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
    dump_begin_mapping(d, NULL);
    write(d, schema, record);
    dump_end_mapping(d);
    emit(d, &event, yaml_document_end_event_initialize(&event, 1));
    emit(d, &event, yaml_stream_end_event_initialize(&event));
    yaml_emitter_delete(&d->emitter);
    return !d->failed && buf_ok(d->out);
}

bool dump_document(const struct config *c, const struct schema *schema, const void *record,
                   dump_record *write, struct buf *out)
{
    struct dumper d = {.config = c, .out = out};
    return dump(&d, schema, record, write);
}

bool dump_hash(const struct config *c, const struct schema *schema, const void *record,
               dump_record *write, uint64_t *ret_hash)
{
    struct buf text;
    buf_init(&text, DUMP_MAX);
    struct dumper d = {.config = c, .out = &text, .hashes = true};
    bool ok = dump(&d, schema, record, write);
    *ret_hash = ok ? hash_bytes(text.data, text.len, 0) : 0;
    buf_done(&text);
    return ok;
}
