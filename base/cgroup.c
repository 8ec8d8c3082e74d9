#include "base/cgroup.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "base/str.h"

#define TEXT_MAX 256

/* The directory of a group. Its parent directory is the group above it, up to the mount point. */
struct group {
    char dir[PATH_MAX];
    size_t mount_len;
    bool v2;
};

/* ---- small files ----------------------------------------------------------------------------- */

static FILE *open_in(const char *root, const char *path)
{
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s%s", root, path);
    return n < 0 || (size_t)n >= sizeof(full) ? NULL : fopen(full, "re");
}

/* Reads the first line of a file of a group, without its newline. Returns false if there is
 * none. */
static bool read_line(const struct group *g, const char *file, char out[TEXT_MAX])
{
    char path[PATH_MAX + 64];
    (void)snprintf(path, sizeof(path), "%s/%s", g->dir, file);
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return false;
    }
    bool ok = fgets(out, TEXT_MAX, f) != NULL;
    fclose(f);
    if (ok) {
        out[strcspn(out, "\n")] = '\0';
    }
    return ok;
}

/* ---- finding the group ----------------------------------------------------------------------- */

/* Returns true if the word is one of the words of a list that is separated by commas. */
static bool has_word(struct sv list, const char *word)
{
    struct sv head;
    struct sv tail = list;
    while (tail.n > 0) {
        if (!sv_cut(tail, ',', &head, &tail)) {
            head = tail;
            tail = SV("");
        }
        if (sv_eq_str(head, word)) {
            return true;
        }
    }
    return false;
}

/* Finds the path of our group in /proc/self/cgroup, whose lines are "N:CONTROLLERS:PATH"; the line
 * of v2 has no controllers. */
