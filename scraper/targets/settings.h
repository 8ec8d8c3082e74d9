/* The settings in the labels of one target.
 *
 * `__profile_<type>_<setting>__` applies to one profile type, `__scrape_interval__` and
 * `__scrape_timeout__` to all of them. Annotations and relabel rules set these labels, so their
 * values are not trusted. <type> is the type's key in the configuration, with every character that
 * is not a letter, a digit or "_" replaced by "_". Pure functions, any thread; values point into
 * the builder that was read.
 */
#ifndef PROFPULL_SCRAPER_TARGETS_SETTINGS_H
#define PROFPULL_SCRAPER_TARGETS_SETTINGS_H

#include "base/err.h"
#include "base/labels.h"
#include "config/config.h"

/* The range of intervals in labels; the configuration may have shorter ones. */
#define SETTING_INTERVAL_MIN_MS 1000
#define SETTING_INTERVAL_MAX_MS (INT64_C(24) * 60 * 60 * 1000)

enum setting {
    SETTING_ENABLED,
    SETTING_PATH,
    SETTING_PORT,
    SETTING_SCHEME,
    SETTING_INTERVAL,
    SETTING_TIMEOUT,
    SETTING_SECONDS,
};
#define SETTINGS 7

struct settings {
    const struct config_job *job;
    struct sv (*of_type)[SETTINGS]; /* one row for each type of the job; NULL: no label names one */
    /* The value of `__scrape_interval__`; 0 if absent. The timeout likewise. */
    int64_t interval_ms;
    int64_t timeout_ms;
    struct sv seconds; /* the value of `__param_seconds` */
};

/* The result for one type. */
struct type_settings {
    int64_t interval_ms;
    int64_t timeout_ms;
    uint32_t seconds; /* 0 if the type does not sample */
    struct sv path;   /* empty: no path of its own */
    uint16_t port;    /* 0: the port of the address */
    bool own_scheme;  /* false: that of the target */
    bool https;
};

/* Adds a label, to zeroed settings with a job. If the label has the form of a setting but names a
 * type that the job does not have, *ret_unknown is that type, else it is empty. Returns false if
 * out of memory. */
bool settings_add(struct settings *s, struct label label, struct sv *ret_unknown);
/* Reads the settings for all types. Returns false with an error if one of them is wrong. As in
 * Prometheus, a timeout must not exceed its interval. */
bool settings_read(struct settings *s, const struct labels_builder *b, struct err *err);
void settings_done(struct settings *s);
/* Returns true if the target has this setting of this type. */
bool settings_has(const struct settings *s, size_t type, enum setting setting);
/* Sets *ret_enabled. Returns false with an error if the label that enables the type has a wrong
 * value. */
bool settings_enabled(const struct settings *s, size_t type, bool *ret_enabled, struct err *err);
/* Resolves the settings of one type. The type's own label precedes the label for all types, which
 * precedes the configuration. An error names the label, what was expected and what came. */
bool settings_resolve(const struct settings *s, size_t type, struct type_settings *ret,
                      struct err *err);
/* Returns true if a label is one of these settings, and so not part of the series. */
bool settings_is_label(struct sv name);

#define TYPE_LABEL_MAX 320
/* Writes the name of the label `__profile_<type>_<setting>__`; empty if it does not fit. Storage is
 * out. */
struct sv type_label(struct sv type, const char *setting, char out[TYPE_LABEL_MAX]);

/* Parses "http" or "https", in any case. */
bool scheme_parse(struct sv v, bool *ret_https);

#endif
