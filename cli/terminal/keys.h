/* Keys, as terminals send them. Pure; any thread. */
#ifndef PROFPULL_CLI_TERMINAL_KEYS_H
#define PROFPULL_CLI_TERMINAL_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum key_kind {
    KEY_UNKNOWN, /* a sequence that has no meaning here */
    KEY_RUNE,    /* a character that can be printed */
    KEY_ENTER,
    KEY_BACKSPACE,
    KEY_ESCAPE,
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
};

struct key {
    enum key_kind kind;
    uint32_t rune; /* of KEY_RUNE */
};

/* Decodes the key at the start of the bytes, which are not empty. Returns its length; 0 if the key
 * may be longer and more may come. An escape with nothing after it is KEY_ESCAPE only if no more
 * may come: the caller has waited for the rest of a sequence. */
size_t key_decode(struct sv bytes, bool more_may_come, struct key *ret);

#endif
