#include "api/peer.h"

#include "api/served.h"
#include "server/exchange.h"
#include "store/peering/answer.h"
#include "store/peering/peering.h"

static void refuse(struct exchange *x, int status, const char *why)
{
    exchange_text(x, status, "text/plain; charset=utf-8", sv_from(why));
    buf_putc(&x->reply, '\n');
}

static int status_of(const struct err *err)
{
    return err->kind == ERR_INPUT || err->kind == ERR_LIMIT ? STATUS_BAD_REQUEST : STATUS_INTERNAL;
}

static void peer_ask(struct exchange *x)
{
    const struct served *served = x->options->served;
    struct peering_question q;
    struct err err = ERR_INIT;
    if (served->store == NULL || served->peering == NULL) {
        refuse(x, STATUS_NOT_FOUND, "no profiles are stored here");
        return;
    }
    if (!peering_read_question(x->body, &q, &err)) {
        refuse(x, STATUS_BAD_REQUEST, err.msg);
        return;
    }
    /* Several answers may be made at the same time, each of which is in memory twice for a moment.
     */
    uint64_t most = x->bytes_max / 4;
    q.bytes_max = q.bytes_max == 0 || q.bytes_max > most ? most : q.bytes_max;
    x->content_type = PEERING_TYPE;
    if (!peering_answer(served->store, peering_id(served->peering), &q, &x->reply, &err)) {
        refuse(x, status_of(&err), err.msg);
    }
}

const struct route peer_routes[] = {
    {PEERING_PATH, .set = ROUTE_PEERS, .methods = ROUTE_POST, .work = peer_ask},
    {.path = NULL},
};
