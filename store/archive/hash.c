#include "store/archive/hash.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1024 * 1024)

void archive_hash_format(const unsigned char *sum, char ret[ARCHIVE_HASH_DIGITS + 1])
{
    for (size_t i = 0; i < ARCHIVE_HASH_DIGITS / 2; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", sum[i]);
    }
}

bool archive_hash_file(int fd, uint64_t size, char ret[ARCHIVE_HASH_DIGITS + 1], struct err *err)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    char *part = malloc(READ_BYTES);
    unsigned char sum[EVP_MAX_MD_SIZE];
    bool ok = md != NULL && part != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    (void)(ok || err_memory(err));
    for (uint64_t at = 0; ok && at < size;) {
        size_t n = size - at < READ_BYTES ? (size_t)(size - at) : READ_BYTES;
        ssize_t got = pread(fd, part, n, (off_t)at);
        ok = got > 0 ? EVP_DigestUpdate(md, part, (size_t)got) == 1
                     : err_sys(err, "cannot read all of it");
        at += got > 0 ? (uint64_t)got : 0;
    }
    ok = ok && EVP_DigestFinal_ex(md, sum, NULL) == 1;
    if (ok) {
        archive_hash_format(sum, ret);
    }
    EVP_MD_CTX_free(md);
    free(part);
    return ok;
}
