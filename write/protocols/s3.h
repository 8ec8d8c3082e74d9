/* Functions of the protocol s3 that tests call; see s3.c. */
#ifndef PROFPULL_WRITE_PROTOCOLS_S3_H
#define PROFPULL_WRITE_PROTOCOLS_S3_H

#include <stddef.h>

/* The most bytes of an object's note (its metadata): AWS accepts 2 KiB of metadata, including the
 * names of the headers. */
#define S3_NOTE_MAX ((size_t)2000)

#endif
