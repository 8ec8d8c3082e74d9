#include "agent/naming/naming.h"

#include <stdlib.h>
#include <string.h>

#include "agent/naming/private.h"
#include "base/clock.h"
#include "pprof/gzip.h"
#include "scraper/targets/target_private.h"
#include "symbols/profile.h"

/* The largest profile with names. */
#define NAMED_MAX ((size_t)64 * 1024 * 1024)
#define INFLATED_MAX ((size_t)32 * 1024 * 1024)
/* 4 MiB: a larger body that begins with names passes as it is, since to read all of it would take
 * its memory twice. */
#define LARGE_BODY ((size_t)4 * 1024 * 1024)
/* The working memory for the names of one stored profile. */
#define STORED_WORK_MAX ((size_t)64 * 1024 * 1024)
/* A query that waits for names tries again after this time, also if other questions are left. */
#define STORED_LOOK_MS 250
#define STORED_SLEEP_MS 5
/* The slots for series; a power of two. */
#define SKIPS ((size_t)1 << 14)
/* The profiles of a series with all names that pass between two that are inspected. */
#define SKIP_COUNT 15

/* ---- making ---------------------------------------------------------------------------------- */

static void cells(struct metric *family, const char *const *names, size_t n,
                  struct metric_cell **ret)
{
    for (size_t i = 0; i < n; i++) {
        ret[i] = metric_cell_of(family, names[i]);
    }
}

static void make_metrics(struct naming *n, struct metrics *m)
{
    static const char *const ends[ENDS] = {"ok", "absent", "failed"};
    static const char *const profiles[] = {"named", "partly", "unnamed"};
    static const char *const locations[] = {"named", "unknown"};
    static const char *const origins[ORIGINS] = {"service", "debug", "saved"};
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_profiles_total",
                         "Profiles with addresses that lacked names, by how many got one.",
                         "result", NULL),
          profiles, 3, n->profiles);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_stored_total",
                         "Stored profiles with addresses that lacked names when a query read them, "
                         "by how many got one.",
                         "result", NULL),
          profiles, 3, n->stored);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_locations_total",
                         "Addresses that lacked names, by whether the name was known when the "
                         "profile passed.",
                         "result", NULL),
          locations, 2, n->locations);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_found_total",
                         "Addresses whose names were found, by source.", "source", NULL),
          origins, ORIGINS, n->found);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_services_total",
                         "Requests to the symbol services of programs, by result.", "result", NULL),
          ends, ENDS, n->services_cells);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_downloads_total",
                         "Downloads from debuginfod servers, by result.", "result", NULL),
          ends, ENDS, n->downloads);
    cells(metrics_family(m, METRIC_COUNTER, "profpull_symbols_files_total",
                         "Lookups in files with debug information, by result.", "result", NULL),
          ends, ENDS, n->files_cells);
    n->refused = metrics_single(m, METRIC_COUNTER, "profpull_symbols_refused_total",
                                "Lookups of names that were dropped because too many wait.");
    n->bytes_cell = metrics_single(m, METRIC_GAUGE, "profpull_symbols_names_bytes",
                                   "Memory of the cached names, in bytes.");
    n->asks_cell = metrics_single(m, METRIC_GAUGE, "profpull_symbols_asks",
                                  "Lookups of names that wait or are in progress.");
    n->disk_cell = metrics_single(m, METRIC_GAUGE, "profpull_symbols_cache_bytes",
                                  "Bytes of symbols.cache.directory.");
}

/* Makes the counters of the process that reads debug information. */
static void make_reader_metrics(struct naming *n, struct metrics *m)
{
    struct metric *family = metrics_family(
        m, METRIC_COUNTER, "profpull_symbols_failures_total",
        "Lookups that the process that reads debug information did not answer, by reason.",
        "reason", NULL);
    for (enum symbols_failure f = SYMBOLS_OK + 1; f < SYMBOLS_FAILURES; f++) {
        n->failures[f] = metric_cell_of(family, symbols_failure_name(f));
    }
    n->opened = metrics_single(m, METRIC_COUNTER, "profpull_symbols_opened_total",
                               "Files with debug information that were opened.");
    n->partial = metrics_single(m, METRIC_COUNTER, "profpull_symbols_partial_total",
                                "Opened files whose debug information could not be read, so that "
                                "the symbol table gave the names.");
    n->readers = metrics_single(m, METRIC_COUNTER, "profpull_symbols_readers_total",
                                "Processes that were started to read debug information.");
}

