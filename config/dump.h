/* Writes the normalised configuration through libyaml's emitter, with one function for each kind of
 * value. The functions report no failure, such as a full buffer; config_dump() returns false at the
 * end. */
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

/* Returns the configuration that is being dumped. */
const struct config *dump_config(const struct dumper *d);

/* Each function writes the key before the value. The key is NULL in a list, and after dump_name().
 */
void dump_begin_mapping(struct dumper *d, const char *key);
void dump_end_mapping(struct dumper *d);
/* flow: the list is written on one line, between brackets. */
void dump_begin_list(struct dumper *d, const char *key, bool flow);
void dump_end_list(struct dumper *d);
/* Writes a key that the user chose, rather than one of a schema. */
void dump_name(struct dumper *d, const char *name);
/* Writes a value that needs no quotes. */
void dump_word(struct dumper *d, const char *key, const char *word);
void dump_number(struct dumper *d, const char *key, uint64_t value);
void dump_duration(struct dumper *d, const char *key, int64_t ms);
/* Writes a value so that it loads to the same text. If `kind` says that it is a secret, it is not
 * shown. */
void dump_text(struct dumper *d, const char *key, const struct text_kind *kind, const char *text);

#endif
