/* CRC-32C (Castagnoli: polynomial 0x1EDC6F41, reflected), the checksum of the spool. Pure. */
#ifndef PROFPULL_WRITE_SPOOL_CRC32C_H
#define PROFPULL_WRITE_SPOOL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum after n more bytes; crc is that of the bytes before them, 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *data, size_t n);
/* Does the same without the processor's instruction for it; tests compare both. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t n);

#endif
