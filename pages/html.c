#include "pages/html.h"

#include "api/served.h"
#include "base/clock.h"
#include "model/masking.h"
#include "server/routes.h"

void html_text(struct buf *out, struct sv text)
{
    for (size_t i = 0; i < text.n; i++) {
        switch (text.p[i]) {
        case '&':
            buf_puts(out, "&amp;");
            break;
        case '<':
            buf_puts(out, "&lt;");
            break;
        case '>':
            buf_puts(out, "&gt;");
            break;
        case '"':
            buf_puts(out, "&quot;");
            break;
        case '\'':
            buf_puts(out, "&#39;");
            break;
        case '\0':
            buf_puts(out, "\xef\xbf\xbd"); /* the replacement character, as browsers show it */
            break;
        default:
            buf_putc(out, text.p[i]);
        }
    }
}

void html_cut(struct buf *out, struct sv text, size_t chars)
{
    size_t n = 0;
    size_t seen = 0;
    while (n < text.n) {
        /* The bytes of a character are never split. */
        if (((unsigned char)text.p[n] & 0xc0U) != 0x80 && seen++ == chars) {
            break;
        }
        n++;
    }
    html_text(out, (struct sv){text.p, n});
    if (n < text.n) {
        buf_puts(out, "…");
    }
}

void html_advice(struct buf *out, struct sv advice)
{
    if (advice.n > 0) {
        buf_puts(out, "<div class=\"hint\">→ ");
        html_text(out, advice);
        buf_puts(out, "</div>");
    }
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
}

void html_param(struct buf *out, struct sv text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (is_plain(text.p[i])) {
            buf_putc(out, text.p[i]);
        } else {
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)text.p[i]);
        }
    }
}

size_t html_param_size(struct sv text)
{
    size_t size = text.n;
    for (size_t i = 0; i < text.n; i++) {
        size += is_plain(text.p[i]) ? 0 : 2;
    }
    return size;
}

void html_label(struct buf *out, struct label label, bool mask_all)
{
    struct buf value;
    buf_init(&value, (sizeof(MASK) + 1) * (label.value.n + 1));
    buf_puts(out, "<span>");
    html_text(out, label.name);
    buf_puts(out, "=");
    html_text(out,
              mask_value(label, mask_all, &value) ? (struct sv){value.data, value.len} : SV(MASK));
    buf_done(&value);
    buf_puts(out, "</span>");
}

void html_time(struct buf *out, int64_t wall_ns)
{
    char text[40];
    if (wall_ns == 0) {
        buf_puts(out, "never");
        return;
    }
    clock_format_rfc3339(wall_ns, text, sizeof(text));
    /* text is, for example, 2026-11-22T14:00:00.123Z. */
    buf_printf(out, "<time datetime=\"%s\">%.10s %.8s</time>", text, text, text + 11);
}

void html_security(struct exchange *x)
{
    buf_puts(&x->headers, "Content-Security-Policy: default-src 'none'; script-src 'self'; "
                          "style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                          "form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n"
                          "X-Content-Type-Options: nosniff\r\n"
                          "Referrer-Policy: no-referrer\r\n");
}

void html_begin(struct exchange *x, const char *title, const char *active)
{
    static const struct {
        const char *path;
        const char *text;
    } links[] = {
        {"./", "Overview"},          {"profiles", "Profiles"}, {"changes", "Changes"},
        {"targets", "Targets"},      {"dropped", "Dropped"},   {"destinations", "Destinations"},
        {"config", "Configuration"}, {"links", "More"},
    };
    struct buf *out = &x->reply;
    x->status = STATUS_OK;
    x->content_type = "text/html; charset=utf-8";
    html_security(x);
    buf_puts(&x->headers, "Cache-Control: no-store\r\n");
    buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                  "<link rel=\"stylesheet\" href=\"assets/app.css\">"
                  "<link rel=\"icon\" href=\"data:,\"><title>");
    html_text(out, sv_from(title));
    buf_puts(out, " · profpull</title></head><body>\n<header class=\"top\">"
                  "<a class=\"brand\" href=\"./\">profpull</a><nav>");
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        buf_printf(out, "<a href=\"%s\"%s>%s</a>", links[i].path,
                   str_same(links[i].path, active) ? " aria-current=\"page\"" : "", links[i].text);
    }
    buf_puts(out, "</nav><button id=\"theme\" type=\"button\" aria-label=\"Light or dark\" hidden>"
                  "◐</button></header>\n<main>\n");
}

void html_end(struct exchange *x)
{
    struct buf *out = &x->reply;
    if (x->partial != NULL && x->partial->parts > 0) {
        buf_printf(out,
                   "<p class=\"warn\">This page is not complete: parts that cannot be read: %zu. ",
                   x->partial->parts);
        html_text(out, sv_from(x->partial->why));
        buf_puts(out, "</p>\n");
    }
    buf_puts(out, "</main>\n<footer>profpull ");
    html_text(out, sv_from(x->options->served->version));
    buf_puts(out, "</footer>\n<script type=\"module\" src=\"assets/theme.js\"></script>"
                  "</body></html>\n");
    exchange_deflate(x);
}

void html_name(struct buf *out, struct sv name)
{
    size_t start = 0;
    for (size_t i = 0; i < name.n; i++) {
        bool after = name.p[i] == '/' || name.p[i] == '.';
        size_t end = i + after;
        if (after || (name.p[i] == '(' && i > start)) {
            html_text(out, (struct sv){name.p + start, end - start});
            buf_puts(out, "<wbr>");
            start = end;
        }
    }
    html_text(out, sv_skip(name, start));
}
