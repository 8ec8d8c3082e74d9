#include "cli/status/show.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/utf8.h"

#define LINE_MAX_BYTES ((size_t)64 * 1024)
#define INDENT 4
#define NAME_WIDTH_MAX 30
/* The largest number that is taken from an answer, so that products and sums of several fit. */
#define NUMBER_MAX INT64_C(1000000000000000)
#define GOOD "\033[32m"
#define BAD "\033[31m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

struct shower {
    const struct show_style *style;
    struct buf *out;
};

/* ---- the answer ------------------------------------------------------------------------------ */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static int64_t number_of(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value >= (double)NUMBER_MAX    ? NUMBER_MAX
           : value <= (double)-NUMBER_MAX ? -NUMBER_MAX
                                          : (int64_t)value;
}

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static bool is_failing(const json_t *failures)
{
    return strcmp(text_of(json_object_get(failures, "scrape"), "health"), "down") == 0;
}

static uint64_t dropped_of(const json_t *destination)
{
    uint64_t sum = 0;
    const char *reason;
    json_t *n;
    json_object_foreach(json_object_get(destination, "dropped"), reason, n)
    {
        sum += (uint64_t)json_integer_value(n);
    }
    return sum;
}

/* Returns the reason why an archive needs attention; "" if it does not. */
static const char *archive_problem(const json_t *archive)
{
    const char *why = text_of(archive, "lastError");
    return why[0] == '\0' && is_true(archive, "conflict")
               ? "another process uses the name of this writer: set store.archive.name"
               : why;
}

