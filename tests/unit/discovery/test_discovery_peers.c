/* Which endpoints of EndpointSlices are members, and which of them we are. */
#include "tests/unit/lib/kube_objects.h"

#include <stdlib.h>

#include "discovery/kubernetes/peers.h"
#include "discovery/kubernetes/roles.h"

SCOPED_POINTER(peer_set, peer_set_free)

static struct object_id id_of(const char *name)
{
    return (struct object_id){.namespace = SV("mon"), .name = sv_from(name)};
}

static void put_slice(struct peer_set *s, const char *name, const char *text)
{
    SCOPED(test_object) t;
    struct object_id id = id_of(name);
    test_object_read(&t, text, kube_endpointslices.resource.rows, true);
    CHECK_INT(peer_set_put(s, &id, &t.object.slice), true, name);
}

/* endpoints: the member "endpoints" */
static void put(struct peer_set *s, const char *name, const char *endpoints)
{
    char text[4096];
    snprintf(text, sizeof(text), "{\"endpoints\":%s}", endpoints);
    put_slice(s, name, text);
}

/* "a b* c": the star is ours */
static void check_now(struct peer_set *s, const char *want, const char *row)
{
    struct peers_now now;
    CHECK_INT(peer_set_now(s, &now), true, row);
    char got[4096] = "";
    size_t len = 0;
    for (size_t i = 0; i < now.n; i++) {
        len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%.*s%s", i == 0 ? "" : " ",
                                SV_ARG(now.names[i]), i == now.self ? "*" : "");
    }
    CHECK_STR(got, want, row);
}

static struct peer_set *new_set(void)
{
    static const struct peer_set_options options = {.self = "p-1", .self_ip = "10.0.0.1"};
    return peer_set_new(&options);
}

#define POD(name, rest)                                                                            \
    "{\"addresses\":[\"10.0.0.9\"],\"targetRef\":{\"kind\":\"Pod\",\"name\":\"" name "\"}" rest "}"

