/* Keeps the results of probes, and prints them in the order of the endpoints. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/verify/private.h"

static void print_json(const struct probe *probe)
{
    const struct config_endpoint *e = &probe->to.endpoint;
    struct buf out;
    buf_init(&out, (size_t)1 << 20);
    buf_printf(&out, "{\"works\":%s", probe->works ? "true" : "false");
    json_member("name", sv_from(e->name), &out);
    json_member("protocol", sv_from(e->protocol->name), &out);
    json_member("url", sv_from(e->url), &out);
    json_member("result", sv_from(probe->text), &out);
    json_member("advice", sv_from(probe->advice), &out);
    fprintf(stdout, "%s}\n", buf_ok(&out) ? out.data : "");
    buf_done(&out);
    fflush(stdout);
}

static void print_probe(const struct probe *probe)
{
    const struct config_endpoint *e = &probe->to.endpoint;
    printf("%-6s %s (%s, %s): %s\n", probe->works ? "ok" : "FAILED", e->name, e->protocol->name,
           e->url, probe->text);
    if (probe->advice[0] != '\0') {
        printf("       %s\n", probe->advice);
    }
    fflush(stdout);
}

void verify_print(struct verify *v)
{
    while (v->printed < v->n_probes && v->probes[v->printed].done) {
        (v->options->json ? print_json : print_probe)(&v->probes[v->printed++]);
    }
    if (v->printed == v->n_probes && v->searches == 0) {
        loop_stop(v->loop);
    }
}

void verify_finish(struct probe *probe, bool works, const char *advice, const char *fmt, ...)
{
    va_list ap;
    if (probe->done) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(probe->text, sizeof(probe->text), fmt, ap);
    va_end(ap);
    probe->advice = advice;
    probe->works = works;
    probe->done = true;
    loop_timer_cancel(probe->retry_timer);
    verify_print(probe->verify);
}
