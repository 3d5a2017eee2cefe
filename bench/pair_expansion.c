/* Expansion moves by minimum cuts over given pairs, for script/study-cuts: no code of the library.
 *
 *   pair-expansion FOLDER
 *
 * lowers phi(x) + sum_{a < b} 2 K_ab min(|x_a - x_b|, T) by moves that let any set of variables
 * take one label (Boykov, Veksler and Zabih 2001), until no label gives one. The best set is a
 * minimum cut: a move costs u_a for every variable that moves, and q_ab >= 0 for every pair of
 * which only b moves. The cut is found by push-relabel (Goldberg and Tarjan 1988, first in, first
 * out) with exact distances from time to time.
 *
 * FOLDER holds phi, a row of LABELS floats per variable, for every pair its variables, first and
 * second, as 32-bit integers, and weight; and x, 32-bit integers, which is overwritten. */
#include "pair_files.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LABELS = 60, TRUNCATION = 4 };
#define NOTHING 1e-12 /* of excess or capacity */

struct graph {
    size_t nodes, pairs;
    const int32_t *first, *second; /* of every pair */
    size_t *begin;                 /* nodes + 1: where the arcs of a node begin */
    int32_t *head;                 /* of an arc */
    size_t *reverse;
    double *capacity, *excess, *sink; /* what an arc, a node and its arc to the sink have left */
    size_t *distance;                 /* to the sink; more than `nodes`: none */
    int32_t *queue;
    size_t waiting, oldest;
    unsigned char *is_waiting;
};

static double distance_of(int32_t i, int32_t j) {
    const int32_t apart = abs(i - j);
    return apart < TRUNCATION ? apart : TRUNCATION;
}

/* ---- the minimum cut ------------------------------------------------------------------------ */

/* Arcs of pair e are at[first] and at[second], in the order of the pairs. */
static void make_arcs(struct graph *g) {
    size_t *at = pair_require(calloc(g->nodes + 1, sizeof *at));
    for (size_t e = 0; e < g->pairs; e++) {
        g->begin[g->first[e] + 1]++;
        g->begin[g->second[e] + 1]++;
    }
    for (size_t v = 0; v < g->nodes; v++) {
        g->begin[v + 1] += g->begin[v];
        at[v] = g->begin[v];
    }
    for (size_t e = 0; e < g->pairs; e++) {
        const size_t there = at[g->first[e]]++, back = at[g->second[e]]++;
        g->head[there] = g->second[e];
        g->head[back] = g->first[e];
        g->reverse[there] = back;
        g->reverse[back] = there;
    }
    free(at);
}

/* Exact distances, by a search from the sink. */
static void measure(struct graph *g) {
    size_t begin = 0, end = 0;
    for (size_t v = 0; v < g->nodes; v++) {
        g->distance[v] = g->sink[v] > NOTHING ? 1 : g->nodes + 1;
        if (g->sink[v] > NOTHING)
            g->queue[end++] = (int32_t)v;
    }
    while (begin < end) {
        const size_t v = (size_t)g->queue[begin++];
        for (size_t e = g->begin[v]; e < g->begin[v + 1]; e++)
            if (g->distance[g->head[e]] > g->nodes && g->capacity[g->reverse[e]] > NOTHING) {
                g->distance[g->head[e]] = g->distance[v] + 1;
                g->queue[end++] = g->head[e];
            }
    }
}

static void wait_for_turn(struct graph *g, size_t v) {
    if (g->is_waiting[v] || g->excess[v] <= NOTHING || g->distance[v] > g->nodes)
        return;
    g->queue[(g->oldest + g->waiting++) % g->nodes] = (int32_t)v;
    g->is_waiting[v] = 1;
}

static void start_round(struct graph *g) {
    measure(g);
    g->waiting = g->oldest = 0;
    for (size_t v = 0; v < g->nodes; v++)
        g->is_waiting[v] = 0;
    for (size_t v = 0; v < g->nodes; v++)
        wait_for_turn(g, v);
}

static double push(double *excess, double *capacity) {
    const double flow = fmin(*excess, *capacity);
    *excess -= flow;
    *capacity -= flow;
    return flow;
}

/* Push what v has to the sink and to nodes that are nearer to it; the least distance of the others.
 */
static size_t push_all(struct graph *g, size_t v) {
    size_t nearest = g->nodes;
    if (g->distance[v] == 1)
        push(&g->excess[v], &g->sink[v]);
    if (g->sink[v] > NOTHING)
        nearest = 0;
    for (size_t e = g->begin[v]; e < g->begin[v + 1] && g->excess[v] > NOTHING; e++) {
        const size_t w = (size_t)g->head[e];
        if (g->capacity[e] > NOTHING && g->distance[w] + 1 == g->distance[v]) {
            const double flow = push(&g->excess[v], &g->capacity[e]);
            g->capacity[g->reverse[e]] += flow;
            g->excess[w] += flow;
            wait_for_turn(g, w);
        }
        if (g->capacity[e] > NOTHING && g->distance[w] < nearest)
            nearest = g->distance[w];
    }
    return nearest;
}

