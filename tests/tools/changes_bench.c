/* How often the comparison of two versions is right, on programs whose truth is known
 * (tests/unit/lib/changes_world.h).
 *
 *   changes-bench [COMPARISONS [PLANTED]]
 *
 * Compares equal programs (200 times for each row) and programs of which one function grew (100
 * times), with different numbers of instances and loads, and prints how often something was said to
 * have changed, how often the function was found, and how often the 95 % interval contains the
 * truth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/lib/changes_world.h"

#define ARENA_BYTES ((size_t)64 * 1024 * 1024)
#define CORES 1.0

struct row {
    const char *name;
    size_t instances;
    size_t minutes;
    double load; /* of the new side, relative to that of the base */
    double growth;
    double share;
    double noise;
};

static const struct row rows[] = {
    {"the same program", 3, 30, 1, 0, 0.1, 1},
    {"the same program, half the load", 3, 30, 0.5, 0, 0.1, 1},
    {"the same program, twice the load", 3, 30, 2, 0, 0.1, 1},
    {"the same program, twice the noise", 3, 30, 1, 0, 0.1, 2},
    {"the same program", 2, 30, 1, 0, 0.1, 1},
    {"the same program", 10, 30, 1, 0, 0.1, 1},
    {"the same program", 3, 5, 1, 0, 0.1, 1},
    {"10 % of CPU grow by 10 %", 3, 30, 1, 0.1, 0.1, 1},
    {"the same, half the load", 3, 30, 0.5, 0.1, 0.1, 1},
    {"the same, twice the load", 3, 30, 2, 0.1, 0.1, 1},
    {"the same, twice the noise", 3, 30, 1, 0.1, 0.1, 2},
    {"10 % of CPU grow by 10 %", 2, 30, 1, 0.1, 0.1, 1},
    {"10 % of CPU grow by 10 %", 10, 30, 1, 0.1, 0.1, 1},
    {"10 % of CPU grow by 30 %", 3, 5, 1, 0.3, 0.1, 1},
    {"10 % of CPU become 25 %", 3, 30, 1, 2, 0.1, 1},
    {"2 % of CPU grow by 50 %", 3, 30, 1, 0.5, 0.02, 1},
};

struct tally {
    size_t flagged; /* comparisons in which any function was said to have changed */
    size_t found;   /* the planted function was said to have grown */
    size_t first;   /* and it is the first of all */
    size_t wrong;   /* verdicts about the self of other functions */
    size_t covered; /* intervals of the planted function that contain the truth */
};

static void count(const struct row *row, const struct verdicts *v, struct tally *t)
{
    t->flagged += v->n_changed > 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct cost_change *self = &v->at[i].cost[COST_SELF];
        if (v->at[i].index != WORLD_PLANTED) {
            t->wrong += self->changed;
            continue;
        }
        bool found = self->changed && self->effect > 0;
        double truth = row->share * row->growth;
        t->found += found;
        t->first += found && i == 0;
        t->covered += self->effect_low <= truth && truth <= self->effect_high;
    }
}

static void run(const struct row *row, size_t n, uint64_t seed)
{
    struct tally t = {.flagged = 0};
    struct arena *arena = arena_new(ARENA_BYTES);
    for (size_t i = 0; i < n; i++) {
        struct changes_world w;
        struct verdicts v;
        struct err err = ERR_INIT;
        const struct world_options opt = {
            .seed = seed * 1000000 + i,
            .instances = {row->instances, row->instances},
            .minutes = row->minutes,
            .load = {CORES, CORES * row->load},
            .growth = row->growth,
            .share = row->share,
            .noise = row->noise,
        };
        world_init(&w, &opt);
        if (arena == NULL || !verdicts_make(&w.o, arena, &v, &err)) {
            (void)fprintf(stderr, "%s\n", err.msg);
            exit(1);
        }
        count(row, &v, &t);
        world_done(&w);
        arena_reset(arena);
    }
    (void)printf("%-34s %2zu x %2zu min %5zu %8zu %6zu %6zu %6zu %8.0f %%\n", row->name,
                 row->instances, row->minutes, n, t.flagged, t.found, t.first, t.wrong,
                 100.0 * (double)t.covered / (double)n);
    (void)fflush(stdout);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    size_t same = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    size_t planted = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
    (void)printf("%-34s %11s %5s %8s %6s %6s %6s %10s\n", "", "each side", "tries", "flagged",
                 "found", "first", "wrong", "in 95 %");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        run(&rows[i], rows[i].growth > 0 ? planted : same, i + 1);
    }
    return 0;
}
