/* The errors of invalid files: position, path, expected and actual value. */
#include "tests/unit/lib/testing.h"

#include "config/config.h"
#include "tests/unit/lib/protocols.h"
#include "tests/unit/lib/valid_config.h"

static const char *no_env(void *arg, const char *name)
{
    (void)arg;
    if (strcmp(name, "WORD") == 0) {
        return "word";
    }
    if (strcmp(name, "BAD_UTF8") == 0) {
        return "\xff";
    }
    return strcmp(name, "EMPTY") == 0 ? "" : NULL;
}

static bool judge(void *arg, const struct config_rule *rule, struct err *err)
{
    (void)arg;
    if (rule->regex != NULL && strcmp(rule->regex, "(") == 0) {
        return err_set(err, ERR_INPUT, "regex: error parsing regexp: missing closing )");
    }
    if (rule->action == ACTION_REPLACE && rule->target_label == NULL) {
        return err_set(err, ERR_INPUT,
                       "relabel configuration for replace action requires "
                       "'target_label' value");
    }
    return true;
}

static const struct config_options options = {
    .env = no_env, .check_rule = judge, .protocols = testing_protocols};

/* All errors of a text, which must not load. */
static void check_errors(const char *text, const char *want, const struct config_options *o)
{
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(config) *c = config_parse("f", sv_from(text), o, errors);
    SCOPED(buf) got = testing_buf(1 << 16);
    config_errors_format(errors, &got);
    CHECK_STR(got.data, want, text);
    CHECK_INT(c == NULL, want[0] != '\0', text);
}

/* The rest of a job from line 3, of an endpoint from line 4, of the file from line 3. */
#define JOB(x) "scrape_configs:\n- job_name: a\n" x "write: [{url: \"http://x\"}]\n"
#define SD(x) JOB("  kubernetes_sd_configs:\n  - role: pod\n" x) /* from line 5 */
#define RULE(x) JOB("  relabel_configs:\n  - {" x "}\n")         /* line 4, column 5 */
#define WRITE(x) "scrape_configs: [{job_name: a}]\nwrite:\n- url: http://x\n" x
#define NO_WORK                                                                                    \
    "at least one job is needed without receive.listen and without an endpoint "                   \
    "store:///DIRECTORY\n"
#define ROOT(x) "scrape_configs: [{job_name: a}]\nwrite: [{url: \"http://x\"}]\n" x

struct mistake {
    const char *text;
    const char *want;
};

static void check_table(const struct mistake *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_errors(cases[i].text, cases[i].want, &options);
    }
}
#define CHECK_TABLE(cases) check_table((cases), sizeof(cases) / sizeof((cases)[0]))

TEST(valid_configurations_have_no_errors)
{
    static const struct mistake cases[] = {
        {JOB(""), ""},
        {SD(""), ""},
        {WRITE(""), ""},
        {ROOT(""), ""},
        {RULE("action: Keep, regex: x, source_labels: [a]"), ""},
        {ROOT("server:\nglobal:\nlog: {}\n"), ""},
        {JOB("  static_configs:\n  relabel_configs:\n  profiles: {memory: , custom: }\n"), ""},
        {"{\"scrape_configs\": [{\"job_name\": \"a\"}], \"write\": [{\"url\": \"http://x\"}]}", ""},
    };
    CHECK_TABLE(cases);
}

TEST(mistakes_of_the_file_as_a_whole)
{
    static const struct mistake cases[] = {
        {"", "f:1:1: write: at least one endpoint is needed\n"},
        {"scrape_configs: []\n", "f:1:1: write: at least one endpoint is needed\n"
                                 "f:1:17: scrape_configs: " NO_WORK},
        {"a", "f:1:1: expected a mapping, got a value\n"},
        {"[]", "f:1:1: expected a mapping, got a list\n"},
        {"a: [", "f:2:1: not valid YAML: did not find expected node content while parsing a flow "
                 "node\n"},
        {ROOT("scrape_config: []\n"),
         "f:3:1: scrape_config: unknown key; did you mean \"scrape_configs\"?\n"},
        {ROOT("zzz: []\n"), "f:3:1: zzz: unknown key\n"},
        {ROOT("log: {}\nlog: {}\n"), "f:4:1: log: duplicate key (first on line 3)\n"},
        {ROOT("? [a]\n: b\n"), "f:3:3: ?: expected a string as key, got a list\n"},
        {ROOT("\"a\\0b\": 1\n"), "f:3:1: a: a NUL character is not allowed\n"},
        {ROOT("log: [info]\n"), "f:3:6: log: expected a mapping, got a list\n"},
        {ROOT("log: info\n"), "f:3:6: log: expected a mapping, got a value\n"},
        {ROOT("log: !!map {}\n"), "f:3:6: log: tags (such as !!binary) are not supported\n"},
        {ROOT("log: {level: !!str info}\n"),
         "f:3:14: log.level: tags (such as !!binary) are not supported\n"},
        {ROOT("log: {level: \"in\\0fo\"}\n"),
         "f:3:14: log.level: a NUL character is not allowed\n"},
        {ROOT("log: {level: [info]}\n"), "f:3:14: log.level: expected \"debug\", \"info\", "
                                         "\"warn\" or \"error\", got a list\n"},
        {ROOT("log: {level: warning}\n"), "f:3:14: log.level: expected \"debug\", \"info\", "
                                          "\"warn\" or \"error\", got \"warning\"\n"},
        {ROOT("log: {level: }\n"), "f:3:14: log.level: expected \"debug\", \"info\", \"warn\" or "
                                   "\"error\", got null\n"},
        {ROOT("log: {format: text}\n"),
         "f:3:15: log.format: expected \"logfmt\" or \"json\", got \"text\"\n"},
        {ROOT("server: {max_connections: 1, max_connections_per_address: 2000}\n"),
         "f:3:27: server.max_connections: expected a whole number from 2 to 1024, got \"1\"\n"
         "f:3:59: server.max_connections_per_address: expected a whole number from 2 to 1024, got "
         "\"2000\"\n"},
        {ROOT("server: {request_timeout: 10ms, answer_timeout: 1h}\n"),
         "f:3:27: server.request_timeout: expected a duration from 1s to 10m, got \"10ms\"\n"
         "f:3:49: server.answer_timeout: expected a duration from 1s to 10m, got \"1h\"\n"},
        {ROOT("server: {listen: 4041}\n"),
         "f:3:18: server.listen: expected host:port such as \"0.0.0.0:4041\" or \"[::]:4041\", or "
         "\"\" for no server, got \"4041\"\n"},
        {ROOT("global: {scrape_interval: 15}\n"), "f:3:27: global.scrape_interval: expected a "
                                                  "duration such as \"15s\", got \"15\"\n"},
        {ROOT("global: {scrape_interval: -5s}\n"), "f:3:27: global.scrape_interval: expected a "
                                                   "duration such as \"15s\", got \"-5s\"\n"},
        {ROOT("global: {scrape_interval: 0s}\n"), "f:3:27: global.scrape_interval: expected a "
                                                  "duration from 1ms to 1d, got \"0s\"\n"},
        {ROOT("global: {scrape_interval: 1y}\n"), "f:3:27: global.scrape_interval: expected a "
                                                  "duration from 1ms to 1d, got \"1y\"\n"},
        {ROOT("global: {scrape_timeout: [1s]}\n"), "f:3:26: global.scrape_timeout: expected a "
                                                   "duration such as \"15s\", got a list\n"},
        {ROOT("global: {external_labels: {a-b: x}}\n"),
         "f:3:28: global.external_labels.a-b: expected a label name of letters, digits, \"_\" and "
         "\".\" that begins with a letter or one \"_\", got \"a-b\"\n"},
        {ROOT("global: {external_labels: {__name__: x}}\n"),
         "f:3:28: global.external_labels.__name__: expected a label name of letters, digits, "
         "\"_\" and \".\" that begins with a letter or one \"_\", got \"__name__\"\n"},
        {ROOT("global: {external_labels: {a: }}\n"),
         "f:3:31: global.external_labels.a: expected a string, got null\n"},
        {ROOT("global: {external_labels: {a: [x]}}\n"),
         "f:3:31: global.external_labels.a: expected a string, got a list\n"},
        {ROOT("global: {external_labels: {a: b, a: c}}\n"),
         "f:3:34: global.external_labels.a: duplicate key (first on line 3)\n"},
        {ROOT("global: {<<: 1}\n"),
         "f:3:9: global: \"<<\" takes a mapping or a list of mappings\n"},
    };
    CHECK_TABLE(cases);
}

