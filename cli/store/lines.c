/* Prints the files of a store, as a table or as lines of JSON. */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/store/private.h"
#include "store/private.h"

#define LINE_BYTES ((size_t)64 * 1024)
#define TIME_SIZE 32

static void format_ms(int64_t ms, char out[TIME_SIZE])
{
    clock_format_rfc3339(ms * NS_PER_MS, out, TIME_SIZE);
}

/* Prints a line that was made, and frees it. Control characters in it become "?": keys of foreign
 * objects may have anything. */
static void print(struct buf *line, FILE *to)
{
    for (size_t i = 0; buf_ok(line) && i + 1 < line->len; i++) {
        if ((unsigned char)line->data[i] < ' ' || line->data[i] == 0x7f) {
            line->data[i] = '?';
        }
    }
    fputs(buf_ok(line) ? line->data : "", to);
    buf_done(line);
}

static void print_json(const struct store_row *row)
{
    struct buf line;
    char from[TIME_SIZE];
    char until[TIME_SIZE];
    buf_init(&line, LINE_BYTES);
    buf_putc(&line, '{');
    json_member("file", sv_from(row->file), &line);
    if (row->writer != NULL) {
        json_member("writer", sv_from(row->writer), &line);
    }
    if (row->has_name) {
        format_ms(row->name.start_ms, from);
        format_ms(row->name.start_ms + row->name.length_ms, until);
        json_member("from", sv_from(from), &line);
        json_member("until", sv_from(until), &line);
    }
    if (row->has_profiles) {
        buf_printf(&line, ",\"profiles\":%llu", (unsigned long long)row->profiles);
    }
    buf_printf(&line, ",\"bytes\":%llu", (unsigned long long)row->bytes);
    json_member("state", sv_from(row->state), &line);
    if (row->problem[0] != '\0') {
        json_member("problem", sv_from(row->problem), &line);
    }
    buf_puts(&line, "}\n");
    print(&line, stdout);
}

static void put_row(const struct store_row *row, struct buf *line)
{
    char text[STORE_NAME_SIZE] = "-";
    char profiles[32] = "-";
    char bytes[PROGRESS_SIZE];
    if (row->has_name) {
        store_name_format(&row->name, text);
        text[strlen(text) - strlen(".db")] = '\0';
    }
    if (row->has_profiles) {
        (void)snprintf(profiles, sizeof(profiles), "%llu", (unsigned long long)row->profiles);
    }
    progress_format_size(row->bytes, bytes);
    buf_printf(line, "%-24s %10s %10s  ", text, profiles, bytes);
    if (row->writer != NULL) {
        buf_printf(line, "%-20s ", row->writer[0] != '\0' ? row->writer : "-");
    }
    buf_puts(line, row->state);
    if (!row->has_name) {
        buf_printf(line, ": %s", row->file);
    }
    if (row->problem[0] != '\0') {
        buf_printf(line, ": %s", row->problem);
    }
    buf_putc(line, '\n');
}

void lines_head(const struct store_args *args, bool bucket)
{
    if (!args->json) {
        printf("%-24s %10s %10s  %s%s\n", "STRETCH", "PROFILES", "BYTES",
               bucket ? "WRITER               " : "", "STATE");
    }
}

void lines_print(const struct store_args *args, const struct store_row *row)
{
    struct buf line;
    if (args->json) {
        print_json(row);
        return;
    }
    buf_init(&line, LINE_BYTES);
    put_row(row, &line);
    print(&line, stdout);
}

static bool is_one_of(const char *state, const char *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(state, all[i]) == 0) {
            return true;
        }
    }
    return false;
}

void lines_add(struct store_sums *s, const struct store_row *row)
{
    /* None of these loses a profile that was stored. */
    static const char *const harmless[] = {"unfinished", "empty", "copy", "replaced"};
    static const char *const good[] = {"fine", "open"};
    bool foreign = row->writer != NULL && strcmp(row->state, "foreign") == 0;
    if (foreign || is_one_of(row->state, harmless, sizeof(harmless) / sizeof(harmless[0]))) {
        s->other++;
        return;
    }
    s->bad += !is_one_of(row->state, good, sizeof(good) / sizeof(good[0]));
    s->files++;
    s->profiles += row->has_profiles ? row->profiles : 0;
    s->bytes += row->bytes;
    int64_t end_ms = row->name.start_ms + row->name.length_ms;
    s->from_ms = !s->any || row->name.start_ms < s->from_ms ? row->name.start_ms : s->from_ms;
    s->until_ms = !s->any || end_ms > s->until_ms ? end_ms : s->until_ms;
    s->any = true;
}

static void sums_json(const struct store_sums *s)
{
    struct buf line;
    char from[TIME_SIZE];
    char until[TIME_SIZE];
    buf_init(&line, LINE_BYTES);
    buf_printf(
        &line, "{\"files\":%llu,\"profiles\":%llu,\"bytes\":%llu,\"bad\":%llu,\"other\":%llu",
        (unsigned long long)s->files, (unsigned long long)s->profiles, (unsigned long long)s->bytes,
        (unsigned long long)s->bad, (unsigned long long)s->other);
    if (s->any) {
        format_ms(s->from_ms, from);
        format_ms(s->until_ms, until);
        json_member("from", sv_from(from), &line);
        json_member("until", sv_from(until), &line);
    }
    buf_puts(&line, "}\n");
    print(&line, stdout);
}

void lines_sums(const struct store_args *args, const struct store_sums *s)
{
    char bytes[PROGRESS_SIZE];
    char from[TIME_SIZE];
    char until[TIME_SIZE];
    if (args->json) {
        sums_json(s);
        return;
    }
    progress_format_size(s->bytes, bytes);
    printf("%llu file%s, %llu profiles, %s", (unsigned long long)s->files, s->files == 1 ? "" : "s",
           (unsigned long long)s->profiles, bytes);
    if (s->any) {
        format_ms(s->from_ms, from);
        format_ms(s->until_ms, until);
        printf(", %s to %s", from, until);
    }
    if (s->bad > 0) {
        printf("; %llu cannot be used", (unsigned long long)s->bad);
    }
    if (s->other > 0) {
        printf("; %llu foreign, unfinished or replaced", (unsigned long long)s->other);
    }
    printf("\n");
}

struct store_row lines_of(const struct survey_file *f)
{
    bool foreign = f->state == SURVEY_FOREIGN;
    return (struct store_row){.file = f->key,
                              .writer = f->writer,
                              .name = f->name.stretch,
                              .has_name = !foreign,
                              .has_profiles = f->has_index,
                              .profiles = f->name.profiles,
                              .bytes = f->has_data ? f->data_bytes : f->name.bytes,
                              .state = survey_state_name(f->state),
                              .problem = f->state == SURVEY_DAMAGED
                                             ? "its size is not that of its index"
                                         : f->state == SURVEY_MISSING ? "the database was removed"
                                                                      : ""};
}
