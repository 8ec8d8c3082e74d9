/* Every file with a credential or a certificate that a configuration names, in order. */
#include "tests/unit/lib/testing.h"

#include "config/file_names.h"
#include "tests/unit/lib/valid_config.h"

static void on_name(void *arg, const struct file_name *n)
{
    buf_printf(arg, "%s %s %s=%s%s\n", n->kind, n->owner, n->key, n->file,
               n->pos.line > 0 ? "" : " (somewhere)");
}

TEST(files_of_every_section)
{
    static const char text[] =
        "scrape_configs:\n"
        "- job_name: a\n"
        "  basic_auth: {username_file: u, password_file: p}\n"
        "  tls_config: {ca_file: ca, cert_file: c, key_file: k}\n"
        "  http_sd_configs: [{url: \"http://x\", bearer_token_file: t}]\n"
        "  kubernetes_sd_configs: [{role: pod, kubeconfig_file: kc}]\n"
        "- job_name: b\n"
        "  authorization: {credentials_file: 'kubernetes:secret/n/o/k'}\n"
        "write:\n"
        "- {url: \"http://x\", oauth2: {client_id: i, client_secret_file: s,\n"
        "   token_url: \"http://t\", tls_config: {ca_file: tca}}}\n"
        "server: {tls: {cert_file: sc, key_file: sk, client_ca_file: sca}}\n"
        "query: {listen: \"h:1\", bearer_token_file: qt}\n"
        "receive: {listen: \"h:2\", basic_auth: {username: u, password_file: rp}}\n"
        "sharding: {mode: kubernetes, service: s, kubeconfig_file: sharekc}\n";
    static const char want[] = "job a username_file=u\n"
                               "job a password_file=p\n"
                               "job a ca_file=ca\n"
                               "job a cert_file=c\n"
                               "job a key_file=k\n"
                               "job a credentials_file=t\n"
                               "job a kubeconfig_file=kc\n"
                               "endpoint main client_secret_file=s\n"
                               "endpoint main ca_file=tca\n"
                               "section server cert_file=sc (somewhere)\n"
                               "section server key_file=sk (somewhere)\n"
                               "section server client_ca_file=sca (somewhere)\n"
                               "section query credentials_file=qt (somewhere)\n"
                               "section receive password_file=rp (somewhere)\n"
                               "section sharding kubeconfig_file=sharekc (somewhere)\n";
    SCOPED(config_errors) *errors = config_errors_new();
    SCOPED(config) *c = config_parse("f", (struct sv){text, sizeof(text) - 1}, NULL, errors);
    SCOPED(buf) got = testing_buf(4096);
    if (c == NULL) {
        config_errors_format(errors, &got);
        fail_msg("%s", got.data);
    }
    config_file_names(c, on_name, &got);
    CHECK_STR(got.data, want, "");
}