TEST(mistakes_in_jobs)
{
    static const struct mistake cases[] = {
        {"scrape_configs: []\nwrite: [{url: \"http://x\"}]\n", "f:1:17: scrape_configs: " NO_WORK},
        {"scrape_configs: {}\nwrite: [{url: \"http://x\"}]\n",
         "f:1:17: scrape_configs: expected a list, got a mapping\n"},
        {"scrape_configs: [~, a]\nwrite: [{url: \"http://x\"}]\n",
         "f:1:18: scrape_configs[0]: missing required key \"job_name\"\n"
         "f:1:21: scrape_configs[1]: expected a mapping, got a value\n"},
        {"scrape_configs: [{scheme: http}]\nwrite: [{url: \"http://x\"}]\n",
         "f:1:18: scrape_configs[0]: missing required key \"job_name\"\n"},
        {"scrape_configs: [{job_name: ''}]\nwrite: [{url: \"http://x\"}]\n",
         "f:1:29: scrape_configs[0].job_name: expected a string that is not empty, got \"\"\n"},
        {"scrape_configs:\n- job_name: a\n- job_name: a\nwrite: [{url: \"http://x\"}]\n",
         "f:3:13: scrape_configs[1].job_name: \"a\" is used twice (first on line 2)\n"},
        {JOB("  sheme: https\n"),
         "f:3:3: scrape_configs[0].sheme: unknown key; did you mean \"scheme\"?\n"},
        {JOB("  scheme: htttp\n"),
         "f:3:11: scrape_configs[0].scheme: expected \"http\" or \"https\", got \"htttp\"\n"},
        {JOB("  body_size_limit: 16 apples\n"), "f:3:20: scrape_configs[0].body_size_limit: "
                                                "expected a size such as \"16MiB\", got \"16 "
                                                "apples\"\n"},
        {JOB("  body_size_limit: 0\n"), "f:3:20: scrape_configs[0].body_size_limit: expected a "
                                        "size from 1B to 1GiB, got \"0\"\n"},
        {JOB("  target_limit: 0\n"), "f:3:17: scrape_configs[0].target_limit: expected a whole "
                                     "number from 1 to 1000000, got \"0\"\n"},
        {JOB("  target_limit: 99999999999999999999\n"),
         "f:3:17: scrape_configs[0].target_limit: expected a whole number from 1 to 1000000, got "
         "\"99999999999999999999\"\n"},
        {JOB("  target_limit: 1.5\n"), "f:3:17: scrape_configs[0].target_limit: expected a whole "
                                       "number from 1 to 1000000, got \"1.5\"\n"},
        {JOB("  target_limit: '7'\n"), "f:3:17: scrape_configs[0].target_limit: expected a whole "
                                       "number from 1 to 1000000, got the string \"7\"\n"},
        {JOB("  delta_compression: zstd\n"), "f:3:22: scrape_configs[0].delta_compression: "
                                             "expected \"fast\", \"best\" or \"none\", got "
                                             "\"zstd\"\n"},
        {JOB("  allow_foreign_address: yes\n"),
         "f:3:26: scrape_configs[0].allow_foreign_address: expected true or false, got \"yes\" "
         "(only these two words are understood)\n"},
        {JOB("  allow_foreign_address: 'true'\n"),
         "f:3:26: scrape_configs[0].allow_foreign_address: expected true or false, got the string "
         "\"true\"\n"},
        {JOB("  allow_foreign_address: 1\n"), "f:3:26: scrape_configs[0].allow_foreign_address: "
                                              "expected true or false, got \"1\"\n"},
        {JOB("  params: {seconds: 5}\n"),
         "f:3:12: scrape_configs[0].params.seconds: expected the name of a query parameter other "
         "than seconds (which is a key of the types), got \"seconds\"\n"},
        {JOB("  params: {a: [b, {}]}\n"),
         "f:3:19: scrape_configs[0].params.a[1]: expected a string, got a mapping\n"},
        {JOB("  forward_to: [mian]\n"), "f:3:16: scrape_configs[0].forward_to[0]: no endpoint in "
                                        "write has the name \"mian\"; did you mean \"main\"?\n"},
        {JOB("  forward_to: []\n"),
         "f:3:15: scrape_configs[0].forward_to: expected at least one endpoint, got none\n"},
        {JOB("  forward_to: [main, main]\n"),
         "f:3:22: scrape_configs[0].forward_to[1]: \"main\" is named twice\n"},
        {JOB("  forward_to: main\n"),
         "f:3:15: scrape_configs[0].forward_to: expected a list, got a value\n"},
        {JOB("  file_sd_configs: [{files: []}]\n"),
         "f:3:21: scrape_configs[0].file_sd_configs[0]: file service discovery config must contain "
         "at least one path name\n"},
        {JOB("  file_sd_configs: [{files: [a.txt]}]\n"),
         "f:3:30: scrape_configs[0].file_sd_configs[0].files[0]: expected the name of a file that "
         "ends in .json, .yml or .yaml, with wildcards in its last part only, got \"a.txt\"\n"},
        {JOB("  file_sd_configs: [{files: [\"a*/b.yml\"], refresh_interval: 0s}]\n"),
         "f:3:30: scrape_configs[0].file_sd_configs[0].files[0]: expected the name of a file that "
         "ends in .json, .yml or .yaml, with wildcards in its last part only, got \"a*/b.yml\"\n"
         "f:3:61: scrape_configs[0].file_sd_configs[0].refresh_interval: expected a duration from "
         "1s to 1d, got \"0s\"\n"},
        {JOB("  http_sd_configs: [{refresh_interval: 1m}]\n"),
         "f:3:21: scrape_configs[0].http_sd_configs[0]: missing required key \"url\"\n"},
        {JOB("  http_sd_configs: [{url: \"ftp://x?token=secret\"}]\n"),
         "f:3:27: scrape_configs[0].http_sd_configs[0].url: expected a URL such as "
         "\"http://host/targets\" without user and fragment\n"},
        {JOB("  http_sd_configs: [{url: \"http://x\", bearer_token: a, basic_auth: {username: "
             "u}}]\n"),
         "f:3:53: scrape_configs[0].http_sd_configs[0].bearer_token: at most one of basic_auth, "
         "authorization, oauth2, bearer_token & bearer_token_file must be configured\n"},
        {JOB("  profile_relabel_configs: []\n"), ""},
        {JOB("  profile_relabel_configs: [{action: dorp}]\n"),
         "f:3:38: scrape_configs[0].profile_relabel_configs[0].action: expected "
         "\"replace\", \"keep\", \"drop\", \"keepequal\", \"dropequal\", \"hashmod\", "
         "\"labelmap\", "
         "\"labeldrop\", \"labelkeep\", \"lowercase\" or \"uppercase\", got \"dorp\"; did you mean "
         "\"drop\"?\n"},
    };
    CHECK_TABLE(cases);
}

