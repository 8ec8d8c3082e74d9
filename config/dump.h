/* Writing the normalised configuration through libyaml's emitter; for the kinds of values only. A
 * failure, such as a full buffer, shows at the end: config_dump() returns false. */
#ifndef PROFPULL_CONFIG_DUMP_H
#define PROFPULL_CONFIG_DUMP_H

#include "config/schema.h"

/* A hash of what a dump of the record would be if it showed secrets. c: the configuration that the
 * record is part of. False if memory ran out. */
bool dump_hash(const struct config *c, const struct schema *s, const void *record,
               uint64_t *ret_hash);

/* The configuration that is dumped. */
const struct config *dump_config(const struct dumper *d);

/* Each has its key in front; NULL in a list, and after dump_name(). */
void dump_begin_mapping(struct dumper *d, const char *key);
void dump_end_mapping(struct dumper *d);
/* flow: in one line, between brackets. */
void dump_begin_list(struct dumper *d, const char *key, bool flow);
void dump_end_list(struct dumper *d);
/* A key chosen by the user rather than one of a schema. */
void dump_name(struct dumper *d, const char *name);
/* A value that needs no quotes. */
void dump_word(struct dumper *d, const char *key, const char *word);
void dump_number(struct dumper *d, const char *key, uint64_t value);
void dump_duration(struct dumper *d, const char *key, int64_t ms);
/* A value that loads to the same text; secrets (by the kind of text) are not shown. */
void dump_text(struct dumper *d, const char *key, const struct text_kind *kind, const char *text);

#endif
