#include "cli/manual.h"

#include <string.h>

#include "base/str.h"

/* ---- the manual page ------------------------------------------------------------------------- */

/* Appends a text in which roff finds no request and no escape: a dot or an apostrophe at the start
 * of a line follows "\&", and hyphens are those that people type. */
static void put_roff(struct buf *out, const char *text, size_t n)
{
    bool line_start = true;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (line_start && (c == '.' || c == '\'')) {
            buf_puts(out, "\\&");
        }
        if (c == '\\') {
            buf_puts(out, "\\e");
        } else if (c == '-') {
            buf_puts(out, "\\-");
        } else {
            buf_putc(out, c);
        }
        line_start = c == '\n';
    }
}

static void put_text(struct buf *out, const char *text)
{
    put_roff(out, text, strlen(text));
}

/* Appends paragraphs, which are separated by blank lines in the text. */
static void put_paragraphs(struct buf *out, const char *text)
{
    for (const char *end; (end = strstr(text, "\n\n")) != NULL; text = end + 2) {
        put_roff(out, text, (size_t)(end - text));
        buf_puts(out, "\n.PP\n");
    }
    put_text(out, text);
    buf_putc(out, '\n');
}

static void put_option(struct buf *out, const struct command *c, const struct flag *f)
{
    buf_puts(out, ".TP\n\\fB");
    if (f->letter != '\0') {
        buf_printf(out, "\\-%c\\fR, \\fB", f->letter);
    }
    buf_puts(out, "\\-\\-");
    put_text(out, f->name);
    buf_puts(out, "\\fR");
    if (f->argument != NULL) {
        buf_puts(out, " \\fI");
        put_text(out, f->argument);
        buf_puts(out, "\\fR");
    }
    buf_putc(out, '\n');
    if (!flag_describe(c, f, out)) {
        return;
    }
    buf_putc(out, '\n');
}

static void put_synopsis(struct buf *out, const char *usage)
{
    while (*usage != '\0') {
        size_t n = strcspn(usage, "\n");
        buf_puts(out, ".PP\n\\fBprofpull\\fR ");
        put_roff(out, usage, n);
        buf_putc(out, '\n');
        usage += n + (usage[n] == '\n');
    }
}

static void put_command(struct buf *out, const struct command *c)
{
    const struct flag *f;
    buf_puts(out, ".SS profpull ");
    put_text(out, c->name);
    buf_putc(out, '\n');
    put_synopsis(out, c->usage);
    buf_puts(out, ".PP\n");
    put_paragraphs(out, c->description);
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        put_option(out, c, f);
    }
    buf_puts(out, ".PP\n");
    put_paragraphs(out, c->exit_codes);
}

bool manual_page(struct buf *out)
{
    const struct command *c;
    buf_puts(out,
             ".TH PROFPULL 1 \"\" \"profpull " PROFPULL_VERSION "\" \"User Commands\"\n"
             ".SH NAME\nprofpull \\- continuous profiling by pull\n"
             ".SH SYNOPSIS\n\\fBprofpull\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
             ".SH DESCRIPTION\n"
             "Discovers programs with /debug/pprof, in Kubernetes or from lists, fetches their "
             "profiles on a schedule, and pushes them, labelled, to servers that accept "
             "Pyroscope's protocols.\n"
             ".SH COMMANDS\n");
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        put_command(out, c);
    }
    buf_puts(out, ".SH EXIT STATUS\n0 done, 1 wrong input or configuration, 2 usage, 3 a server, a "
                  "target or a cluster failed.\n"
                  ".SH FILES\n.TP\n/etc/profpull/profpull.yaml\nthe configuration that the service "
                  "reads\n.TP\n/usr/share/doc/profpull\nthe documentation: configuration.md has "
                  "every key\n");
    return buf_ok(out);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void put_names(struct buf *out, const char *separator)
{
    const struct command *c;
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : separator, c->name);
    }
}

typedef const char *words_function(size_t i);

static void put_words(struct buf *out, words_function *word)
{
    for (size_t i = 0; word(i) != NULL; i++) {
        buf_printf(out, "%s%s", i == 0 ? "" : " ", word(i));
    }
}

/* Returns the words that the argument of a flag is completed with; NULL: none. */
static words_function *words_of(const struct flag *f)
{
    return f->kind == FLAG_CHOICE ? f->choice : f->suggest;
}

/* Appends the completions of a command for bash. After an option with a list of words, these words
 * are suggested; after an option with any other argument, nothing; otherwise the options. */
static void put_bash_command(struct buf *out, const struct command *c)
{
    const struct flag *f;
    buf_printf(out, "    %s)\n      case $previous in\n", c->name);
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        if (words_of(f) != NULL) {
            buf_printf(out, "        --%s) words='", f->name);
            put_words(out, words_of(f));
            buf_puts(out, "' ;;\n");
        } else if (f->kind != FLAG_BOOL) {
            buf_printf(out, "        --%s) ;;\n", f->name);
        }
    }
    buf_puts(out, "        *) words='");
    for (size_t i = 0; (f = command_flag(c, i)) != NULL; i++) {
        buf_printf(out, "%s--%s", i == 0 ? "" : " ", f->name);
    }
    buf_puts(out, "'\n");
    if (c->subject != NULL) {
        buf_puts(out, "          [[ $COMP_CWORD -ne 2 || $current == -* ]] || words='");
        put_words(out, c->subject);
        buf_puts(out, "'\n");
    }
    buf_puts(out, "          ;;\n      esac ;;\n");
}

