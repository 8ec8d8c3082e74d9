/* Which encoding a watch asks for, and what it does with the answer. */
#include "tests/unit/discovery/watch_sim.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"

/* Protobuf is asked for, and what comes is read as what it says to be. */
static void test_accept(void **state)
{
    (void)state;
    struct sim s;
    setup(&s, "");
    list_two(&s);
    CHECK_STR(s.accept, PROTOBUF ", application/json", "list");
    CHECK_INT(watch_is_protobuf(s.w), sim_protobuf, "");
    STEP(&s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "11")));
    CHECK_STR(s.accept, PROTOBUF ", application/json", "watch");
    check_out(&s, "A:c ", "");
    teardown(&s);
}

/* A server that refuses it is asked for JSON at once, where it was, and from then on. */
static void test_not_acceptable(void **state)
{
    (void)state;
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

/* What says to be protobuf and is not: the same. */
static void test_not_protobuf(void **state)
{
    (void)state;
    struct sim s;
    setup(&s, "");
    STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")), .content_type = PROTOBUF);
    CHECK_INT(s.result, WATCH_NO_PROTOBUF, "");
    CHECK_CONTAINS(s.err.msg, "the answer is not Kubernetes' protobuf", "");
    STEP(&s, .status = 200, .body = LIST("10", POD("a", "1")));
    CHECK_STR(s.accept, "application/json", "");
    check_out(&s, "begin begin L:a end ", "");
    STEP(&s, .status = 200, .body = EVENT("ADDED", POD("c", "11")),
         .content_type = PROTOBUF ";stream=watch");
    CHECK_INT(s.result, WATCH_FAILED, "no better offer");
    STEP(&s, .status = 200, .lasted_ms = 5000, .body = EVENT("ADDED", POD("c", "11")));
    CHECK_INT(s.result, WATCH_DONE, "");
    check_out(&s, "A:c ", "");
    teardown(&s);
}

#define PARTIAL(name, version)                                                                     \
    "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"" name                           \
    "\",\"resourceVersion\":\"" version "\"}}"
#define LIST_OF(kind, version, items)                                                              \
    "{\"kind\":\"" kind "\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items  \
    "]}"

/* Metadata alone is asked for where that suffices; a server may send whole objects all the same. */
static void test_metadata_only(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_not_acceptable),
        cmocka_unit_test(test_not_protobuf),
        cmocka_unit_test(test_metadata_only),
    };
    int failed = cmocka_run_group_tests_name("json", tests, NULL, NULL);
    sim_protobuf = true;
    return failed + cmocka_run_group_tests_name("protobuf", tests, NULL, NULL);
}