TEST(mistakes_in_profiles)
{
    static const struct mistake cases[] = {
        {JOB("  profiles: {memroy: {}}\n"),
         "f:3:14: scrape_configs[0].profiles.memroy: unknown key; did you mean \"memory\"?\n"},
        {JOB("  profiles: {path_prefix: \"/a?b\"}\n"),
         "f:3:27: scrape_configs[0].profiles.path_prefix: expected a path without \"?\", \"#\", "
         "spaces and control characters (put a query into params), got \"/a?b\"\n"},
        {JOB("  profiles: {memory: {path: debug/heap}}\n"),
         "f:3:29: scrape_configs[0].profiles.memory.path: expected a path that begins with \"/\", "
         "got \"debug/heap\"; did you mean \"/debug/heap\"?\n"},
        {JOB("  profiles: {memory: {path: ''}}\n"),
         "f:3:29: scrape_configs[0].profiles.memory.path: expected a path that begins with \"/\", "
         "got \"\"\n"},
        {JOB("  profiles: {memory: {path: '/heap?gc=1'}}\n"),
         "f:3:29: scrape_configs[0].profiles.memory.path: expected a path without \"?\", \"#\", "
         "spaces and control characters (put a query into params), got \"/heap?gc=1\"\n"},
        {JOB("  profiles: {memory: {path: \"/a\\r\\nHost: x\"}}\n"),
         "f:3:29: scrape_configs[0].profiles.memory.path: expected a path without \"?\", \"#\", "
         "spaces and control characters (put a query into params), got \"/a\\r\\nHost: x\"\n"},
        {JOB("  profiles: {process_cpu: {seconds: 15s}}\n"),
         "f:3:37: scrape_configs[0].profiles.process_cpu.seconds: seconds must be at least 1s "
         "smaller than the interval (15s)\n"},
        {JOB("  profiles: {process_cpu: {interval: 5s, seconds: 14s}}\n"),
         "f:3:51: scrape_configs[0].profiles.process_cpu.seconds: seconds must be at least 1s "
         "smaller than the interval (5s)\n"},
        {JOB("  profiles: {process_cpu: {seconds: 0s}}\n"),
         "f:3:37: scrape_configs[0].profiles.process_cpu.seconds: expected a duration from 1s to "
         "1d, got \"0s\"\n"},
        {JOB("  profiles: {process_cpu: {seconds: 1s500ms}}\n"),
         "f:3:37: scrape_configs[0].profiles.process_cpu.seconds: expected whole seconds, got "
         "\"1s500ms\"\n"},
        {JOB("  profiles: {process_cpu: {continuous: true, seconds: 16s}}\n"),
         "f:3:55: scrape_configs[0].profiles.process_cpu.seconds: seconds must not be larger than "
         "the interval (15s)\n"},
        {JOB("  profiles: {process_cpu: {continuous: true, interval: 900ms}}\n"),
         "f:3:56: scrape_configs[0].profiles.process_cpu.interval: the interval must be at least "
         "1s for the sampling type \"process_cpu\", got \"900ms\"\n"},
        {JOB("  profiles: {memory: {continuous: true}}\n"),
         "f:3:35: scrape_configs[0].profiles.memory.continuous: \"memory\" does not sample over "
         "time\n"},
        {JOB("  profiles: {process_cpu: {continuous: true}, fgprof: {continuous: true, enabled: "
             "true}}\n"),
         "f:3:68: scrape_configs[0].profiles.fgprof.continuous: \"process_cpu\" is continuous "
         "already: a process is sampled for one type at a time\n"},
        {JOB("  profiles: {process_cpu: {continuous: true}, custom: [{name: n, path: /p}, {name: "
             "m, path: /m, sampling: true, continuous: true}]}\n"),
         "f:3:125: scrape_configs[0].profiles.custom[1].continuous: \"process_cpu\" is continuous "
         "already: a process is sampled for one type at a time\n"},
        {JOB("  profiles: {process_cpu: {continuous: true}, fgprof: {continuous: true}}\n"), ""},
        {JOB("  profiles: {process_cpu: {continuous: true}, mutex: {delta: server, continuous: "
             "true}}\n"),
         ""},
        {JOB("  sampling: {percent: 0}\n"),
         "f:3:23: scrape_configs[0].sampling.percent: expected a whole number from 1 to 100, got "
         "\"0\"\n"},
        {JOB("  sampling: {max_per_service: many}\n"),
         "f:3:31: scrape_configs[0].sampling.max_per_service: expected a whole number from 1 to "
         "1000000, got \"many\"\n"},
        {JOB("  sampling: 10%\n"),
         "f:3:13: scrape_configs[0].sampling: expected a mapping, got a value\n"},
        {JOB("  profiles: {memory: {seconds: 5s}}\n"),
         "f:3:32: scrape_configs[0].profiles.memory.seconds: \"memory\" does not sample over time "
         "(a custom type with sampling: true does)\n"},
        {JOB("  scrape_interval: 1s\n"),
         "f:3:20: scrape_configs[0].scrape_interval: the interval must be at least 2s for the "
         "sampling type \"process_cpu\", got \"1s\"\n"},
        {JOB("  profiles: {process_cpu: {interval: 1999ms}}\n"),
         "f:3:38: scrape_configs[0].profiles.process_cpu.interval: the interval must be at least "
         "2s for the sampling type \"process_cpu\", got \"1s999ms\"\n"},
        {ROOT("global: {scrape_interval: 1s}\n"),
         "f:1:18: scrape_configs[0]: the interval must be at least 2s for the sampling type "
         "\"process_cpu\", got \"1s\"\n"},
        {JOB("  scrape_interval: 1s\n  profiles: {process_cpu: {enabled: false}}\n"), ""},
        {JOB("  profiles: {memory: {delta: on}}\n"),
         "f:3:30: scrape_configs[0].profiles.memory.delta: expected \"off\", \"auto\" or "
         "\"server\", got \"on\"\n"},
        {JOB("  profiles: {memory: {delta: server}}\n"),
         "f:3:30: scrape_configs[0].profiles.memory.delta: delta: \"server\" does not go with "
         "\"memory\": Go would make differences of inuse_* too; use auto, or "
         "godeltaprof_memory\n"},
        {JOB("  profiles: {goroutine: {delta: auto}}\n"),
         "f:3:33: scrape_configs[0].profiles.goroutine.delta: delta: \"auto\" does not go with "
         "\"goroutine\": it is a snapshot: there is nothing to subtract\n"},
        {JOB("  profiles: {fgprof: {delta: server}}\n"),
         "f:3:30: scrape_configs[0].profiles.fgprof.delta: delta: \"server\" does not go with "
         "\"fgprof\": it samples over time: there is nothing to subtract\n"},
        {JOB("  profiles: {godeltaprof_block: {delta: auto}}\n"),
         "f:3:41: scrape_configs[0].profiles.godeltaprof_block.delta: delta: \"auto\" does not go "
         "with \"godeltaprof_block\": the target makes the delta already\n"},
        {JOB("  profiles: {custom: [{name: n, path: /p, sampling: true, delta: auto}]}\n"),
         "f:3:66: scrape_configs[0].profiles.custom[0].delta: delta: \"auto\" does not go with "
         "\"n\": it samples over time: there is nothing to subtract\n"},
        {ROOT("global: {label_limits: {max_names: 4}}\n"),
         "f:3:36: global.label_limits.max_names: expected a whole number from 5 to 1024, got "
         "\"4\"\n"},
        {ROOT("global: {label_limits: {max_name_length: 15}}\n"),
         "f:3:42: global.label_limits.max_name_length: expected a whole number from 16 to 65536, "
         "got "
         "\"15\"\n"},
        {ROOT("global: {label_limits: {max_value_length: 65537}}\n"),
         "f:3:43: global.label_limits.max_value_length: expected a whole number from 16 to 65536, "
         "got "
         "\"65537\"\n"},
        {ROOT("global: {delta_state_max_bytes: 1KiB}\n"),
         "f:3:33: global.delta_state_max_bytes: expected a size from 1MiB to 1TiB, got \"1KiB\"\n"},
        {ROOT("global: {bodies_max_bytes: 1KiB}\n"),
         "f:3:28: global.bodies_max_bytes: expected a size from 1MiB to 1TiB, got \"1KiB\"\n"},
        {JOB("  profiles: {memory: {delta: 'off'}, block: {delta: off}}\n"), ""},
        {JOB("  profiles: {custom: [{name: n, path: /p, format: avro}]}\n"),
         "f:3:51: scrape_configs[0].profiles.custom[0].format: expected \"pprof\" or \"jfr\", got "
         "\"avro\"\n"},
        {JOB("  profiles: {memory: {format: jfr}}\n"),
         "f:3:23: scrape_configs[0].profiles.memory.format: unknown key\n"},
        {JOB("  forward_to: [main]\n"
             "  profiles: {custom: [{name: n, path: /p, format: jfr, enabled: false}]}\n"),
         ""},
        {JOB("  profiles: {custom: [{name: n, path: /p, format: jfr}]}\n"), ""},
        {JOB("  profiles: {custom: [{name: n, path: /p, format: jfr, delta: auto, enabled: "
             "false}]}\n"),
         "f:3:63: scrape_configs[0].profiles.custom[0].delta: delta: \"auto\" does not go with "
         "\"n\": a JFR recording is passed on as it is\n"},
        {JOB("  profiles: {heap: {delta: server}}\n"),
         "f:3:28: scrape_configs[0].profiles.heap.delta: delta: \"server\" does not go with "
         "\"heap\": Go would make differences of inuse_* too; use auto, or "
         "godeltaprof_memory\n"},
        {JOB("  profiles: {custom: [{}]}\n"),
         "f:3:23: scrape_configs[0].profiles.custom[0]: missing required key \"name\"\n"
         "f:3:23: scrape_configs[0].profiles.custom[0]: missing required key \"path\"\n"},
        {JOB("  profiles: {custom: [~, x]}\n"),
         "f:3:23: scrape_configs[0].profiles.custom[0]: expected a mapping, got null\n"
         "f:3:26: scrape_configs[0].profiles.custom[1]: expected a mapping, got a value\n"},
        {JOB("  profiles: {custom: [{name: memory, path: /x}]}\n"),
         "f:3:30: scrape_configs[0].profiles.custom[0].name: \"memory\" is a built-in type: change "
         "it under profiles.memory\n"},
        {JOB("  profiles: {custom: [{name: x, path: /x}, {name: x, path: /y}]}\n"),
         "f:3:51: scrape_configs[0].profiles.custom[1].name: \"x\" is used twice (first on line "
         "3)\n"},
        {JOB("  profiles: {custom: {name: x}}\n"),
         "f:3:22: scrape_configs[0].profiles.custom: expected a list, got a mapping\n"},
        {JOB("  profiles: {memory: {sampling: true}}\n"),
         "f:3:23: scrape_configs[0].profiles.memory.sampling: unknown key\n"},
    };
    CHECK_TABLE(cases);
}

