/* Writing the normalised configuration through libyaml's emitter, for the kinds of values. A
 * failure, such as a full buffer, shows at the end: config_dump() returns false. */
#ifndef PROFPULL_CONFIG_DUMP_H
#define PROFPULL_CONFIG_DUMP_H

#include "config/schema.h"

/* Writes the rows of a record: schema_write(). */
typedef void dump_record(struct dumper *d, const struct schema *schema, const void *record);

/* Appends a document with one record, a part of the configuration c. False if memory ran out. */
bool dump_document(const struct config *c, const struct schema *schema, const void *record,
                   dump_record *write, struct buf *out);
/* A hash of the document that dump_document() would append if it showed secrets. False if memory
 * ran out. */
bool dump_hash(const struct config *c, const struct schema *schema, const void *record,
               dump_record *write, uint64_t *ret_hash);

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
