/* Saved tables of names, with a good checksum: any bytes are read or refused, and a table that was
 * read is written and read again. */
#include <string.h>

#include "base/str.h"
#include "symbols/saved.h"
#include "tests/fuzz/fuzz.h"

#define MAGIC "profpull names 1\n"
#define BYTES_MAX ((size_t)4 * 1024 * 1024)

/* Reads records that follow a head with the right checksum. */
static bool read_records(struct symbol_table *t, const uint8_t *data, size_t size)
{
    uint64_t check = hash_bytes(data, size, 0x5eed);
    struct buf bytes;
    buf_init(&bytes, BYTES_MAX);
    buf_puts(&bytes, MAGIC);
    buf_append(&bytes, &check, sizeof(check));
    buf_append(&bytes, data, size);
    bool ok = symbol_saved_read(t, (struct sv){bytes.data, bytes.len}, NULL);
    buf_done(&bytes);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct symbol_names *n = symbol_names_new((size_t)32 * 1024 * 1024);
    struct symbol_table *t = symbol_names_table(n, (struct pprof_key){{1, 1}});
    struct symbol_table *again = symbol_names_table(n, (struct pprof_key){{2, 2}});
    struct buf bytes;
    buf_init(&bytes, BYTES_MAX);
    (void)symbol_saved_read(t, (struct sv){(const char *)data, size}, NULL);
    if (size <= 64 * 1024 && read_records(t, data, size)) {
        REQUIRE(symbol_saved_write(t, &bytes));
        REQUIRE(symbol_saved_read(again, (struct sv){bytes.data, bytes.len}, NULL));
    }
    buf_done(&bytes);
    symbol_table_unref(t);
    symbol_table_unref(again);
    symbol_names_free(n);
    return 0;
}
