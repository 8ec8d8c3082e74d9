/* Objects in Kubernetes' protobuf: the same as in JSON, however the stream is cut and whatever it
 * has in it. */
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "config/file.h"
#include "discovery/kubernetes/api_status.h"
#include "discovery/kubernetes/proto_stream.h"
#include "discovery/kubernetes/roles.h"
#include "tests/unit/lib/failing_malloc.h"

SCOPED_POINTER(proto_stream, proto_stream_free)

#define DIRECTORY "tests/unit/data/kubernetes/"
#define OBJECT_MAX ((size_t)1200)

static struct sv view(const struct buf *b)
{
    return (struct sv){b->data, b->len};
}

static struct buf read_data(const char *name, const char *ending)
{
    char path[200];
    struct err err = ERR_INIT;
    struct buf b = testing_buf(1 << 20);
    snprintf(path, sizeof(path), DIRECTORY "%s%s", name, ending);
    CHECK_INT(file_read(path, 1 << 20, &b, &err), true, err.msg);
    return b;
}

/* ---- against Kubernetes' own encoder --------------------------------------------------------- */

static void print_targets(kube_read *read, const struct kube_object *object, struct buf *out)
{
    SCOPED(intern) *in = intern_new();
    SCOPED(labels_builder) *builder = labels_builder_new(in);
    struct object_targets targets = {.keep_shared = true};
    CHECK_INT(read(object, builder, &targets), OBJECT_OK, "");
    buf_printf(out, "%zu targets, %zu bad addresses, %zu bad ports\n", targets.n, targets.bad_ip,
               targets.bad_ports);
    for (size_t i = 0; i < targets.n; i++) {
        testing_labels_format(targets.at[i], out);
        buf_putc(out, '\n');
    }
    object_targets_done(&targets);
}

