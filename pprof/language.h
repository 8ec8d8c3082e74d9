/* Guesses the language of a program from its profile, by the names of the source files of its
 * functions. The function is pure; any thread may call it.
 */
#ifndef PROFPULL_PPROF_LANGUAGE_H
#define PROFPULL_PPROF_LANGUAGE_H

#include "base/str.h"

enum pprof_language {
    LANGUAGE_UNKNOWN, /* no names, or names of a language that is not listed */
    LANGUAGE_GO,
    LANGUAGE_JAVA,
    LANGUAGE_PYTHON,
    LANGUAGE_RUBY,
    LANGUAGE_PHP,
    LANGUAGE_DOTNET,
    LANGUAGE_NODE,
    LANGUAGES /* count */
};

/* Returns the language of most source files whose language is known. plain: a whole profile, not
 * gzip, that need not be valid. */
enum pprof_language pprof_language_of(struct sv plain);

#endif