TEST(mistakes_in_sources)
{
    static const struct mistake cases[] = {
        {JOB("  static_configs: [{labels: {}}]\n"),
         "f:3:20: scrape_configs[0].static_configs[0]: missing required key \"targets\"\n"},
        {JOB("  static_configs: [{targets: ['http://x:1/y']}]\n"),
         "f:3:31: scrape_configs[0].static_configs[0].targets[0]: expected host:port without "
         "scheme and path (see scheme, path_prefix), got \"http://x:1/y\"\n"},
        {JOB("  static_configs: [{targets: x}]\n"),
         "f:3:30: scrape_configs[0].static_configs[0].targets: expected a list, got a value\n"},
        {JOB("  static_configs: [{targets: [a], labels: {'': x}}]\n"),
         "f:3:44: scrape_configs[0].static_configs[0].labels.: expected a label name that is not "
         "empty, got \"\"\n"},
        {JOB("  kubernetes_sd_configs: [{role: node}, {role: service}, {role: ingress}, "
             "{role: endpoints}, {role: endpointslice}]\n"),
         ""},
        {JOB("  kubernetes_sd_configs: [{role: service, attach_metadata: {node: true}}]\n"),
         "f:3:60: scrape_configs[0].kubernetes_sd_configs[0].attach_metadata: the role service has "
         "no node to attach\n"},
        {JOB("  kubernetes_sd_configs: [{role: node, attach_metadata: {namespace: true}}]\n"),
         "f:3:57: scrape_configs[0].kubernetes_sd_configs[0].attach_metadata: the role node has no "
         "namespace to attach\n"},
        {JOB("  kubernetes_sd_configs: [{role: endpoints, selectors: [{role: endpointslice}]}]\n"),
         "f:3:64: scrape_configs[0].kubernetes_sd_configs[0].selectors[0].role: endpoints role "
         "supports only pod, service, endpoints selectors, got \"endpointslice\"\n"},
        {JOB("  kubernetes_sd_configs: [{role: ingress, selectors: [{role: pod}]}]\n"),
         "f:3:62: scrape_configs[0].kubernetes_sd_configs[0].selectors[0].role: ingress role "
         "supports only ingress selectors, got \"pod\"\n"},
        {JOB("  kubernetes_sd_configs: [{role: pods}]\n"),
         "f:3:34: scrape_configs[0].kubernetes_sd_configs[0].role: unknown Kubernetes SD role "
         "\"pods\"; did you mean \"pod\"?\n"},
        {JOB("  kubernetes_sd_configs: [{role: ''}, {}]\n"),
         "f:3:34: scrape_configs[0].kubernetes_sd_configs[0].role: role missing (one of: pod, "
         "service, endpoints, endpointslice, node, ingress)\n"
         "f:3:39: scrape_configs[0].kubernetes_sd_configs[1]: role missing (one of: pod, service, "
         "endpoints, endpointslice, node, ingress)\n"},
        {SD("    namespaces: {names: [Upper]}\n"),
         "f:5:26: scrape_configs[0].kubernetes_sd_configs[0].namespaces.names[0]: expected the "
         "name of a namespace, got \"Upper\"\n"},
        {SD("    namespaces: [a]\n"), "f:5:17: scrape_configs[0].kubernetes_sd_configs[0]."
                                      "namespaces: expected a mapping, got a list\n"},
        {SD("    selectors: [{label: a=b}]\n"),
         "f:5:17: scrape_configs[0].kubernetes_sd_configs[0].selectors[0]: missing required key "
         "\"role\"\n"},
        {SD("    selectors: [{role: pod}, {role: pod}]\n"),
         "f:5:30: scrape_configs[0].kubernetes_sd_configs[0].selectors[1]: duplicated selector "
         "role: pod\n"},
        {SD("    selectors: [{role: service}, {role: node}]\n"),
         "f:5:24: scrape_configs[0].kubernetes_sd_configs[0].selectors[0].role: pod role supports "
         "only pod, node selectors, got \"service\"\n"
         "f:5:34: scrape_configs[0].kubernetes_sd_configs[0].selectors[1]: a selector of role node "
         "needs attach_metadata.node\n"},
        {SD("    attach_metadata: {node: true, namespace: true}\n"
            "    selectors: [{role: node, label: a}, {role: pod}]\n"),
         ""},
        {SD("    attach_metadata: {node: false, namespace: false}\n"), ""},
        {SD("    api_server: https://x\n    kubeconfig_file: y\n"),
         "f:6:22: scrape_configs[0].kubernetes_sd_configs[0].kubeconfig_file: cannot use "
         "'kubeconfig_file' and 'api_server' simultaneously\n"},
        {SD("    kubeconfig_file: y\n    bearer_token: z\n"),
         "f:5:22: scrape_configs[0].kubernetes_sd_configs[0].kubeconfig_file: cannot use a custom "
         "HTTP client configuration together with 'kubeconfig_file'\n"},
        {SD("    bearer_token: z\n"),
         "f:4:5: scrape_configs[0].kubernetes_sd_configs[0]: to use custom HTTP client "
         "configuration please provide the 'api_server' URL explicitly\n"},
        {SD("    api_server: https://x\n    namespaces: {own_namespace: true}\n"),
         "f:5:17: scrape_configs[0].kubernetes_sd_configs[0].api_server: cannot use 'api_server' "
         "and 'namespaces.own_namespace' simultaneously\n"},
        {SD("    kubeconfig_file: y\n    namespaces: {own_namespace: true}\n"),
         "f:5:22: scrape_configs[0].kubernetes_sd_configs[0].kubeconfig_file: cannot use "
         "'kubeconfig_file' and 'namespaces.own_namespace' simultaneously\n"},
        {SD("    api_server: 10.0.0.1:6443\n"),
         "f:5:17: scrape_configs[0].kubernetes_sd_configs[0].api_server: expected a URL such as "
         "\"http://host:4040\" without user, query and fragment, got \"10.0.0.1:6443\"\n"},
        {SD("    kubeconfig_file: ''\n"),
         "f:5:22: scrape_configs[0].kubernetes_sd_configs[0].kubeconfig_file: expected a file "
         "name, got \"\"\n"},
    };
    CHECK_TABLE(cases);
}

TEST(mistakes_in_rules)
{
#define AT "scrape_configs[0].relabel_configs[0]"
    static const struct mistake cases[] = {
        {RULE("action: kepe"),
         "f:4:14: " AT ".action: expected \"replace\", \"keep\", \"drop\", \"keepequal\", "
         "\"dropequal\", \"hashmod\", \"labelmap\", \"labeldrop\", \"labelkeep\", \"lowercase\" or "
         "\"uppercase\", got \"kepe\"; did you mean \"keep\"?\n"},
        {RULE("action: ''"), "f:4:14: " AT ".action: relabel action cannot be empty\n"},
        {RULE("action: hashmod, modulus: x"),
         "f:4:32: " AT ".modulus: expected a whole number, got \"x\"\n"},
        {RULE("action: hashmod, modulus: -1"),
         "f:4:32: " AT ".modulus: expected a whole number, got \"-1\"\n"},
        {RULE("source_labels: a"), "f:4:21: " AT ".source_labels: expected a list, got a value\n"},
        {RULE("source_labels: [a, '']"),
         "f:4:25: " AT ".source_labels[1]: expected a label name that is not empty, got \"\"\n"},
        {RULE("regex: '(', target_label: a"),
         "f:4:13: " AT ".regex: error parsing regexp: missing closing )\n"},
        {RULE("regex: 'x'"), "f:4:5: " AT ": relabel configuration for replace action requires "
                             "'target_label' value\n"},
        {RULE("target: a"), "f:4:6: " AT ".target: unknown key\n"},
        {RULE("action: hashmod, target_label: a, modulus: '8'"),
         "f:4:49: " AT ".modulus: expected a whole number, got the string \"8\"\n"},
        {RULE("action: hashmod, target_label: a, modulus: 0x"),
         "f:4:49: " AT ".modulus: expected a whole number, got \"0x\"\n"},
        {RULE("action: hashmod, target_label: a, modulus: 1:30"),
         "f:4:49: " AT ".modulus: expected a whole number, got \"1:30\"\n"},
        {RULE("regexp: a"), "f:4:6: " AT ".regexp: unknown key; did you mean \"regex\"?\n"},
        {JOB("  relabel_configs: [~]\n"), "f:3:21: " AT ": expected a mapping, got null\n"},
        {JOB("  relabel_configs: {action: keep}\n"),
         "f:3:20: scrape_configs[0].relabel_configs: expected a list, got a mapping\n"},
    };
#undef AT
    CHECK_TABLE(cases);
}

