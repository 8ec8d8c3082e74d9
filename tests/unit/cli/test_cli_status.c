/* The output of `profpull status` for an answer. */
#include <jansson.h>

#include "cli/status/show.h"
#include "tests/unit/lib/testing.h"

#define WELL                                                                                       \
    "{'version':'1.2','configFile':'/p.yaml','uptimeSeconds':3661,'healthy':true,'health':'',"     \
    "'ready':true,'readiness':'','jobs':[{'job':'pods','unknown':1,'up':20,'down':0,'absent':2}]," \
    "'failures':[],'moreFailures':0,'slowest':[{'job':'pods','url':'http://h:1/cpu','lastDuration" \
    "Seconds':14.5,'samplingSeconds':14}],'sources':[{'job':'pods','source':'kubernetes/0',"       \
    "'state':'up','why':''}],'destinations':[{'name':'main','url':'http://s:1','up':true,"         \
    "'downSince':'','lastError':'','advice':'','sent':7,'queued':2,'queuedBytes':1048576,"         \
    "'queueLimitBytes':4194304,'inFlight':1,'oldestAgeSeconds':61.5,'dropped':{'rejected':2,"      \
    "'expired':1}}],'sharding':{'members':3,'index':1,'own':10,'others':22}}"

/* The text has single quotes for double ones. */
static json_t *load(const char *text)
{
    SCOPED_MEMORY char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = copy; *c != '\0'; c++) {
        *c = *c == '\'' ? '"' : *c;
    }
    json_t *root = json_loads(copy, 0, NULL);
    assert_non_null(root);
    return root;
}

static char *show(const json_t *root, unsigned width, bool colours)
{
    const struct show_style style = {.width = width, .colours = colours};
    struct buf out = testing_buf(1 << 20);
    assert_true(status_show(root, &style, &out));
    char *text = buf_take(&out, NULL);
    assert_non_null(text);
    return text;
}

TEST(all_is_well)
{
    json_auto_t *root = load(WELL);
    assert_true(status_is_well(root));
    SCOPED_MEMORY char *text = show(root, 100, false);
    CHECK_STR(text,
              "profpull 1.2, up 1h1m1s, configuration /p.yaml\n"
              "healthy\n"
              "ready\n"
              "\n"
              "JOB        UP     DOWN   ABSENT      NEW\n"
              "pods       20        0        2        1\n"
              "\n"
              "Slowest scrapes\n"
              "14.500 s, of which 14 s sampling, job pods, http://h:1/cpu\n"
              "\n"
              "Sources of targets\n"
              "1 of 1 can be read\n"
              "\n"
              "Destinations\n"
              "main: up\n"
              "    http://s:1\n"
              "    7 sent, 3 dropped, 2 queued (1.0 MiB, 25% of the room), 1 in flight, the oldest "
              "waits for 1m1s\n"
              "\n"
              "Sharing of targets\n"
              "member 2 of 3; 10 targets are scraped here, 22 of other members\n",
              "");
    free(text);
    text = show(root, 100, true);
    CHECK_CONTAINS(text, "\033[32mready\033[0m\n", "green");
    CHECK_CONTAINS(text, "\033[1mDestinations\033[0m\n", "bold");
}

