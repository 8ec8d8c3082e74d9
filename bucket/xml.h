/* A scanner of the XML that object stores and AWS's token service send.
 *
 * The XML of these APIs is a small part of the language: elements with text or with elements. The
 * scanner is strict about this part and refuses the rest: document types, entities other than the
 * five of XML and numbers, CDATA, processing instructions after the first line. Attributes and
 * comments are skipped, prefixes of names are ignored. It allocates nothing and its work is linear
 * in the size of the text. The text must outlive the scanner. Any thread.
 */
#ifndef PROFPULL_BUCKET_XML_H
#define PROFPULL_BUCKET_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/str.h"

/* The deepest nesting. Listings have four levels. */
#define XML_DEPTH_MAX 16

struct xml {
    struct sv rest;
    unsigned depth; /* open elements */
    struct sv names[XML_DEPTH_MAX];
    struct sv text; /* of the innermost element, since its start tag */
    bool leaf;      /* the innermost element has had no elements */
    bool started;
    bool bad;
};

/* An element that has ended. */
struct xml_element {
    struct sv name;
    struct sv parent; /* empty: it is the root */
    unsigned depth;   /* 1: the root */
    struct sv text;   /* with its entities; empty if it has elements */
};

void xml_init(struct xml *x, struct sv text);
/* Reads to the end of the next element, so children come before their parents. Returns false at the
 * end of the text, or if it is not well-formed (xml_ok()). */
bool xml_next(struct xml *x, struct xml_element *ret);
/* Returns true if the whole text has been read and was well-formed. */
bool xml_ok(const struct xml *x);
/* Appends a text with its entities replaced. Returns false at an unknown entity, or if out is full.
 */
bool xml_unescape(struct sv text, struct buf *out);
/* Does the same for people: unknown entities stay. */
bool xml_show(struct sv text, struct buf *out);
/* Appends a text with "&", "<" and ">" and quotes as entities. */
bool xml_escape(struct sv text, struct buf *out);

#endif
