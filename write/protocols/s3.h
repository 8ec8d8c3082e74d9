/* Functions of the protocol s3 that tests call; see s3.c. */
#ifndef PROFPULL_WRITE_PROTOCOLS_S3_H
#define PROFPULL_WRITE_PROTOCOLS_S3_H

#include <stddef.h>

/* The bytes of an object's note. AWS takes 2 KiB of metadata, the names of its headers included. */
#define S3_NOTE_MAX ((size_t)2000)

#endif