TEST(members)
{
    static const struct {
        const char *row, *endpoints, *want;
    } cases[] = {
        {"none", "[]", ""},
        {"null", "null", ""},
        {"no list", "{\"a\":1}", ""},
        {"sorted", "[" POD("p-2", "") "," POD("p-0", "") "," POD("p-1", "") "]", "p-0 p-1* p-2"},
        {"each once", "[" POD("p-2", "") "," POD("p-2", "") "]", "p-2"},
        {"ready", "[" POD("a", ",\"conditions\":{\"ready\":true}") "]", "a"},
        {"not ready", "[" POD("a", ",\"conditions\":{\"ready\":false}") "]", ""},
        {"not known whether ready", "[" POD("a", ",\"conditions\":{\"ready\":null}") "]", "a"},
        {"still serving, but on its way out",
         "[" POD("a",
                 ",\"conditions\":{\"ready\":false,\"serving\":true,\"terminating\":true}") "]",
         ""},
        {"published although it ends",
         "[" POD("a", ",\"conditions\":{\"ready\":true,\"terminating\":true}") "]", ""},
        {"hostname", "[{\"addresses\":[\"10.0.0.7\"],\"hostname\":\"h\"}]", "h"},
        {"address", "[{\"addresses\":[\"10.0.0.7\",\"10.0.0.8\"]}]", "10.0.0.7"},
        {"ours by its address", "[{\"addresses\":[\"10.0.0.7\",\"10.0.0.1\"]}]", "10.0.0.7*"},
        {"ours by its name, with another address", "[" POD("p-1", "") "]", "p-1*"},
        {"a node is no pod",
         "[{\"addresses\":[\"10.0.0.7\"],\"targetRef\":{\"kind\":\"Node\",\"name\":\"n\"}}]",
         "10.0.0.7"},
        {"nameless", "[{\"addresses\":[]},{\"addresses\":[5]},{},7,null,\"x\"]", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(peer_set) *s = new_set();
        put(s, "s", cases[i].endpoints);
        check_now(s, cases[i].want, cases[i].row);
    }
}

/* An endpoint without a name is not us, whatever our address is. */
TEST(unknown_self)
{
    static const struct peer_set_options options = {.self = "other", .self_ip = ""};
    SCOPED(peer_set) *s = peer_set_new(&options);
    put(s, "s", "[{\"addresses\":[\"\",\"10.0.0.1\"]},{\"addresses\":[\"10.0.0.1\"]}]");
    check_now(s, "10.0.0.1", "");
}

TEST(slices)
{
    SCOPED(peer_set) *s = new_set();
    struct object_id a = id_of("a");
    struct object_id b = id_of("b");
    check_now(s, "", "nothing yet");
    peer_set_list_begin(s);
    put(s, "a", "[" POD("p-0", "") "," POD("p-1", "") "]");
    put(s, "b", "[" POD("p-2", "") "," POD("p-1", "") "]");
    peer_set_list_end(s);
    check_now(s, "p-0 p-1* p-2", "a pod in two slices");
    put(s, "a", "[" POD("p-0", "") "]");
    check_now(s, "p-0 p-1* p-2", "still in one");
    peer_set_remove(s, &b);
    check_now(s, "p-0", "");
    peer_set_remove(s, &b);
    /* A list that starts over, and no longer names a. */
    peer_set_list_begin(s);
    put(s, "b", "[" POD("p-1", "") "]");
    check_now(s, "p-0 p-1*", "nothing goes before the list is complete");
    peer_set_list_begin(s);
    put(s, "c", "[" POD("p-2", "") "]");
    peer_set_list_end(s);
    check_now(s, "p-2", "");
    peer_set_remove(s, &a);
    check_now(s, "p-2", "");
}

/* More endpoints than the limit: every replica ignores the same ones. */
TEST(too_many)
{
    SCOPED(peer_set) *s = new_set();
    for (unsigned slice = 0; slice < 3; slice++) {
        char name[16];
        snprintf(name, sizeof(name), "s-%u", slice);
        SCOPED(buf) text = testing_buf(1 << 20);
        buf_puts(&text, "{\"endpoints\":[");
        for (unsigned i = 0; i < 400; i++) {
            buf_printf(&text, "%s{\"hostname\":\"m-%04u\"}", i == 0 ? "" : ",", slice * 400 + i);
        }
        buf_puts(&text, "]}");
        put_slice(s, name, text.data);
    }
    struct peers_now now;
    CHECK_INT(peer_set_now(s, &now), true, "");
    CHECK_INT(now.n, PEERS_MAX, "");
    CHECK_INT(now.ignored, 200, "");
    CHECK_INT(sv_eq_str(now.names[999], "m-0999"), true, "the last one in order of names");
}

TEST(first_addresses_of_members)
{
    SCOPED(peer_set) *s = new_set();
    size_t n;
    put(s, "v4",
        "[" POD("p-2", "") ",{\"addresses\":[\"10.0.0.7\",\"10.0.0.8\"],\"hostname\":\"h\"},"
                           "{\"addresses\":[\"10.0.0.6\"],\"conditions\":{\"ready\":false},"
                           "\"hostname\":\"i\"}]");
    put(s, "v6", "[{\"addresses\":[\"fd00::1\"],\"hostname\":\"h\"}]");
    put(s, "fqdn", "[{\"addresses\":[\"h.example\"],\"hostname\":\"f\"}]");
    SCOPED_MEMORY struct sv *got = peer_set_addresses(s, &n);
    CHECK_INT(n, 3, "addresses");
    bool v4 = false;
    bool v6 = false;
    for (size_t i = 0; i < n; i++) {
        v4 = v4 || sv_eq_str(got[i], "10.0.0.7");
        v6 = v6 || sv_eq_str(got[i], "fd00::1");
    }
    assert_true(v4 && v6);
}
