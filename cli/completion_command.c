/* dcrf completion: shell completion scripts for commands and options, generated from the tables. */
#include "args/presets.h"
#include "command.h"

#include <string.h>

typedef struct completion_settings {
    int shell;
} completion_settings;

enum { SHELL_BASH, SHELL_ZSH, SHELL_FISH };
static const char shells[] = "bash|zsh|fish";

/* Is the form a choice between words, such as "auto|hwc|chw"? Words in capitals do not count. */
static bool is_choice(const char *form) {
    return form && strchr(form, '|') && !strpbrk(form, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-,");
}

/* Can the value be a file? */
static bool is_file(const char *form) {
    return form && (strstr(form, "FILE") || strstr(form, ".npy") || strstr(form, "LABELS") ||
                    strstr(form, "IMAGE"));
}

/* The words that the value can be, separated by spaces. */
static void print_words(const cli_option *option) {
    if (option->parse == parse_preset) {
        for (size_t i = 0; i < preset_count; i++)
            printf("%s%s", i > 0 ? " " : "", presets[i].name);
        return;
    }
    for (const char *c = option->form; *c; c++)
        putchar(*c == '|' ? ' ' : *c);
}

static bool has_words(const cli_option *option) {
    return option->parse == parse_preset || is_choice(option->form);
}

/* ---- bash ----------------------------------------------------------------------------------- */

static void print_bash_values(const cli_command *command) {
    for (const option_group *g = command->arguments.groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++) {
            if (!o->form)
                continue;
            printf("        %s:--%s) ", command->arguments.command, o->name);
            if (has_words(o)) {
                printf("COMPREPLY=($(compgen -W '");
                print_words(o);
                printf("' -- \"$word\")); return ;;\n");
            } else {
                printf("%sreturn ;;\n",
                       is_file(o->form) ? "COMPREPLY=($(compgen -f -- \"$word\")); " : "");
            }
        }
}

static void print_bash(void) {
    printf("# Completion of dcrf for bash.\n"
           "_dcrf() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ] || { [ \"$COMP_CWORD\" -eq 2 ] && "
           "[ \"$command\" = help ]; }; then\n"
           "        COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < command_count; i++)
        printf("%s ", commands[i]->arguments.command);
    printf("help --help --version' -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case \"$command:${COMP_WORDS[COMP_CWORD-1]}\" in\n");
    for (size_t i = 0; i < command_count; i++)
        print_bash_values(commands[i]);
    printf("        completion:completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "
           "\"$word\")); return ;;\n"
           "    esac\n"
           "    if [[ $word != -* ]]; then\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case \"$command\" in\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        %s) COMPREPLY=($(compgen -W '", commands[i]->arguments.command);
        for (const option_group *g = commands[i]->arguments.groups; g->title; g++)
            for (const cli_option *o = g->options; o->name; o++)
                printf("--%s ", o->name);
        printf("--help' -- \"$word\")) ;;\n");
    }
    printf("    esac\n"
           "}\n"
           "complete -o filenames -F _dcrf dcrf\n");
}

/* ---- zsh ------------------------------------------------------------------------------------ */

/* Help inside '...[...]...': no quotes, brackets or colons. */
static void print_zsh_help(const char *help) {
    for (; *help; help++)
        if (*help == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *help))
            printf("\\%c", *help);
        else
            putchar(*help);
}

static void print_zsh_option(const cli_option *option) {
    if (option->letter)
        printf("                '(-%c --%s)'{-%c,--%s%s}'[", option->letter, option->name,
               option->letter, option->name, option->form ? "=" : "");
    else
        printf("                '--%s%s[", option->name, option->form ? "=" : "");
    print_zsh_help(option->help);
    printf("]");
    if (option->form && has_words(option)) {
        printf(":value:(");
        print_words(option);
        printf(")");
    } else if (option->form) {
        printf(":value:%s", is_file(option->form) ? "_files" : "");
    }
    printf("' \\\n");
}

static void print_zsh(void) {
    printf("#compdef dcrf\n"
           "# Completion of dcrf for zsh.\n"
           "_dcrf() {\n"
           "    local -a commands=(\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        '%s:", commands[i]->arguments.command);
        print_zsh_help(commands[i]->summary);
        printf("'\n");
    }
    printf("        'help:the help of one command'\n"
           "    )\n"
           "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    (( CURRENT-- ))\n"
           "    case $command in\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        %s)\n            _arguments \\\n", commands[i]->arguments.command);
        for (const option_group *g = commands[i]->arguments.groups; g->title; g++)
            for (const cli_option *o = g->options; o->name; o++)
                print_zsh_option(o);
        printf("                '--help[show the help]' \\\n");
        for (const cli_option *o = commands[i]->arguments.operands; o->name; o++) {
            if (has_words(o)) {
                printf("                ':%s:(", o->name);
                print_words(o);
                printf(")' \\\n");
            }
        }
        printf("                '*:file:_files' ;;\n");
    }
    printf("    esac\n"
           "}\n"
           "_dcrf \"$@\"\n");
}

/* ---- fish ----------------------------------------------------------------------------------- */

static void print_fish_text(const char *text) {
    for (; *text; text++)
        if (*text == '\'' || *text == '\\')
            printf("\\%c", *text);
        else
            putchar(*text);
}

static void print_fish_option(const char *command, const cli_option *option) {
    printf("complete -c dcrf -n '__fish_seen_subcommand_from %s' -l %s", command, option->name);
    if (option->letter)
        printf(" -s %c", option->letter);
    if (option->form && has_words(option)) {
        printf(" -x -a '");
        print_words(option);
        printf("'");
    } else if (option->form) {
        printf(" -r%s", is_file(option->form) ? " -F" : " -f");
    }
    printf(" -d '");
    print_fish_text(option->help);
    printf("'\n");
}

static void print_fish(void) {
    printf("# Completion of dcrf for fish.\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("complete -c dcrf -n __fish_use_subcommand -f -a %s -d '",
               commands[i]->arguments.command);
        print_fish_text(commands[i]->summary);
        printf("'\n");
    }
    printf("complete -c dcrf -n __fish_use_subcommand -f -a help -d 'the help of one command'\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("complete -c dcrf -n '__fish_seen_subcommand_from help' -f -a %s\n",
               commands[i]->arguments.command);
        for (const option_group *g = commands[i]->arguments.groups; g->title; g++)
            for (const cli_option *o = g->options; o->name; o++)
                print_fish_option(commands[i]->arguments.command, o);
    }
    printf("complete -c dcrf -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
}

/* ---- the command ---------------------------------------------------------------------------- */

static bool run_completion(const void *given, cli_problem *problem) {
    const completion_settings *settings = given;
    (void)problem;
    if (settings->shell == SHELL_BASH)
        print_bash();
    else if (settings->shell == SHELL_ZSH)
        print_zsh();
    else
        print_fish();
    return true;
}

static const cli_option operands[] = {
    {.name = "SHELL",
     .form = shells,
     .parse = parse_choice,
     .offset = offsetof(completion_settings, shell),
     .help = "bash, zsh or fish"},
    {0},
};
static const option_group groups[] = {{0}};

const cli_command completion_command = {
    {"completion", operands, groups},
    "print a script that completes commands and options in a shell",
    "Prints a script for bash, zsh or fish. In bash, for example: eval \"$(dcrf completion "
    "bash)\". An installation puts the scripts where the shells find them.",
    sizeof(completion_settings),
    run_completion,
};
