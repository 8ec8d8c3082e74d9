/* Protocols for tests of what stands under write/: the names and URLs of the real ones. */
#ifndef PROFPULL_TESTS_UNIT_PROTOCOLS_H
#define PROFPULL_TESTS_UNIT_PROTOCOLS_H

#include <stddef.h>

#include "config/protocol.h"

static const struct config_protocol testing_push = {
    .name = "push", .paths = {"/push.v1.PusherService/Push"}, .reads_sample_labels = true};
static const struct config_protocol testing_ingest = {.name = "ingest",
                                                      .paths = {"/ingest", "/api/v1/profile"},
                                                      .takes_jfr = true,
                                                      .reads_sample_labels = true};
static const struct config_protocol testing_file = {
    .name = "file", .scheme = "file", .takes_jfr = true};
static const struct config_protocol testing_profefe = {.name = "profefe",
                                                       .paths = {"/api/0/profiles"}};
static const struct config_protocol testing_store = {
    .name = "store", .scheme = "store", .max_age_ms = 1000, .max_bytes = 2000, .is_store = true};
static const struct config_protocol testing_otlp = {
    .name = "otlp", .paths = {"/v1development/profiles"}, .concurrency = 128, .is_otlp = true};
static const struct config_protocol testing_s3 = {
    .name = "s3", .scheme = "s3", .takes_jfr = true, .is_s3 = true};
static const struct config_protocol testing_parca = {
    .name = "parca",
    .paths = {"/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"},
    .needs_http2 = true};
static const struct config_protocol *const testing_protocols[] = {
    &testing_push, &testing_ingest, &testing_file, &testing_profefe, &testing_store, &testing_otlp,
    &testing_s3,   &testing_parca,  NULL};

#endif
