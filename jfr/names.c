#include "jfr/names.h"

#include <string.h>

#include "pprof/legacy/text.h"

#define HEX "0123456789abcdef"

/* Returns the end of the last occurrence of a marker that does not begin the text, or 0 if there is
 * none. */
static size_t end_of_last(struct sv v, struct sv marker)
{
    for (size_t end = v.n; end > marker.n; end--) {
        if (memcmp(v.p + end - marker.n, marker.p, marker.n) == 0) {
            return end;
        }
    }
    return 0;
}

/* Matches jdk/internal/reflect/GeneratedMethodAccessor31. This and the next functions return the
 * length of the part to keep, or 0. */
static size_t accessor(struct sv v)
{
    static const struct sv class = {"jdk/internal/reflect/GeneratedMethodAccessor", 44};
    struct sv rest = v;
    bool match = text_take(&rest, class) && text_take_digits(&rest).n > 0 && rest.n == 0;
    return match ? class.n : 0;
}

/* Matches App$$Lambda$669.0x0000000800fd7318, App$$Lambda.0x00007ffa600c4da0,
 * App$$Lambda$14/791885625 and App$$Lambda17. */
static size_t lambda(struct sv v)
{
    size_t head = end_of_last(v, SV("$$Lambda"));
    struct sv rest = sv_skip(v, head);
    if (head == 0) {
        return 0;
    }
    bool dollar = text_take(&rest, SV("$"));
    bool digits = text_take_digits(&rest).n > 0;
    if (rest.n == 0) {
        return digits && !dollar ? head : 0;
    }
    bool address = text_take(&rest, SV(".")) || text_take(&rest, SV("/"));
    text_take(&rest, SV("0x"));
    return address && text_take_any(&rest, HEX) && rest.n == 0 ? head : 0;
}

/* Matches Controller$$EnhancerBySpringCGLIB$$7a3f1c2e. */
static size_t spring(struct sv v)
{
    return end_of_last(v, SV("$$EnhancerBySpringCGLIB$$"));
}

/* Removes the directory to which libraries are unpacked. */
static void take_directory(struct sv *v)
{
    if (!text_take(v, SV("./tmp/"))) {
        text_take(v, SV("/tmp/"));
    }
}

/* Returns true if the text is the end of a library's name; it may say that the file was deleted. */
static bool ends_as_library(struct sv v)
{
    return text_take(&v, SV(".so")) && (v.n == 0 || sv_eq(v, SV(" (deleted)")));
}

/* Matches libzstd-jni-1.5.1-16931311898282279136.so. */
static bool is_zstd(struct sv v)
{
    take_directory(&v);
    return text_take(&v, SV("libzstd-jni-")) && text_take_digits(&v).n > 0 &&
           text_take(&v, SV(".")) && text_take_digits(&v).n > 0 && text_take(&v, SV(".")) &&
           text_take_digits(&v).n > 0 && text_take(&v, SV("-")) && text_take_digits(&v).n > 0 &&
           ends_as_library(v);
}

#define CORRETTO_DIGITS 16

/* Matches libamazonCorrettoCryptoProvider109b39cf33c563eb.so and
 * amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so. */
static bool is_corretto(struct sv v)
{
    take_directory(&v);
    text_take(&v, SV("lib"));
    if (!text_take(&v, SV("amazonCorrettoCryptoProvider"))) {
        return false;
    }
    text_take(&v, SV("NativeLibraries."));
    size_t before = v.n;
    if (!text_take_any(&v, HEX) || before - v.n != CORRETTO_DIGITS) {
        return false;
    }
    if (!text_take(&v, SV("/libcrypto"))) {
        text_take(&v, SV("/libamazonCorrettoCryptoProvider"));
    }
    return ends_as_library(v);
}

/* Matches libasyncProfiler-linux-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so. */
static bool is_async_profiler(struct sv v)
{
    static const char *const systems[] = {"linux-arm64-", "linux-musl-x64-", "linux-musl-arm64-",
                                          "linux-x64-", "macos-"};
    take_directory(&v);
    if (!text_take(&v, SV("libasyncProfiler-"))) {
        return false;
    }
    for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
        if (text_take(&v, sv_from(systems[i]))) {
            return text_take_any(&v, HEX) && ends_as_library(v);
        }
    }
    return false;
}

void jfr_name_put(struct sv symbol, struct buf *out)
{
    static size_t (*const classes[])(struct sv) = {accessor, spring, lambda};
    static const struct {
        bool (*is)(struct sv);
        const char *name;
    } libraries[] = {
        {is_zstd, "libzstd-jni-_.so"},
        {is_corretto, "libamazonCorrettoCryptoProvider_.so"},
        {is_async_profiler, "libasyncProfiler-_.so"},
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        size_t head = classes[i](symbol);
        if (head > 0) {
            buf_append(out, symbol.p, head);
            buf_putc(out, '_');
            return;
        }
    }
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        if (libraries[i].is(symbol)) {
            buf_puts(out, libraries[i].name);
            return;
        }
    }
    buf_append(out, symbol.p, symbol.n);
}