TEST(mistakes_in_endpoints)
{
#define URL_EXPECTED                                                                               \
    "expected a URL such as \"http://host:4040\" without user, query and fragment, or "            \
    "\"file:///directory\", \"store:///directory\" or \"s3://bucket/prefix\" (the name of a "      \
    "bucket has 3 to 63 letters, digits, \".\", \"_\" and \"-\")"
    static const struct mistake cases[] = {
        {"scrape_configs: [{job_name: a}]\n", "f:1:1: write: at least one endpoint is needed\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: {url: x}\n",
         "f:2:8: write: expected a list, got a mapping\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [~, x]\n",
         "f:2:9: write[0]: expected a mapping, got null\n"
         "f:2:12: write[1]: expected a mapping, got a value\n"},
        {WRITE("  headers: [a]\n"), "f:4:12: write[0].headers: expected a mapping, got a list\n"},
        {WRITE("  concurrency: !!int 1\n"),
         "f:4:16: write[0].concurrency: tags (such as !!binary) are not supported\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{}]\n",
         "f:2:9: write[0]: missing required key \"url\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'ftp://x'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"ftp://x\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://x/?a=b'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED "\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"http://\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://x:99999'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"http://x:99999\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file://host/x'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"file://host/x\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file://./x'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"file://./x\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file:///'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"file:///\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file:'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"file:\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://x/ingest'}]\n", ""},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://x/ingest', protocol: push}]\n",
         ""},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file:///x', protocol: push}]\n",
         "f:2:38: write[0].protocol: protocol \"push\" does not go with a URL that begins with "
         "file://\n"},
        {WRITE("  protocol: file\n"), "f:4:13: write[0].protocol: protocol \"file\" does not go "
                                      "with a URL that begins with http\n"},
        {WRITE("  protocol: profefe\n"), ""},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'store:///x', protocol: file}]\n",
         "f:2:39: write[0].protocol: protocol \"file\" does not go with a URL that begins with "
         "store://\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'store://x'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED ", got \"store://x\"\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'store:///x', retention: {max_age: 1d}, "
         "store: {stretch: 2h, merge: 0s, merge_cpu: 100}}]\n",
         ""},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'file:///x', retention: {max_bytes: 1GB}, "
         "store: {merge: 1m}}]\n",
         "f:2:64: write[0].store: has no effect without a URL that begins with store://\n"},
        {WRITE("  retention: {max_age: 1d}\n"),
         "f:4:14: write[0].retention: has no effect: only file:// and store:// keep profiles\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'store:///x', store: {stretch: "
         "60001ms}}]\n",
         "f:2:46: write[0].store.stretch: expected whole seconds\n"},
        {WRITE("  protocol: auto\n"), ""},
        {WRITE("  protocol: ingest\n  jfr: convert\n"), ""},
        {WRITE("  jfr: convert\n"), ""},
        {WRITE("  jfr: original\n"), "f:4:8: write[0].jfr: protocol \"push\" cannot carry "
                                     "recordings: expected convert\n"},
        {WRITE("  protocol: ingest\n  jfr: pprof\n"),
         "f:5:8: write[0].jfr: expected \"original\" or \"convert\", got \"pprof\"\n"},
        {WRITE("  protocol: oltp\n"),
         "f:4:13: write[0].protocol: expected \"push\", \"ingest\", "
         "\"file\", \"profefe\", \"store\", \"otlp\", \"s3\", \"parca\" or \"auto\", got "
         "\"oltp\"\n"},
        {WRITE("  protocol: parca\n"), ""},
        {WRITE("  protocol: parca\n  enable_http2: false\n"),
         "f:5:17: write[0].enable_http2: protocol \"parca\" needs HTTP/2: expected true, got "
         "false\n"},
        {WRITE("  protocol: otlp\n  otlp: {max_request_size: 64KiB, compression: none, "
               "original_payload: true, resource_attributes: {pod: '', a b: c}}\n"),
         ""},
        {WRITE("  sample_labels: {max_names: 1025, drop: ['']}\n"),
         "f:4:30: write[0].sample_labels.max_names: expected a whole number from 0 to 1024, got "
         "\"1025\"\n"
         "f:4:43: write[0].sample_labels.drop[0]: expected a string that is not empty, got "
         "\"\"\n"},
        {WRITE("  otlp: {compression: none}\n"),
         "f:4:9: write[0].otlp: has no effect without protocol: otlp\n"},
        {WRITE("  protocol: otlp\n  otlp: {compression: zstd, max_request_size: 1KiB}\n"),
         "f:5:23: write[0].otlp.compression: expected \"gzip\" or \"none\", got \"zstd\"\n"
         "f:5:47: write[0].otlp.max_request_size: expected a size from 64KiB to 64MiB, got "
         "\"1KiB\"\n"},
        {WRITE("- {url: 'http://y', name: b}\n"),
         "f:3:3: write[0]: missing required key \"name\" (there is more than one endpoint)\n"},
        {WRITE("  name: b\n- {url: 'http://y', name: b}\n"),
         "f:5:27: write[1].name: \"b\" is used twice (first on line 3)\n"},
        {WRITE("  name: ''\n"),
         "f:4:9: write[0].name: expected a string that is not empty, got \"\"\n"},
        {WRITE("  tenant_id: 'a|b'\n"),
         "f:4:14: write[0].tenant_id: expected at most 150 letters, digits and !-_.*'() (not \".\" "
         "or \"..\"), got \"a|b\"\n"},
        {WRITE("  tenant_id: t\n  headers: {x-scope-orgid: u}\n"),
         "f:5:12: write[0].headers: X-Scope-OrgID is set by tenant_id already\n"},
        {WRITE("  headers: {Authorization: Basic hunter2}\n"),
         "f:4:13: write[0].headers.Authorization: setting this header is not allowed: use "
         "basic_auth or authorization\n"},
        {WRITE("  headers: {content-type: x}\n"),
         "f:4:13: write[0].headers.content-type: setting this header is not allowed\n"},
        {WRITE("  headers: {'a b': x}\n"),
         "f:4:13: write[0].headers.a b: not a valid header name\n"},
        {WRITE("  headers: {a: \"hunter2\\r\\nb: c\"}\n"),
         "f:4:16: write[0].headers.a: expected a header value without line breaks and control "
         "characters\n"},
        {WRITE("  concurrency: 0\n"),
         "f:4:16: write[0].concurrency: expected a whole number from 1 to 256, got \"0\"\n"},
        {WRITE("  concurrency: 257\n"),
         "f:4:16: write[0].concurrency: expected a whole number from 1 to 256, got \"257\"\n"},
        {WRITE("  retry: {min_backoff: 10m}\n"),
         "f:4:24: write[0].retry.min_backoff: min_backoff (10m) is greater than max_backoff "
         "(5m)\n"},
        {WRITE("  retry: {max_backoff: 1ms}\n"),
         "f:4:24: write[0].retry.max_backoff: min_backoff (500ms) is greater than max_backoff "
         "(1ms)\n"},
        {WRITE("  retry: {max_retries: 1}\n"), "f:4:11: write[0].retry.max_retries: unknown key\n"},
        {WRITE("  queue: {max_bytes: 1B}\n"),
         "f:4:22: write[0].queue.max_bytes: expected a size from 1KiB to 1TiB, got \"1B\"\n"},
        {WRITE("  queue: {spool_max_bytes: 1GiB, fsync: never}\n"),
         "f:4:28: write[0].queue.spool_max_bytes: has no effect without spool_directory\n"
         "f:4:41: write[0].queue.fsync: has no effect without spool_directory\n"},
        {WRITE("  queue: {spool_directory: '', spool_max_bytes: 1MB, fsync: sometimes}\n"),
         "f:4:28: write[0].queue.spool_directory: expected a file name, got \"\"\n"
         "f:4:49: write[0].queue.spool_max_bytes: expected a size from 1MiB to 16TiB, got "
         "\"1MB\"\n"
         "f:4:61: write[0].queue.fsync: expected \"always\", \"never\" or a duration from 1ms to "
         "1m, "
         "got \"sometimes\"\n"},
        {WRITE("  queue: {spool_directory: /x, fsync: 2m}\n"),
         "f:4:39: write[0].queue.fsync: expected \"always\", \"never\" or a duration from 1ms to "
         "1m, "
         "got \"2m\"\n"},
    };
    CHECK_TABLE(cases);
}

