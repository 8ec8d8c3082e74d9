/* Tables of the strings, mappings, functions and locations of a checked profile, and a key for the
 * content of each location if the caller wants keys.
 *
 * The key does not depend on ids, which differ from profile to profile. For a location with an
 * address, it is made of the address relative to the mapping's file, and the file's build id or
 * name. For others, it is made of their lines: function (name, system name, file, first line), line
 * number and column. Any thread may call these functions. The memory of the tables is in proportion
 * to the profile.
 */
#ifndef PROFPULL_PPROF_INDEX_H
#define PROFPULL_PPROF_INDEX_H

#include "pprof/check.h"
#include "pprof/scratch.h"

/* 128 bits: two hashes with different seeds. */
struct pprof_key {
    uint64_t half[2];
};

/* A piece of the plain profile. */
struct pprof_span {
    uint32_t at;
    uint32_t n;
};

/* A map from ids to places in a table. Nearly all writers use the ids 1, 2, 3, ...; then no map is
 * built. A profile from which entries were removed, such as a delta, has ids with gaps: a table by
 * id serves them without hashing. Other ids need a hash table. */
struct pprof_ids {
    uint64_t *at; /* by place */
    size_t n;
    uint32_t *slots; /* place + 1, 0 where free; NULL if the ids are 1, 2, 3, ... */
    size_t limit;    /* slots are by id, up to this one; 0: slots are a hash table */
    size_t mask;     /* of the hash table */
    uint64_t seed;
};

/* The entries of one kind: mappings, locations or functions; or strings or samples, which have no
 * ids. */
struct pprof_entries {
    struct pprof_ids ids; /* ids.n: how many there are */
    struct pprof_span *spans;
    bool *used; /* marks for delta_write(); strings of the head are marked already */
};

struct pprof_location {
    uint64_t mapping; /* id, or 0 */
    uint64_t address;
    uint64_t function; /* id, if the location has one line that is written as usual; else 0 */
};

struct pprof_function {
    uint64_t key;  /* hash of all members of the message but its id; computed on first use */
    uint32_t name; /* strings */
    uint32_t system_name;
    uint32_t file;
    bool has_key;
};

struct pprof_mapping {
    /* hash of the build id or, if that is empty, of the file name; 0 if both are empty */
    uint64_t key;
    uint32_t build_id; /* strings */
    uint32_t file;
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
};

/* The most fields of the profile itself that are noted. Profiles have some ten of them. */
#define PPROF_HEADS_MAX 32

struct pprof_index {
    struct sv plain;
    struct pprof_summary summary;
    uint64_t seed;
    size_t first;     /* the field of the first table: PROFILE_MAPPING, or PROFILE_SAMPLE */
    bool lines_known; /* the functions of all lines exist for certain */
    struct pprof_entries entries[PROFILE_STRING + 1]; /* by field: that one to PROFILE_STRING */
    struct pprof_span
        heads[PPROF_HEADS_MAX]; /* the fields of the profile itself, with their tags */
    size_t n_heads;             /* more than PPROF_HEADS_MAX: the first ones */
    struct pprof_location *locations;
    /* of pprof_index_keys(), or NULL; separate, since only they are read for each frame */
    uint64_t *location_keys;
    struct pprof_function *functions;
    struct pprof_mapping *mappings;
};

/* Makes the tables of a profile of less than 4 GiB that pprof_check() has accepted, in memory of
 * the scratch. plain must live as long as the tables. seed: the same for all profiles whose keys
 * are to be compared, and unknown to their senders. Returns false if an id is duplicate or missing,
 * or if out of memory. */
bool pprof_index(struct pprof_index *x, struct scratch *s, struct sv plain,
                 const struct pprof_summary *summary, uint64_t seed, struct err *err);

/* Makes the tables of a profile that was not checked. It includes pprof_check_frame(), and
 * pprof_small_enough() with `what`; the caller checks and reads the samples. The samples have a
 * table too, without ids and marks. */
bool pprof_index_frame(struct pprof_index *x, struct scratch *s, struct sv plain, const char *what,
                       uint64_t seed, struct err *err);

/* Makes the tables of a profile that was not checked, and checks all of it, as pprof_check(),
 * pprof_small_enough() and pprof_index() together would, in fewer walks. The samples have a table
 * like that of pprof_index_frame(). */
bool pprof_index_whole(struct pprof_index *x, struct scratch *s, struct sv plain, const char *what,
                       uint64_t seed, struct err *err);

/* Makes the keys of all locations. Returns false if out of memory. */
bool pprof_index_keys(struct pprof_index *x, struct scratch *s);

/* Private: finds the place of an id in a hash table. */
bool pprof_ids_find_slot(const struct pprof_ids *ids, uint64_t id, size_t *ret);

/* Finds the place of an id. Returns false for 0 and for an id that does not exist. */
static inline bool pprof_ids_find(const struct pprof_ids *ids, uint64_t id, size_t *ret)
{
    uint64_t place = id;
    if (ids->slots != NULL && ids->limit == 0) {
        return pprof_ids_find_slot(ids, id, ret);
    }
    if (ids->slots != NULL) {
        place = id <= ids->limit ? ids->slots[id] : 0;
    }
    *ret = (size_t)(place - 1);
    return place - 1 < ids->n;
}

/* Return the bytes of a piece, and of the i-th string. */
struct sv pprof_span_of(const struct pprof_index *x, struct pprof_span span);
struct sv pprof_string(const struct pprof_index *x, uint64_t i);

/* Returns the i-th piece of the profile that has fields of the profile itself, in their order. Its
 * p is NULL after the last piece. If there are many such fields, the only piece is all of the
 * profile. */
struct sv pprof_head_piece(const struct pprof_index *x, size_t i);

/* ---- keys ------------------------------------------------------------------------------------ */

/* Folds a number into a hash, by combining the two halves of a product of 128 bits. */
static inline uint64_t pprof_fold(uint64_t hash, uint64_t number, uint64_t odd)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(hash ^ number) * odd;
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Digits of the golden ratio and of square roots, made odd. */
#define PPROF_ODD_0 UINT64_C(0x9e3779b97f4a7c15)
#define PPROF_ODD_1 UINT64_C(0xbb67ae8584caa73b)
#define PPROF_ODD_2 UINT64_C(0x3c6ef372fe94f82b)

/* Returns a key of n numbers, which depends on their values and order and on the seed. */
static inline struct pprof_key pprof_key_of(uint64_t seed, const uint64_t *numbers, size_t n)
{
    struct pprof_key key = {{seed + n, ~seed}};
    for (size_t i = 0; i < n; i++) {
        key.half[0] = pprof_fold(key.half[0], numbers[i], PPROF_ODD_0) + PPROF_ODD_2;
        key.half[1] = pprof_fold(key.half[1], numbers[i], PPROF_ODD_1) + PPROF_ODD_2;
    }
    return (struct pprof_key){{
        pprof_fold(key.half[0], seed, PPROF_ODD_2),
        pprof_fold(key.half[1], seed, PPROF_ODD_2),
    }};
}

/* Returns a key of 64 bits. It is enough if nobody who chooses the numbers knows the seed. */
static inline uint64_t pprof_hash_of(uint64_t seed, const uint64_t *numbers, size_t n)
{
    uint64_t hash = seed + n;
    for (size_t i = 0; i < n; i++) {
        hash = pprof_fold(hash, numbers[i], PPROF_ODD_0) + PPROF_ODD_2;
    }
    return pprof_fold(hash, seed, PPROF_ODD_2);
}

#endif