static bool make_parts(struct naming *n, struct err *err)
{
    const struct symbols_settings *s = &n->options.config->symbols;
    const struct http_client_options client = {
        .loop = n->options.loop,
        .log = n->options.log,
        .metrics = n->options.metrics,
        .name = "symbols",
        .contents = n->options.contents,
    };
    n->names = symbol_names_new((size_t)s->names_max_bytes);
    n->processes = symbol_processes_new();
    n->scratches = scratch_pool_new(SCRATCH_POOL_MAX / 4);
    n->skips = calloc(SKIPS, sizeof(*n->skips));
    n->services = map_new();
    n->absent = map_new();
    if (s->cache_directory != NULL) {
        n->depot = symbol_depot_new(s->cache_directory, s->cache_max_bytes);
    }
    if (n->names == NULL || n->processes == NULL || n->scratches == NULL || n->skips == NULL ||
        n->services == NULL || n->absent == NULL ||
        (s->cache_directory != NULL && n->depot == NULL)) {
        return err_memory(err);
    }
    n->client = http_client_new(&client, err);
    if (n->client != NULL) {
        n->files = worker_thread_new("symbol-files", err);
    }
    return n->files != NULL;
}

struct naming *naming_new(const struct naming_options *options, struct err *err)
{
    struct naming *n = calloc(1, sizeof(*n));
    if (n == NULL) {
        err_memory(err);
        return NULL;
    }
    struct rng rng;
    rng_seed_random(&rng);
    n->seed = rng_next(&rng);
    n->options = *options;
    TAILQ_INIT(&n->waiting);
    TAILQ_INIT(&n->flying);
    TAILQ_INIT(&n->jobs);
    make_metrics(n, options->metrics);
    make_reader_metrics(n, options->metrics);
    return make_parts(n, err) ? n : naming_free(n);
}

struct naming *naming_free(struct naming *n)
{
    if (n == NULL) {
        return NULL;
    }
    n->closing = true;
    loop_run_once(n->options.loop); /* questions that are still posted */
    naming_service_close(n);
    naming_debug_close(n);
    worker_pool_free(n->files);
    loop_run_once(n->options.loop); /* the end of the job that ran */
    http_client_free(n->client);
    map_free(n->services, free);
    map_free(n->absent, free);
    symbol_depot_free(n->depot);
    scratch_pool_unref(n->scratches);
    symbol_processes_free(n->processes);
    symbol_names_free(n->names);
    free(n->skips);
    free(n);
    return NULL;
}

/* ---- profiles that need nothing -------------------------------------------------------------- */

/* A slot holds the upper bits of the series, and the profiles to skip in the lowest byte. */
static _Atomic uint32_t *skip_slot(struct naming *n, const struct target *t, size_t entry,
                                   uint32_t *ret_tag)
{
    uint64_t hash = target_scrape_hash(t, entry);
    hash = pprof_fold(hash, n->seed, PPROF_ODD_0);
    *ret_tag = (uint32_t)(hash >> 32) & ~UINT32_C(0xff);
    return &n->skips[hash & (SKIPS - 1)];
}

bool naming_wants(struct naming *n, const struct target *target, size_t entry, struct sv body)
{
    uint32_t tag;
    _Atomic uint32_t *slot = skip_slot(n, target, entry, &tag);
    uint32_t value = atomic_load_explicit(slot, memory_order_relaxed);
    if (body.n > LARGE_BODY && symbol_profile_glance(body) == SYMBOL_GLANCE_NAMED) {
        return false;
    }
    if ((value & ~UINT32_C(0xff)) != tag || (value & 0xff) == 0) {
        return true;
    }
    atomic_store_explicit(slot, value - 1, memory_order_relaxed);
    return false;
}

/* Remembers that a profile had all names. With several files mapped, the next one may contain an
 * address of another file, so that the series is always looked at. */