bool status_is_well(const json_t *status)
{
    bool well = is_true(status, "healthy") && is_true(status, "ready") &&
                number_of(status, "moreFailures") == 0 &&
                text_of(json_object_get(status, "peers"), "lastError")[0] == '\0';
    size_t i;
    json_t *v;
    json_array_foreach(json_object_get(status, "failures"), i, v)
    {
        well = well && !is_failing(v);
    }
    json_array_foreach(json_object_get(status, "sources"), i, v)
    {
        well = well && strcmp(text_of(v, "state"), "up") == 0;
    }
    json_array_foreach(json_object_get(status, "destinations"), i, v)
    {
        well =
            well && is_true(v, "up") && archive_problem(json_object_get(v, "archive"))[0] == '\0';
    }
    return well;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Appends a text without control characters, which could move the cursor or do worse. */
static void put_clean(struct buf *out, struct sv text)
{
    while (text.n > 0) {
        uint32_t rune;
        size_t n = utf8_decode(text, &rune);
        if (n == 0 || rune < ' ' || (rune >= 0x7f && rune <= 0x9f)) {
            buf_putc(out, '?');
            n = n == 0 ? 1 : n;
        } else {
            buf_append(out, text.p, n);
        }
        text = sv_skip(text, n);
    }
}

/* Returns how many bytes of the text fit into a number of columns, one for each character. The text
 * is broken after a space if it has one. */
static size_t fit(struct sv text, size_t columns)
{
    size_t at = 0;
    size_t space = 0;
    size_t used = 0;
    while (at < text.n && used < columns) {
        at++;
        while (at < text.n && ((unsigned char)text.p[at] & 0xc0) == 0x80) {
            at++;
        }
        used++;
        if (at < text.n && text.p[at - 1] == ' ') {
            space = at;
        }
    }
    return at < text.n && space > 0 ? space : at;
}

/* Appends a paragraph: its first line is indented by `indent` spaces, the others by two more. */
static void put_paragraph(struct shower *s, size_t indent, const char *colour, const char *text)
{
    struct buf clean;
    buf_init(&clean, LINE_MAX_BYTES);
    put_clean(&clean, sv_from(text));
    struct sv rest = {.p = clean.data, .n = clean.len};
    while (rest.n > 0) {
        size_t room = s->style->width > indent + 20 ? s->style->width - indent : 20;
        size_t n = fit(rest, room);
        struct sv line = sv_trim((struct sv){.p = rest.p, .n = n});
        buf_printf(s->out, "%*s%s%.*s%s\n", (int)indent, "", s->style->colours ? colour : "",
                   SV_ARG(line), s->style->colours && colour[0] != '\0' ? PLAIN : "");
        if (rest.n == clean.len) {
            indent += 2;
        }
        rest = sv_skip(rest, n);
    }
    buf_done(&clean);
}

static void put_title(struct shower *s, const char *title)
{
    buf_putc(s->out, '\n');
    put_paragraph(s, 0, BOLD, title);
}

__attribute__((format(printf, 4, 5))) static void say(struct shower *s, size_t indent,
                                                      const char *colour, const char *fmt, ...)
{
    struct buf text;
    va_list ap;
    buf_init(&text, LINE_MAX_BYTES);
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    put_paragraph(s, indent, colour, text.data);
    buf_done(&text);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void show_head(struct shower *s, const json_t *status)
{
    char uptime[32];
    format_duration_ms(number_of(status, "uptimeSeconds") * MS_PER_S, uptime, sizeof(uptime));
    say(s, 0, "", "profpull %s, up %s, configuration %s", text_of(status, "version"), uptime,
        text_of(status, "configFile"));
    bool healthy = is_true(status, "healthy");
    bool ready = is_true(status, "ready");
    const char *health = text_of(status, "health");
    const char *readiness = text_of(status, "readiness");
    say(s, 0, healthy ? GOOD : BAD, "%s%s%s", healthy ? "healthy" : "not healthy",
        health[0] != '\0' ? ": " : "", health);
    say(s, 0, ready ? GOOD : BAD, "%s%s%s", ready ? "ready" : "not ready",
        readiness[0] != '\0' ? ": " : "", readiness);
}

/* Shows the resource that scrapes wait for; null: none. */
static void show_bottleneck(struct shower *s, const json_t *bottleneck)
{
    if (json_is_object(bottleneck)) {
        say(s, 0, BAD,
            "scrapes wait: %" PRIi64 " responses are not read yet, %" PRIi64
            " requests not sent yet",
            number_of(bottleneck, "unread"), number_of(bottleneck, "heldBack"));
        say(s, INDENT, BOLD, "-> %s", text_of(bottleneck, "advice"));
    }
}

static void show_jobs(struct shower *s, const json_t *jobs)
{
    size_t width = strlen("JOB");
    size_t i;
    json_t *v;
    json_array_foreach(jobs, i, v)
    {
        size_t n = strlen(text_of(v, "job"));
        width = n > width ? n : width;
    }
    width = width > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : width;
    buf_printf(s->out, "\n%s%-*s %8s %8s %8s %8s%s\n", s->style->colours ? BOLD : "", (int)width,
               "JOB", "UP", "DOWN", "ABSENT", "NEW", s->style->colours ? PLAIN : "");
    json_array_foreach(jobs, i, v)
    {
        struct buf name;
        int64_t down = number_of(v, "down");
        bool red = s->style->colours && down > 0;
        buf_init(&name, LINE_MAX_BYTES);
        put_clean(&name, sv_from(text_of(v, "job")));
        buf_printf(s->out, "%-*.*s %8" PRIi64 " %s%8" PRIi64 "%s %8" PRIi64 " %8" PRIi64 "\n",
                   (int)width, (int)width, name.data, number_of(v, "up"), red ? BAD : "", down,
                   red ? PLAIN : "", number_of(v, "absent"), number_of(v, "unknown"));
        buf_done(&name);
    }
}

static void show_failures(struct shower *s, const json_t *status)
{
    const json_t *failures = json_object_get(status, "failures");
    int64_t more = number_of(status, "moreFailures");
    size_t i;
    json_t *v;
    if (json_array_size(failures) > 0) {
        put_title(s, "Scrapes that fail");
    }
    json_array_foreach(failures, i, v)
    {
        const json_t *scrape = json_object_get(v, "scrape");
        const char *advice = text_of(scrape, "advice");
        say(s, 0, is_failing(v) ? BAD : "", "%" PRIi64 " of job %s: %s (%s), such as",
            number_of(v, "count"), text_of(scrape, "job"), text_of(scrape, "reason"),
            text_of(scrape, "health"));
        say(s, INDENT, "", "%s, %s, %s", text_of(scrape, "source"), text_of(scrape, "type"),
            text_of(scrape, "url"));
        say(s, INDENT, "", "%s", text_of(scrape, "lastError"));
        say(s, INDENT, BOLD, "%s%s", advice[0] != '\0' ? "-> " : "", advice);
    }
    if (more > 0) {
        say(s, 0, BAD, "and %" PRIi64 " scrapes that fail in other ways", more);
    }
}

static void show_slowest(struct shower *s, const json_t *slowest)
{
    size_t i;
    json_t *v;
    if (json_array_size(slowest) > 0) {
        put_title(s, "Slowest scrapes");
    }
    json_array_foreach(slowest, i, v)
    {
        double all = json_number_value(json_object_get(v, "lastDurationSeconds"));
        double sampling = json_number_value(json_object_get(v, "samplingSeconds"));
        char text[64];
        snprintf(text, sizeof(text), "%.3f s%s", all, sampling > 0 ? "" : ",");
        if (sampling > 0) {
            snprintf(text, sizeof(text), "%.3f s, of which %.0f s sampling,", all, sampling);
        }
        say(s, 0, "", "%s job %s, %s", text, text_of(v, "job"), text_of(v, "url"));
    }
}

static void show_sources(struct shower *s, const json_t *sources)
{
    size_t up = 0;
    size_t i;
    json_t *v;
    json_array_foreach(sources, i, v)
    {
        up += strcmp(text_of(v, "state"), "up") == 0;
    }
    put_title(s, "Sources of targets");
    say(s, 0, up == json_array_size(sources) ? GOOD : "", "%zu of %zu can be read", up,
        json_array_size(sources));
    json_array_foreach(sources, i, v)
    {
        const char *job = text_of(v, "job");
        if (strcmp(text_of(v, "state"), "up") != 0) {
            say(s, 0, BAD, "%s%s%s%s: %s", job[0] != '\0' ? "job " : "", job,
                job[0] != '\0' ? ", " : "", text_of(v, "source"), text_of(v, "state"));
            say(s, INDENT, "", "%s", text_of(v, "why"));
        }
    }
}

static void show_archive(struct shower *s, const json_t *a)
{
    int64_t waiting = number_of(a, "waitingFiles");
    const char *why = archive_problem(a);
    if (!json_is_object(a)) {
        return;
    }
    say(s, INDENT, why[0] == '\0' ? "" : BAD,
        "archive %s: %" PRIi64 " files (%.1f MiB), %" PRIi64 " wait for their upload (%.1f MiB)",
        text_of(a, "url"), number_of(a, "files"), (double)number_of(a, "bytes") / (1024.0 * 1024.0),
        waiting, (double)number_of(a, "waitingBytes") / (1024.0 * 1024.0));
    if (why[0] != '\0') {
        say(s, INDENT, BAD, "%s", why);
    }
}

static void show_destination(struct shower *s, const json_t *v)
{
    char age[32];
    bool up = is_true(v, "up");
    int64_t queued = number_of(v, "queued");
    int64_t limit = number_of(v, "queueLimitBytes");
    const char *why = text_of(v, "lastError");
    const char *advice = text_of(v, "advice");
    format_duration_ms(number_of(v, "oldestAgeSeconds") * MS_PER_S, age, sizeof(age));
    say(s, 0, up ? GOOD : BAD, "%s: %s%s%s", text_of(v, "name"), up ? "up" : "down",
        up ? "" : " since ", up ? "" : text_of(v, "downSince"));
    say(s, INDENT, "", "%s", text_of(v, "url"));
    say(s, INDENT, "",
        "%" PRIi64 " sent, %" PRIu64 " dropped, %" PRIi64 " queued (%.1f MiB, %" PRIi64
        "%% of the room), %" PRIi64 " in flight%s%s",
        number_of(v, "sent"), dropped_of(v), queued,
        (double)number_of(v, "queuedBytes") / (1024.0 * 1024.0),
        limit > 0 ? number_of(v, "queuedBytes") * 100 / limit : 0, number_of(v, "inFlight"),
        queued > 0 ? ", the oldest waits for " : "", queued > 0 ? age : "");
    if (why[0] != '\0') {
        say(s, INDENT, BAD, "%s", why);
        say(s, INDENT, BOLD, "%s%s", advice[0] != '\0' ? "-> " : "", advice);
    }
    show_archive(s, json_object_get(v, "archive"));
}

static void show_destinations(struct shower *s, const json_t *destinations)
{
    size_t i;
    json_t *v;
    put_title(s, "Destinations");
    json_array_foreach(destinations, i, v)
    {
        show_destination(s, v);
    }
}

static void show_sharding(struct shower *s, const json_t *sharding)
{
    if (json_is_object(sharding)) {
        put_title(s, "Sharing of targets");
        say(s, 0, "",
            "member %" PRIi64 " of %" PRIi64 "; %" PRIi64 " targets are scraped here, %" PRIi64
            " of other members",
            number_of(sharding, "index") + 1, number_of(sharding, "members"),
            number_of(sharding, "own"), number_of(sharding, "others"));
    }
}

static void show_peers(struct shower *s, const json_t *peers)
{
    const char *why = text_of(peers, "lastError");
    if (!json_is_object(peers)) {
        return;
    }
    put_title(s, "Peers of queries");
    say(s, 0, why[0] == '\0' ? GOOD : BAD, "%" PRIi64 " known, %" PRIi64 " down",
        number_of(peers, "known"), number_of(peers, "down"));
    if (why[0] != '\0') {
        say(s, INDENT, BAD, "%s", why);
    }
}

/* Shows how many profiles got names, if any has lacked them. */
static void show_names(struct shower *s, const json_t *names)
{
    int64_t named = number_of(names, "named");
    int64_t partly = number_of(names, "partly");
    int64_t unnamed = number_of(names, "unnamed");
    int64_t asks = number_of(names, "asks");
    int64_t failures = number_of(names, "failures");
    if (named + partly + unnamed + failures == 0) {
        return;
    }
    put_title(s, "Names for addresses");
    say(s, 0, "",
        "%" PRIi64 " profiles got all names, %" PRIi64 " some, %" PRIi64 " none; %" PRIi64
        " questions wait",
        named, partly, unnamed, asks);
    if (failures > 0) {
        say(s, 0, BAD,
            "debug information could not be read %" PRIi64
            " times: profpull_symbols_failures_total says why",
            failures);
    }
}

bool status_show(const json_t *status, const struct show_style *style, struct buf *out)
{
    struct shower s = {.style = style, .out = out};
    show_head(&s, status);
    show_bottleneck(&s, json_object_get(status, "bottleneck"));
    show_jobs(&s, json_object_get(status, "jobs"));
    show_failures(&s, status);
    show_slowest(&s, json_object_get(status, "slowest"));
    show_sources(&s, json_object_get(status, "sources"));
    show_destinations(&s, json_object_get(status, "destinations"));
    show_sharding(&s, json_object_get(status, "sharding"));
    show_peers(&s, json_object_get(status, "peers"));
    show_names(&s, json_object_get(status, "symbols"));
    return buf_ok(out);
}
