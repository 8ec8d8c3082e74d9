#include "base/sandbox.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/landlock.h"
#include "base/seccomp.h"
#include "base/str.h"

/* The longest list of paths; a configuration names a few dozen. */
#define PATHS_MAX 65536
#define PORTS_MAX 16
#define ARENA_MAX (UINT64_C(16) << 20)

struct sandbox {
    struct arena *arena;
    struct landlock_path *paths; /* absolute, without symbolic links */
    size_t n_paths;
    size_t max_paths;
    uint16_t ports[PORTS_MAX];
    size_t n_ports;
    bool programs;
    bool failed;
};

struct sandbox *sandbox_new(void)
{
    struct arena *arena = arena_new(ARENA_MAX);
    struct sandbox *s = arena == NULL ? NULL : arena_alloc(arena, sizeof(*s));
    if (s == NULL) {
        arena_free(arena);
        return NULL;
    }
    *s = (struct sandbox){.arena = arena};
    return s;
}

struct sandbox *sandbox_free(struct sandbox *s)
{
    if (s != NULL) {
        free(s->paths);
        arena_free(s->arena);
    }
    return NULL;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Returns true if `path` is the directory or below it. Both are absolute. */
static bool is_within(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return strcmp(directory, "/") == 0 ||
           (strncmp(path, directory, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

static bool has_path(const struct sandbox *s, const struct landlock_path *wanted)
{
    for (size_t i = 0; i < s->n_paths; i++) {
        const struct landlock_path *own = &s->paths[i];
        if (is_within(wanted->path, own->path) && (own->writable || !wanted->writable)) {
            return true;
        }
    }
    return false;
}

static bool has_port(const struct sandbox *s, uint16_t port)
{
    for (size_t i = 0; i < s->n_ports; i++) {
        if (s->ports[i] == port) {
            return true;
        }
    }
    return false;
}

static void add_path(struct sandbox *s, const char *path, bool writable, bool hangs)
{
    struct landlock_path added = {.path = path, .writable = writable, .hangs = hangs};
    if (has_path(s, &added)) {
        return;
    }
    if (s->n_paths == s->max_paths && s->max_paths < PATHS_MAX) {
        size_t max = s->max_paths == 0 ? 64 : 2 * s->max_paths;
        struct landlock_path *grown = reallocarray(s->paths, max, sizeof(*s->paths));
        if (grown != NULL) {
            s->paths = grown;
            s->max_paths = max;
        }
    }
    added.path = arena_strdup(s->arena, path);
    if (s->n_paths == s->max_paths || added.path == NULL) {
        s->failed = true;
        return;
    }
    s->paths[s->n_paths++] = added;
}

/* Removes the last part of a path. The result is "." if the path has only one part. */
static void cut_to_directory(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        memcpy(path, ".", 2);
    } else {
        slash[slash == path ? 1 : 0] = '\0';
    }
}

/* Resolves a path, or the part of it that exists, to one without symbolic links. Returns false if
 * the result is the root directory but the path was another one. */
static bool resolve(const char *path, char *ret_resolved)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(part)) {
        return false;
    }
    memcpy(part, path, n + 1);
    while (realpath(part, ret_resolved) == NULL) {
        if (strcmp(part, "/") == 0 || strcmp(part, ".") == 0) {
            return false;
        }
        cut_to_directory(part);
    }
    return strcmp(ret_resolved, "/") != 0 || strcmp(path, "/") == 0;
}

static void list(struct sandbox *s, const char *path, bool writable)
{
    char resolved[PATH_MAX];
    if (resolve(path, resolved)) {
        add_path(s, resolved, writable, false);
    }
}

void sandbox_read(struct sandbox *s, const char *path)
{
    list(s, path, false);
}

void sandbox_write(struct sandbox *s, const char *path)
{
    list(s, path, true);
}

void sandbox_write_hanging(struct sandbox *s, const char *path)
{
    add_path(s, path, true, true);
}

void sandbox_read_file(struct sandbox *s, const char *path)
{
    char directory[PATH_MAX];
    char resolved[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof(directory)) {
        return;
    }
    memcpy(directory, path, n + 1);
    cut_to_directory(directory);
    if (strcmp(directory, "/") != 0) {
        list(s, directory, false);
    }
    struct stat st;
    if (!resolve(path, resolved) || stat(resolved, &st) != 0 || S_ISDIR(st.st_mode)) {
        return;
    }
    memcpy(directory, resolved, strlen(resolved) + 1);
    cut_to_directory(directory);
    add_path(s, strcmp(directory, "/") != 0 ? directory : resolved, false, false);
}

void sandbox_start_programs(struct sandbox *s)
{
    s->programs = true;
}

void sandbox_listen(struct sandbox *s, uint16_t port)
{
    if (has_port(s, port)) {
        return;
    }
    if (s->n_ports == PORTS_MAX) {
        s->failed = true;
        return;
    }
    s->ports[s->n_ports++] = port;
}

bool sandbox_covers(const struct sandbox *s, const struct sandbox *other, struct err *err)
{
    if (s->failed || other->failed) {
        return err_memory(err);
    }
    if (other->programs && !s->programs) {
        return err_set(err, ERR_INPUT, "starting programs");
    }
    for (size_t i = 0; !s->programs && i < other->n_paths; i++) {
        if (!has_path(s, &other->paths[i])) {
            return err_set(err, ERR_INPUT, "%s %s",
                           other->paths[i].writable ? "writing to" : "reading",
                           other->paths[i].path);
        }
    }
    for (size_t i = 0; !s->programs && i < other->n_ports; i++) {
        if (!has_port(s, other->ports[i])) {
            return err_set(err, ERR_INPUT, "listening on port %u", (unsigned)other->ports[i]);
        }
    }
    return true;
}

/* ---- in force -------------------------------------------------------------------------------- */

const char *sandbox_part_name(enum sandbox_part part)
{
    static const char *const names[SANDBOX_PARTS] = {
        [SANDBOX_NO_NEW_PRIVS] = "no_new_privs",
        [SANDBOX_SECCOMP] = "seccomp",
        [SANDBOX_LANDLOCK] = "landlock",
    };
    return names[part];
}

static bool forbid_new_privileges(struct err *err)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 || err_sys(err, "refused");
}

