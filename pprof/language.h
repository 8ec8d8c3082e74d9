/* The language of a program, as far as its profile shows it: by the names of the source files of
 * its functions. Pure; any thread.
 */
#ifndef PROFPULL_PPROF_LANGUAGE_H
#define PROFPULL_PPROF_LANGUAGE_H

#include "base/str.h"

enum pprof_language {
    LANGUAGE_UNKNOWN, /* no names, or those of a language that is not listed */
    LANGUAGE_GO,
    LANGUAGE_JAVA,
    LANGUAGE_PYTHON,
    LANGUAGE_RUBY,
    LANGUAGE_PHP,
    LANGUAGE_DOTNET,
    LANGUAGE_NODE,
    LANGUAGES /* count */
};

/* The language of most files that have one. plain: a whole profile, not gzip, that need not be
 * valid. */
enum pprof_language pprof_language_of(struct sv plain);

#endif
