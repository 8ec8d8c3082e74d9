/* Stores come and go with their endpoints: one directory has one endpoint at a time, and a store
 * that has lost its endpoint is there again when the endpoint comes back. */
#include "tests/unit/lib/testing.h"

#include <stdlib.h>

#include "agent/stores.h"
#include "write/protocol.h"
#include "write/protocols/table.h"

struct place {
    struct testing_log *log;
    struct stores *stores;
    char *dir;
    char url[512];
    struct config_endpoint endpoint;
};

static int setup(void **state)
{
    static struct place p;
    p = (struct place){.log = testing_log_new(), .dir = testing_mkdtemp()};
    (void)snprintf(p.url, sizeof(p.url), "store://%s/kept", p.dir);
    p.stores = stores_new(testing_log(p.log), NULL, NULL);
    p.endpoint = (struct config_endpoint){.name = "one",
                                          .url = p.url,
                                          .protocol = &protocol_store.config,
                                          .store_stretch_ms = 3600000};
    *state = &p;
    return p.stores == NULL;
}

static int teardown(void **state)
{
    struct place *p = *state;
    stores_free(p->stores);
    testing_log_done(p->log);
    testing_directory_leave(&p->dir);
    return 0;
}

TEST_ON(struct place *p, test_comes_back)
{
    struct err err = ERR_INIT;
    struct sink *sink = stores_open_sink(p->stores, &p->endpoint, &err);
    struct store *store = stores_get(p->stores, "one");
    CHECK_STR(err.msg, "", "");
    assert_non_null(sink);
    assert_non_null(store);
    sink_unref(sink);
    assert_null(stores_get(p->stores, "one"));
    assert_null(stores_get(p->stores, NULL));
    p->endpoint.name = "two";
    sink = stores_open_sink(p->stores, &p->endpoint, &err);
    assert_non_null(sink);
    assert_ptr_equal(stores_get(p->stores, "two"), store);
    assert_ptr_equal(stores_get(p->stores, NULL), store);
    assert_null(stores_get(p->stores, "one"));
    sink_unref(sink);
}

TEST_ON(struct place *p, test_belongs_to_one)
{
    struct err err = ERR_INIT;
    struct sink *sink = stores_open_sink(p->stores, &p->endpoint, &err);
    assert_non_null(sink);
    p->endpoint.name = "two";
    assert_null(stores_open_sink(p->stores, &p->endpoint, &err));
    CHECK_STR(err.msg,
              "the directory is that of endpoint \"one\": remove that one first, or restart", "");
    sink_unref(sink);
}
