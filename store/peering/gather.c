#include "store/peering/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "store/archive/archive.h"
#include "store/archive/names.h"
#include "store/peering/private.h"
#include "store/private.h"

/* Bytes of a slice that is asked for: at most a fraction of the memory that a scan has. */
#define SLICE_BYTES_MAX ((uint64_t)8 * 1024 * 1024)
#define SLICE_BYTES_MIN ((uint64_t)256 * 1024)
/* The most bytes of an answer before its slice, and of the page that SQLite adds to a limit. */
#define SLICE_HEAD_MAX ((size_t)64 * 1024)
/* First slices that are asked for at the same time. */
#define FIRST_SLICES 16
/* An object may be listed later than it can be read. An object that is older and is not listed has
 * been merged with others, or removed for its age. */
#define LISTED_LATE_MS 60000
#define LIST_ARENA_MAX ((size_t)16 * 1024 * 1024)

/* The slices of one file of a peer. */
struct peering_slices {
    struct peering *peering;
    struct peer *peer; /* a reference */
    char text[STORE_NAME_SIZE];
    struct peering_scan scan; /* its selector is not used after the first slice */
    char *selector;
    uint64_t bytes;
    uint64_t bytes_max;
    int64_t deadline_ms;
    void *page; /* the next slice, from sqlite3_malloc64(); NULL: it has to be asked for */
    size_t page_n;
    int64_t after_set;
};

void peering_slices_free(struct peering_slices *s)
{
    if (s != NULL) {
        peer_unref(s->peer);
        free(s->selector);
        sqlite3_free(s->page);
        free(s);
    }
}

/* One gathering. */
struct gathering {
    const struct store_peers *use;
    struct store *store;
    const struct peering_scan *scan;
    struct partial *partial;
    struct peer **peers;
    size_t n_peers;
    struct peering_call *calls; /* of the lists, one for each peer */
    struct peering_answer *answers;
    struct arena *arena;
    char *selector; /* as text; "": all series */
    int64_t asked_ms;
    struct store_file **added; /* files of peers */
    size_t n_added;
    size_t added_cap;
    bool gone; /* a peer no longer has a file that it has listed */
};

