/* The reasons why a file gives no names. Their names are values of the label `reason` of metrics.
 */
#ifndef PROFPULL_SYMBOLS_FAILURE_H
#define PROFPULL_SYMBOLS_FAILURE_H

enum symbols_failure {
    SYMBOLS_OK = 0,
    SYMBOLS_START,      /* the child could not be started */
    SYMBOLS_TOO_LARGE,  /* the file, or the question, is larger than allowed */
    SYMBOLS_UNREADABLE, /* no ELF file of a program or library */
    SYMBOLS_BUILD_ID,   /* the file has another build id, or none */
    SYMBOLS_MEMORY,     /* the child has used up its memory */
    SYMBOLS_TIMEOUT,    /* no answer before the deadline */
    SYMBOLS_CRASH,      /* the child ended in the middle of the question */
    SYMBOLS_ANSWER,     /* the child's answer cannot be understood */
    SYMBOLS_FAILURES,
};

/* Returns the name of a failure: "start", "too_large" and so on; "ok" for SYMBOLS_OK. */
const char *symbols_failure_name(enum symbols_failure f);

#endif
