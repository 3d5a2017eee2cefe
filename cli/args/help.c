/* Help texts, generated from the tables of commands and options. */
#include "command.h"

#include <dcrf/dcrf.h>
#include <signal.h>
#include <string.h>

#define LINE_COLUMNS 80
#define HELP_COLUMN 32

/* Print the text, wrapped and with following lines indented; the cursor is at `column`. */
static void print_wrapped(FILE *stream, const char *text, size_t column, size_t indent) {
    while (*text) {
        const size_t length = strcspn(text, " ");
        if (column > indent && column + 1 + length > LINE_COLUMNS) {
            fprintf(stream, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', stream);
            column++;
        }
        fwrite(text, 1, length, stream);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', stream);
}

static void print_entry(FILE *stream, const char *left, const char *help) {
    const size_t length = strlen(left);
    fputs(left, stream);
    if (length + 2 > HELP_COLUMN)
        fprintf(stream, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(stream, "%*s", (int)(HELP_COLUMN - length), "");
    print_wrapped(stream, help, HELP_COLUMN, HELP_COLUMN);
}

static void print_option(FILE *stream, const cli_option *option) {
    char left[96], help[512], letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->form ? " " : "",
             option->form ? option->form : "");
    if (option->fallback)
        snprintf(help, sizeof help, "%s [default: %s]", option->help, option->fallback);
    else
        snprintf(help, sizeof help, "%s", option->help);
    print_entry(stream, left, help);
}

/* It is not a failure if the reader closes the pipe early, as head does. */
static void end_with_reader(void) {
    signal(SIGPIPE, SIG_DFL);
}

void print_command_help(FILE *stream, const cli_command *command) {
    end_with_reader();
    const option_set *set = &command->arguments;
    fprintf(stream, "Usage: dcrf %s", set->command);
    for (const cli_option *o = set->operands; o->name; o++)
        fprintf(stream, " %s", o->name);
    for (const option_group *g = set->groups; g->title; g++)
        for (const cli_option *o = g->options; o->name; o++)
            if (o->required)
                fprintf(stream, " --%s %s", o->name, o->form);
    fprintf(stream, "%s\n\n", set->groups->title ? " [options]" : "");
    for (const char *paragraph = command->details; *paragraph;) {
        char words[1024];
        const size_t length = strcspn(paragraph, "\n");
        snprintf(words, sizeof words, "%.*s", (int)length, paragraph);
        print_wrapped(stream, words, 0, 0);
        paragraph += length + (paragraph[length] == '\n');
    }
    fputc('\n', stream);
    for (const cli_option *o = set->operands; o->name; o++) {
        char left[64];
        snprintf(left, sizeof left, "  %s", o->name);
        print_entry(stream, left, o->help);
    }
    for (const option_group *g = set->groups; g->title; g++) {
        fprintf(stream, "\n%s:\n", g->title);
        for (const cli_option *o = g->options; o->name; o++)
            print_option(stream, o);
    }
}

void print_program_help(FILE *stream) {
    end_with_reader();
    fprintf(stream,
            "dcrf %s: dense conditional random fields\n\n"
            "Usage: dcrf COMMAND [arguments]\n\nCommands:\n",
            dcrf_version());
    for (size_t i = 0; i < command_count; i++) {
        char left[64];
        snprintf(left, sizeof left, "  %s", commands[i]->arguments.command);
        print_entry(stream, left, commands[i]->summary);
    }
    print_entry(stream, "  help [COMMAND]", "this text, or the help of one command");
    fputs("\n", stream);
    print_entry(stream, "  --version", "the version");
    print_entry(stream, "  --help", "this text");
    fputs("\nExit status: 0 success, 1 out of memory or a failed write, 2 bad input or usage,\n"
          "3 some images failed or there was no time for a certificate, 130 interrupted.\n",
          stream);
}
