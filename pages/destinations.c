#include "pages/destinations.h"

#include <inttypes.h>
#include <stdlib.h>

#include "api/served.h"
#include "base/clock.h"
#include "config/config.h"
#include "model/masking.h"
#include "pages/html.h"
#include "pages/value.h"
#include "server/routes.h"
#include "store/archive/archive.h"
#include "write/conditions.h"
#include "write/write.h"

#define CONFIG_MAX ((size_t)64 * 1024 * 1024)
#define URL_MAX ((size_t)64 * 1024)

static struct write_ledger ledger_of(const struct exchange *x, size_t i)
{
    static const struct write_ledger none = {.accepted = 0};
    const struct served *o = x->options->served;
    return o->ledger == NULL ? none : o->ledger(o->arg, o->config->endpoints[i].slot);
}

static uint64_t dropped_of(const struct write_ledger *l)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WRITE_DROPS; i++) {
        sum += l->dropped[i];
    }
    return sum;
}

/* Appends the URL without secrets to a buffer that the caller frees. */
static void masked_url(const struct exchange *x, const struct config_endpoint *e, struct buf *out)
{
    buf_init(out, URL_MAX);
    mask_url(sv_from(e->url), x->options->served->config->global.mask_all_params, out);
}

/* ---- the page of destinations ---------------------------------------------------------------- */

static void put_card(struct buf *out, uint64_t n, const char *look, const char *text)
{
    buf_printf(out, "<div><b class=\"%s\">%" PRIu64 "</b><span>%s</span></div>",
               n > 0 ? look : "muted", n, text);
}

static void put_drops(struct buf *out, const struct write_ledger *l)
{
    if (dropped_of(l) == 0) {
        return;
    }
    buf_puts(out, "<h2>Dropped, by reason</h2><table><tbody>");
    for (unsigned i = 0; i < WRITE_DROPS; i++) {
        if (l->dropped[i] > 0) {
            buf_printf(out, "<tr><td>%s</td><td class=\"num\">%" PRIu64 "</td></tr>",
                       write_drop_name(i), l->dropped[i]);
        }
    }
    buf_puts(out, "</tbody></table>");
}

static struct write_condition condition_of(const struct exchange *x,
                                           const struct config_endpoint *e)
{
    struct write_condition c;
    if (!conditions_get(x->options->served->conditions, e->name, &c)) {
        c = (struct write_condition){.works = true, .oldest_ms = INT64_MAX, .advice = ""};
    }
    return c;
}

/* Writes why a destination waits, and what to do about it. */
static void put_why(struct buf *out, const struct write_condition *c)
{
    if (c->why[0] != '\0') {
        buf_puts(out, "<p class=\"bad\">");
        html_text(out, sv_from(c->why));
        buf_puts(out, "</p>");
        html_advice(out, sv_from(c->advice));
    }
}

/* Describes the archive of an endpoint. False if it has none. */
static bool archive_of(const struct exchange *x, const struct config_endpoint *e,
                       struct archive_stats *ret)
{
    const struct served *o = x->options->served;
    return e->archive.url != NULL && o->archive != NULL && o->archive(o->arg, e->name, ret);
}

/* Writes the lines about an archive: its files, those that wait, and its problems. */
static void put_archive(struct exchange *x, const struct config_endpoint *e)
{
    struct buf *out = &x->reply;
    struct archive_stats a;
    if (!archive_of(x, e, &a)) {
        return;
    }
    buf_puts(out, "<p>Archive <span class=\"mono\">");
    html_text(out, sv_from(a.url));
    buf_printf(out, "</span>: %" PRIu64 " files (", a.files);
    value_put(out, (int64_t)a.bytes, SV("bytes"));
    buf_puts(out, ")");
    if (a.waiting_files > 0) {
        buf_printf(out, ", <b class=\"warn\">%" PRIu64 "</b> more wait for their upload (",
                   a.waiting_files);
        value_put(out, (int64_t)a.waiting_bytes, SV("bytes"));
        buf_puts(out, ")");
    }
    buf_puts(out, "</p>\n");
    if (a.problem[0] != '\0') {
        buf_puts(out, "<p class=\"bad\">");
        html_text(out, sv_from(a.problem));
        buf_puts(out, "</p>");
    }
    if (a.conflict) {
        buf_puts(out, "<p class=\"bad\">Another process uses the name of this writer, ");
        html_text(out, sv_from(a.writer));
        buf_puts(out, ": set <code>store.archive.name</code> to different names.</p>");
    }
    if (a.foreign > 0) {
        buf_printf(out,
                   "<p class=\"hint\">%" PRIu64 " objects under the prefix do not belong to "
                   "the archive.</p>",
                   a.foreign);
    }
}

