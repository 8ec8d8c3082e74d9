#include "api/pprof_reply.h"

#include "api/served.h"
#include "base/clock.h"

void pprof_reply_name(struct exchange *x, struct sv name)
{
    buf_printf(&x->headers, "Content-Disposition: attachment; filename=\"%.*s\"\r\n", SV_ARG(name));
}

/* go tool pprof prints the body of an error only if it is text, and the response has this header.
 */
void pprof_reply_explain(struct exchange *x)
{
    if (!request_header_lists(x->request, "Accept", "application/json")) {
        x->content_type = "text/plain; charset=utf-8";
        buf_puts(&x->headers, "X-Go-Pprof: 1\r\n");
    }
}

int query_error_status(const struct err *err)
{
    static const int statuses[] = {
        [ERR_NONE] = 500,    [ERR_INPUT] = 500,   [ERR_LIMIT] = 429,  [ERR_SYSTEM] = 500,
        [ERR_NETWORK] = 500, [ERR_REFUSED] = 404, [ERR_MEMORY] = 503, [ERR_TIMEOUT] = 504,
    };
    return statuses[err->kind];
}

bool exchange_is_over(const struct exchange *x, struct err *err)
{
    if (x->cancelled != NULL && atomic_load_explicit(x->cancelled, memory_order_relaxed)) {
        (void)err_set(err, ERR_TIMEOUT, "the client has closed the connection");
        return true;
    }
    if (x->deadline_ms != 0 && clock_mono_ms() >= x->deadline_ms) {
        (void)err_set(err, ERR_TIMEOUT, "the query took longer than query.timeout");
        return true;
    }
    return false;
}

bool exchange_whole_time(const struct exchange *x, struct query_range *ret)
{
    struct store_stats stats;
    store_stats(x->options->served->store, &stats);
    *ret = (struct query_range){
        .start_ms = stats.oldest_ns / NS_PER_MS,
        .end_ms = stats.newest_ns / NS_PER_MS + 1,
    };
    return stats.profiles > 0;
}
