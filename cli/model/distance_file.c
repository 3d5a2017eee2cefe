/* A group of cost c is a node at the height c / 2, a label one at 0: the edge from a member to its
 * group is as long as their heights differ, and two labels are twice the height of their smallest
 * common group apart. */
#include "model/distance_file.h"

#include "args/options.h"
#include "io/lines.h"
#include "printable.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---------------------------------------------------------------------------------- */

typedef struct place {
    const char *file;
    size_t line;
    size_t labels;
    cli_problem *problem;
} place;

PROBLEM_FORMAT static bool bad_line(cli_problem *problem, const place *at, const char *format,
                                    ...) {
    char text[PROBLEM_BYTES / 2];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return bad_input(problem, at->file, "line %zu: %s", at->line, text);
}

/* A word for a message. */
#define WORD_BYTES 64
typedef struct word_text {
    char text[WORD_BYTES];
} word_text;
static const char *quoted(const char *word, word_text *text) {
    return printable(word, text->text, sizeof text->text);
}

static char *next_word(char **rest) {
    return strtok_r(NULL, " \t\r", rest);
}

/* Call `take` for every line that has words. It may change the text. */
typedef bool line_taker(void *context, const place *at, char *text);
static bool take_lines(const line_list *list, place *at, line_taker *take, void *context) {
    for (size_t k = 0; k < list->count; k++) {
        char *remark = strchr(list->lines[k], '#');
        if (remark)
            *remark = '\0';
        at->line = k + 1;
        if (list->lines[k][strspn(list->lines[k], " \t\r")] && !take(context, at, list->lines[k]))
            return false;
    }
    return true;
}

/* No list has more words. */
static size_t most_words(const line_list *list) {
    size_t count = 0;
    for (size_t k = 0; k < list->count; k++)
        count += strlen(list->lines[k]) / 2 + 1;
    return count;
}

static bool take_length(const place *at, const char *word, double *length) {
    word_text text;
    return (parse_number_list(word, length, 1) && *length >= 0) ||
           bad_line(at->problem, at, "'%s' is no finite number from 0 on", quoted(word, &text));
}

static bool take_label(const place *at, const char *word, size_t *label) {
    word_text text;
    errno = 0;
    const unsigned long number = strtoul(word, NULL, 10);
    *label = (size_t)number;
    return (errno == 0 && number < at->labels) ||
           bad_line(at->problem, at, "there is no label %s; the labels are 0 to %zu",
                    quoted(word, &text), at->labels - 1);
}

static bool is_whole_number(const char *word) {
    return strspn(word, "0123456789") == strlen(word);
}

/* ---- trees ---------------------------------------------------------------------------------- */

typedef struct tree_node {
    size_t joined;      /* a node of the same part of the tree; itself in one node of each part */
    double cost;        /* of a group; 0 for labels */
    size_t cost_line;   /* 0: a group without a cost */
    size_t member_line; /* 0: in no group */
} tree_node;

typedef struct tree_reader {
    line_list groups;
    tree_node *nodes; /* labels, then groups in the order in which they occur */
    size_t *lines;    /* of the edges */
    distance_tree *tree;
} tree_reader;

/* The search for a name takes a time that grows with their number. */
#define MOST_GROUPS 4096

static size_t part_of(tree_node *nodes, size_t node) {
    while (nodes[node].joined != node)
        node = nodes[node].joined = nodes[nodes[node].joined].joined;
    return node;
}

static const char *node_name(const tree_reader *r, const place *at, size_t node, word_text *text) {
    if (node >= at->labels)
        return quoted(r->groups.lines[node - at->labels], text);
    snprintf(text->text, sizeof text->text, "label %zu", node);
    return text->text;
}

static bool add_group(tree_reader *r, const place *at, const char *word, size_t node) {
    word_text text;
    if (strchr("+-.0123456789", *word))
        return bad_line(at->problem, at, "'%s' is neither a label nor a name", quoted(word, &text));
    if (r->groups.count >= MOST_GROUPS)
        return bad_line(at->problem, at, "there are more than %d groups", MOST_GROUPS);
    r->nodes[node] = (tree_node){.joined = node};
    return lines_add(&r->groups, word, strlen(word)) || out_of_memory(at->problem, at->file);
}

static bool find_node(tree_reader *r, const place *at, const char *word, size_t *node) {
    if (is_whole_number(word))
        return take_label(at, word, node);
    size_t g = 0;
    while (g < r->groups.count && strcmp(r->groups.lines[g], word) != 0)
        g++;
    *node = at->labels + g;
    return g < r->groups.count || add_group(r, at, word, *node);
}