static void put_destination(struct exchange *x, size_t i)
{
    struct buf *out = &x->reply;
    const struct config_endpoint *e = &x->options->served->config->endpoints[i];
    struct write_ledger l = ledger_of(x, i);
    struct write_condition c = condition_of(x, e);
    struct buf url;
    masked_url(x, e, &url);
    buf_puts(out, "<section class=\"panel\"><h2>");
    html_text(out, sv_from(e->name));
    buf_puts(out, "</h2><p class=\"mono\">");
    html_text(out, (struct sv){url.data, url.len});
    buf_puts(out, " <span class=\"muted\">");
    html_text(out, sv_from(e->protocol != NULL ? e->protocol->name : ""));
    buf_puts(out, "</span></p>");
    put_why(out, &c);
    buf_puts(out, "<div class=\"cards\">");
    put_card(out, l.accepted, "", "accepted");
    put_card(out, l.replayed, "", "read back from disk");
    put_card(out, l.sent, "good", "sent");
    put_card(out, l.queued, "warn", "queued");
    put_card(out, l.in_flight, "", "in flight");
    put_card(out, l.merged, "", "merged into others");
    put_card(out, dropped_of(&l), "bad", "dropped");
    buf_puts(out, "</div>");
    if (l.queued_bytes > 0) {
        buf_puts(out, "<p class=\"hint\">The queue holds ");
        value_put(out, (int64_t)l.queued_bytes, SV("bytes"));
        buf_puts(out, ".</p>");
    }
    put_archive(x, e);
    put_drops(out, &l);
    buf_puts(out, "</section>\n");
    buf_done(&url);
}

