/* Which encoding a watch asks for, and what it does with the answer. */
#include "tests/unit/discovery/watch_sim.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"

/* Protobuf is asked for, and JSON is accepted. */
TEST_SIM(listed, test_accept)
{
    CHECK_STR(s->accept, PROTOBUF ", application/json", "list");
    CHECK_INT(watch_is_protobuf(s->w), sim_protobuf, "");
    STEP(s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "11")));
    CHECK_STR(s->accept, PROTOBUF ", application/json", "watch");
    check_out(s, "A:c ", "");
}

/* A server that refuses protobuf is asked for JSON at once, where the list was. */
TEST(test_not_acceptable)
{
    static const long statuses[] = {406, 415};
    for (size_t i = 0; i < 2; i++) {
        struct sim s;
        setup(&s, "");
        STEP(&s, .status = 200, .body = PAGE("10", "next", POD("a", "1")));
        STEP(&s, .status = statuses[i], .body = STATUS("406", "NotAcceptable", "only JSON"));
        CHECK_INT(s.result, WATCH_NO_PROTOBUF, "");
        CHECK_CONTAINS(s.err.msg, "only JSON", "");
        STEP(&s, .status = 200, .body = LIST("10", POD("b", "1")));
        CHECK_INT(s.waited, 0, "at once");
        CHECK_STR(s.accept, "application/json", "");
        CHECK_STR(s.query.data, "limit=500&continue=next", "the same page");
        check_out(&s, "begin L:a L:b end ", "the list goes on");
        STEP(&s, .status = statuses[i]);
        CHECK_STR(s.accept, "application/json", "the watch");
        CHECK_INT(s.result, WATCH_FAILED, "no better offer");
        teardown(&s);
    }
}

/* The first bytes of a body say what it is. A proxy may lose or change Content-Type. */
TEST(test_wrong_content_type)
{
    static const char *const types[] = {"", "application/json", "text/plain", PROTOBUF,
                                        PROTOBUF ";stream=watch"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        SCOPED(sim) s;
        setup(&s, "");
        STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")), .content_type = types[i]);
        CHECK_INT(s.result, WATCH_DONE, types[i]);
        CHECK_INT(watch_is_protobuf(s.w), sim_protobuf, types[i]);
        STEP(&s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "11")),
             .content_type = types[i]);
        CHECK_INT(s.result, WATCH_DONE, types[i]);
        CHECK_STR(s.accept, PROTOBUF ", application/json", types[i]);
        check_out(&s, "begin L:a end A:c ", types[i]);
    }
}

static const struct bad {
    const char *body;
    const char *type;
    const char *error;
} bad_bodies[] = {
    {"<html>", PROTOBUF, "the answer is not Kubernetes' protobuf"},
    {"<html>", "", ""},
    {"k9s", PROTOBUF, "the answer is not Kubernetes' protobuf"},
    {"k9s", "application/json", "the answer is not Kubernetes' protobuf"},
};

/* A response that is neither: JSON is requested at once, and protobuf again after a while. */
TEST(test_protobuf_is_tried_again)
{
    for (size_t i = 0; i < sizeof(bad_bodies) / sizeof(bad_bodies[0]); i++) {
        const struct bad *bad = &bad_bodies[i];
        SCOPED(sim) s;
        setup(&s, "");
        STEP(&s, .status = 200, .body = bad->body, .content_type = bad->type);
        CHECK_INT(s.result, WATCH_NO_PROTOBUF, bad->body);
        CHECK_CONTAINS(s.err.msg, bad->error, bad->body);
        STEP(&s, .status = 200, .body = bad->body, .content_type = bad->type);
        CHECK_INT(s.waited, 0, "at once");
        CHECK_STR(s.accept, "application/json", bad->body);
        CHECK_INT(s.result, WATCH_FAILED, "no better offer");
        STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")));
        CHECK_STR(s.accept, "application/json", bad->body);
        check_out(&s, "begin begin begin L:a end ", bad->body);
        STEP(&s, .status = 200, .lasted_ms = WATCH_JSON_MIN_MS,
             .body = EVENT("ADDED", POD("c", "11")));
        CHECK_STR(s.accept, "application/json", "the watch, again");
        STEP(&s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("d", "12")));
        CHECK_STR(s.accept, PROTOBUF ", application/json", "after a while");
        check_out(&s, "A:c A:d ", bad->body);
    }
}