static void note_complete(struct naming *n, const struct naming_source *source,
                          const struct symbol_profile *p)
{
    uint32_t tag;
    size_t files = 0;
    for (size_t i = 0; i < p->n_mappings; i++) {
        files += p->mappings[i].file.n > 0 && p->mappings[i].file.p[0] == '/';
    }
    if (source->target != NULL && files <= 1) {
        _Atomic uint32_t *slot = skip_slot(n, source->target, source->entry, &tag);
        atomic_store_explicit(slot, tag | SKIP_COUNT, memory_order_relaxed);
    }
}

/* ---- looking up ------------------------------------------------------------------------------ */

/* The lookup of one profile. */
struct lookup {
    struct naming *naming;
    const struct naming_source *source;
    struct symbol_profile *profile;
    struct ask_binary *binaries; /* one for each mapping, and one for none */
    struct symbol_question *questions;
    bool *pending;    /* by location: an answer may still come */
    uint64_t process; /* its number; never 0 */
};

static struct pprof_key key_of(const struct naming *n, uint64_t kind, struct sv text, uint64_t a,
                               uint64_t b)
{
    const uint64_t parts[] = {kind, hash_bytes(text.p, text.n, n->seed), a, b};
    return pprof_key_of(n->seed, parts, 4);
}

static uint64_t hash_list(const struct symbols_list *list, uint64_t seed)
{
    uint64_t hash = seed + list->n;
    for (size_t i = 0; i < list->n; i++) {
        hash = hash_bytes(list->at[i], strlen(list->at[i]), hash);
    }
    return hash;
}

/* Returns a number of the sources of debug information: what one job's sources do not have,
 * another's may. */
static uint64_t sources_number(const struct naming *n, const struct symbols_sources *s)
{
    return hash_list(&s->directories, hash_list(&s->debuginfod, n->seed));
}

static bool has_debug_sources(const struct symbols_sources *s)
{
    return s->debuginfod.n + s->directories.n > 0;
}

/* Returns a hash of the program that was scraped. */
static uint64_t target_number(const struct naming *n, const struct target *t, size_t entry)
{
    const char *process = target_process(t, entry);
    return hash_bytes(process, strlen(process), n->seed ^ t->generation);
}

enum { KEY_PROCESS = 1, KEY_SERVICE, KEY_DEBUG };

/* Finds the tables of a mapping. Names from the service of a program hold for the same place of the
 * same file in all programs of its job. */
static void find_tables(struct lookup *l, size_t i)
{
    struct naming *n = l->naming;
    const struct naming_source *s = l->source;
    static const struct symbol_binary none = {.file = {"", 0}, .build_id = {"", 0}};
    const struct symbol_binary *m = i < l->profile->n_mappings ? &l->profile->mappings[i] : &none;
    struct ask_binary *b = &l->binaries[i];
    *b = (struct ask_binary){.start = m->start, .limit = m->limit, .offset = m->offset};
    bool known = symbol_build_id(m->build_id, b->build_id);
    b->build_id[known ? strlen(b->build_id) : 0] = '\0';
    uint32_t job = s->target != NULL ? s->target->job : s->job;
    bool scraped = s->target != NULL || s->process != 0;
    if (scraped && s->sources->target == SYMBOLS_TARGET_AUTO) {
        b->service = symbol_names_table(
            n->names, known ? key_of(n, KEY_SERVICE, sv_from(b->build_id), job + (uint64_t)1,
                                     m->start ^ m->offset << 32)
                            : key_of(n, KEY_PROCESS, SV(""), l->process, 0));
    }
    if (known && has_debug_sources(s->sources) && n->options.helper != NULL) {
        b->debug = symbol_names_table(
            n->names, key_of(n, KEY_DEBUG, sv_from(b->build_id), sources_number(n, s->sources), 0));
    }
    b->debug_first = b->service != NULL && b->debug != NULL && symbol_table_is_nameless(b->service);
}

static size_t binary_of(const struct lookup *l, const struct symbol_location *at)
{
    return at->mapping == SYMBOL_NO_MAPPING ? l->profile->n_mappings : at->mapping;
}