static void put_bash(struct buf *out)
{
    const struct command *c;
    buf_puts(out, "# bash completion for profpull\n"
                  "_profpull() {\n"
                  "  local words='' current=${COMP_WORDS[COMP_CWORD]} "
                  "previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                  "  COMPREPLY=()\n"
                  "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words='");
    put_names(out, " ");
    buf_puts(out, "'\n  else\n  case ${COMP_WORDS[1]} in\n    help) words='");
    put_names(out, " ");
    buf_puts(out, " --man --completion' ;;\n");
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        if (strcmp(c->name, "help") != 0) {
            put_bash_command(out, c);
        }
    }
    buf_puts(out, "  esac\n  fi\n"
                  "  # Without a word of ours, bash completes names of files.\n"
                  "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                  "}\n"
                  "complete -o bashdefault -o default -F _profpull profpull\n");
}

/* Appends a description within zsh's brackets and single quotes: its first line, without the
 * characters that would end them. */
static void put_zsh_text(struct buf *out, const char *text)
{
    for (size_t i = 0; text[i] != '\0' && text[i] != '\n'; i++) {
        if (text[i] == '\'') {
            buf_puts(out, "'\\''");
        } else {
            buf_printf(out, "%s%c", strchr("[]:\\", text[i]) != NULL ? "\\" : "", text[i]);
        }
    }
}

static void put_zsh_flag(struct buf *out, const struct flag *f)
{
    buf_printf(out, " \\\n        '%s--%s[",
               f->kind == FLAG_PAIRS || f->kind == FLAG_LIST ? "*" : "", f->name);
    put_zsh_text(out, f->help);
    buf_putc(out, ']');
    if (words_of(f) != NULL) {
        buf_printf(out, ":%s:(", f->argument);
        put_words(out, words_of(f));
        buf_putc(out, ')');
    } else if (f->kind != FLAG_BOOL) {
        buf_puts(out, ":");
        put_zsh_text(out, f->argument);
        buf_puts(out, f->kind == FLAG_TEXT ? ":_files" : ":");
    }
    buf_putc(out, '\'');
}

static void put_zsh(struct buf *out)
{
    const struct command *c;
    const struct flag *f;
    buf_puts(out, "#compdef profpull\n"
                  "local -a subcommands\n"
                  "subcommands=(\n");
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        buf_printf(out, "  '%s:", c->name);
        put_zsh_text(out, c->summary);
        buf_puts(out, "'\n");
    }
    buf_puts(out, ")\n"
                  "if (( CURRENT == 2 )); then\n  _describe command subcommands\nelse\n"
                  "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n"
                  "  case $command in\n");
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        buf_printf(out, "    %s)\n      _arguments", c->name);
        for (size_t k = 0; (f = command_flag(c, k)) != NULL; k++) {
            put_zsh_flag(out, f);
        }
        if (c->subject != NULL) {
            buf_puts(out, " \\\n        '1:subject:(");
            put_words(out, c->subject);
            buf_puts(out, ")'");
        }
        buf_puts(out, " \\\n        '*:file:_files' ;;\n");
    }
    buf_puts(out, "  esac\nfi\n");
}

/* Appends a text within fish's single quotes. */
static void put_fish_text(struct buf *out, const char *text)
{
    buf_putc(out, '\'');
    for (size_t i = 0; text[i] != '\0' && text[i] != '\n'; i++) {
        buf_printf(out, "%s%c", text[i] == '\'' || text[i] == '\\' ? "\\" : "", text[i]);
    }
    buf_putc(out, '\'');
}

static void put_fish_flag(struct buf *out, const struct command *c, const struct flag *f)
{
    buf_printf(out, "complete -c profpull -n '__fish_seen_subcommand_from %s' -l %s", c->name,
               f->name);
    if (f->letter != '\0') {
        buf_printf(out, " -s %c", f->letter);
    }
    if (words_of(f) != NULL) {
        buf_puts(out, " -x -a '");
        put_words(out, words_of(f));
        buf_putc(out, '\'');
    } else if (f->kind == FLAG_TEXT) {
        buf_puts(out, " -r");
    } else if (f->kind != FLAG_BOOL) {
        buf_puts(out, " -x");
    }
    buf_puts(out, " -d ");
    put_fish_text(out, f->help);
    buf_putc(out, '\n');
}

static void put_fish(struct buf *out)
{
    const struct command *c;
    const struct flag *f;
    buf_puts(out, "# fish completion for profpull\n");
    for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
        buf_printf(out, "complete -c profpull -n __fish_use_subcommand -f -a %s -d ", c->name);
        put_fish_text(out, c->summary);
        buf_putc(out, '\n');
        if (c->subject != NULL) {
            buf_printf(out, "complete -c profpull -n '__fish_seen_subcommand_from %s' -a '",
                       c->name);
            put_words(out, c->subject);
            buf_puts(out, "'\n");
        }
        for (size_t k = 0; (f = command_flag(c, k)) != NULL; k++) {
            put_fish_flag(out, c, f);
        }
    }
}

static const struct {
    const char *shell;
    void (*put)(struct buf *out);
} completions[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};

const char *completion_shell(size_t i)
{
    return i < sizeof(completions) / sizeof(completions[0]) ? completions[i].shell : NULL;
}

bool completion_script(const char *shell, struct buf *out)
{
    for (size_t i = 0; completion_shell(i) != NULL; i++) {
        if (strcmp(completions[i].shell, shell) == 0) {
            completions[i].put(out);
        }
    }
    return buf_ok(out);
}
