/* ${NAME} and ${NAME:-default} in values. */
#ifndef PROFPULL_CONFIG_EXPAND_H
#define PROFPULL_CONFIG_EXPAND_H

#include "base/buf.h"
#include "base/str.h"
#include "config/config.h"

/* Returns the value of an environment variable, from the options' `env` if they have one; NULL if
 * it is not set. options may be NULL. */
const char *expand_lookup(const struct config_options *options, const char *name);
/* Returns true if a text contains anything to expand or to unescape. */
bool expand_needed(struct sv text);
/* Appends text with the variables filled in: ${NAME} must be set (it may be empty),
 * ${NAME:-default} gives the default where NAME is unset or empty, $${ is a literal ${. The error
 * never shows text. */
bool expand_env(struct sv text, const struct config_options *options, struct buf *out,
                struct err *err);

#endif