static uint64_t place_in_file(const struct lookup *l, const struct symbol_location *at)
{
    return at->mapping == SYMBOL_NO_MAPPING
               ? at->address
               : symbol_file_offset(&l->profile->mappings[at->mapping], at->address);
}

/* The passes of a lookup. Most programs have no symbol service, so addresses that debug information
 * names are not looked up among those that the service does not know. */
enum pass { PASS_SERVICE, PASS_DEBUG, PASS_NAMELESS_SERVICE, PASSES };

/* Returns the table of a mapping for a pass; NULL: none. */
static struct symbol_table *table_of(const struct ask_binary *b, enum pass pass)
{
    if (pass == PASS_DEBUG) {
        return b->debug;
    }
    return b->debug_first == (pass == PASS_NAMELESS_SERVICE) ? b->service : NULL;
}

/* Looks up the locations from i on that belong to the same mapping, in its table for a pass.
 * Returns the next location. */
static size_t look_up_run(struct lookup *l, size_t i, enum pass pass, bool *missing)
{
    struct symbol_profile *p = l->profile;
    size_t binary = binary_of(l, &p->locations[i]);
    struct symbol_table *t = table_of(&l->binaries[binary], pass);
    bool debug = pass == PASS_DEBUG;
    size_t n = 0;
    for (; i < p->n_locations && binary_of(l, &p->locations[i]) == binary; i++) {
        struct symbol_location *at = &p->locations[i];
        if (t != NULL && at->n_lines == 0) {
            uint64_t place = debug ? place_in_file(l, at) : at->address;
            l->questions[n++] = (struct symbol_question){.place = place, .location = at};
        }
    }
    if (n > 0) {
        symbol_table_find(t, l->questions, n, clock_mono_ms(), NAMING_ASKED_MS);
    }
    for (size_t k = 0; k < n; k++) {
        size_t at = (size_t)(l->questions[k].location - p->locations);
        missing[at] = missing[at] || l->questions[k].ask;
        l->pending[at] = l->pending[at] || l->questions[k].pending;
    }
    return i;
}

/* Looks up the locations that still lack names in the tables for a pass. */
static void look_up(struct lookup *l, enum pass pass, bool *missing)
{
    for (size_t i = 0; i < l->profile->n_locations;) {
        i = look_up_run(l, i, pass, missing);
    }
}

