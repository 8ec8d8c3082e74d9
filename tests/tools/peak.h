/* The memory of this process, as the kernel counts it. */
#ifndef PROFPULL_TESTS_TOOLS_PEAK_H
#define PROFPULL_TESTS_TOOLS_PEAK_H

#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns a line of /proc/self/status ("VmRSS:", "VmHWM:", ...) in bytes; 0: it cannot be read. */
static inline size_t peak_status(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            kib = strtoul(line + strlen(name), NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib * 1024;
}

/* Gives free memory back and begins a new peak. Returns what is resident, or 0 if there is no way
 * to begin one. */
static inline size_t peak_begin(void)
{
    malloc_trim(0);
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, "5", 1) == 1;
    if (fd >= 0) {
        close(fd);
    }
    return ok ? peak_status("VmRSS:") : 0;
}

#endif
