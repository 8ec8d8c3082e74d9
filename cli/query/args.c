#include "cli/query/args.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/output.h"
#include "pprof/gzip.h"
#include "pprof/summary.h"

bool query_ask_from(const struct query_common *common, int64_t now_ns, struct query_ask *ret,
                    struct err *err)
{
    ret->service = common->service;
    ret->labels = &common->labels;
    ret->until_ns = common->until_ns == QUERY_NO_TIME ? now_ns : common->until_ns;
    int64_t reach = ret->until_ns / NS_PER_MS;
    reach = common->since_ms < reach ? common->since_ms : reach;
    ret->from_ns =
        common->from_ns == QUERY_NO_TIME ? ret->until_ns - reach * NS_PER_MS : common->from_ns;
    return ret->from_ns <= ret->until_ns ||
           err_set(err, ERR_INPUT, "--from is after %s",
                   common->until_ns == QUERY_NO_TIME ? "now" : "--until");
}

int query_fail(const struct err *err)
{
    bool peer = err->kind == ERR_NETWORK || err->kind == ERR_REFUSED;
    return cmd_fail(peer ? EXIT_PEER : EXIT_INPUT, err);
}

static void describe(FILE *to, const char *path, const struct pprof_summary *s, size_t size)
{
    char size_text[32];
    char types[512];
    format_size(size, size_text, sizeof(size_text));
    pprof_summary_print_types(s, "?", types, sizeof(types));
    fprintf(to, "%s: %s, %zu samples, %s\n", output_is_stdout(path) ? "standard output" : path,
            size_text, s->n[PROFILE_SAMPLE], types);
}

static void describe_json(FILE *to, const char *path, const struct pprof_summary *s, size_t size)
{
    struct buf text;
    buf_init(&text, (size_t)1024 * 1024);
    buf_putc(&text, '{');
    json_member("file", sv_from(path), &text);
    buf_printf(&text, ",\"bytes\":%zu,\"samples\":%zu,\"types\":[", size, s->n[PROFILE_SAMPLE]);
    for (size_t i = 0; i < s->n[PROFILE_SAMPLE_TYPE] && i < SUMMARY_TYPES_MAX; i++) {
        buf_puts(&text, i == 0 ? "{" : ",{");
        json_member("type", s->types[i].type_text, &text);
        json_member("unit", s->types[i].unit_text, &text);
        buf_putc(&text, '}');
    }
    buf_puts(&text, "]}\n");
    fputs(buf_ok(&text) ? text.data : "", to);
    buf_done(&text);
}

int query_write_profile(const char *path, struct sv body, bool json)
{
    struct err err = ERR_INIT;
    struct pprof_summary summary;
    struct scratch *scratch = scratch_new();
    char *packed = NULL;
    struct sv out = body;
    bool ok = scratch != NULL || err_memory(&err);
    if (ok && !pprof_summary_read(scratch, body, REMOTE_BODY_MAX, &summary, &err)) {
        err.kind = ERR_REFUSED;
        ok = err_wrap(&err, "the server sent no profile");
    }
    if (ok && !gzip_is(body)) {
        ok = gzip_pack(scratch, body, &packed, &out.n) || err_memory(&err);
        out.p = packed;
    }
    ok = ok && output_write(path, out, &err);
    if (ok) {
        (json ? describe_json : describe)(output_is_stdout(path) ? stderr : stdout, path, &summary,
                                          out.n);
    }
    free(packed);
    scratch_free(scratch);
    return ok ? cmd_flush(EXIT_DONE) : query_fail(&err);
}
