/* Keeps the results of probes, and prints them in the order of the endpoints. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/verify/private.h"

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
        print_probe(&v->probes[v->printed++]);
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