static bool find_path(const char *root, const char *controller, bool v2, char *out, size_t size)
{
    FILE *f = open_in(root, "/proc/self/cgroup");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    while (f != NULL && !found && getline(&line, &cap, f) > 0) {
        struct sv id;
        struct sv rest;
        struct sv controllers;
        struct sv path;
        line[strcspn(line, "\n")] = '\0';
        if (!sv_cut(sv_from(line), ':', &id, &rest) || !sv_cut(rest, ':', &controllers, &path)) {
            continue;
        }
        found = (v2 ? controllers.n == 0 : has_word(controllers, controller)) && path.n < size;
        if (found) {
            (void)snprintf(out, size, "%.*s", (int)path.n, path.p);
        }
    }
    free(line);
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/* A line of /proc/self/mountinfo: "ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE OPTIONS". */
struct mount {
    char *root;
    char *point;
    char *type;
    char *options;
};

static bool split_mount(char *line, struct mount *ret)
{
    enum { ROOT = 3, POINT = 4, FIELDS = 5 };
    char *fields[FIELDS];
    char *rest = strstr(line, " - ");
    char *at = NULL;
    if (rest == NULL) {
        return false;
    }
    *rest = '\0';
    rest += 3;
    fields[0] = strtok_r(line, " ", &at);
    for (size_t i = 1; i < FIELDS; i++) {
        fields[i] = strtok_r(NULL, " ", &at);
    }
    ret->root = fields[ROOT];
    ret->point = fields[POINT];
    ret->type = strtok_r(rest, " ", &at);
    (void)strtok_r(NULL, " ", &at);
    ret->options = strtok_r(NULL, " \n", &at);
    return ret->point != NULL && ret->type != NULL && ret->options != NULL;
}

static bool has_controller(const struct mount *m, const char *controller, bool v2)
{
    return v2 ? strcmp(m->type, "cgroup2") == 0
              : strcmp(m->type, "cgroup") == 0 && has_word(sv_from(m->options), controller);
}

/* Returns the part of a group's path below the mount point. In a container without a cgroup
 * namespace of its own, the mount begins at the container's group, so that the path has a prefix
 * (mount_root) that is not below the mount point. */
static const char *below(const char *mount_root, const char *path)
{
    size_t n = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    bool is_below = strncmp(path, mount_root, n) == 0 && (path[n] == '/' || path[n] == '\0');
    return is_below && strncmp(path, "/..", 3) != 0 ? path + n : "";
}

static bool find_group(const char *root, const char *controller, bool v2, struct group *ret)
{
    char path[PATH_MAX];
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    FILE *f = find_path(root, controller, v2, path, sizeof(path))
                  ? open_in(root, "/proc/self/mountinfo")
                  : NULL;
    while (f != NULL && !found && getline(&line, &cap, f) > 0) {
        struct mount m;
        if (!split_mount(line, &m) || !has_controller(&m, controller, v2)) {
            continue;
        }
        int n = snprintf(ret->dir, sizeof(ret->dir), "%s%s%s", root, m.point, below(m.root, path));
        found = n >= 0 && (size_t)n < sizeof(ret->dir);
        ret->mount_len = strlen(root) + strlen(m.point);
        ret->v2 = v2;
    }
    free(line);
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/* Moves to the group above. Returns false at the mount point. */
static bool go_up(struct group *g)
{
    char *slash = strlen(g->dir) > g->mount_len ? strrchr(g->dir, '/') : NULL;
    if (slash == NULL) {
        return false;
    }
    *slash = '\0';
    return strlen(g->dir) >= g->mount_len;
}

/* ---- limits ---------------------------------------------------------------------------------- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Reads a limit. Returns UINT64_MAX for "max", "-1" and a missing file. */
static uint64_t read_limit(const struct group *g, const char *file)
{
    char text[TEXT_MAX];
    uint64_t value;
    return read_line(g, file, text) && parse_u64(sv_from(text), UINT64_MAX, &value) ? value
                                                                                    : UINT64_MAX;
}

static uint64_t memory_of(const struct group *g)
{
    return g->v2 ? smaller(read_limit(g, "memory.max"), read_limit(g, "memory.high"))
                 : read_limit(g, "memory.limit_in_bytes");
}

/* Returns the CPUs that the quota of a group allows, rounded up. */
static uint64_t cpus_of(const struct group *g)
{
    uint64_t quota = UINT64_MAX;
    uint64_t period = 0;
    if (g->v2) { /* "150000 100000" */
        char text[TEXT_MAX];
        struct sv head;
        struct sv tail;
        if (!read_line(g, "cpu.max", text) || !sv_cut(sv_from(text), ' ', &head, &tail) ||
            !parse_u64(head, UINT64_MAX, &quota) || !parse_u64(tail, UINT64_MAX, &period)) {
            return UINT64_MAX;
        }
    } else {
        quota = read_limit(g, "cpu.cfs_quota_us");
        period = read_limit(g, "cpu.cfs_period_us");
    }
    bool limited = quota != UINT64_MAX && period != 0 && period != UINT64_MAX;
    return limited ? quota / period + (quota % period != 0) : UINT64_MAX;
}

/* Returns the smallest value of the group and of the groups above it, in both versions. */
static uint64_t smallest(const char *root, const char *controller,
                         uint64_t (*value_of)(const struct group *g))
{
    uint64_t least = UINT64_MAX;
    for (int v2 = 0; v2 <= 1; v2++) {
        struct group g;
        bool more = find_group(root, controller, v2 != 0, &g);
        while (more) {
            least = smaller(least, value_of(&g));
            more = go_up(&g);
        }
    }
    return least;
}

/* "MemTotal:       24683560 kB" */
static uint64_t machine_memory(const char *root)
{
    FILE *f = open_in(root, "/proc/meminfo");
    char line[TEXT_MAX];
    unsigned long long kib = 0;
    bool found =
        f != NULL && fgets(line, sizeof(line), f) != NULL && strncmp(line, "MemTotal:", 9) == 0;
    if (found) {
        kib = strtoull(line + 9, NULL, 10);
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib == 0 || kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

uint64_t cgroup_memory(const char *root)
{
    return smaller(smallest(root, "memory", memory_of), machine_memory(root));
}

unsigned cgroup_cpus(const char *root)
{
    cpu_set_t set;
    int allowed = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : get_nprocs();
    uint64_t cpus = smaller(smallest(root, "cpu", cpus_of), (uint64_t)(allowed < 1 ? 1 : allowed));
    return cpus < 1 ? 1 : (unsigned)cpus;
}
