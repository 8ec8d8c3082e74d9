#include "server/http2_budget.h"

#include "base/clock.h"

void http2_budget_init(struct http2_budget *b, int64_t now_ms)
{
    *b = (struct http2_budget){.left = HTTP2_BUDGET_MAX, .at_ms = now_ms};
}

void http2_budget_give(struct http2_budget *b, int64_t gain)
{
    b->left += gain;
    if (b->left > HTTP2_BUDGET_MAX) {
        b->left = HTTP2_BUDGET_MAX;
    }
}

bool http2_budget_take(struct http2_budget *b, int64_t cost, int64_t now_ms)
{
    const int64_t ms_each = MS_PER_S / HTTP2_BUDGET_RATE;
    int64_t earned = now_ms > b->at_ms ? (now_ms - b->at_ms) / ms_each : 0;
    /* The rest of the division stays to be credited. */
    b->at_ms += earned * ms_each;
    http2_budget_give(b, earned);
    b->left -= cost;
    return b->left >= 0;
}