/* Where a secret is expected, or may hide, its text is not shown. */
TEST(mistakes_in_http_keys)
{
#define ONE_AUTH                                                                                   \
    "at most one of basic_auth, authorization, oauth2, bearer_token & bearer_token_file must be "  \
    "configured\n"
    static const struct mistake cases[] = {
        {WRITE("  basic_auth: hunter2\n"),
         "f:4:15: write[0].basic_auth: expected a mapping, got a value\n"},
        {WRITE("  basic_auth: {password: hunter2}\n"),
         "f:4:15: write[0].basic_auth: missing required key \"username\" or "
         "\"username_file\"\n"},
        {WRITE("  basic_auth: {username: u, password: [hunter2]}\n"),
         "f:4:39: write[0].basic_auth.password: expected a secret text, got a list\n"},
        {WRITE("  basic_auth: {username: u, password: }\n"),
         "f:4:39: write[0].basic_auth.password: expected a secret text, got null\n"},
        {WRITE("  basic_auth: {username: u, password: hunter2, password_file: p}\n"),
         "f:4:63: write[0].basic_auth.password_file: at most one of basic_auth password & "
         "password_file must be configured\n"},
        {WRITE("  basic_auth: {username_file: u}\n"), ""},
        {WRITE("  basic_auth: {username: u, password_file: 'kubernetes:secret/n/s'}\n"),
         "f:4:44: write[0].basic_auth.password_file: expected a file name, "
         "kubernetes:secret/NAMESPACE/NAME/KEY or kubernetes:configmap/NAMESPACE/NAME/KEY, got "
         "\"kubernetes:secret/n/s\"\n"},
        {WRITE("  bearer_token_file: 'kubernetes:pod/n/s/k'\n"),
         "f:4:22: write[0].bearer_token_file: expected a file name, "
         "kubernetes:secret/NAMESPACE/NAME/KEY or kubernetes:configmap/NAMESPACE/NAME/KEY, got "
         "\"kubernetes:pod/n/s/k\"\n"},
        {WRITE("  bearer_token_file: 'kubernetes:secret/../s/k'\n"),
         "f:4:22: write[0].bearer_token_file: expected a file name, "
         "kubernetes:secret/NAMESPACE/NAME/KEY or kubernetes:configmap/NAMESPACE/NAME/KEY, got "
         "\"kubernetes:secret/../s/k\"\n"},
        {WRITE("  basic_auth: {username: u, username_file: v}\n"),
         "f:4:44: write[0].basic_auth.username_file: at most one of basic_auth username & "
         "username_file must be configured\n"},
        {WRITE("  authorization: {type: Basic, credentials: hunter2}\n"),
         "f:4:25: write[0].authorization.type: authorization type cannot be set to \"basic\", use "
         "\"basic_auth\" instead\n"},
        {WRITE("  authorization: {type: a b, credentials: hunter2}\n"),
         "f:4:25: write[0].authorization.type: expected a word such as \"Bearer\"\n"},
        {WRITE("  authorization: {}\n"), "f:4:18: write[0].authorization: missing required key "
                                         "\"credentials\" or \"credentials_file\"\n"},
        {WRITE("  authorization: {credentials: hunter2, credentials_file: f}\n"),
         "f:4:59: write[0].authorization.credentials_file: at most one of authorization "
         "credentials & credentials_file must be configured\n"},
        {WRITE("  bearer_token: \"hunter2\\n\"\n"),
         "f:4:17: write[0].bearer_token: expected a text that is not empty, without line breaks "
         "and control characters\n"},
        {WRITE("  bearer_token: {hunter2: 1}\n"),
         "f:4:17: write[0].bearer_token: expected a text that is not empty, without line breaks "
         "and control characters, got a mapping\n"},
        {WRITE("  bearer_token: ${hunter2\n"),
         "f:4:17: write[0].bearer_token: \"${\" without \"}\"; a literal one is written $${\n"},
        {WRITE("  bearer_token: x\n  bearer_token_file: y\n"),
         "f:5:22: write[0].bearer_token_file: " ONE_AUTH},
        {WRITE("  basic_auth: {username: u}\n  authorization: {credentials: c}\n"),
         "f:5:18: write[0].authorization: " ONE_AUTH},
        {WRITE("  oauth2: {}\n"), "f:4:11: write[0].oauth2: missing required key \"client_id\"\n"
                                  "f:4:11: write[0].oauth2: missing required key \"token_url\"\n"},
        {WRITE("  oauth2: {client_id: i, token_url: 'http://t/', scopes: [a]}\n"),
         "f:4:11: write[0].oauth2: missing required key \"client_secret\" or "
         "\"client_secret_file\"\n"},
        {WRITE("  oauth2: {client_id: i, token_url: 'http://t/', client_secret: hunter2, "
               "client_secret_file: f}\n"),
         "f:4:94: write[0].oauth2.client_secret_file: at most one of oauth2 client_secret & "
         "client_secret_file must be configured\n"},
        {WRITE("  oauth2: {client_id: i, token_url: 'http://t/', client_secret: hunter2, "
               "no_proxy: x}\n"),
         "f:4:84: write[0].oauth2.no_proxy: if no_proxy is configured, proxy_url must also be "
         "configured\n"},
        {WRITE("  oauth2: {client_id: i, token_url: 'http://t/', client_secret: hunter2, "
               "endpoint_params: {audience: hunter2}, tls_config: {ca_file: c}}\n"),
         ""},
        {WRITE("  tls_config: {ca: x, ca_file: y}\n"),
         "f:4:32: write[0].tls_config.ca_file: at most one of ca & ca_file must be configured\n"},
        {WRITE("  tls_config: {cert_file: x}\n"),
         "f:4:15: write[0].tls_config: exactly one of key or key_file must be configured when a "
         "client certificate is configured\n"},
        {WRITE("  tls_config: {key: hunter2}\n"),
         "f:4:15: write[0].tls_config: exactly one of cert or cert_file must be configured when a "
         "client key is configured\n"},
        {WRITE("  tls_config: {min_version: TLS14}\n"),
         "f:4:29: write[0].tls_config.min_version: expected \"TLS10\", \"TLS11\", \"TLS12\" or "
         "\"TLS13\", got \"TLS14\"\n"},
        {WRITE("  tls_config: {max_version: TLS13}\n"), ""},
        {WRITE("  tls_config: {max_version: TLS11}\n"),
         "f:4:29: write[0].tls_config.max_version: max_version is below min_version (TLS12 by "
         "default)\n"},
        {WRITE("  proxy_url: ftp://u:hunter2@h\n"),
         "f:4:14: write[0].proxy_url: expected a proxy URL such as \"http://host:3128\" (http, "
         "https, socks4, socks5)\n"},
        {WRITE("  proxy_url: proxy\n"),
         "f:4:14: write[0].proxy_url: expected a proxy URL such as \"http://host:3128\" (http, "
         "https, socks4, socks5), got \"proxy\"\n"},
        {WRITE("  no_proxy: x\n"),
         "f:4:13: write[0].no_proxy: if no_proxy is configured, proxy_url must also be "
         "configured\n"},
        {WRITE("  proxy_from_environment: true\n  proxy_url: http://p\n"),
         "f:4:27: write[0].proxy_from_environment: if proxy_from_environment is configured, "
         "proxy_url must not be configured\n"},
        {WRITE("  proxy_from_environment: true\n  no_proxy: x\n"),
         "f:4:27: write[0].proxy_from_environment: if proxy_from_environment is configured, "
         "no_proxy must not be configured\n"},
        {WRITE("  proxy_connect_header: {Proxy-Authorization: [hunter2], X-A: b}\n"), ""},
        {WRITE("  follow_redirects: no\n"),
         "f:4:21: write[0].follow_redirects: expected true or false, got \"no\" (only these two "
         "words are understood)\n"},
        {WRITE("  http_headers: {Host: {values: [hunter2]}}\n"),
         "f:4:18: write[0].http_headers.Host: setting this header is not allowed\n"},
        {WRITE("  http_headers: {A: {values: [\"hunter2\\n\"]}}\n"),
         "f:4:31: write[0].http_headers.A.values[0]: expected a header value without line breaks "
         "and control characters\n"},
        {WRITE("  http_headers: {A: {files: [x]}}\n"),
         "f:4:29: write[0].http_headers.A.files: files is not supported yet\n"},
        {WRITE("  http_headers: {A: {value: x}}\n"),
         "f:4:22: write[0].http_headers.A.value: unknown key; did you mean \"values\"?\n"},
        {WRITE("  http_headers: [A]\n"),
         "f:4:17: write[0].http_headers: expected a mapping, got a list\n"},
        {WRITE("  url: http://u:hunter2@x\n"),
         "f:4:3: write[0].url: duplicate key (first on line 3)\n"},
        {"scrape_configs: [{job_name: a}]\nwrite: [{url: 'http://u:hunter2@x'}]\n",
         "f:2:15: write[0].url: " URL_EXPECTED "\n"},
        {JOB("  bearer_token: x\n  bearer_token_file: y\n"),
         "f:4:22: scrape_configs[0].bearer_token_file: " ONE_AUTH},
    };
    CHECK_TABLE(cases);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_null(strstr(cases[i].want, "hunter2"));
    }
}

TEST(mistakes_with_environment_variables)
{
    static const struct mistake cases[] = {
        {WRITE("  tenant_id: ${NOPE}\n"),
         "f:4:14: write[0].tenant_id: the environment variable NOPE is not set (${NOPE:-...} "
         "gives a default)\n"},
        {WRITE("  tenant_id: ${1}\n"),
         "f:4:14: write[0].tenant_id: expected ${NAME} or ${NAME:-default}; a literal \"${\" is "
         "written $${\n"},
        {WRITE("  tenant_id: ${A-b}\n"),
         "f:4:14: write[0].tenant_id: expected ${NAME} or ${NAME:-default}; a literal \"${\" is "
         "written $${\n"},
        {WRITE("  tenant_id: ${}\n"),
         "f:4:14: write[0].tenant_id: expected ${NAME} or ${NAME:-default}; a literal \"${\" is "
         "written $${\n"},
        {WRITE("  tenant_id: a${WORD\n"),
         "f:4:14: write[0].tenant_id: \"${\" without \"}\"; a literal one is written $${\n"},
        {WRITE("  concurrency: ${WORD}\n"),
         "f:4:16: write[0].concurrency: expected a whole number from 1 to 256, got \"word\"\n"},
        {WRITE("  concurrency: ${EMPTY}\n"),
         "f:4:16: write[0].concurrency: expected a whole number from 1 to 256, got \"\"\n"},
        {WRITE("  tenant_id: ${BAD_UTF8}\n"),
         "f:4:14: write[0].tenant_id: not valid UTF-8 with its environment variables filled in\n"},
        {WRITE("  ${WORD}: x\n"), "f:4:3: write[0].${WORD}: unknown key\n"}, /* not in keys */
    };
    CHECK_TABLE(cases);
}

/* Ten mistakes give ten errors in order of position, although they are found in another order. */
TEST(all_errors_are_reported_at_once)
{
    check_errors("write:\n"
                 "  - url: nowhere\n"  /* 1 */
                 "    concurency: 3\n" /* 2 */
                 "scrape_configs:\n"
                 "  - scheme: ftp\n"         /* 3 no job_name, 4 */
                 "    scrape_interval: 15\n" /* 5 */
                 "    profiles:\n"
                 "      memory: {enabled: on}\n" /* 6 */
                 "    relabel_configs:\n"
                 "      - {action: drop, modulus: 1.0}\n" /* 7 */
                 "    forward_to: [other]\n"              /* 8 */
                 "log: {level: loud}\n"                   /* 9 */
                 "log: {}\n",                             /* 10 */
                 "f:2:10: write[0].url: " URL_EXPECTED ", got \"nowhere\"\n"
                 "f:3:5: write[0].concurency: unknown key; did you mean \"concurrency\"?\n"
                 "f:5:5: scrape_configs[0]: missing required key \"job_name\"\n"
                 "f:5:13: scrape_configs[0].scheme: expected \"http\" or \"https\", got \"ftp\"\n"
                 "f:6:22: scrape_configs[0].scrape_interval: expected a duration such as \"15s\", "
                 "got \"15\"\n"
                 "f:8:25: scrape_configs[0].profiles.memory.enabled: expected true or false, got "
                 "\"on\" (only these two words are understood)\n"
                 "f:10:33: scrape_configs[0].relabel_configs[0].modulus: expected a whole number, "
                 "got \"1.0\"\n"
                 "f:11:18: scrape_configs[0].forward_to[0]: no endpoint in write has the name "
                 "\"other\"\n"
                 "f:12:14: log.level: expected \"debug\", \"info\", \"warn\" or \"error\", got "
                 "\"loud\"\n"
                 "f:13:1: log: duplicate key (first on line 12)\n",
                 &options);
}

/* The first hundred errors by position are kept, in whatever order they are found. */
TEST(the_first_hundred_errors_are_kept)
{
    SCOPED(buf) text = testing_buf(1 << 16);
    for (int i = 0; i < 150; i++) {
        buf_printf(&text, "a%d: 1\n", i);
    }
    buf_puts(&text, "log: {level: x}\nwrite: [{url: \"http://x\"}]\nscrape_configs: [{}]\n");
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_parse("f", (struct sv){text.data, text.len}, &options, errors));
    CHECK_INT(config_errors_count(errors), CONFIG_ERRORS_MAX, "");
    CHECK_INT(config_errors_more(errors), 52, "");
    for (size_t i = 0; i < CONFIG_ERRORS_MAX; i++) {
        CHECK_INT(config_errors_at(errors, i)->pos.line, i + 1, "");
        CHECK_STR(config_errors_at(errors, i)->message, "unknown key", "");
    }
    SCOPED(buf) out = testing_buf(1 << 16);
    assert_true(config_errors_format(errors, &out));
    CHECK_CONTAINS(out.data, "f:100:1: a99: unknown key\nf: and 52 more errors\n", "");
}

