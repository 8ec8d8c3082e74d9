#include "cli/store/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/terminal/terminal.h"

#define BAR_MS 100
#define LINE_MS (10 * MS_PER_S)
#define BAR_COLUMNS 24
#define TEXT_MAX 512

void progress_format_size(uint64_t bytes, char out[PROGRESS_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        (void)snprintf(out, PROGRESS_SIZE, "%llu B", (unsigned long long)bytes);
        return;
    }
    double n = (double)bytes / 1024;
    size_t i = 0;
    /* A value that would be printed as 1024.0 takes the next unit. */
    for (; n >= 1023.95 && i + 1 < sizeof(units) / sizeof(units[0]); i++) {
        n /= 1024;
    }
    (void)snprintf(out, PROGRESS_SIZE, "%.1f %s", n, units[i]);
}

static size_t columns(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : TERMINAL_WIDTH;
}

void progress_begin(struct progress *p, const char *verb, bool quiet, uint64_t files,
                    uint64_t bytes)
{
    const char *term = cmd_environment("TERM");
    *p = (struct progress){.verb = verb,
                           .quiet = quiet,
                           .bar = isatty(STDERR_FILENO) == 1 && term != NULL &&
                                  strcmp(term, "dumb") != 0,
                           .files = files,
                           .bytes = bytes,
                           .shown_ms = clock_mono_ms()};
}

/* Returns the part that is done, in thousandths. The bytes of an upload may exceed what was
 * announced. */
static unsigned done_of(const struct progress *p)
{
    double part = p->bytes > 0   ? (double)p->bytes_done / (double)p->bytes
                  : p->files > 0 ? (double)p->files_done / (double)p->files
                                 : 1;
    return part >= 1 ? 1000 : (unsigned)(part * 1000);
}

static void put_numbers(const struct progress *p, struct buf *out)
{
    char done[PROGRESS_SIZE];
    char all[PROGRESS_SIZE];
    buf_printf(out, "%llu of %llu files", (unsigned long long)p->files_done,
               (unsigned long long)p->files);
    if (p->bytes > 0) {
        progress_format_size(p->bytes_done, done);
        progress_format_size(p->bytes, all);
        buf_printf(out, ", %s of %s", done, all);
    }
}

void progress_text(const struct progress *p, size_t width, struct buf *out)
{
    unsigned done = done_of(p);
    size_t start = out->len;
    buf_putc(out, '[');
    for (unsigned i = 0; i < BAR_COLUMNS; i++) {
        buf_putc(out, i * 1000 < done * BAR_COLUMNS ? '#' : '.');
    }
    buf_printf(out, "] %3u%%  ", done / 10);
    put_numbers(p, out);
    if (out->len - start > width) {
        out->len = start + width;
    }
}

static void show(struct progress *p)
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    if (p->bar) {
        buf_putc(&text, '\r');
        /* The last column stays free: some terminals would break the line. */
        progress_text(p, columns() - 1, &text);
        buf_puts(&text, "\033[K");
        p->drawn = true;
    } else {
        buf_printf(&text, "profpull: %s ", p->verb);
        put_numbers(p, &text);
        buf_putc(&text, '\n');
    }
    fputs(buf_ok(&text) ? text.data : "", stderr);
    (void)fflush(stderr);
    buf_done(&text);
}

void progress_set(struct progress *p, uint64_t files_done, uint64_t bytes_done)
{
    int64_t now_ms = clock_mono_ms();
    p->files_done = files_done;
    p->bytes_done = bytes_done;
    if (!p->quiet && now_ms - p->shown_ms >= (p->bar ? BAR_MS : LINE_MS)) {
        p->shown_ms = now_ms;
        show(p);
    }
}

void progress_clear(struct progress *p)
{
    if (p->drawn) {
        fputs("\r\033[K", stderr);
        (void)fflush(stderr);
        p->drawn = false;
    }
}