/* An object that Kubernetes has written in either encoding has the same targets. */
TEST(same_targets)
{
    static const struct {
        const char *name;
        const struct kube_role *role;
        const char *begins; /* the counts */
    } rows[] = {
        {"pod", &kube_pods, "5 targets, 0 bad addresses, 0 bad ports\n"},
        {"service", &kube_services, "2 targets, 0 bad addresses, 0 bad ports\n"},
        {"external", &kube_services, "1 targets, 0 bad addresses, 0 bad ports\n"},
        {"endpoints", &kube_endpoints, "2 targets, 0 bad addresses, 0 bad ports\n"},
        {"endpointslice", &kube_endpointslices, "8 targets, 0 bad addresses, 0 bad ports\n"},
        {"node", &kube_nodes, "1 targets, 0 bad addresses, 0 bad ports\n"},
        {"ingress", &kube_ingresses, "3 targets, 0 bad addresses, 0 bad ports\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        SCOPED(buf) json = read_data(rows[i].name, ".json");
        SCOPED(buf) bytes = read_data(rows[i].name, ".pb");
        struct test_object t;
        struct proto_object object;
        struct kube_object read = {.kind = SV("")};
        SCOPED(arena) *arena = schema_arena_new();
        SCOPED(buf) want = testing_buf(1 << 20);
        SCOPED(buf) got = testing_buf(1 << 20);
        test_object_read(&t, json.data, rows[i].role->resource.rows, false);
        CHECK_INT(proto_object_open(view(&bytes), &object), true, rows[i].name);
        CHECK_INT(sv_eq_str(object.kind, rows[i].role->resource.kind), true, rows[i].name);
        CHECK_INT(schema_read_wire(rows[i].role->resource.rows, object.message, arena, &read),
                  SKIP_NONE, rows[i].name);
        print_targets(rows[i].role->read, &t.object, &want);
        print_targets(rows[i].role->read, &read, &got);
        CHECK_STR(got.data, want.data, rows[i].name);
        CHECK_INT(sv_starts_with(view(&want), sv_from(rows[i].begins)), true, want.data);
        CHECK_INT(sv_eq_str(read.metadata.version, "4711"), true, rows[i].name);
        CHECK_INT(sv_eq(read.metadata.uid, t.object.metadata.uid), true, rows[i].name);
        read.kind = object.kind;
        uint64_t content = schema_hash(rows[i].role->resource.rows, &t.object);
        CHECK_INT(schema_hash(rows[i].role->resource.rows, &read), content, rows[i].name);
        test_object_done(&t);
    }
}

TEST(same_status)
{
    static const char *const endings[] = {".json", ".pb"};
    for (int i = 0; i < 2; i++) {
        SCOPED(buf) body = read_data("status", endings[i]);
        struct api_status status;
        api_status_parse(view(&body), i == 1, &status);
        CHECK_INT(status.present && status.too_large_version && !status.expired, true, endings[i]);
        CHECK_INT(status.code, 504, endings[i]);
        CHECK_INT(status.retry_after_ms, 3000, endings[i]);
        CHECK_STR(status.message, "Too large resource version: 9, current: 8", endings[i]);
    }
    struct api_status status;
    api_status_parse(SV("<html>"), true, &status);
    CHECK_INT(status.present, false, "no protobuf");
    CHECK_STR(status.message, "", "which is no text to show either");
}

/* ---- the stream ------------------------------------------------------------------------------ */

/* Writes what came out of a stream, one line each. */
static void on_kind(void *arg, struct sv kind)
{
    buf_printf(arg, "K %.*s\n", SV_ARG(kind));
}

static void on_metadata(void *arg, struct sv message)
{
    buf_printf(arg, "M %zu\n", message.n);
}

static void on_item(void *arg, struct sv message)
{
    buf_printf(arg, "I %zu %016llx\n", message.n,
               (unsigned long long)hash_bytes(message.p, message.n, 0));
}

static void on_event(void *arg, struct sv type, const struct proto_object *object)
{
    buf_printf(arg, "E %.*s %.*s %zu\n", SV_ARG(type), SV_ARG(object->kind), object->message.n);
}

static void on_skip(void *arg, enum discovery_skip why)
{
    static const char *const names[] = {"large", "deep", "syntax", "memory"};
    buf_printf(arg, "S %s\n", names[why]);
}

static struct proto_stream *new_stream(struct buf *out)
{
    return proto_stream_new(&(struct proto_stream_options){
        .object_max = OBJECT_MAX,
        .on_kind = on_kind,
        .on_metadata = on_metadata,
        .on_item = on_item,
        .on_event = on_event,
        .on_skip = on_skip,
        .arg = out,
    });
}

static void feed(struct proto_stream *s, struct buf *out, enum proto_stream_form form, struct sv in,
                 size_t piece)
{
    struct err err = ERR_INIT;
    bool ok = true;
    proto_stream_begin(s, form);
    buf_clear(out);
    for (size_t i = 0; i < in.n && ok; i += piece) {
        size_t n = in.n - i < piece ? in.n - i : piece;
        /* An exact copy, so that a sanitizer sees a read past the piece. */
        SCOPED_MEMORY char *copy = testing_memory(n);
        memcpy(copy, in.p + i, n);
        ok = proto_stream_feed(s, copy, n, &err);
        assert_int_equal(ok, err.kind == ERR_NONE);
    }
    buf_printf(out, "%s%s", ok ? "" : err.msg,
               ok && proto_stream_complete(s) ? "complete"
               : ok                           ? "unfinished"
                                              : "");
}

/* In pieces of every size. */
static void check_stream(enum proto_stream_form form, struct sv in, const char *want,
                         const char *row)
{
    SCOPED(buf) out = testing_buf(1 << 20);
    SCOPED(proto_stream) *s = new_stream(&out);
    assert_non_null(s);
    for (size_t piece = 1; piece <= in.n + 1; piece++) {
        feed(s, &out, form, in, piece);
        CHECK_STR(out.data, want, row);
    }
}

TEST(kubernetes_list_and_event)
{
    SCOPED(buf) list = read_data("podlist", ".pb");
    SCOPED(buf) event = read_data("pod", ".frame");
    SCOPED(buf) pod = read_data("pod", ".pb");
    struct proto_object object;
    char want[200];
    assert_true(proto_object_open(view(&pod), &object));
    snprintf(want, sizeof(want), "K PodList\nM 18\nI %zu %016llx\ncomplete", object.message.n,
             (unsigned long long)hash_bytes(object.message.p, object.message.n, 0));
    check_stream(PROTO_STREAM_LIST, view(&list), want, "list");
    snprintf(want, sizeof(want), "E MODIFIED Pod %zu\ncomplete", object.message.n);
    check_stream(PROTO_STREAM_EVENTS, view(&event), want, "event");
    /* Wherever it is cut, it is not complete. */
    SCOPED(buf) out = testing_buf(1 << 20);
    SCOPED(proto_stream) *s = new_stream(&out);
    for (size_t n = 1; n < event.len; n++) {
        feed(s, &out, PROTO_STREAM_EVENTS, (struct sv){event.data, n}, n);
        CHECK_STR(out.data, "unfinished", "cut event");
    }
    size_t tail = 4; /* contentEncoding and contentType, which are empty */
    for (size_t n = 1; n < list.len - tail; n++) {
        feed(s, &out, PROTO_STREAM_LIST, (struct sv){list.data, n}, n);
        CHECK_INT(sv_ends_with(view(&out), SV("unfinished")), true, "cut list");
    }
}

/* A list of items in protobuf; extra fields that a later version might add are skipped. */
TEST(damaged_lists)
{
#define HEAD "k8s\0\x0a\x09\x12\x07PodList"
#define ROW(text, result)                                                                          \
    {                                                                                              \
        {text, sizeof(text) - 1}, result                                                           \
    }
#define NOT "the answer is not Kubernetes' protobuf: expected "
    static const struct {
        struct sv in;
        const char *want;
    } rows[] = {
        ROW("", "unfinished"),
        ROW("{\"kind\":", NOT "\"k8s\" and a NUL, got something else"),
        ROW(HEAD "\x12\x00", "K PodList\ncomplete"),
        ROW(HEAD "\x12\x02\x0a\x00", "K PodList\nM 0\ncomplete"),
        ROW("k8s\0\x0a\x00\x12\x00", "K \ncomplete"),
        /* fields of every type that nobody knows: of the envelope, of the list */
        ROW(HEAD "\x28\x80\x01\x2d"
                 "1234\x29"
                 "12345678\x2a\x01x\x12\x14\x28\x80\x01\x2d"
                 "1234\x29"
                 "12345678\x2a\x01x",
            "K PodList\ncomplete"),
        ROW("k8s\0\x12\x00", NOT "one list after its kind, got something else"),
        ROW(HEAD "\x12\x00\x12\x00",
            "K PodList\n" NOT "one list after its kind, got something else"),
        ROW(HEAD "\x12\x03\x12\x02x",
            "K PodList\n" NOT "an item within its list, got something else"),
        ROW(HEAD "\x12\x01\x12", "K PodList\nunfinished"),
        ROW(HEAD "\x12\x01\x12\x00",
            "K PodList\n" NOT "an item within its list, got something else"),
        ROW(HEAD "\x12\x05\x13", "K PodList\n" NOT "a field of a known type, got something else"),
        ROW(HEAD "\x02\x00", "K PodList\n" NOT "a field of the envelope, got something else"),
        ROW(HEAD "\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            "K PodList\n" NOT "a number of at most 64 bits, got something else"),
        ROW(HEAD "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            "K PodList\n" NOT "a number of at most 64 bits, got something else"),
        /* an item that is too large is left out, and the next one is read */
        ROW(HEAD "\x12\xb7\x09\x12\xb1\x09", "K PodList\nS large\nunfinished"),
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_stream(PROTO_STREAM_LIST, rows[i].in, rows[i].want, rows[i].want);
    }
#undef ROW
}

static void put_pod_event(struct buf *out, const char *type, size_t filler)
{
    SCOPED(buf) message = testing_buf(1 << 20);
    SCOPED(buf) object = testing_buf(1 << 20);
    for (size_t i = 0; i < filler; i++) {
        proto_put_bytes(&message, 9, SV(""));
    }
    proto_put_envelope(&object, "Pod", view(&message));
    proto_put_event(out, type, view(&object));
}

TEST(damaged_events)
{
    SCOPED(buf) in = testing_buf(1 << 20);
    put_pod_event(&in, "ADDED", 1);
    put_pod_event(&in, "ADDED", OBJECT_MAX);             /* too large */
    buf_append(&in, "\0\0\0\0", 4);                      /* an empty frame */
    buf_append(&in, "\0\0\0\x03\x0a\x09x", 7);           /* a field past the end */
    buf_append(&in, "\0\0\0\x06\x12\x04\x0a\x02{}", 10); /* an object in JSON */
    put_pod_event(&in, "DELETED", 2);
    check_stream(PROTO_STREAM_EVENTS, view(&in),
                 "E ADDED Pod 2\nS large\nS syntax\nS syntax\nS syntax\nE DELETED Pod 4\ncomplete",
                 "skipped, and the next one is read");
    buf_clear(&in);
    buf_puts(&in, "{\"type\":\"ADDED\"}\n");
    check_stream(PROTO_STREAM_EVENTS, view(&in),
                 "an event of the watch has 2065855609 bytes, at most 9600 can be", "JSON");
}

/* Held bytes are the only memory that a stream needs. */
static void stream_without_memory(bool *ret_complete)
{
    bool armed = failing_malloc_pause();
    SCOPED(buf) out = testing_buf(1 << 20);
    buf_reserve(&out, 1000);
    SCOPED(buf) in = read_data("pod", ".frame");
    failing_malloc_resume(armed);
    struct proto_stream *s = new_stream(&out);
    if (s != NULL) {
        struct err err = ERR_INIT;
        proto_stream_begin(s, PROTO_STREAM_EVENTS);
        assert_true(proto_stream_feed(s, in.data, 100, &err));
        assert_true(proto_stream_feed(s, in.data + 100, in.len - 100, &err));
        assert_true(proto_stream_complete(s));
        *ret_complete = sv_starts_with(view(&out), SV("E MODIFIED Pod"));
        CHECK_STR(*ret_complete ? "S memory\n" : out.data, "S memory\n", "");
    }
    proto_stream_free(s);
    armed = failing_malloc_pause();
    failing_malloc_resume(armed);
}

TEST(out_of_memory)
{
    CHECK_INT(failing_malloc_each(FAIL_OURS, stream_without_memory), 3,
              "the stream, what it holds, more of it");
}

/* ---- objects from outside -------------------------------------------------------------------- */

/* JSON with ' for ". */
static void read_quoted(struct test_object *t, const char *text, const struct schema_row *rows)
{
    SCOPED_MEMORY char *copy = strdup(text);
    assert_non_null(copy);
    for (char *p = copy; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    test_object_read(t, copy, rows, true);
}

static enum discovery_skip read_pod(struct sv message, struct kube_object *ret)
{
    SCOPED(arena) *arena = schema_arena_new();
    *ret = (struct kube_object){.kind = SV("")};
    enum discovery_skip skip = schema_read_wire(kube_pods.resource.rows, message, arena, ret);
    return skip;
}

TEST(damaged_objects)
{
    static const struct {
        struct sv in;
        enum discovery_skip want;
        const char *row;
    } rows[] = {
        {{"", 0}, SKIP_NONE, "nothing"},
        {{"\x0a\x02\x0a\x00", 4}, SKIP_NONE, "an empty name"},
        {{"\x08\x01", 2}, SKIP_SYNTAX, "metadata that is a number"},
        {{"\x0a\x02\x08\x01", 4}, SKIP_SYNTAX, "a name that is a number"},
        {{"\x0a\x04\x5a\x02\x0a\x09", 6}, SKIP_SYNTAX, "a label past its end"},
        {{"\x12\x0a\x12\x08\x32\x06\x1a\x04test", 12}, SKIP_SYNTAX, "a port that is text"},
        {{"\x7a\x7f", 2}, SKIP_SYNTAX, "an unknown field past the end"},
        {{"\x00", 1}, SKIP_SYNTAX, "field 0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct kube_object pod;
        CHECK_INT(read_pod(rows[i].in, &pod), rows[i].want, rows[i].row);
    }
    /* A byte on the wire may not become a hundred in memory without end. */
    SCOPED(buf) many = testing_buf(1 << 24);
    for (size_t i = 0; i <= SCHEMA_BYTES_MAX / sizeof(struct kube_container); i++) {
        buf_append(&many, "\x12\x00", 2);
    }
    struct kube_object pod;
    SCOPED(buf) spec = testing_buf(1 << 24);
    proto_put_bytes(&spec, 2, view(&many));
    CHECK_INT(read_pod(view(&spec), &pod), SKIP_TOO_LARGE, "a million containers");
}

/* A member that a heartbeat changes does not belong to the content of an object; one that is read
 * for a target does. */
TEST(contents)
{
#define META_DATA "'metadata':{'name':'p','namespace':'n','labels':{'a':'b'},'annotations':{}}"
#define SPEC                                                                                       \
    "'spec':{'nodeName':'x','containers':[{'name':'c','ports':[{'containerPort':1}]},{'name':'d'}" \
    "]}"
#define STATUS "'status':{'podIP':'10.0.0.1','conditions':[{'type':'Ready','status':'True'}]}"
    static const char *const other[] = {
        "{'metadata':{'name':'p','namespace':'n','labels':{'a':'c'},'annotations':{}}," SPEC
        "," STATUS "}",
        "{'metadata':{'name':'p','namespace':'n','labels':{},'annotations':{'a':'b'}}," SPEC
        "," STATUS "}",
        "{'metadata':{'name':'p','namespace':'n','labels':{'ab':''},'annotations':{}}," SPEC
        "," STATUS "}",
        "{'metadata':{'name':'p','namespace':'n','uid':'u','labels':{'a':'b'}}," SPEC "," STATUS
        "}",
        "{'metadata':{'name':'p','namespace':'n','labels':{'a':'b'},'ownerReferences':[{'kind':'k',"
        "'controller':true}]}," SPEC "," STATUS "}",
        "{" META_DATA ",'spec':{'nodeName':'x','containers':[{'name':'c','ports':[{'containerPort':"
        "2}]},{'name':'d'}]"
        "}," STATUS "}",
        "{" META_DATA ",'spec':{'nodeName':'x','containers':[{'name':'c'},{'name':'d','ports':[{'"
        "containerPort':1}]}]"
        "}," STATUS "}",
        "{" META_DATA "," SPEC
        ",'status':{'podIP':'10.0.0.1','conditions':[{'type':'Ready','status':'False'}]}}",
        "{" META_DATA "," SPEC ",'status':{'podIP':'10.0.0.2'}}",
    };
    const struct schema_row *rows = kube_pods.resource.rows;
    struct test_object t;
    read_quoted(&t, "{" META_DATA "," SPEC "," STATUS "}", rows);
    uint64_t content = schema_hash(rows, &t.object);
    test_object_done(&t);
    read_quoted(&t,
                "{'metadata':{'name':'p','namespace':'n','labels':{'a':'b'},'resourceVersion':'7',"
                "'managedFields':[{'time':'now'}]}," SPEC
                ",'status':{'podIP':'10.0.0.1','conditions':[{'type':'Ready','status':'True',"
                "'lastProbeTime':'now'}]}}",
                rows);
    CHECK_INT(schema_hash(rows, &t.object) == content, true, "a heartbeat");
    test_object_done(&t);
    for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
        read_quoted(&t, other[i], rows);
        CHECK_INT(schema_hash(rows, &t.object) == content, false, other[i]);
        test_object_done(&t);
    }
}

/* Go's JSON replaces what is not UTF-8; so do we in protobuf, which may have it. */
TEST(invalid_utf8)
{
    struct kube_object pod = {.kind = SV("")};
    SCOPED(arena) *arena = schema_arena_new();
    CHECK_INT(schema_read_wire(kube_pods.resource.rows, SV("\x0a\x05\x0a\x03x\xffy"), arena, &pod),
              SKIP_NONE, "");
    CHECK_INT(sv_eq_str(pod.metadata.name, "x\xef\xbf\xbdy"), true, "");
}
