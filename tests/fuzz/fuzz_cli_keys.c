/* Any bytes as keys of a browsed flame graph: each byte belongs to a key, the picture can always be
 * drawn, and no control character that was typed is in it. */
#include <string.h>

#include "cli/flame/browse.h"
#include "tests/fuzz/fuzz.h"

#define PICTURE_MAX ((size_t)1024 * 1024)

static struct tree *make_tree(void)
{
    static const char *const names[] = {"main", "json", "gc", "a"};
    struct tree *t = tree_new((size_t)1024 * 1024, NULL);
    for (size_t i = 0; i < 64; i++) {
        uint32_t node = 0;
        uint32_t name;
        for (size_t k = i; k > 0; k /= 4) {
            REQUIRE(tree_name(t, sv_from(names[k % 4]), &name, NULL) &&
                    tree_child(t, node, name, &node, NULL));
        }
        tree_add(t, node, (int64_t)i);
    }
    tree_sum(t);
    return t;
}

FUZZ(rest)
{
    const struct terminal terminal = {.width = 60, .height = 10};
    const struct flame_options options = {.title = "t", .unit = "count"};
    struct err err = ERR_INIT;
    struct buf out;
    struct tree *t = make_tree();
    struct browse *b = browse_new(t, &options, &terminal, &err);
    bool on = true;
    REQUIRE(b != NULL);
    buf_init(&out, PICTURE_MAX);
    while (rest.n > 0 && on) {
        struct key key;
        size_t n = key_decode(rest, true, &key);
        n = n == 0 ? key_decode(rest, false, &key) : n;
        REQUIRE(n > 0 && n <= rest.n);
        on = browse_key(b, &key);
        rest = sv_skip(rest, n);
    }
    REQUIRE(browse_draw(b, &out, &err));
    for (size_t i = 0; i < out.len; i++) {
        unsigned char c = (unsigned char)out.data[i];
        REQUIRE(c == '\r' || c == '\n' || (c >= 0x20 && c < 0x7f) ||
                (c == '\033' && i + 1 < out.len && out.data[i + 1] == '['));
    }
    buf_done(&out);
    browse_free(b);
    tree_free(t);
}