/* Found last, but first by position: it replaces the last one. */
TEST(an_early_error_found_late_is_kept)
{
    SCOPED(buf) text = testing_buf(1 << 16);
    buf_puts(&text, "scrape_configs: [{}]\nwrite: [{url: \"http://x\"}]\n");
    for (int i = 0; i < 150; i++) {
        buf_printf(&text, "a%d: 1\n", i);
    }
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_parse("f", (struct sv){text.data, text.len}, &options, errors));
    CHECK_INT(config_errors_more(errors), 51, "");
    CHECK_STR(config_errors_at(errors, 0)->message, "missing required key \"job_name\"", "");
    CHECK_STR(config_errors_at(errors, 99)->path, "a98", "");
}

/* Text of the user is cut and escaped in messages and paths. */
/* Words of Prometheus, Alloy, Parca and the Pyroscope agent: what they are called here depends on
 * where they stand. */
TEST(words_of_other_programs_get_advice)
{
    static const struct {
        const char *text;
        const char *want; /* a part of the message */
    } cases[] = {
        {JOB("  profiling_config: {}\n"),
         "f:3:3: scrape_configs[0].profiling_config: unknown key; it is called \"profiles\" here"},
        {JOB("  profiles: {pprof_config: {}}\n"), "types are keys of \"profiles\" itself"},
        {JOB("  profiles: {cpu: {}}\n"), "profiles.cpu: unknown key; it is called \"process_cpu\""},
        {JOB("  cpu: {}\n"),
         "types are keys of \"profiles\", and this one is called \"process_cpu\""},
        {JOB("  profiles: {allocs: {}}\n"), "it is called \"memory\" here"},
        {JOB("  profiles: {memory: {scrape_interval: 1s}}\n"), "it is called \"interval\" here"},
        {JOB("  profiles: {memory: {keep_sample_type: []}}\n"), "with all their sample types"},
        {JOB("  profiles: {custom: [{name: a, path: /a, keep_sample_type: []}]}\n"),
         "with all their sample types"},
        {JOB("  metrics_path: /x\n"), "each type has its own path, such as profiles.memory.path"},
        {JOB("  dns_sd_configs: []\n"), "there is no such source: use kubernetes_sd_configs"},
        {JOB("  remote_write: []\n"), "forward_to chooses among them"},
        {JOB("  clustering: {}\n"), "a key of the file itself"},
        {JOB("  labels: {a: b}\n"), "a key of an element of \"static_configs\""},
        {ROOT("remote_write: []\n"),
         "f:3:1: remote_write: unknown key; it is called \"write\" here: a list of endpoints, each "
         "with a url\n"},
        {ROOT("endpoint: {}\n"), "elements of the list \"write\""},
        {ROOT("clustering: {}\n"),
         "f:3:1: clustering: unknown key; it is called \"sharding\" here\n"},
        {ROOT("static_configs: []\n"), "it is a key of a job"},
        {ROOT("external_labels: {}\n"), "it is a key of \"global\" or of an endpoint"},
        {ROOT("object_storage: {}\n"), "nothing is stored here"},
        {ROOT("global: {evaluation_interval: 1m}\n"), "it has no meaning for profiles"},
        {ROOT("server: {http_listen_port: 1}\n"), "it is part of \"listen\" here"},
        {WRITE("  max_backoff_retries: 1\n"), "it is called \"retry.max_attempts\" here"},
        {WRITE("  queue_config: {}\n"), "\"queue\", \"retry\" and \"concurrency\""},
        /* elsewhere the words mean nothing, and what is close is still suggested */
        {ROOT("cpu: {}\n"), "f:3:1: cpu: unknown key\n"},
        {ROOT("log: {labels: {}}\n"), "log.labels: unknown key\n"},
        {WRITE("  metrics_path: /x\n"), "write[0].metrics_path: unknown key\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        SCOPED(config_errors) *errors = config_errors_new();
        SCOPED(buf) got = testing_buf(1 << 16);
        assert_null(config_parse("f", sv_from(cases[i].text), &options, errors));
        config_errors_format(errors, &got);
        CHECK_CONTAINS(got.data, cases[i].want, cases[i].text);
        CHECK_INT(config_errors_count(errors), 1, cases[i].text);
    }
}

TEST(hostile_text_is_cut_and_escaped)
{
    check_errors(ROOT("\"a\\nb\\e[31m\": 1\n"), "f:3:1: a\\nb\\u001b[31m: unknown key\n", &options);
    /* Cut between characters, not within one. */
    check_errors(
        ROOT("log: {level: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
             "xxxxxxxxxxxxétail}\n"),
        "f:3:14: log.level: expected \"debug\", \"info\", \"warn\" or \"error\", got "
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "...\"\n",
        &options);
    char value[2000] = "";
    memset(value, 'x', 1000);
    SCOPED(buf) text = testing_buf(1 << 16);
    buf_printf(&text, ROOT("log: {level: %s}\n"), value);
    SCOPED(config_errors) *errors = config_errors_new();
    assert_null(config_parse("f", (struct sv){text.data, text.len}, &options, errors));
    const char *message = config_errors_at(errors, 0)->message;
    CHECK_CONTAINS(message, "xxx...\"", "");
    assert_true(strlen(message) < 200);
}

TEST(mistakes_on_the_command_line)
{
    struct config_options o = options;
    o.write_url = "nonsense";
    o.listen = "nonsense";
    check_errors("scrape_configs: [{job_name: a}]\n",
                 "f: --listen: expected host:port such as \"0.0.0.0:4041\" or \"[::]:4041\", or "
                 "\"\" for no server\n"
                 "f: --write.url: expected a URL such as \"http://host:4040\" without user, query "
                 "and fragment, or \"file:///directory\" or \"store:///directory\"\n",
                 &o);
    o.listen = NULL;
    o.write_url = "http://x/ingest";
    check_errors("scrape_configs: [{job_name: a}]\n", "", &o);
}

TEST(servers_and_whom_they_let_in)
{
#define OPEN                                                                                       \
    "anybody who reaches this address could send profiles: expected \"basic_auth\", "              \
    "\"authorization\", \"bearer_token_file\" or \"tls.client_ca_file\", or a loopback address "   \
    "such as \"127.0.0.1:4040\", or \"allow_unauthenticated: true\", got "
#define NO_SYNC                                                                                    \
    "cannot say when a profile is on disk: expected that it has queue.spool_directory, without "   \
    "fsync: never, or is store:///DIRECTORY\n"
#define SHARED                                                                                     \
    "which has the key \"tls\" for both: expected another \"listen\", or no \"tls\" here\n"
    static const struct mistake cases[] = {
        {ROOT("receive: {listen: '127.0.0.1:4040'}\n"), ""},
        {ROOT("receive: {listen: '127.9.9.9:0'}\n"), ""},
        {ROOT("receive: {listen: 'localhost:4040'}\n"), ""},
        {ROOT("receive: {listen: '[::1]:4040'}\n"), ""},
        {ROOT("receive: {listen: '[::1]:0'}\n"), ""},
        {ROOT("receive: {max_label_names: 1}\n"),
         "f:3:28: receive.max_label_names: expected a whole number from 2 to 1000, got \"1\"\n"},
        {ROOT("receive: {max_age: 1s5}\n"),
         "f:3:20: receive.max_age: expected a duration such as \"15s\", got \"1s5\"\n"},
        {ROOT("receive: {forward_to: [nobody]}\n"),
         "f:3:24: receive.forward_to[0]: no endpoint in write has the name \"nobody\"\n"},
        {ROOT("receive: {forward_to: []}\n"),
         "f:3:23: receive.forward_to: expected at least one endpoint, got none\n"},
        {ROOT("record: {rules: [{metric_name: profiles_recorded_x, matchers: "
              "['{__profile_type__=\"a:b:c::\"}']}]}\n"),
         ""},
        {ROOT(
             "record: {rules: [{metric_name: x, matchers: ['{__profile_type__=\"a:b:c::\"}']}]}\n"),
         "f:3:18: record.rules[0]: metric_name: expected a name that begins with "
         "profiles_recorded_, got \"x\"\n"},
        {ROOT("record: {rules: [{metric_name: profiles_recorded_x, matchers: ['{a=\"b\"}']}]}\n"),
         "f:3:18: record.rules[0]: matchers: expected one that requires a profile type, such as "
         "{__profile_type__=\"process_cpu:cpu:nanoseconds:cpu:nanoseconds\"}\n"},
        {ROOT("record: {rules: [{metric_name: profiles_recorded_x}]}\n"),
         "f:3:18: record.rules[0]: missing required key \"matchers\"\n"},
        {ROOT(
             "record: {max_rules: 1, rules: [{metric_name: profiles_recorded_x, matchers: "
             "&m ['{__profile_type__=\"a:b:c::\"}']}, {metric_name: profiles_recorded_y, matchers: "
             "*m}]}\n"),
         "f:3:31: record.rules: 2 rules; max_rules is 1\n"},
        {ROOT("record: {rules: [{metric_name: profiles_recorded_x, matchers: &m "
              "['{__profile_type__=\"a:b:c::\"}']}, {metric_name: profiles_recorded_x, matchers: "
              "*m}]}\n"),
         "f:3:101: record.rules[1]: the same rule as rules[0]\n"},
        {ROOT("record: {stale_after: 0s}\n"),
         "f:3:23: record.stale_after: expected a duration from "
         "1s to 1d, got \"0s\"\n"},
        {ROOT("receive: {max_agee: 1h}\n"),
         "f:3:11: receive.max_agee: unknown key; did you mean \"max_age\"?\n"},
        {ROOT("receive: {enrich: {profiles_match_label: a, static_configs: [{targets: [a]}]}}\n"),
         "f:3:42: receive.enrich.profiles_match_label: expected the key target_match_label beside "
         "it\n"},
        {ROOT("receive: {enrich: {target_match_label: a}}\n"),
         "f:3:19: receive.enrich: expected a source of targets, such as kubernetes_sd_configs\n"},
        {ROOT("receive: {enrich: {target_match_label: a, file_sd_configs: [{files: [a.txt]}], "
              "relabel_configs: [{action: x}]}}\n"),
         "f:3:70: receive.enrich.file_sd_configs[0].files[0]: expected the name of a file that "
         "ends in .json, .yml or .yaml, with wildcards in its last part only, got \"a.txt\"\n"
         "f:3:107: receive.enrich.relabel_configs[0].action: expected \"replace\", \"keep\", "
         "\"drop\", \"keepequal\", \"dropequal\", \"hashmod\", \"labelmap\", \"labeldrop\", "
         "\"labelkeep\", \"lowercase\" or \"uppercase\", got \"x\"\n"},
        {"scrape_configs: [{job_name: receive.enrich}]\nwrite: [{url: \"http://x\"}]\n"
         "receive: {enrich: {target_match_label: a, static_configs: [{targets: [a]}]}}\n",
         "f:1:18: scrape_configs: the name \"receive.enrich\" belongs to the key receive.enrich\n"},
        {ROOT("receive: {acknowledge: sent}\n"),
         "f:3:24: receive.acknowledge: expected \"queued\" or \"stored\", got \"sent\"\n"},
        {ROOT("receive: {acknowledge: stored}\n"),
         "f:3:24: receive.acknowledge: the endpoint \"main\" " NO_SYNC},
        {"write: [{name: a, url: \"http://x\", queue: {spool_directory: d, fsync: never}}]\n"
         "receive: {acknowledge: stored}\n",
         "f:2:24: receive.acknowledge: the endpoint \"a\" " NO_SYNC},
        {"write: [{name: a, url: \"http://x\", queue: {spool_directory: d}},\n"
         "  {name: b, url: \"store:///d\"}, {name: c, url: \"file:///d\"}]\n"
         "receive: {acknowledge: stored, forward_to: [a, b]}\n",
         ""},
        /* A configuration that receives or has a store needs no jobs. */
        {"write: [{url: \"http://x\"}]\nscrape_configs: []\nreceive: {listen: '127.0.0.1:1'}\n",
         ""},
        {"write: [{url: \"store:///d\"}]\nscrape_configs: []\n", ""},
        {"write: [{url: \"store:///d\"}]\nscrape_configs:\nquery: {listen: '127.0.0.1:1'}\n", ""},
        {"write: [{url: \"http://x\"}]\nscrape_configs: []\nreceive: {}\n",
         "f:2:17: scrape_configs: " NO_WORK},
        {"write: [{url: \"http://x\"}]\nscrape_configs: []\nquery: {listen: '127.0.0.1:1'}\n",
         "f:2:17: scrape_configs: " NO_WORK},
        {"write: [{url: \"http://x\"}]\nscrape_configs: []\nreceive: {listen: '127.0.0.1'}\n",
         "f:3:19: receive.listen: expected host:port such as \"0.0.0.0:4041\" or \"[::]:4041\", or "
         "\"\" for no server, got \"127.0.0.1\"\n"},
        {ROOT("receive: {listen: ':4040'}\n"), "f:3:19: receive.listen: " OPEN "\":4040\"\n"},
        {ROOT("receive: {listen: ':0'}\n"), "f:3:19: receive.listen: " OPEN "\":0\"\n"},
        {ROOT("receive: {listen: '[::]:0'}\n"), "f:3:19: receive.listen: " OPEN "\"[::]:0\"\n"},
        {ROOT("receive: {listen: '10.0.0.1:127'}\n"),
         "f:3:19: receive.listen: " OPEN "\"10.0.0.1:127\"\n"},
        {ROOT("receive: {listen: '0.0.0.0:4041'}\n"),
         "f:3:19: receive.listen: " OPEN "\"0.0.0.0:4041\"\n"},
        {ROOT("receive: {listen: ':4040', allow_unauthenticated: true}\n"), ""},
        {ROOT("receive: {listen: ':4040', bearer_token_file: f}\n"), ""},
        {ROOT("receive: {listen: ':4040', basic_auth: {username: u, password: p}}\n"), ""},
        {ROOT("receive:\n  listen: ':4040'\n"
              "  tls: {cert_file: c, key_file: k, client_ca_file: a}\n"),
         ""},
        {ROOT("receive: {listen: ':4040', tls: {cert_file: c, key_file: k}}\n"),
         "f:3:19: receive.listen: " OPEN "\":4040\"\n"},
        /* The credentials of the section whose address it shares count. */
        {ROOT("server: {listen: ':4', bearer_token: t}\nreceive: {listen: ':4'}\n"), ""},
        {ROOT("query: {listen: ':5', bearer_token: t}\nreceive: {listen: ':5'}\n"), ""},
        {ROOT("server: {bearer_token: t}\nreceive: {listen: ':5'}\n"),
         "f:4:19: receive.listen: " OPEN "\":5\"\n"},
        {ROOT("server: {listen: ':4', tls: {cert_file: c, key_file: k}}\n"), ""},
        {ROOT("server: {tls: {cert_file: c}}\n"),
         "f:3:15: server.tls: missing required key \"key_file\"\n"},
        {ROOT("query: {tls: {cert_file: c, key_file: k}}\n"),
         "f:3:14: query.tls: this address is that of \"server\", " SHARED},
        {ROOT("receive: {listen: '127.0.0.1:4041', allow_unauthenticated: true,\n"
              "  tls: {cert_file: c, key_file: k}}\n"),
         "f:4:8: receive.tls: this address is that of \"server\", " SHARED},
        {ROOT("server: {basic_auth: {username: a, password: b}, bearer_token: c}\n"),
         "f:3:64: server.bearer_token: at most one of basic_auth, authorization, oauth2, "
         "bearer_token & bearer_token_file must be configured\n"},
        {ROOT("query: {oauth2: {}}\n"), "f:3:9: query.oauth2: unknown key\n"},
        {ROOT("query: {concurrency: 0, timeout: 1h}\n"),
         "f:3:22: query.concurrency: expected a whole number from 1 to 64, got \"0\"\n"
         "f:3:34: query.timeout: expected a duration from 1s to 10m, got \"1h\"\n"},
        {ROOT("query: {max_body_size: 2GiB}\n"),
         "f:3:24: query.max_body_size: expected a size from 1KiB to 1GiB, got \"2GiB\"\n"},
    };
    CHECK_TABLE(cases);
#undef OPEN
#undef SHARED
}

/* --write.url must not take what was configured for one server to another one. */
TEST(credentials_go_to_their_server_only)
{
    static const struct {
        const char *endpoint, *url;
        const char *leaks; /* NULL: allowed */
    } rows[] = {
        {"url: \"https://a.b\", basic_auth: {username: u, password: p}", "http://c", "credentials"},
        {"url: \"https://a.b\", basic_auth: {username: u, password: p}", "http://a.b",
         "credentials"},
        {"url: \"https://a.b\", basic_auth: {username: u, password: p}", "https://a.b:1",
         "credentials"},
        {"url: \"http://a.b\", authorization: {credentials: c}", "http://c", "credentials"},
        {"url: \"http://a.b\", bearer_token: c", "http://c", "credentials"},
        {"url: \"http://a.b\", oauth2: {client_id: i, client_secret: s, token_url: \"http://t\"}",
         "http://c", "credentials"},
        {"url: \"http://a.b\", headers: {X-Key: k}", "http://c", "headers"},
        {"url: \"http://a.b\", http_headers: {X-Key: {values: [k]}}", "http://c", "http_headers"},
        {"url: \"http://a.b\", tenant_id: t", "http://c", "tenant_id"},
        {"url: \"https://a.b\", tls_config: {cert_file: c, key_file: k}", "https://c",
         "client certificate"},
        {"url: \"file:///d\", tenant_id: t", "http://c", "tenant_id"},
        {"url: \"https://a.b\", bearer_token: c", "https://A.B:443/path", NULL},
        {"url: \"https://a.b\", bearer_token: c", "file:///d", NULL},
        {"url: \"http://a.b\", tls_config: {insecure_skip_verify: true}", "http://c", NULL},
        {"bearer_token: c", "http://c", NULL},
        {"name: other, url: \"http://a.b\", bearer_token: c", "http://c", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config_options o = options;
        char text[512];
        char want[512] = "";
        o.write_url = rows[i].url;
        snprintf(text, sizeof(text), "scrape_configs: [{job_name: a}]\nwrite: [{%s}]\n",
                 rows[i].endpoint);
        const char *own = strchr(rows[i].endpoint, '"');
        if (rows[i].leaks != NULL) {
            snprintf(
                want, sizeof(want),
                "f: --write.url: %s is not the server of the endpoint \"main\", %.*s, and must "
                "not get its %s: leave --write.url out, or its %s, or rename the endpoint\n",
                rows[i].url, (int)strcspn(own + 1, "\""), own + 1, rows[i].leaks, rows[i].leaks);
        }
        check_errors(text, want, &o);
    }
}
