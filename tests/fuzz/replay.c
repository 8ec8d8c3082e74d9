/* Runs a fuzz target over files and directories of inputs, so that every corpus is a regression
 * test on any compiler. Prints how many inputs there were; fails if there was none. */
#include "tests/fuzz/fuzz.h"
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

static size_t replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    uint8_t *data = NULL;
    size_t size = 0;
    size_t got;
    do {
        uint8_t *bigger = realloc(data, size + 65536);
        if (bigger == NULL) {
            abort();
        }
        data = bigger;
        got = fread(data + size, 1, 65536, f);
        size += got;
    } while (got > 0);
    if (ferror(f)) {
        perror(path);
        exit(1);
    }
    fclose(f);
    /* An exact copy, so that a sanitizer sees a read past the end. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (exact == NULL) {
        abort();
    }
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static size_t replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        perror(path);
        exit(1);
    }
    if (!S_ISDIR(st.st_mode)) {
        return replay_file(path);
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        perror(path);
        exit(1);
    }
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            char child[4096];
            snprintf(child, sizeof(child), "%s/%s", path, entries[i]->d_name);
            count += replay(child);
        }
        free(entries[i]);
    }
    free(entries);
    return count;
}

int main(int argc, char **argv)
{
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        count += replay(argv[i]);
    }
    printf("%zu inputs\n", count);
    return count == 0;
}
