#include "cli/flame/colour.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct rgb {
    unsigned r;
    unsigned g;
    unsigned b;
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the length of a name without arguments and parameters: up to the first '(' that does not
 * begin a receiver such as ".(*conn)", or the first '[' or '<'. */
static size_t plain_length(struct sv name)
{
    for (size_t i = 1; i < name.n; i++) {
        char c = name.p[i];
        if (c == '[' || c == '<' || (c == '(' && name.p[i - 1] != '.')) {
            return i;
        }
    }
    return name.n;
}

/* Returns the place after the last such character of the first n bytes; 0 if there is none. */
static size_t after_last(struct sv name, size_t n, char c)
{
    const char *at = n == 0 ? NULL : memrchr(name.p, c, n);
    return at == NULL ? 0 : (size_t)(at - name.p) + 1;
}

struct sv colour_package(struct sv name)
{
    size_t n = plain_length(name);
    size_t path = after_last(name, n, '/');
    const char *dot = memchr(name.p + path, '.', n - path);
    if (path == 0 && dot != NULL) {
        /* Java and Python have dots only: the last part is the method, the one before the class. */
        size_t method = after_last(name, n, '.');
        size_t owner = method > 1 ? after_last(name, method - 1, '.') : 0;
        bool receiver = memchr(name.p, '(', n) != NULL;
        n = receiver || owner == 0 ? (size_t)(dot - name.p) : owner - 1;
    } else if (dot != NULL) {
        n = (size_t)(dot - name.p);
    } else {
        const char *scope = n < 2 ? NULL : memmem(name.p, n, "::", 2);
        n = scope == NULL ? n : (size_t)(scope - name.p);
    }
    return (struct sv){name.p, n};
}

struct sv colour_short(struct sv name, bool harder)
{
    size_t n = plain_length(name);
    size_t start = after_last(name, n, '/');
    if (harder) {
        size_t dot = after_last(name, n, '.');
        start = dot > start && dot < n ? dot : start;
    }
    return sv_skip(name, start);
}

/* ---- colours --------------------------------------------------------------------------------- */

static uint32_t hash_of(struct sv text)
{
    uint32_t hash = 2166136261U; /* FNV-1a */
    for (size_t i = 0; i < text.n; i++) {
        hash = (hash ^ (unsigned char)text.p[i]) * 16777619U;
    }
    /* FNV's high bits hardly depend on the last bytes: mixes them. */
    hash ^= hash >> 15;
    return hash * 2654435761U;
}

/* Converts a hue (0 to 359) with a saturation and lightness of 0 to 100. */
static struct rgb rgb_of(unsigned hue, unsigned saturation, unsigned lightness)
{
    unsigned rest = lightness < 50 ? lightness : 100 - lightness;
    unsigned half = saturation * rest * 255 / 10000; /* half of the range of the components */
    unsigned middle = lightness * 255 / 100;
    unsigned parts[3];
    static const unsigned shifts[] = {120, 0, 240}; /* where red, green and blue begin to rise */
    for (size_t i = 0; i < 3; i++) {
        unsigned at = (hue + shifts[i]) % 360; /* 0 to 59 rising, to 179 high, to 239 falling */
        unsigned level = at < 60 ? at : at < 180 ? 60 : at < 240 ? 240 - at : 0;
        parts[i] = middle + half * 2 * level / 60 - half;
    }
    return (struct rgb){parts[0], parts[1], parts[2]};
}

static unsigned cube_level(unsigned value)
{
    /* The levels of xterm's cube are 0, 95, 135, 175, 215 and 255. */
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

static void put_true(struct rgb back, struct rgb front, struct buf *out)
{
    buf_printf(out, "\033[48;2;%u;%u;%um\033[38;2;%u;%u;%um", back.r, back.g, back.b, front.r,
               front.g, front.b);
}

static void put_256(struct rgb back, struct rgb front, struct buf *out)
{
    unsigned b = 16 + 36 * cube_level(back.r) + 6 * cube_level(back.g) + cube_level(back.b);
    unsigned f = 16 + 36 * cube_level(front.r) + 6 * cube_level(front.g) + cube_level(front.b);
    buf_printf(out, "\033[48;5;%um\033[38;5;%um", b, f);
}

static void put_8(enum colour_role role, uint32_t hash, struct buf *out)
{
    static const unsigned backs[] = {1, 2, 3, 4, 6};
    if (role == COLOUR_SELECTED) {
        buf_puts(out, "\033[7m");
    } else if (role == COLOUR_MATCH) {
        buf_puts(out, "\033[45m\033[37m");
    } else if (role == COLOUR_ROOT) {
        buf_puts(out, "\033[47m\033[30m");
    } else {
        buf_printf(out, "\033[4%um\033[30m", backs[hash % (sizeof(backs) / sizeof(backs[0]))]);
    }
}

void colour_put(enum terminal_colours colours, enum colour_role role, struct sv name,
                struct buf *out)
{
    static const struct rgb black = {24, 24, 24};
    static const struct rgb white = {255, 255, 255};
    struct rgb back = {208, 208, 208};
    struct rgb front = black;
    uint32_t hash = hash_of(colour_package(name));
    if (role == COLOUR_FUNCTION) {
        unsigned shade = (hash_of(name) >> 16) % 2;
        back = rgb_of((hash >> 8) % 360, 62, shade == 0 ? 80 : 72);
    } else if (role == COLOUR_MATCH) {
        back = (struct rgb){200, 0, 170};
        front = white;
    } else if (role == COLOUR_SELECTED) {
        back = (struct rgb){20, 60, 190};
        front = white;
    }
    if (colours == COLOURS_TRUE) {
        put_true(back, front, out);
    } else if (colours == COLOURS_256) {
        put_256(back, front, out);
    } else if (colours == COLOURS_8) {
        put_8(role, hash, out);
    }
}

void colour_end(enum terminal_colours colours, struct buf *out)
{
    buf_puts(out, colours == COLOURS_NONE ? "" : "\033[0m");
}