static bool add_edge(tree_reader *r, const place *at, size_t one, size_t other, double length) {
    distance_tree *tree = r->tree;
    const size_t part = part_of(r->nodes, one), other_part = part_of(r->nodes, other);
    word_text texts[2];
    if (part == other_part)
        return bad_line(at->problem, at, "closes a cycle: %s and %s are joined already",
                        node_name(r, at, one, &texts[0]), node_name(r, at, other, &texts[1]));
    r->nodes[part].joined = other_part;
    tree->ends[2 * tree->count] = one;
    tree->ends[2 * tree->count + 1] = other;
    r->lines[tree->count] = at->line;
    tree->lengths[tree->count++] = length;
    return true;
}

static bool bad_tree_line(const place *at, const char *begin) {
    word_text text;
    return bad_line(at->problem, at,
                    "is neither 'node node length' nor 'group cost COST: members'; it begins with "
                    "'%s'",
                    quoted(begin, &text));
}

/* The first three words of a text, which must be all. */
static bool split_in_three(char *text, char *words[3]) {
    char *rest;
    words[0] = strtok_r(text, " \t\r", &rest);
    for (size_t k = 1; k < 3; k++)
        words[k] = words[k - 1] ? next_word(&rest) : NULL;
    return words[2] && !next_word(&rest);
}

static bool take_edge(tree_reader *r, const place *at, char *text) {
    char *words[3];
    double length;
    size_t ends[2];
    if (!split_in_three(text, words))
        return bad_tree_line(at, words[0]);
    return take_length(at, words[2], &length) && find_node(r, at, words[0], &ends[0]) &&
           find_node(r, at, words[1], &ends[1]) && add_edge(r, at, ends[0], ends[1], length);
}

/* The length follows when the costs are known. */
static bool add_member(tree_reader *r, const place *at, const char *word, size_t group) {
    size_t member;
    word_text text;
    if (!find_node(r, at, word, &member))
        return false;
    if (r->nodes[member].member_line > 0)
        return bad_line(at->problem, at, "%s is in a group already, by line %zu",
                        node_name(r, at, member, &text), r->nodes[member].member_line);
    r->nodes[member].member_line = at->line;
    return add_edge(r, at, member, group, (double)NAN);
}

static bool begin_group(tree_reader *r, const place *at, const char *name, double cost,
                        size_t *group) {
    word_text text;
    if (is_whole_number(name))
        return bad_line(at->problem, at, "a group has a name, and %s is a label",
                        quoted(name, &text));
    if (!find_node(r, at, name, group))
        return false;
    tree_node *node = &r->nodes[*group];
    if (node->cost_line > 0)
        return bad_line(at->problem, at, "the group %s has a cost already, by line %zu",
                        quoted(name, &text), node->cost_line);
    node->cost = cost;
    node->cost_line = at->line;
    return true;
}

/* `members` is behind the colon. */
static bool take_group(tree_reader *r, const place *at, char *head, char *members) {
    char *words[3], *rest;
    double cost;
    size_t group;
    if (!split_in_three(head, words) || strcmp(words[1], "cost") != 0)
        return bad_tree_line(at, words[0] ? words[0] : ":");
    if (!take_length(at, words[2], &cost) || !begin_group(r, at, words[0], cost, &group))
        return false;
    const char *word = strtok_r(members, " \t\r", &rest);
    if (!word)
        return bad_line(at->problem, at, "the group has no members");
    for (; word; word = next_word(&rest))
        if (!add_member(r, at, word, group))
            return false;
    return true;
}

static bool take_tree_line(void *context, const place *at, char *text) {
    char *colon = strchr(text, ':');
    if (!colon)
        return take_edge(context, at, text);
    *colon = '\0';
    return take_group(context, at, text, colon + 1);
}

/* The edges from members to groups. */
static bool find_length(const tree_reader *r, place *at, size_t edge) {
    distance_tree *tree = r->tree;
    const size_t member = tree->ends[2 * edge], group = tree->ends[2 * edge + 1];
    const tree_node *inner = &r->nodes[member], *outer = &r->nodes[group];
    word_text texts[2];
    if (!isnan(tree->lengths[edge]))
        return true;
    at->line = r->lines[edge];
    if (member >= at->labels && inner->cost_line == 0)
        return bad_line(at->problem, at, "the group %s in the group %s has no cost",
                        node_name(r, at, member, &texts[0]), node_name(r, at, group, &texts[1]));
    if (inner->cost > outer->cost)
        return bad_line(at->problem, at,
                        "the group %s costs %g, and %s, which is in it, %g: a group costs no less "
                        "than those in it",
                        node_name(r, at, group, &texts[0]), outer->cost,
                        node_name(r, at, member, &texts[1]), inner->cost);
    tree->lengths[edge] = (outer->cost - inner->cost) / 2;
    return true;
}

