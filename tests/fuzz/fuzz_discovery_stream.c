/* Bytes from an API server -> objects. The same bytes in other pieces must yield the same objects;
 * then they pass through the state machine, as a list and as a watch.
 *
 * The first byte of the input chooses the form and the size of the pieces. */
#include <string.h>

#include "discovery/kubernetes/json_stream.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_watch.h"

/* Small, so that the limits are reached. */
#define OBJECT_MAX 512
#define DEPTH_MAX 16
/* The largest list that the machine holds. */
#define LIST_BYTES_MAX 4096

static const struct schema_row inner[] = {{.name = "a"}, {.name = "n"}, SCHEMA_END};
static const struct schema_row keep[] = {
    {.name = "kind"}, {.name = "metadata"}, {.name = "c", .members = inner}, SCHEMA_END};

/* A hash of all output. */
struct sum {
    uint64_t hash;
    size_t n;
};

static void add(struct sum *s, const char *what, const json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    s->hash = hash_bytes(what, strlen(what), s->hash);
    if (text != NULL) {
        s->hash = hash_bytes(text, strlen(text), s->hash);
    }
    s->n++;
    free(text);
}

static void on_object(void *arg, const json_t *json)
{
    REQUIRE(json_is_object(json));
    add(arg, "object", json);
}

static void on_metadata(void *arg, const json_t *json)
{
    add(arg, "metadata", json);
}

static void on_skip(void *arg, enum discovery_skip why)
{
    static const char *const names[] = {"large", "deep", "syntax", "memory"};
    add(arg, names[why], NULL);
}

static struct sum read_stream(const uint8_t *data, size_t size, enum json_stream_form form,
                              size_t piece)
{
    struct sum sum = {0};
    struct json_stream *s = json_stream_new(&(struct json_stream_options){
        .object_max = OBJECT_MAX,
        .depth_max = DEPTH_MAX,
        .members = keep,
        .on_object = on_object,
        .on_metadata = on_metadata,
        .on_skip = on_skip,
        .arg = &sum,
    });
    json_stream_begin(s, form);
    bool ok = true;
    for (size_t i = 0; i < size && ok; i += piece) {
        size_t n = size - i < piece ? size - i : piece;
        struct err err = ERR_INIT;
        ok = json_stream_feed(s, (const char *)data + i, n, &err);
        REQUIRE(ok == (err.kind == ERR_NONE));
    }
    add(&sum, !ok ? "broken" : json_stream_complete(s) ? "complete" : "unfinished", NULL);
    json_stream_free(s);
    return sum;
}

/* ---- the state machine ----------------------------------------------------------------------- */

static void run_machine(struct sv body, size_t piece)
{
    static const char list[] = "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}";
    const char *const type = "application/json";
    struct machine m;
    machine_init(&m, OBJECT_MAX, DEPTH_MAX, LIST_BYTES_MAX);
    machine_answer(&m, 200, type, body, piece);
    machine_answer(&m, 200, type, sv_from(list), piece);
    machine_answer(&m, 200, type, body, piece);
    machine_answer(&m, 504, type, body, piece);
    machine_answer(&m, 410, type, body, piece);
    machine_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t piece = (size_t)(data[0] & 0x7f) + 1;
    enum json_stream_form form = data[0] & 0x80 ? JSON_STREAM_LIST : JSON_STREAM_OBJECTS;
    data++;
    size--;
    struct sum whole = read_stream(data, size, form, size + 1);
    struct sum pieces = read_stream(data, size, form, piece);
    struct sum bytes = read_stream(data, size, form, 1);
    REQUIRE(whole.hash == pieces.hash && whole.hash == bytes.hash && whole.n == pieces.n);
    run_machine((struct sv){(const char *)data, size}, piece);
    return 0;
}