static void free_binaries(struct ask_binary *binaries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        symbol_table_unref(binaries[i].service);
        symbol_table_unref(binaries[i].debug);
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

void naming_ask_free(struct ask *ask)
{
    if (ask == NULL) {
        return;
    }
    struct naming *n = ask->naming;
    atomic_fetch_sub(&n->asks, 1);
    atomic_fetch_sub(&n->addresses, ask->n_addresses);
    metric_gauge_add(n->asks_cell, -1);
    free_binaries(ask->binaries, ask->n_binaries);
    free(ask->binaries);
    free(ask->addresses);
    free(ask->url);
    buf_done(&ask->body);
    target_unref(ask->target);
    config_unref(ask->owner);
    free(ask);
}

/* Returns false, and counts it, if too many questions wait. */
static bool admit(struct naming *n, size_t addresses)
{
    if (atomic_fetch_add(&n->asks, 1) >= NAMING_ASKS_MAX ||
        atomic_fetch_add(&n->addresses, addresses) + addresses > NAMING_ADDRESSES_MAX) {
        metric_inc(n->refused);
        return false;
    }
    return true;
}

static void fill_ask(const struct lookup *l, const bool *missing, struct ask *ask)
{
    const struct symbol_profile *p = l->profile;
    for (size_t i = 0; i < p->n_locations; i++) {
        if (missing[i]) {
            ask->addresses[ask->n_addresses++] = (struct ask_address){
                .address = p->locations[i].address,
                .place = place_in_file(l, &p->locations[i]),
                .binary = (uint32_t)binary_of(l, &p->locations[i]),
            };
        }
    }
    for (size_t i = 0; i <= p->n_mappings; i++) {
        ask->binaries[i] = l->binaries[i];
        ask->binaries[i].service =
            l->binaries[i].service != NULL ? symbol_table_ref(l->binaries[i].service) : NULL;
        ask->binaries[i].debug =
            l->binaries[i].debug != NULL ? symbol_table_ref(l->binaries[i].debug) : NULL;
    }
    ask->n_binaries = p->n_mappings + 1;
}

/* Asks for the names that are missing. */
static void ask_for(const struct lookup *l, const bool *missing, size_t n_missing)
{
    struct naming *n = l->naming;
    struct ask *ask = calloc(1, sizeof(*ask));
    if (ask == NULL) {
        return;
    }
    ask->naming = n;
    buf_init(&ask->body, SYMBOL_NAMES_MAX_DEFAULT);
    ask->target = l->source->target != NULL ? target_ref(l->source->target) : NULL;
    ask->owner = l->source->owner != NULL ? config_ref(l->source->owner) : NULL;
    ask->sources = *l->source->sources;
    ask->entry = l->source->entry;
    ask->binaries = calloc(l->profile->n_mappings + 1, sizeof(*ask->binaries));
    ask->addresses = calloc(n_missing, sizeof(*ask->addresses));
    bool ok = admit(n, n_missing);
    metric_gauge_add(n->asks_cell, 1);
    if (ask->binaries == NULL || ask->addresses == NULL || !ok) {
        ask->n_addresses = n_missing; /* what admit() has counted */
        naming_ask_free(ask);
        return;
    }
    fill_ask(l, missing, ask);
    naming_ask(n, ask);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static struct profile_names count_names(const struct symbol_profile *p)
{
    struct profile_names c = {.all = (uint32_t)p->n_locations};
    for (size_t i = 0; i < p->n_locations; i++) {
        c.named += p->locations[i].n_lines > 0;
    }
    return c;
}

/* Counts a profile in one of three cells: all got names, some did, or none. */
static void count_profile(struct metric_cell *const cells[3], const struct profile_names *c)
{
    metric_inc(cells[c->named == c->all ? 0 : c->named > 0 ? 1 : 2]);
}

/* Returns the number of the process of a profile; 1 if it is not known. */
static uint64_t process_of(const struct lookup *l)
{
    const struct naming_source *s = l->source;
    uint64_t known = s->process;
    if (s->target != NULL) {
        known = symbol_process_number(l->naming->processes,
                                      target_number(l->naming, s->target, s->entry),
                                      l->profile->mappings, l->profile->n_mappings);
    }
    return known != 0 ? known : 1;
}

/* Finds the names that are known, and asks for the others. Returns false if out of memory. */
static bool find_names(struct lookup *l, struct scratch *scratch)
{
    struct symbol_profile *p = l->profile;
    bool *missing = scratch_zeroed(scratch, p->n_locations, sizeof(*missing));
    l->pending = scratch_zeroed(scratch, p->n_locations, sizeof(*l->pending));
    l->binaries = scratch_zeroed(scratch, p->n_mappings + 1, sizeof(*l->binaries));
    l->questions = scratch_array(scratch, p->n_locations, sizeof(*l->questions));
    if (missing == NULL || l->pending == NULL || l->binaries == NULL || l->questions == NULL) {
        return false;
    }
    l->process = process_of(l);
    for (size_t i = 0; i <= p->n_mappings; i++) {
        find_tables(l, i);
    }
    for (enum pass pass = PASS_SERVICE; pass < PASSES; pass++) {
        look_up(l, pass, missing);
    }
    size_t n_missing = 0;
    for (size_t i = 0; i < p->n_locations; i++) {
        n_missing += missing[i];
    }
    if (n_missing > 0) {
        ask_for(l, missing, n_missing);
    }
    return true;
}

static bool lacks_names(const struct lookup *l)
{
    bool lacks = false;
    for (size_t i = 0; i < l->profile->n_locations && !lacks; i++) {
        lacks = l->pending[i] && l->profile->locations[i].n_lines == 0;
    }
    return lacks;
}

bool naming_is_asking(const struct naming *n)
{
    return atomic_load(&n->asks) > 0;
}

bool naming_rewrite(struct naming *n, const struct naming_source *source, struct scratch *scratch,
                    struct sv plain, struct buf *out, struct profile_names *ret)
{
    struct symbol_profile p;
    struct lookup l = {.naming = n, .source = source, .profile = &p};
    *ret = (struct profile_names){.all = 0};
    if (!symbol_profile_read(&p, scratch, plain, NULL)) {
        return false;
    }
    if (p.n_locations == 0) {
        note_complete(n, source, &p);
        return false;
    }
    if (!find_names(&l, scratch)) {
        return false;
    }
    *ret = count_names(&p);
    ret->awaits = lacks_names(&l) ? l.process : 0;
    /* The tables are referenced until the names are written. */
    bool ok = symbol_profile_changes(&p) && symbol_profile_write(&p, out, NULL);
    free_binaries(l.binaries, p.n_mappings + 1);
    ret->named = ok ? ret->named : 0;
    return ok;
}

void naming_note(struct naming *n, const struct profile_names *names)
{
    if (names->all > 0) {
        metric_add(n->locations[0], names->named);
        metric_add(n->locations[1], names->all - names->named);
        count_profile(n->profiles, names);
    }
}

bool naming_body(struct naming *n, const struct naming_source *source, struct scratch *scratch,
                 struct sv body, char **ret, size_t *ret_size, struct profile_names *ret_names)
{
    struct scratch *own =
        scratch == NULL ? scratch_pool_take(n->scratches, 8 * INFLATED_MAX) : NULL;
    struct scratch *s = scratch != NULL ? scratch : own;
    struct sv plain;
    struct buf out;
    buf_init(&out, NAMED_MAX);
    *ret_names = (struct profile_names){.all = 0};
    bool ok = s != NULL && gzip_plain(s, body, INFLATED_MAX, 0, &plain, NULL) &&
              naming_rewrite(n, source, s, plain, &out, ret_names) &&
              gzip_pack_at(s, (struct sv){out.data, out.len}, GZIP_QUICK, ret, ret_size);
    buf_done(&out);
    if (own != NULL) {
        scratch_reset(own);
    }
    scratch_pool_give(n->scratches, own);
    return ok;
}

void naming_count(const struct naming *n, struct naming_counts *ret)
{
    *ret = (struct naming_counts){
        .named = metric_value(n->profiles[0]) + metric_value(n->stored[0]),
        .partly = metric_value(n->profiles[1]) + metric_value(n->stored[1]),
        .unnamed = metric_value(n->profiles[2]) + metric_value(n->stored[2]),
        .asks = atomic_load(&n->asks),
    };
    for (enum symbols_failure f = SYMBOLS_OK + 1; f < SYMBOLS_FAILURES; f++) {
        ret->failures += metric_value(n->failures[f]);
    }
}

/* ---- stored profiles ------------------------------------------------------------------------- */

bool naming_names_stored(const struct naming *n, const struct config *config)
{
    return n->options.helper != NULL && has_debug_sources(&config->symbols.sources);
}

/* Waits until all questions are answered, but at most STORED_LOOK_MS. Returns false at until_ms. */
static bool wait_for_names(const struct naming *n, int64_t until_ms)
{
    int64_t now = clock_mono_ms();
    int64_t end = now + STORED_LOOK_MS < until_ms ? now + STORED_LOOK_MS : until_ms;
    bool waited = now < end;
    while (now < end && naming_is_asking(n)) {
        clock_sleep_until_ns(clock_mono_ns() + STORED_SLEEP_MS * NS_PER_MS);
        now = clock_mono_ms();
    }
    return waited;
}

bool naming_stored(struct naming *n, const struct config *config, struct sv plain, int64_t until_ms,
                   struct buf *out)
{
    const struct naming_source source = {.sources = &config->symbols.sources, .owner = config};
    struct profile_names c;
    bool ok;
    do {
        struct scratch *s = scratch_pool_take(n->scratches, STORED_WORK_MAX);
        if (s == NULL) {
            return false;
        }
        buf_clear(out);
        ok = naming_rewrite(n, &source, s, plain, out, &c);
        scratch_reset(s);
        scratch_pool_give(n->scratches, s);
    } while (c.awaits != 0 && wait_for_names(n, until_ms));
    if (c.all > 0) {
        count_profile(n->stored, &c);
    }
    return ok;
}
