/* A profile in a file: pprof, its formats before protobuf, or a recording of Java. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/query/source.h"
#include "jfr/jfr.h"
#include "pprof/gzip.h"
#include "pprof/legacy/legacy.h"
#include "pprof/sniff.h"
#include "pprof/summary.h"

#define PART ((size_t)256 * 1024)

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_all(int fd, struct buf *ret, struct err *err)
{
    char *part = malloc(PART);
    ssize_t n = -1;
    if (part == NULL) {
        return err_memory(err);
    }
    do {
        n = read(fd, part, PART);
        if (n > 0 && !buf_append(ret, part, (size_t)n)) {
            break;
        }
    } while (n > 0 || (n < 0 && errno == EINTR));
    free(part);
    if (buf_too_big(ret)) {
        return err_set(err, ERR_LIMIT, "the file has more than %zu bytes", REMOTE_BODY_MAX);
    }
    return n == 0 || (n < 0 ? err_sys(err, "cannot read") : err_memory(err));
}

static bool read_file(const char *path, struct buf *ret, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    buf_init(ret, REMOTE_BODY_MAX);
    bool ok = fd >= 0 ? read_all(fd, ret, err) : err_sys(err, "cannot open");
    if (fd >= 0 && !is_stdin) {
        close(fd);
    }
    return ok;
}

/* A file and the profiles in it; all views are valid until content_done(). */
struct content {
    struct buf body;
    struct jfr_result recording;
    char *converted; /* an old format as pprof; NULL if it was pprof */
    struct sv profiles[JFR_PROFILES_MAX];
    size_t n;
};

static bool read_recording(struct content *c, struct err *err)
{
    struct scratch *scratch = scratch_new();
    const struct jfr_input in = {.body = {c->body.data, c->body.len}, .scratch = scratch};
    bool ok = scratch == NULL ? err_memory(err) : jfr_convert(&in, &c->recording, err);
    for (size_t i = 0; ok && i < c->recording.n; i++) {
        const struct jfr_made *made = &c->recording.made[i];
        c->profiles[c->n++] = (struct sv){made->data, made->size};
    }
    scratch_free(scratch);
    /* A damaged recording keeps what could be read. */
    return ok && (c->n > 0 || err_set(err, ERR_INPUT, "the recording has no samples"));
}

static bool convert(struct content *c, struct err *err)
{
    struct legacy_output out;
    struct sv body = {c->body.data, c->body.len};
    if (legacy_convert_one(body, 0, 0, &out, err) != LEGACY_MADE) {
        return false;
    }
    c->converted = out.data;
    c->profiles[c->n++] = (struct sv){out.data, out.size};
    return true;
}

static bool content_read(struct content *c, const char *path, struct err *err)
{
    memset(c, 0, sizeof(*c));
    bool ok = read_file(path, &c->body, err);
    struct sv body = {c->body.data, c->body.len};
    enum sniff_result kind = ok ? sniff_any(body, err) : SNIFF_EMPTY;
    if (ok && kind == SNIFF_JFR) {
        ok = read_recording(c, err);
    } else if (ok && kind == SNIFF_LEGACY) {
        ok = convert(c, err);
    } else if (ok) {
        ok = sniff_is_profile(kind);
        c->profiles[c->n++] = body;
    }
    return ok || err_wrap(err, "%s", strcmp(path, "-") == 0 ? "standard input" : path);
}

static void content_done(struct content *c)
{
    buf_done(&c->body);
    jfr_result_done(&c->recording);
    free(c->converted);
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Appends the sample types of a profile to a list. */
static bool add_types(json_t *list, struct sv body, struct scratch *scratch, struct err *err)
{
    struct pprof_summary s;
    struct sv plain;
    if (!gzip_plain(scratch, body, TOP_BYTES_MAX, 0, &plain, err) ||
        !pprof_summary_read(scratch, plain, TOP_BYTES_MAX, &s, err)) {
        return false;
    }
    for (size_t i = 0; i < s.n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        json_t *type = json_stringn(s.types[i].type_text.p, s.types[i].type_text.n);
        if (type != NULL && json_array_append_new(list, type) != 0) {
            return err_memory(err);
        }
    }
    return true;
}

static json_t *types_of(const struct sv *profiles, size_t n, struct err *err)
{
    json_t *list = json_array();
    struct scratch *scratch = scratch_new();
    bool ok = (list != NULL && scratch != NULL) || err_memory(err);
    for (size_t i = 0; i < n && ok; i++) {
        ok = add_types(list, profiles[i], scratch, err);
    }
    scratch_free(scratch);
    if (!ok) {
        json_decref(list);
    }
    return ok ? list : NULL;
}

static json_t *file_types(struct query_peer *p, const struct query_ask *ask, struct err *err)
{
    struct content c;
    (void)ask;
    json_t *list = content_read(&c, p->file, err) ? types_of(c.profiles, c.n, err) : NULL;
    content_done(&c);
    return list;
}

/* Returns true if a profile has a sample type. */
static bool has_type(struct sv body, const char *type)
{
    json_t *list = types_of(&body, 1, NULL);
    bool found = false;
    for (size_t i = 0; i < json_array_size(list) && !found; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        found = name != NULL && strcmp(name, type) == 0;
    }
    json_decref(list);
    return found;
}

/* Returns the sample type that a name of a type means, in the room; other types as they are. */
static const char *sample_type_of(const char *type, char room[TOP_UNIT_MAX])
{
    const struct config_type_name *row = config_type_name_find(sv_from(type));
    if (row == NULL) {
        return type;
    }
    struct sv sample = config_type_name_sample(row);
    (void)snprintf(room, TOP_UNIT_MAX, "%.*s", SV_ARG(sample));
    return room;
}

static struct tree *file_tree(struct query_peer *p, const struct query_ask *ask,
                              char unit[TOP_UNIT_MAX], struct err *err)
{
    struct content c;
    struct tree *t = NULL;
    char name[TOP_UNIT_MAX];
    const char *type = ask->value != NULL ? ask->value : sample_type_of(ask->type, name);
    if (content_read(&c, p->file, err)) {
        size_t i = 0;
        while (type != NULL && i < c.n && !has_type(c.profiles[i], type)) {
            i++;
        }
        /* Without a profile of the type, the error of the last one lists its types. */
        struct sv profile = c.profiles[i < c.n ? i : c.n - 1];
        t = top_tree(profile, type, ask->as_recorded, unit, err);
        if (t == NULL) {
            err_wrap(err, "%s", p->name);
        }
    }
    content_done(&c);
    return t;
}

const struct query_source query_file = {
    .name = "file",
    .types = file_types,
    .tree = file_tree,
};
