/* Connects a browsed flame graph with the terminal. */
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/flame/browse.h"
#include "cli/terminal/raw.h"

#define PICTURE_MAX ((size_t)16 * 1024 * 1024)
#define INPUT_MAX 256
/* The rest of a key's sequence comes within this time, also over a slow connection. */
#define ESCAPE_MS 50

struct screen {
    struct browse *browse;
    struct raw_terminal raw;
    struct buf picture;
    char input[INPUT_MAX];
    size_t n_input;
};

static bool draw(struct screen *s, struct err *err)
{
    buf_clear(&s->picture);
    return browse_draw(s->browse, &s->picture, err) &&
           (write_all(STDOUT_FILENO, s->picture.data, s->picture.len) ||
            err_sys(err, "standard output"));
}

static void resize(struct screen *s)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        browse_resize(s->browse, size.ws_col, size.ws_row);
    }
}

/* Handles the keys that have arrived. Returns false if one of them quits. */
static bool take_keys(struct screen *s, bool more_may_come)
{
    while (s->n_input > 0) {
        struct key key;
        size_t n = key_decode((struct sv){s->input, s->n_input}, more_may_come, &key);
        if (n == 0) {
            return true;
        }
        s->n_input -= n;
        memmove(s->input, s->input + n, s->n_input);
        if (!browse_key(s->browse, &key)) {
            return false;
        }
    }
    return true;
}

/* Waits for one event and handles it. Returns false at the end. */
static bool step(struct screen *s, int *ret_signal)
{
    size_t n;
    int timeout = s->n_input > 0 ? ESCAPE_MS : -1;
    switch (
        raw_wait(&s->raw, timeout, s->input + s->n_input, INPUT_MAX - s->n_input, &n, ret_signal)) {
    case RAW_BYTES:
        s->n_input += n;
        return take_keys(s, true);
    case RAW_TIMEOUT:
        return take_keys(s, false);
    case RAW_RESIZED:
        resize(s);
        return true;
    case RAW_END:
    default:
        return false;
    }
}

bool browse_run(struct browse *b, int *ret_signal, struct err *err)
{
    struct screen s = {.browse = b};
    bool ok = true;
    *ret_signal = 0;
    if (isatty(STDOUT_FILENO) != 1) {
        return err_set(err, ERR_INPUT, "--interactive needs a terminal at standard output");
    }
    if (!raw_begin(&s.raw, err)) {
        return false;
    }
    buf_init(&s.picture, PICTURE_MAX);
    do {
        ok = draw(&s, err);
    } while (ok && step(&s, ret_signal));
    raw_end(&s.raw);
    buf_done(&s.picture);
    return ok;
}
