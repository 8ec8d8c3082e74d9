#include "config/target_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "config/file.h"
#include "config/parts.h"

/* These files are not part of the configuration: "$" has no meaning in them. */
static const struct text_kind text_value = {.expected = "a string", .raw = true};

static const struct pairs_kind pairs_values = {.name = &text_label_name, .value = &text_value};

static const struct field group_rows[] = {
    ROW(config_static, "targets", targets, &kind_strings, .arg = &text_raw_target,
        .required = true),
    ROW(config_static, "labels", labels, &kind_pairs, .arg = &pairs_values),
};
static const struct schema schema_group = SCHEMA(group_rows, sizeof(struct config_static));

/* The UTF-16 unit written as "\uXXXX" at p, or -1. */
static int32_t utf16_unit(const char *p, size_t n)
{
    int32_t unit = 0;
    if (n < 6 || p[0] != '\\' || p[1] != 'u') {
        return -1;
    }
    for (size_t i = 2; i < 6; i++) {
        int digit = ascii_hex_value(p[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Appends JSON text with YAML's escapes. JSON is YAML except for characters above U+FFFF, which
 * JSON escapes as two units of UTF-16, and YAML as one number. */
static bool join_surrogates(struct sv text, struct buf *out)
{
    for (size_t i = 0; i < text.n;) {
        size_t left = text.n - i;
        int32_t high = utf16_unit(text.p + i, left);
        int32_t low = left < 12 ? -1 : utf16_unit(text.p + i + 6, left - 6);
        if (high >= 0xd800 && high <= 0xdbff && low >= 0xdc00 && low <= 0xdfff) {
            buf_printf(out, "\\U%08X",
                       (unsigned)(0x10000 + (high - 0xd800) * 0x400 + low - 0xdc00));
            i += 12;
            continue;
        }
        size_t n = text.p[i] == '\\' && left > 1 ? 2 : 1;
        buf_append(out, text.p + i, n);
        i += n;
    }
    return buf_ok(out);
}

static bool is_json(struct sv text)
{
    struct sv v = sv_trim(text);
    return v.n > 0 && v.p[0] == '[';
}

static void read_groups(struct reader *r, struct sv text, struct target_file *ret)
{
    struct place at = {.node = reader_parse(r, text)};
    struct array groups = {.n = 0};
    if (at.node == NULL) {
        return;
    }
    /* An empty text is no empty list: the file may have been created or truncated just now, before
     * it is written. */
    if (yaml_is_null(at.node)) {
        config_errors_add(r->errors, 1, 1, "", "expected a list, got nothing");
        r->reported++;
        return;
    }
    kind_list.read(r, &at, &schema_group, &groups);
    ret->groups = groups.at;
    ret->n = groups.n;
}

static bool report_first(const struct config_errors *errors, struct err *err)
{
    if (config_errors_count(errors) == 0) {
        return err_set(err, ERR_MEMORY, "not enough memory for this list");
    }
    const struct config_error *first = config_errors_at(errors, 0);
    size_t more = config_errors_count(errors) - 1 + config_errors_more(errors);
    err_set(err, ERR_INPUT, "%s%s%s", first->path, first->path[0] == '\0' ? "" : ": ",
            first->message);
    if (first->pos.line > 0) {
        err_wrap(err, "%d:%d", first->pos.line, first->pos.column);
    }
    if (more > 0) {
        err_wrap(err, "%zu mistakes, the first one at", more + 1);
    }
    return false;
}

bool target_file_parse(struct sv text, struct arena *arena, struct target_file *ret,
                       struct err *err)
{
    struct target_file file = {0};
    if (text.n > CONFIG_FILE_MAX) {
        return err_set(err, ERR_LIMIT, "larger than %d bytes", CONFIG_FILE_MAX);
    }
    struct reader r = {
        .arena = arena,
        .scratch = arena_new(TARGET_FILE_ARENA_MAX),
        .errors = config_errors_new(),
        .file = "",
        .directory = "",
    };
    bool ok = r.scratch != NULL && r.errors != NULL;
    text = utf8_without_mark(text);
    struct buf joined;
    buf_init(&joined, CONFIG_FILE_MAX);
    if (ok && is_json(text)) {
        ok = join_surrogates(text, &joined);
        text = (struct sv){joined.data, joined.len};
    }
    if (ok) {
        read_groups(&r, text, &file);
        ok = r.reported == 0 && !r.out_of_memory;
    }
    if (ok) {
        *ret = file;
    } else if (r.errors == NULL || r.out_of_memory) {
        err_set(err, ERR_MEMORY, "not enough memory for this list");
    } else {
        report_first(r.errors, err);
    }
    buf_done(&joined);
    arena_free(r.scratch);
    config_errors_free(r.errors);
    return ok;
}

bool target_file_read(const char *path, struct buf *out, struct err *err)
{
    buf_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return err_sys(err, "cannot open the file");
    }
    struct stat st;
    bool ok;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        ok = err_set(err, ERR_INPUT, "is not a regular file");
    } else {
        ok = file_read_fd(fd, CONFIG_FILE_MAX, out, err);
    }
    close(fd);
    return ok;
}