/* Afterwards the nodes without a distance are the largest source side of a minimum cut. */
static void cut(struct graph *g) {
    size_t seen = 0;
    start_round(g);
    while (g->waiting > 0) {
        const size_t v = (size_t)g->queue[g->oldest];
        g->oldest = (g->oldest + 1) % g->nodes;
        g->waiting--;
        g->is_waiting[v] = 0;
        const size_t nearest = push_all(g, v);
        if (g->excess[v] > NOTHING)
            g->distance[v] = nearest + 1;
        wait_for_turn(g, v);
        if ((seen += g->begin[v + 1] - g->begin[v]) > 8 * g->pairs) {
            seen = 0;
            start_round(g);
        }
    }
    measure(g);
}

/* ---- moves ---------------------------------------------------------------------------------- */

struct model {
    const float *phi, *weight;
    int32_t *x, *moved;
};

static double energy_of(const struct graph *g, const struct model *m, const int32_t *x) {
    double energy = 0;
    for (size_t a = 0; a < g->nodes; a++)
        energy += (double)m->phi[a * LABELS + (size_t)x[a]];
    for (size_t e = 0; e < g->pairs; e++)
        energy += 2 * (double)m->weight[e] * distance_of(x[g->first[e]], x[g->second[e]]);
    return energy;
}

/* Nodes at the source move. */
static void fill_graph(struct graph *g, const struct model *m, int32_t label, size_t *at) {
    double *gain = g->excess;
    for (size_t a = 0; a < g->nodes; a++) {
        const float *phi = m->phi + a * LABELS;
        gain[a] = (double)phi[m->x[a]] - (double)phi[label];
        at[a] = g->begin[a];
    }
    for (size_t e = 0; e < g->pairs; e++) {
        const int32_t a = g->first[e], b = g->second[e];
        const double weight = 2 * (double)m->weight[e], now = distance_of(m->x[a], m->x[b]);
        const double only_a = distance_of(label, m->x[b]), only_b = distance_of(m->x[a], label);
        gain[a] += weight * (now - only_a);
        gain[b] += weight * only_a;
        g->capacity[at[a]++] = 0;
        g->capacity[at[b]++] = weight * (only_a + only_b - now);
    }
    for (size_t a = 0; a < g->nodes; a++) {
        g->sink[a] = fmax(-gain[a], 0);
        g->excess[a] = fmax(gain[a], 0);
    }
}

/* The energy afterwards. */
static double expand(struct graph *g, struct model *m, int32_t label, double energy, size_t *at) {
    fill_graph(g, m, label, at);
    cut(g);
    for (size_t a = 0; a < g->nodes; a++)
        m->moved[a] = g->distance[a] > g->nodes ? label : m->x[a];
    const double after = energy_of(g, m, m->moved);
    if (after >= energy - 1e-9 * fabs(energy))
        return energy;
    int32_t *before = m->x;
    m->x = m->moved;
    m->moved = before;
    return after;
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: pair-expansion FOLDER\n");
        return 2;
    }
    const char *folder = words[1];
    struct graph g = {0};
    size_t entries;
    struct model m = {.phi = pair_read(folder, "phi", &entries)};
    m.x = pair_read(folder, "x", &g.nodes);
    g.first = pair_read(folder, "first", &g.pairs);
    g.second = pair_read(folder, "second", &g.pairs);
    m.weight = pair_read(folder, "weight", &g.pairs);
    m.moved = pair_require(calloc(g.nodes + 1, sizeof *m.moved));
    g.begin = pair_require(calloc(g.nodes + 1, sizeof *g.begin));
    g.head = pair_require(calloc(2 * g.pairs + 1, sizeof *g.head));
    g.reverse = pair_require(calloc(2 * g.pairs + 1, sizeof *g.reverse));
    g.capacity = pair_require(calloc(2 * g.pairs + 1, sizeof *g.capacity));
    g.excess = pair_require(calloc(g.nodes + 1, sizeof *g.excess));
    g.sink = pair_require(calloc(g.nodes + 1, sizeof *g.sink));
    g.distance = pair_require(calloc(g.nodes + 1, sizeof *g.distance));
    g.queue = pair_require(calloc(g.nodes + 1, sizeof *g.queue));
    g.is_waiting = pair_require(calloc(g.nodes + 1, 1));
    size_t *at = pair_require(calloc(g.nodes + 1, sizeof *at));
    make_arcs(&g);
    double energy = energy_of(&g, &m, m.x);
    for (int32_t label = 0, in_vain = 0; in_vain < LABELS; label = (label + 1) % LABELS) {
        const double after = expand(&g, &m, label, energy, at);
        in_vain = after < energy ? 0 : in_vain + 1;
        energy = after;
    }
    pair_write(folder, "x", m.x, g.nodes);
    return 0; /* the system takes the memory back */
}