/* A server that never learns is asked for protobuf more and more rarely. */
TEST_SIM(paged, test_protobuf_is_tried_more_rarely)
{
    STEP(s, .status = 406);
    STEP(s, .status = 200, .body = LIST("10", POD("a", "1")));
    for (int64_t ms = WATCH_JSON_MIN_MS; ms < 4 * WATCH_JSON_MAX_MS; ms *= 2) {
        int64_t want = ms < WATCH_JSON_MAX_MS ? ms : WATCH_JSON_MAX_MS;
        STEP(s, .status = 200, .lasted_ms = want - 2 * WATCH_SHORT_MS,
             .body = EVENT("ADDED", POD("c", "11")));
        CHECK_STR(s->accept, "application/json", "");
        STEP(s, .status = 200, .lasted_ms = 2 * WATCH_SHORT_MS,
             .body = EVENT("ADDED", POD("c", "11")));
        CHECK_STR(s->accept, "application/json", "");
        STEP(s, .status = 406);
        CHECK_STR(s->accept, PROTOBUF ", application/json", "");
        CHECK_INT(s->result, WATCH_NO_PROTOBUF, "");
    }
}

#define PARTIAL(name, version)                                                                     \
    "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"" name                           \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST_OF(kind, version, items)                                                              \
    "{\"kind\":\"" kind "\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items  \
    "]}"

/* Metadata alone is asked for where that suffices; a server may send whole objects all the same. */
TEST(test_metadata_only)
{
#define AS ";as=PartialObjectMetadata"
#define META_GROUP ";g=meta.k8s.io;v=v1, "
    struct sim s;
    setup_kind(&s, "", OBJECT_MAX, 0, "Node", true);
    STEP(&s, .status = 422);
    buf_clear(&s.out);
    CHECK_STR(s.accept, PROTOBUF AS META_GROUP "application/json" AS META_GROUP "application/json",
              "a stream");
    STEP(&s, .status = 200,
         .body = LIST_OF("PartialObjectMetadataList", "10", PARTIAL("a", "1") "," POD("b", "2")));
    CHECK_STR(s.accept,
              PROTOBUF AS "List" META_GROUP "application/json" AS "List" META_GROUP
                          "application/json",
              "a list");
    check_out(&s, "begin L:a L:b end ", "");
    STEP(&s, .status = 200, .lasted_ms = 5000,
         .body = EVENT("ADDED", PARTIAL("c", "11"))
             EVENT("ADDED", "{\"kind\":\"Node\",\"metadata\":{\"name\":\"d\"}}")
                 EVENT("ADDED", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"e\"}}"));
    check_out(&s, "A:c A:d skip4 ", "");
    STEP(&s, .status = 406);
    STEP(&s, .status = 200, .lasted_ms = 5000);
    CHECK_STR(s.accept, "application/json" AS META_GROUP "application/json", "no protobuf");
    teardown(&s);
    /* Who needs whole objects cannot do with less. */
    setup_kind(&s, "", OBJECT_MAX, 0, "Pod", false);
    STEP(&s, .status = 422);
    STEP(&s, .status = 200, .body = LIST_OF("PartialObjectMetadataList", "10", ""));
    CHECK_INT(s.result, WATCH_FAILED, "");
    CHECK_STR(s.err.msg,
              "the answer is not a list of this resource: expected the kind \"PodList\", got "
              "\"PartialObjectMetadataList\"",
              "");
    teardown(&s);
}

MAIN_IN_BOTH_ENCODINGS()