static bool check_joined(const tree_reader *r, const place *at) {
    word_text text;
    for (size_t v = 1; v < at->labels + r->groups.count; v++)
        if (part_of(r->nodes, v) != part_of(r->nodes, 0))
            return bad_input(at->problem, at->file, "joins label 0 and %s by no path",
                             node_name(r, at, v, &text));
    return true;
}

static bool allocate_tree(tree_reader *r, const place *at, size_t words) {
    const size_t nodes = at->labels + words;
    r->nodes = calloc(nodes, sizeof *r->nodes);
    r->lines = calloc(words + 1, sizeof *r->lines);
    r->tree->ends = calloc(words + 1, 2 * sizeof *r->tree->ends);
    r->tree->lengths = calloc(words + 1, sizeof *r->tree->lengths);
    for (size_t v = 0; r->nodes && v < at->labels; v++)
        r->nodes[v].joined = v;
    return (r->nodes && r->lines && r->tree->ends && r->tree->lengths) ||
           out_of_memory(at->problem, at->file);
}

void distance_tree_free(distance_tree *tree) {
    free(tree->ends);
    free(tree->lengths);
    *tree = (distance_tree){0};
}

bool distance_tree_read(const char *file, size_t labels, distance_tree *tree,
                        cli_problem *problem) {
    line_list list;
    tree_reader r = {.tree = tree};
    place at = {.file = file, .labels = labels, .problem = problem};
    *tree = (distance_tree){0};
    if (!lines_read_all(file, &list, problem))
        return false;
    bool done = allocate_tree(&r, &at, most_words(&list)) &&
                take_lines(&list, &at, take_tree_line, &r) && check_joined(&r, &at);
    for (size_t e = 0; done && e < tree->count; e++)
        done = find_length(&r, &at, e);
    lines_free(&list);
    lines_free(&r.groups);
    free(r.nodes);
    free(r.lines);
    if (!done)
        distance_tree_free(tree);
    return done;
}

/* ---- cuts ----------------------------------------------------------------------------------- */

static bool add_to_set(const place *at, const char *word, unsigned char *set) {
    word_text text;
    size_t label;
    if (!is_whole_number(word))
        return bad_line(at->problem, at, "'%s' is no label", quoted(word, &text));
    if (!take_label(at, word, &label))
        return false;
    if (set[label])
        return bad_line(at->problem, at, "has label %zu twice", label);
    set[label] = 1;
    return true;
}

static bool take_cut(void *context, const place *at, char *text) {
    distance_cuts *cuts = context;
    char *colon = strchr(text, ':'), *rest, *word;
    word_text begin;
    if (colon)
        *colon = '\0';
    word = strtok_r(text, " \t\r", &rest);
    if (!colon || !word || next_word(&rest))
        return bad_line(at->problem, at, "is not 'LENGTH: labels'; it begins with '%s'",
                        quoted(word ? word : ":", &begin));
    if (!take_length(at, word, &cuts->lengths[cuts->count]))
        return false;
    word = strtok_r(colon + 1, " \t\r", &rest);
    if (!word)
        return bad_line(at->problem, at, "the cut has no labels");
    for (; word; word = next_word(&rest))
        if (!add_to_set(at, word, cuts->sets + cuts->count * at->labels))
            return false;
    cuts->count++;
    return true;
}

void distance_cuts_free(distance_cuts *cuts) {
    free(cuts->sets);
    free(cuts->lengths);
    *cuts = (distance_cuts){0};
}

bool distance_cuts_read(const char *file, size_t labels, distance_cuts *cuts,
                        cli_problem *problem) {
    line_list list;
    place at = {.file = file, .labels = labels, .problem = problem};
    *cuts = (distance_cuts){0};
    if (!lines_read_all(file, &list, problem))
        return false;
    cuts->sets = calloc(list.count + 1, labels);
    cuts->lengths = calloc(list.count + 1, sizeof *cuts->lengths);
    bool done = (cuts->sets && cuts->lengths) || out_of_memory(problem, file);
    done = done && take_lines(&list, &at, take_cut, cuts) &&
           (cuts->count > 0 || bad_input(problem, file, "has no cuts"));
    lines_free(&list);
    if (!done)
        distance_cuts_free(cuts);
    return done;
}