/* The end of a phase: half of the time that is left, so that something can be answered. */
static int64_t phase_end(const struct store_peers *use)
{
    int64_t now_ms = clock_mono_ms();
    int64_t left = use->deadline_ms != 0 ? (use->deadline_ms - now_ms) / 2 : 30 * MS_PER_S;
    return now_ms + (left > 1 ? left : 1);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void drop_peer(struct gathering *g, size_t i)
{
    peering_call_done(&g->calls[i]);
    peer_unref(g->peers[i]);
    g->n_peers--;
    memmove((void *)&g->peers[i], (void *)&g->peers[i + 1], (g->n_peers - i) * sizeof(void *));
    memmove(&g->calls[i], &g->calls[i + 1], (g->n_peers - i) * sizeof(g->calls[0]));
    memmove(&g->answers[i], &g->answers[i + 1], (g->n_peers - i) * sizeof(g->answers[0]));
}

/* Reads the list of one peer. Returns false if the peer is to be left out: it has failed, it is
 * this process, or another address of a peer that was read already. */
static bool take_list(struct gathering *g, size_t i)
{
    struct peering_call *c = &g->calls[i];
    struct peering_answer *a = &g->answers[i];
    struct err err = ERR_INIT;
    if (!c->ok) {
        partial_note(g->partial, "%s", c->err.msg);
        return false;
    }
    if (!peering_read_answer((struct sv){c->answer.data, c->answer.len}, g->arena, a, &err)) {
        err_wrap(&err, "peer %s: its answer is damaged", peer_name(c->peer));
        peering_note_bad(g->use->peering, c->peer, &err);
        partial_note(g->partial, "%s", err.msg);
        return false;
    }
    bool is_new = peering_is_other(g->use->peering, c->peer, a->instance);
    for (size_t k = 0; is_new && k < i; k++) {
        is_new = !sv_eq(g->answers[k].instance, a->instance);
    }
    return is_new;
}

/* Asks all peers for their files. */
static bool ask_lists(struct gathering *g, struct err *err)
{
    g->calls = calloc(g->n_peers + 1, sizeof(g->calls[0]));
    g->answers = calloc(g->n_peers + 1, sizeof(g->answers[0]));
    g->arena = arena_new(LIST_ARENA_MAX);
    if (g->calls == NULL || g->answers == NULL || g->arena == NULL) {
        return err_memory(err);
    }
    const struct peering_question q = {.asker = sv_from(peering_id(g->use->peering)),
                                       .files = true,
                                       .from_ns = g->scan->from_ns,
                                       .until_ns = g->scan->until_ns};
    for (size_t i = 0; i < g->n_peers; i++) {
        peering_call_init(&g->calls[i], g->peers[i], PEERING_LIST_MAX);
        peering_put_question(&q, &g->calls[i].question);
    }
    peering_run(g->use->peering, g->calls, g->n_peers, phase_end(g->use));
    g->asked_ms = clock_mono_ms();
    for (size_t i = 0; i < g->n_peers;) {
        if (take_list(g, i)) {
            i++;
        } else {
            drop_peer(g, i);
        }
    }
    return true;
}

/* ---- files that have moved ------------------------------------------------------------------- */

/* Returns true if the list of the scan has the object of a file of a peer, or the day that has
 * replaced it. */
static bool is_listed(const struct peering_answer *a, const struct peering_file *f,
                      struct store_file *const *files, size_t n)
{
    for (size_t i = 0; f->hash.n > 0 && a->writer.n > 0 && i < n; i++) {
        if (archive_is_object(files[i], a->writer, f->hash) &&
            store_name_compare(&files[i]->name, &f->name) == 0) {
            return true;
        }
        if (archive_day_has(files[i], a->writer, &f->name, f->hash)) {
            return true;
        }
    }
    return false;
}

/* Returns the time since which the list of the scan may lack objects of peers; 0: it lacks none. If
 * `late` is set, objects that the bucket has had for longer than it may list late do not count. */
static int64_t lacking_since(const struct gathering *g, struct store_file *const *files, size_t n,
                             bool late)
{
    int64_t since_ms = 0;
    for (size_t i = 0; i < g->n_peers; i++) {
        const struct peering_answer *a = &g->answers[i];
        int64_t age_ms = late ? -1 : a->unlisted_ms;
        for (size_t k = 0; k < a->n_files; k++) {
            const struct peering_file *f = &a->files[k];
            bool lacks = f->archived_ms >= 0 && !(late && f->archived_ms > LISTED_LATE_MS) &&
                         !is_listed(a, f, files, n);
            /* The youngest object decides which listing is new enough. */
            if (lacks && (age_ms < 0 || f->archived_ms < age_ms)) {
                age_ms = f->archived_ms;
            }
        }
        if (age_ms >= 0 && g->asked_ms - age_ms > since_ms) {
            since_ms = g->asked_ms - age_ms;
        }
    }
    return since_ms;
}

/* Lists the objects of the archive again if the scan may lack some, or if a peer has lost a file
 * since it listed it. */
static bool refresh(struct gathering *g, struct store_file ***files, size_t *n, struct err *err)
{
    struct archive *archive = g->store->archive;
    int64_t since_ms = g->gone ? g->asked_ms : lacking_since(g, *files, *n, false);
    if (archive == NULL || since_ms == 0) {
        return true;
    }
    bool listed = archive_refresh(archive, since_ms, phase_end(g->use));
    store_files_free(*files, *n);
    *files = NULL;
    *n = 0;
    if (!store_files_to_read(g->store, g->scan->from_ns, g->scan->until_ns, files, n, err)) {
        return false;
    }
    if (!listed || lacking_since(g, *files, *n, true) != 0) {
        partial_note(g->partial, "peers have archived files that the bucket does not list yet");
    }
    return true;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static void put_slice_question(const struct peering_slices *s, struct buf *out)
{
    const struct peering_question q = {.asker = sv_from(peering_id(s->peering)),
                                       .kind = s->scan.kind,
                                       .from_ns = s->scan.from_ns,
                                       .until_ns = s->scan.until_ns,
                                       .file = sv_from(s->text),
                                       .profile = s->scan.profile,
                                       .profile_ms = s->scan.profile_ms,
                                       .profile_hash = s->scan.profile_hash,
                                       .after_set = s->after_set,
                                       .bytes = s->bytes,
                                       .bytes_max = s->bytes_max,
                                       .selector = sv_from(s->selector)};
    peering_put_question(&q, out);
}

/* Takes the answer of a call as the next slice. False with err; *ret_gone is true if the peer does
 * not have the file any more. */
static bool take_slice(struct peering_slices *s, const struct peering_call *c, bool *ret_gone,
                       struct err *err)
{
    struct peering_answer a = {.more = 0};
    struct arena *arena = NULL;
    *ret_gone = false;
    if (!c->ok) {
        return err_set(err, c->err.kind, "%s", c->err.msg);
    }
    arena = arena_new(LIST_ARENA_MAX);
    bool ok = arena != NULL
                  ? peering_read_answer((struct sv){c->answer.data, c->answer.len}, arena, &a, err)
                  : err_memory(err);
    arena_free(arena);
    if (ok && a.slice.n == 0 && !a.gone) {
        err_set(err, ERR_INPUT, "it has no slice");
        ok = false;
    }
    if (!ok) {
        err_wrap(err, "peer %s: its answer is damaged", peer_name(s->peer));
        peering_note_bad(s->peering, s->peer, err);
        return false;
    }
    if (a.gone) {
        *ret_gone = true;
        return err_set(err, ERR_INPUT, "peer %s: it does not have the file %s any more",
                       peer_name(s->peer), s->text);
    }
    if (a.more != 0 && a.more <= s->after_set) {
        err_set(err, ERR_INPUT, "peer %s: its slices do not come to an end", peer_name(s->peer));
        peering_note_bad(s->peering, s->peer, err);
        return false;
    }
    s->page = sqlite3_malloc64(a.slice.n);
    if (s->page == NULL) {
        return err_memory(err);
    }
    memcpy(s->page, a.slice.p, a.slice.n);
    s->page_n = a.slice.n;
    s->after_set = a.more;
    return true;
}

bool peering_next_slice(struct store_file *f, struct db *db, bool *ret_more, struct err *err)
{
    struct peering_slices *s = f->slices;
    struct err why = ERR_INIT;
    if (s->page == NULL) {
        struct peering_call c;
        bool gone;
        peering_call_init(&c, s->peer, (size_t)s->bytes_max + SLICE_HEAD_MAX);
        put_slice_question(s, &c.question);
        peering_run(s->peering, &c, 1, s->deadline_ms);
        bool ok = take_slice(s, &c, &gone, err);
        peering_call_done(&c);
        if (!ok) {
            return false;
        }
    }
    void *page = s->page;
    s->page = NULL;
    *ret_more = s->after_set != 0;
    if (db_open_slice(db, f->path, page, s->page_n, &why)) {
        return true;
    }
    err_set(err, why.kind, "%s: %s", f->path, why.msg);
    peering_note_bad(s->peering, s->peer, err);
    return false;
}

void peering_slice_bad(struct store_file *f, const struct err *err)
{
    peering_note_bad(f->slices->peering, f->slices->peer, err);
}

/* ---- files of peers -------------------------------------------------------------------------- */

static struct store_file *new_file(const struct gathering *g, struct peer *peer,
                                   const struct peering_file *from)
{
    struct store_file *f = calloc(1, sizeof(*f));
    struct peering_slices *s = calloc(1, sizeof(*s));
    if (f == NULL || s == NULL) {
        free(f);
        free(s);
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->name = from->name;
    memcpy(f->text, from->text, sizeof(f->text));
    /* A day of the archive may turn out to have the file: see archive_drop_replaced(). */
    (void)snprintf(f->hash, sizeof(f->hash), "%.*s", SV_ARG(from->hash));
    /* Nobody knows the times of its profiles, so each series is checked for a point. */
    f->oldest_ns = INT64_MIN;
    f->newest_ns = INT64_MAX;
    f->slices = s;
    *s = (struct peering_slices){.peering = g->use->peering,
                                 .peer = peer_ref(peer),
                                 .scan = *g->scan,
                                 .selector = strdup(g->selector),
                                 .deadline_ms = g->use->deadline_ms};
    s->scan.selector = NULL;
    memcpy(s->text, from->text, sizeof(s->text));
    if (s->selector == NULL || asprintf(&f->path, "peer %s: %s", peer_name(peer), from->text) < 0) {
        f->path = NULL;
        store_file_unref(f);
        return NULL;
    }
    return f;
}

static bool add_file(struct gathering *g, struct peer *peer, const struct peering_file *from)
{
    if (g->n_added == g->added_cap) {
        size_t cap = g->added_cap == 0 ? 16 : 2 * g->added_cap;
        struct store_file **added = reallocarray((void *)g->added, cap, sizeof(void *));
        if (added == NULL) {
            return false;
        }
        g->added = added;
        g->added_cap = cap;
    }
    struct store_file *f = new_file(g, peer, from);
    if (f == NULL) {
        return false;
    }
    g->added[g->n_added++] = f;
    return true;
}

/* Makes the files of peers that the scan does not have. */
static bool add_files(struct gathering *g, struct store_file *const *files, size_t n,
                      struct err *err)
{
    for (size_t i = 0; i < g->n_peers; i++) {
        const struct peering_answer *a = &g->answers[i];
        for (size_t k = 0; k < a->n_files; k++) {
            const struct peering_file *f = &a->files[k];
            if (f->archived_ms < 0 && !is_listed(a, f, files, n) && !add_file(g, g->peers[i], f)) {
                return err_memory(err);
            }
        }
    }
    uint64_t bytes = g->use->bytes_max / 2 / (g->n_added + 1);
    bytes = bytes < SLICE_BYTES_MIN ? SLICE_BYTES_MIN : bytes;
    for (size_t i = 0; i < g->n_added; i++) {
        struct peering_slices *s = g->added[i]->slices;
        s->bytes = bytes < SLICE_BYTES_MAX ? bytes : SLICE_BYTES_MAX;
        s->bytes_max = g->use->bytes_max / 2 > 4 * s->bytes ? g->use->bytes_max / 2 : 4 * s->bytes;
    }
    return true;
}

static void remove_added(struct gathering *g, size_t i)
{
    store_file_unref(g->added[i]);
    g->n_added--;
    memmove((void *)&g->added[i], (void *)&g->added[i + 1], (g->n_added - i) * sizeof(void *));
}

/* Asks for the first slices of some files, from the i-th on. Returns the index of the first file
 * that was not asked for. Files that cannot be read are removed. `again`: the lists can be asked
 * for once more. */
static size_t ask_some(struct gathering *g, size_t from, size_t n, uint64_t *held, bool again)
{
    struct peering_call calls[FIRST_SLICES];
    size_t kept = from;
    for (size_t i = 0; i < n; i++) {
        const struct peering_slices *s = g->added[from + i]->slices;
        peering_call_init(&calls[i], s->peer, (size_t)s->bytes_max + SLICE_HEAD_MAX);
        put_slice_question(s, &calls[i].question);
    }
    peering_run(g->use->peering, calls, n, phase_end(g->use));
    for (size_t i = 0; i < n; i++) {
        struct err err = ERR_INIT;
        struct peering_slices *s = g->added[kept]->slices;
        bool gone;
        if (take_slice(s, &calls[i], &gone, &err)) {
            *held += s->page_n;
            kept++;
        } else {
            g->gone = g->gone || gone;
            if (!gone || !again) {
                partial_note(g->partial, "%s", err.msg);
            }
            remove_added(g, kept);
        }
        peering_call_done(&calls[i]);
    }
    return kept;
}

/* Asks for first slices, as long as they take less than half of the memory; the others are asked
 * for when they are read. */
static void ask_first(struct gathering *g, bool again)
{
    uint64_t held = 0;
    for (size_t i = 0; i < g->n_added && held < g->use->bytes_max / 2;) {
        uint64_t room = (g->use->bytes_max / 2 - held) / g->added[i]->slices->bytes + 1;
        size_t n = g->n_added - i < FIRST_SLICES ? g->n_added - i : FIRST_SLICES;
        i = ask_some(g, i, n < room ? n : (size_t)room, &held, again);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const struct store_file *x = *(struct store_file *const *)a;
    const struct store_file *y = *(struct store_file *const *)b;
    int order = store_name_compare(&x->name, &y->name);
    return order != 0 ? order : strcmp(x->path, y->path);
}

/* Appends the files of peers to the list of the scan. */
static bool append(struct gathering *g, struct store_file ***files, size_t *n, struct err *err)
{
    struct store_file **all = reallocarray((void *)*files, *n + g->n_added + 1, sizeof(void *));
    if (all == NULL) {
        return err_memory(err);
    }
    for (size_t i = 0; i < g->n_added; i++) {
        all[(*n)++] = g->added[i];
    }
    g->n_added = 0;
    *files = all;
    if (*n > 0) {
        qsort((void *)all, *n, sizeof(void *), by_name);
    }
    return true;
}

static void forget(struct gathering *g)
{
    store_files_free(g->added, g->n_added);
    for (size_t i = 0; i < g->n_peers && g->calls != NULL; i++) {
        peering_call_done(&g->calls[i]);
    }
    peering_peers_free(g->peers, g->n_peers);
    free(g->calls);
    free(g->answers);
    arena_free(g->arena);
    g->added = NULL;
    g->n_added = g->added_cap = 0;
    g->peers = NULL;
    g->n_peers = 0;
    g->calls = NULL;
    g->answers = NULL;
    g->arena = NULL;
}

/* Asks the peers once. *ret_again is true if a file has moved meanwhile, so that it has to be asked
 * again, which `again` allows. */
static bool gather_once(struct gathering *g, bool again, bool *ret_again,
                        struct store_file ***files, size_t *n, struct err *err)
{
    struct err why = ERR_INIT;
    bool cut;
    g->peers = peering_peers(g->use->peering, phase_end(g->use), &g->n_peers, &cut, &why);
    if (g->peers == NULL) {
        partial_note(g->partial, "%s", why.msg);
        return why.kind != ERR_MEMORY || err_memory(err);
    }
    if (cut) {
        partial_note(g->partial, "there are more than %d peers", PEERING_PEERS_MAX);
    }
    if (!ask_lists(g, err) || !refresh(g, files, n, err) || !add_files(g, *files, *n, err)) {
        return false;
    }
    g->gone = false;
    ask_first(g, again);
    *ret_again = again && g->gone;
    return *ret_again || append(g, files, n, err);
}

static char *selector_text(const struct selector *selector)
{
    struct buf out;
    buf_init(&out, PEERING_QUESTION_MAX);
    char *text = NULL;
    if (selector == NULL) {
        text = strdup("");
    } else if (peering_put_selector(selector, &out)) {
        text = buf_take(&out, NULL);
    }
    buf_done(&out);
    return text;
}

bool peering_add_files(const struct store_peers *peers, struct store *s,
                       const struct peering_scan *scan, struct store_file ***files, size_t *n,
                       struct partial *partial, struct err *err)
{
    const struct partial before = partial != NULL ? *partial : (struct partial){.parts = 0};
    struct gathering g = {.use = peers, .store = s, .scan = scan, .partial = partial};
    bool again = true;
    g.selector = selector_text(scan->selector);
    bool ok = g.selector != NULL || err_memory(err);
    for (int i = 0; ok && again && i < 2; i++) {
        if (partial != NULL) {
            *partial = before;
        }
        ok = gather_once(&g, i == 0, &again, files, n, err);
        again = ok && again;
        bool gone = g.gone;
        forget(&g);
        g.gone = gone;
    }
    free(g.selector);
    return ok;
}