static bool restrict_files(const struct sandbox *s, struct err *err)
{
    const struct landlock_rules rules = {
        .paths = s->paths, .n_paths = s->n_paths, .ports = s->ports, .n_ports = s->n_ports};
    if (s->programs) {
        return err_set(err, ERR_INPUT, "a kubeconfig starts a program, whose files are not known");
    }
    return landlock_restrict(&rules, err);
}

bool sandbox_enter(const struct sandbox *s, struct sandbox_report *ret, struct err *err)
{
    *ret = (struct sandbox_report){.landlock_version = landlock_version()};
    if (s->failed) {
        return err_memory(err);
    }
#ifdef INSTRUMENTED
    /* Sanitizers and coverage make system calls and write files of their own, so their builds have
     * no sandbox. */
    for (enum sandbox_part i = 0; i < SANDBOX_PARTS; i++) {
        err_set(&ret->why[i], ERR_INPUT, "not in an instrumented build");
    }
    (void)forbid_new_privileges;
    (void)restrict_files;
#else
    ret->on[SANDBOX_NO_NEW_PRIVS] = forbid_new_privileges(&ret->why[SANDBOX_NO_NEW_PRIVS]);
    /* seccomp last: it forbids the calls of Landlock. */
    ret->on[SANDBOX_LANDLOCK] = restrict_files(s, &ret->why[SANDBOX_LANDLOCK]);
    ret->on[SANDBOX_SECCOMP] = seccomp_restrict(s->programs, &ret->why[SANDBOX_SECCOMP]);
#endif
    return true;
}