/* Each of these alone is a failure; an absent type is none. */
TEST(what_fails)
{
    static const struct {
        const char *member, *value;
        bool well;
        const char *part;
    } rows[] = {
        {"ready", "false", false, "not ready\n"},
        {"healthy", "false", false, "not healthy\n"},
        {"moreFailures", "3", false, "and 3 scrapes that fail in other ways\n"},
        {"failures",
         "[{'count':2,'scrape':{'job':'pods','type':'memory','source':'pod/shop/cart-1','url':"
         "'http://h:1/x','health':'down','reason':'connect','lastError':'refused','advice':'check "
         "the port'}}]",
         false,
         "2 of job pods: connect (down), such as\n    pod/shop/cart-1, memory, http://h:1/x\n    "
         "refused\n    -> check the port\n"},
        {"failures", "[{'count':1,'scrape':{'health':'absent','reason':'http_404'}}]", true,
         "http_404 (absent)"},
        {"sources", "[{'job':'web','source':'http/0','state':'down','why':'HTTP 500'}]", false,
         "0 of 1 can be read\njob web, http/0: down\n    HTTP 500\n"},
        {"sources", "[{'job':'','source':'secrets','state':'pending','why':'x'}]", false,
         "secrets: pending\n"},
        {"destinations",
         "[{'name':'main','up':false,'downSince':'2026-01-01T00:00:00.000Z','url':'http://s:1',"
         "'lastError':'HTTP 401','advice':'set a token'}]",
         false,
         "main: down since 2026-01-01T00:00:00.000Z\n    http://s:1\n    0 sent, 0 dropped, 0 "
         "queued (0.0 MiB, 0% of the room), 0 in flight\n    HTTP 401\n    -> set a token\n"},
        {"destinations",
         "[{'name':'kept','up':true,'url':'store:///d','archive':{'url':'s3://b/p','up':true,"
         "'files':12,'bytes':3145728,'waitingFiles':2,'waitingBytes':1048576,'conflict':false,"
         "'lastError':''}}]",
         true, "    archive s3://b/p: 12 files (3.0 MiB), 2 wait for their upload (1.0 MiB)\n"},
        {"destinations",
         "[{'name':'kept','up':true,'archive':{'url':'s3://b/p','conflict':false,"
         "'lastError':'HTTP 403'}}]",
         false, "0 wait for their upload (0.0 MiB)\n    HTTP 403\n"},
        {"destinations",
         "[{'name':'kept','up':true,'archive':{'url':'s3://b/p','conflict':true,"
         "'lastError':''}}]",
         false, "another process uses the name of this writer"},
        {"sharding", "null", true, "main: up"},
        {"peers", "{'known':3,'down':0,'lastError':''}", true,
         "\nPeers of queries\n3 known, 0 down\n"},
        {"peers", "{'known':3,'down':1,'lastError':'peer http://h:1: refused'}", false,
         "3 known, 1 down\n    peer http://h:1: refused\n"},
        {"symbols", "{'named':0,'partly':0,'unnamed':0,'asks':1,'failures':0}", true,
         "of other members\n"},
        {"symbols", "{'named':7,'partly':2,'unnamed':1,'asks':3,'failures':0}", true,
         "\nNames for addresses\n7 profiles got all names, 2 some, 1 none; 3 questions wait\n"},
        {"symbols", "{'unnamed':1,'failures':4}", true,
         "debug information could not be read 4 times: profpull_symbols_failures_total"},
        {"bottleneck", "null", true, "ready\n\nJOB"},
        {"bottleneck", "{'cause':'memory','unread':3,'heldBack':40,'advice':'raise it'}", true,
         "ready\nscrapes wait: 3 responses are not read yet, 40 requests not sent yet\n    -> "
         "raise "
         "it\n\nJOB"},
        {"jobs", "'rubbish'", true, "JOB"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_auto_t *root = load(WELL);
        char changed[1024];
        snprintf(changed, sizeof(changed), "{'x':%s}", rows[i].value);
        json_auto_t *value = load(changed);
        json_object_set(root, rows[i].member, json_object_get(value, "x"));
        CHECK_INT(status_is_well(root), rows[i].well, rows[i].part);
        SCOPED_MEMORY char *text = show(root, 100, false);
        CHECK_CONTAINS(text, rows[i].part, rows[i].member);
    }
}

/* A narrow terminal breaks lines after spaces, and long words where it has to. What a terminal
 * would take for commands does not reach it. */
TEST(narrow_and_hostile)
{
    json_auto_t *root =
        load("{'version':'\\u001b[2J\\u009b','configFile':'\\u00e9\\u00e9 with some "
             "words "
             "and/a/word/that/is/longer/than/the/line/is/wide'}");
    SCOPED_MEMORY char *text = show(root, 40, false);
    CHECK_CONTAINS(text,
                   "profpull ?[2J?, up 0s, configuration \xc3\xa9\xc3\xa9\n"
                   "  with some words\n"
                   "  and/a/word/that/is/longer/than/the/lin\n"
                   "  e/is/wide\n",
                   "");
    free(text);
    json_decref(root);
    root = load("[]");
    text = show(root, 40, false);
    assert_false(status_is_well(root));
}

/* Numbers that no profpull sends: larger than 64 bits, and so large that a product of them is. */
TEST(numbers_without_bounds)
{
    json_auto_t *root =
        load("{'uptimeSeconds':9223372036854775807,'jobs':[{'job':'pods','up':1e300,"
             "'down':-1e300}],'destinations':[{'name':'main','queued':3.7,"
             "'queuedBytes':9000000000000000000,'queueLimitBytes':9e18,"
             "'oldestAgeSeconds':1e86}]}");
    SCOPED_MEMORY char *text = show(root, 200, false);
    CHECK_CONTAINS(text, "pods 1000000000000000 -1000000000000000 ", "");
    CHECK_CONTAINS(text, "3 queued", "");
}
