/* Measures the cost of sharing targets among many replicas when replicas come and go, by the code
 * that the program uses for it (agent/sharing/members.h).
 *
 *   sharding-sim [REPLICAS] [TARGETS]
 *
 * Prints how even the shares are, and which part of the targets moves when a replica joins, leaves
 * or is replaced by one with another name, and when all are replaced one after the other. A key is
 * a pod's address, as networks assign them; a name is that of a pod of a StatefulSet.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/sharing/members.h"
#include "agent/sharing/rendezvous.h"
#include "base/str.h"

#define NAME_SIZE 64
#define REPLICAS_MAX (MEMBERS_MAX - 1)
#define TARGETS_MAX 10000000

struct simulation {
    struct members *members;
    char names[MEMBERS_MAX][NAME_SIZE];
    size_t n;
    uint64_t *keys;
    uint64_t *owners; /* of each key: the hash of the name, before a step */
    size_t n_keys;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "sharding-sim: %s\n", what);
    exit(1);
}

static int by_name(const void *a, const void *b)
{
    return sv_cmp(sv_from(a), sv_from(b));
}

/* The members are in the order of their names. */
static void set_members(struct simulation *s)
{
    struct sv names[MEMBERS_MAX];
    qsort(s->names, s->n, NAME_SIZE, by_name);
    for (size_t i = 0; i < s->n; i++) {
        names[i] = sv_from(s->names[i]);
    }
    if (members_set(s->members, names, s->n, MEMBERS_NONE, 0) == MEMBERS_NO_MEMORY) {
        die("out of memory");
    }
}

static void make_name(char name[NAME_SIZE], const char *prefix, size_t i)
{
    (void)snprintf(name, NAME_SIZE, "%s-%zu", prefix, i);
}

static uint64_t owner_of(const struct simulation *s, uint64_t key)
{
    return rendezvous_hash(sv_from(members_owner(s->members, key)));
}

static void note_owners(struct simulation *s)
{
    for (size_t i = 0; i < s->n_keys; i++) {
        s->owners[i] = owner_of(s, s->keys[i]);
    }
}

/* Counts the keys whose owner is another one now. */
static double moved(const struct simulation *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_keys; i++) {
        n += owner_of(s, s->keys[i]) != s->owners[i];
    }
    return 100.0 * (double)n / (double)s->n_keys;
}

static size_t index_of(const struct simulation *s, const char *name)
{
    size_t i = 0;
    while (i < s->n && !sv_eq_str(sv_from(s->names[i]), name)) {
        i++;
    }
    return i;
}

static void print_balance(const struct simulation *s)
{
    size_t counts[MEMBERS_MAX] = {0};
    size_t least = SIZE_MAX;
    size_t most = 0;
    for (size_t i = 0; i < s->n_keys; i++) {
        counts[index_of(s, members_owner(s->members, s->keys[i]))]++;
    }
    for (size_t i = 0; i < s->n; i++) {
        least = counts[i] < least ? counts[i] : least;
        most = counts[i] > most ? counts[i] : most;
    }
    double mean = (double)s->n_keys / (double)s->n;
    (void)printf("  targets of a replica               mean %.0f, least %.3f, most %.3f of it\n",
                 mean, (double)least / mean, (double)most / mean);
}

static void step(struct simulation *s, const char *what, double even)
{
    set_members(s);
    (void)printf("  %-34s %.3f %% of the targets move (an even share: %.3f %%)\n", what, moved(s),
                 even);
    note_owners(s);
}

/* Each replica gets a name that was not there before, one after the other; the steps summed up. */
static double replace_all(struct simulation *s)
{
    double sum = 0;
    size_t n = s->n;
    for (size_t i = 0; i < n; i++) {
        char old[NAME_SIZE];
        make_name(old, "profpull", i);
        size_t at = index_of(s, old);
        make_name(s->names[at], "profpull-new", i);
        set_members(s);
        sum += moved(s);
        note_owners(s);
    }
    return sum;
}

static void simulate(struct simulation *s)
{
    double share = 100.0 / (double)s->n;
    print_balance(s);
    make_name(s->names[s->n], "profpull", s->n);
    s->n++;
    step(s, "one joins", 100.0 / (double)s->n);
    char last[NAME_SIZE];
    make_name(last, "profpull", s->n - 1);
    size_t at = index_of(s, last);
    s->n--;
    for (size_t i = at; i < s->n; i++) {
        (void)snprintf(s->names[i], NAME_SIZE, "%s", s->names[i + 1]);
    }
    step(s, "one leaves", 100.0 / (double)(s->n + 1));
    double all = replace_all(s);
    (void)printf(
        "  all replaced, one after the other  %.1f %% of the targets move in all, %.3f %% a "
        "replica (a share is %.3f %%)\n",
        all, all / (double)s->n, share);
    print_balance(s);
}

static uint64_t number(const char *text, uint64_t max)
{
    uint64_t n;
    if (!parse_u64(sv_from(text), max, &n) || n < 2) {
        die("usage: sharding-sim [REPLICAS] [TARGETS]");
    }
    return n;
}

int main(int argc, char **argv)
{
    static struct simulation s;
    s.n = argc > 1 ? number(argv[1], REPLICAS_MAX) : 100;
    s.n_keys = argc > 2 ? number(argv[2], TARGETS_MAX) : 100000;
    s.members = members_new(&(struct members_options){.handover_ms = 0});
    s.keys = calloc(s.n_keys, sizeof(*s.keys));
    s.owners = calloc(s.n_keys, sizeof(*s.owners));
    if (s.members == NULL || s.keys == NULL || s.owners == NULL) {
        die("out of memory");
    }
    for (size_t i = 0; i < s.n_keys; i++) {
        char key[NAME_SIZE];
        (void)snprintf(key, sizeof(key), "10.%zu.%zu.%zu", i / 25000 % 250, i / 100 % 250,
                       i % 100 + 2);
        s.keys[i] = rendezvous_hash(sv_from(key));
    }
    for (size_t i = 0; i < s.n; i++) {
        make_name(s.names[i], "profpull", i);
    }
    (void)printf("%zu targets among %zu replicas\n", s.n_keys, s.n);
    set_members(&s);
    note_owners(&s);
    simulate(&s);
    free(s.keys);
    free(s.owners);
    s.members = members_free(s.members);
    return 0;
}