void page_destinations(struct exchange *x)
{
    html_begin(x, "Destinations", "destinations");
    buf_puts(&x->reply, "<h1>Destinations</h1><p class=\"hint\">accepted + read back = sent + "
                        "queued + in flight + merged + dropped</p>\n");
    for (size_t i = 0; i < x->options->served->config->n_endpoints; i++) {
        put_destination(x, i);
    }
    html_end(x);
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* Writes the condition of a destination: whether it is up, its last error, its oldest profile. */
static void put_condition(struct exchange *x, const struct config_endpoint *e)
{
    struct buf *out = &x->reply;
    struct write_condition c = condition_of(x, e);
    char since[32] = "";
    int64_t now_ms = clock_mono_ms();
    int64_t age_ms = c.oldest_ms < now_ms ? now_ms - c.oldest_ms : 0;
    if (c.since_ns != 0) {
        clock_format_rfc3339(c.since_ns, since, sizeof(since));
    }
    buf_printf(out, ",\"up\":%s", c.works ? "true" : "false");
    json_member("downSince", sv_from(since), out);
    json_member("lastError", sv_from(c.why), out);
    json_member("advice", sv_from(c.advice), out);
    buf_printf(out, ",\"oldestAgeSeconds\":%.3f,\"queueLimitBytes\":%" PRIu64,
               (double)age_ms / (double)MS_PER_S, e->queue_max_bytes);
}

static void put_archive_json(struct exchange *x, const struct config_endpoint *e)
{
    struct buf *out = &x->reply;
    struct archive_stats a;
    if (!archive_of(x, e, &a)) {
        return;
    }
    int64_t age_ms = a.listed_ms > 0 ? clock_mono_ms() - a.listed_ms : 0;
    json_key("archive", out);
    buf_puts(out, "{");
    json_member("url", sv_from(a.url), out);
    json_member("writer", sv_from(a.writer), out);
    buf_printf(out,
               ",\"up\":%s,\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"waitingFiles\":%" PRIu64
               ",\"waitingBytes\":%" PRIu64 ",\"foreignObjects\":%" PRIu64
               ",\"conflict\":%s,\"listedAgeSeconds\":%.3f",
               a.up ? "true" : "false", a.files, a.bytes, a.waiting_files, a.waiting_bytes,
               a.foreign, a.conflict ? "true" : "false", (double)age_ms / (double)MS_PER_S);
    json_member("lastError", sv_from(a.problem), out);
    buf_putc(out, '}');
}

static void put_json(struct exchange *x, size_t i)
{
    struct buf *out = &x->reply;
    const struct config_endpoint *e = &x->options->served->config->endpoints[i];
    struct write_ledger l = ledger_of(x, i);
    struct buf url;
    masked_url(x, e, &url);
    buf_puts(out, i > 0 ? ",{" : "{");
    json_member("name", sv_from(e->name), out);
    json_member("url", (struct sv){url.data, url.len}, out);
    json_member("protocol", sv_from(e->protocol != NULL ? e->protocol->name : ""), out);
    put_condition(x, e);
    buf_printf(out,
               ",\"accepted\":%" PRIu64 ",\"replayed\":%" PRIu64 ",\"sent\":%" PRIu64
               ",\"queued\":%" PRIu64 ",\"queuedBytes\":%" PRIu64 ",\"inFlight\":%" PRIu64
               ",\"merged\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"dropped\":{",
               l.accepted, l.replayed, l.sent, l.queued, l.queued_bytes, l.in_flight, l.merged,
               l.refused);
    for (unsigned d = 0; d < WRITE_DROPS; d++) {
        buf_printf(out, "%s\"%s\":%" PRIu64, d > 0 ? "," : "", write_drop_name(d), l.dropped[d]);
    }
    buf_putc(out, '}');
    put_archive_json(x, e);
    buf_putc(out, '}');
    buf_done(&url);
}

void destinations_put(struct exchange *x)
{
    buf_putc(&x->reply, '[');
    for (size_t i = 0; i < x->options->served->config->n_endpoints; i++) {
        put_json(x, i);
    }
    buf_putc(&x->reply, ']');
}

void v1_destinations(struct exchange *x)
{
    x->content_type = "application/json";
    buf_puts(&x->reply, "{\"destinations\":");
    destinations_put(x);
    buf_puts(&x->reply, "}\n");
}

/* ---- configuration --------------------------------------------------------------------------- */

void page_config(struct exchange *x)
{
    struct buf yaml;
    buf_init(&yaml, CONFIG_MAX);
    html_begin(x, "Configuration", "config");
    buf_puts(&x->reply, "<h1>Effective configuration</h1><p class=\"hint\">All defaults are filled "
                        "in; secrets are not shown.</p><pre id=\"yaml\" tabindex=\"0\" "
                        "role=\"region\" aria-label=\"Effective configuration\">");
    if (config_dump(x->options->served->config, &yaml)) {
        html_text(&x->reply, (struct sv){yaml.data, yaml.len});
    } else {
        x->status = STATUS_INTERNAL;
        buf_puts(&x->reply, "out of memory");
    }
    buf_puts(&x->reply, "</pre>\n");
    html_end(x);
    buf_done(&yaml);
}

void v1_config(struct exchange *x)
{
    struct buf yaml;
    buf_init(&yaml, CONFIG_MAX);
    x->content_type = "application/json";
    buf_puts(&x->reply, "{");
    if (config_dump(x->options->served->config, &yaml)) {
        json_member("yaml", (struct sv){yaml.data, yaml.len}, &x->reply);
    } else {
        x->status = STATUS_INTERNAL;
        json_member("error", SV("out of memory"), &x->reply);
    }
    buf_puts(&x->reply, "}\n");
    buf_done(&yaml);
}
