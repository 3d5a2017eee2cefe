/* Components by union-find; small regions are joined along the graph of neighbouring regions.
 *
 * The graph is a list of edges per region, one entry per pixel side between two regions. When a
 * region is joined to another, the lists are concatenated, and the far ends of edges are looked up
 * when they are read. Only lists of regions below the minimum are ever read, and such a region has
 * at most four sides per pixel (six in a volume), so the work is O(N min_region_px) at worst, and
 * in practice little more than O(N).
 *
 * The next region to join comes from a heap ordered by (pixels, number). Entries of regions that
 * have since been joined or have grown are skipped. */
#include "superpixel/regions.h"

#include "core/error.h"
#include "core/owned.h"

#include <math.h>

/* ---- components ----------------------------------------------------------------------------- */

/* The root of a tree of parents, halving the path on the way. A root has the lowest number of its
 * tree. */
static int32_t find_root(int32_t *parent, int32_t i) {
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void unite(int32_t *parent, int32_t i, int32_t j) {
    const int32_t a = find_root(parent, i), b = find_root(parent, j);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Replace the roots of a forest by consecutive numbers; parents have lower numbers than
 * children. */
static size_t number_roots(int32_t *parent, size_t count) {
    size_t roots = 0;
    for (size_t i = 0; i < count; i++)
        parent[i] = parent[i] == (int32_t)i ? (int32_t)roots++ : parent[parent[i]];
    return roots;
}

static size_t pixels_of(const struct dcrf_colours *picture) {
    return picture->width * picture->height * picture->depth;
}

size_t dcrf_regions_from_links(const uint8_t *links, const struct dcrf_colours *picture,
                               int32_t *regions) {
    const size_t pixels = pixels_of(picture), width = picture->width;
    const size_t slice = width * picture->height;
    for (size_t a = 0; a < pixels; a++)
        regions[a] = (int32_t)a;
    for (size_t a = 0; a < pixels; a++) {
        if (links[a] & DCRF_LINK_RIGHT)
            unite(regions, (int32_t)a, (int32_t)(a + 1));
        if (links[a] & DCRF_LINK_DOWN)
            unite(regions, (int32_t)a, (int32_t)(a + width));
        if (links[a] & DCRF_LINK_BACK)
            unite(regions, (int32_t)a, (int32_t)(a + slice));
    }
    return number_roots(regions, pixels);
}

/* ---- joining -------------------------------------------------------------------------------- */

struct region {
    size_t pixels;
    double colour_sum[3]; /* exact, see DCRF_COLOUR_STEPS */
    int32_t first_edge;   /* -1: none */
    int32_t last_edge;
};

struct edge {
    int32_t to;   /* the region by its initial number */
    int32_t next; /* of the same region; -1: none */
};

struct heap_entry {
    size_t pixels;
    int32_t region;
};

struct joining {
    size_t count, alive;
    struct region *regions;
    int32_t *parent;
    struct edge *edges;
    struct heap_entry *heap;
    size_t heap_count;
};

static bool comes_before(const struct heap_entry *a, const struct heap_entry *b) {
    return a->pixels != b->pixels ? a->pixels < b->pixels : a->region < b->region;
}

static void heap_push(struct joining *j, struct heap_entry entry) {
    size_t at = j->heap_count++;
    while (at > 0 && comes_before(&entry, &j->heap[(at - 1) / 2])) {
        j->heap[at] = j->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    j->heap[at] = entry;
}

static struct heap_entry heap_pop(struct joining *j) {
    const struct heap_entry top = j->heap[0], last = j->heap[--j->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < j->heap_count && comes_before(&j->heap[child + 1], &j->heap[child]))
            child++;
        if (child >= j->heap_count || !comes_before(&j->heap[child], &last))
            break;
        j->heap[at] = j->heap[child];
        at = child;
    }
    j->heap[at] = last;
    return top;
}

static double colour_distance(const struct region *a, const struct region *b) {
    double squared = 0;
    for (size_t c = 0; c < 3; c++) {
        const double difference =
            a->colour_sum[c] / (double)a->pixels - b->colour_sum[c] / (double)b->pixels;
        squared += difference * difference;
    }
    return squared;
}

/* The neighbour to join a region to; -1: none. */
static int32_t most_similar_neighbour(struct joining *j, int32_t number) {
    int32_t best = -1;
    double best_distance = INFINITY;
    for (int32_t e = j->regions[number].first_edge; e >= 0; e = j->edges[e].next) {
        const int32_t to = find_root(j->parent, j->edges[e].to);
        if (to == number || to == best)
            continue;
        const double distance = colour_distance(&j->regions[number], &j->regions[to]);
        if (distance < best_distance || (distance == best_distance && to < best)) {
            best = to;
            best_distance = distance;
        }
    }
    return best;
}

static int32_t join_pair(struct joining *j, int32_t a, int32_t b) {
    const int32_t kept = a < b ? a : b, dropped = a < b ? b : a;
    struct region *to = &j->regions[kept];
    const struct region *from = &j->regions[dropped];
    j->parent[dropped] = kept;
    to->pixels += from->pixels;
    for (size_t c = 0; c < 3; c++)
        to->colour_sum[c] += from->colour_sum[c];
    /* Both have at least one edge, to each other. */
    j->edges[to->last_edge].next = from->first_edge;
    to->last_edge = from->last_edge;
    j->alive--;
    return kept;
}

/* Joins between checks for an interrupt. */
#define JOINTS 1024

static dcrf_status join_all_small(struct joining *j, size_t min_region_px,
                                  dcrf_workspace *workspace, dcrf_error *error) {
    dcrf_status status = DCRF_OK;
    for (size_t r = 0; r < j->count; r++)
        if (j->regions[r].pixels < min_region_px)
            heap_push(j, (struct heap_entry){j->regions[r].pixels, (int32_t)r});
    for (size_t k = 0; j->heap_count > 0 && j->alive > 1; k++) {
        if (k % JOINTS == 0 && (status = dcrf_go_on(workspace, DCRF_FINDING, error)) < 0)
            return status;
        const struct heap_entry small = heap_pop(j);
        if (j->parent[small.region] != small.region ||
            j->regions[small.region].pixels != small.pixels)
            continue;
        const int32_t joined = join_pair(j, small.region, most_similar_neighbour(j, small.region));
        if (j->regions[joined].pixels < min_region_px)
            heap_push(j, (struct heap_entry){j->regions[joined].pixels, joined});
    }
    return status;
}

static void measure_regions(struct joining *j, const int32_t *regions,
                            const struct dcrf_colours *colours) {
    for (size_t r = 0; r < j->count; r++) {
        j->regions[r] = (struct region){.first_edge = -1, .last_edge = -1};
        j->parent[r] = (int32_t)r;
    }
    for (size_t row = 0; row < colours->height * colours->depth; row++)
        for (size_t x = 0; x < colours->width; x++) {
            struct region *region = &j->regions[regions[row * colours->width + x]];
            region->pixels++;
            for (size_t c = 0; c < 3; c++)
                region->colour_sum[c] += (double)colours->plane[c][row * colours->stride + x];
        }
}

static void add_edge(struct joining *j, size_t *edge_count, int32_t from, int32_t to) {
    struct region *region = &j->regions[from];
    const int32_t edge = (int32_t)(*edge_count)++;
    j->edges[edge] = (struct edge){to, -1};
    if (region->first_edge < 0)
        region->first_edge = edge;
    else
        j->edges[region->last_edge].next = edge;
    region->last_edge = edge;
}

/* Count the edges, two per pixel side between two regions; if there is memory for edges, add them
 * too. */
static size_t list_edges(struct joining *j, const int32_t *regions,
                         const struct dcrf_colours *picture) {
    const size_t pixels = pixels_of(picture), width = picture->width;
    const size_t slice = width * picture->height;
    size_t count = 0;
    for (size_t a = 0; a < pixels; a++) {
        const bool inside[3] = {(a + 1) % width != 0, a % slice + width < slice,
                                a + slice < pixels};
        const size_t neighbour[3] = {a + 1, a + width, a + slice};
        for (size_t i = 0; i < 3; i++) {
            if (!inside[i] || regions[a] == regions[neighbour[i]])
                continue;
            if (j->edges) {
                add_edge(j, &count, regions[a], regions[neighbour[i]]);
                add_edge(j, &count, regions[neighbour[i]], regions[a]);
            } else {
                count += 2;
            }
        }
    }
    return count;
}

static dcrf_status start_joining(struct joining *j, const int32_t *regions, size_t count,
                                 const struct dcrf_colours *colours, struct dcrf_owned *owned,
                                 dcrf_workspace *workspace, dcrf_error *error) {
    *j = (struct joining){.count = count, .alive = count};
    const size_t edges = list_edges(j, regions, colours);
    if (edges > INT32_MAX)
        return dcrf_fail(error, DCRF_ERROR_SIZE,
                         "the regions of an image of %zu x %zu x %zu pixels are too fragmented to "
                         "join",
                         colours->width, colours->height, colours->depth);
    j->regions = dcrf_own(owned, count, sizeof *j->regions);
    j->parent = dcrf_own(owned, count, sizeof *j->parent);
    j->edges = dcrf_own(owned, edges, sizeof *j->edges);
    /* Each region is pushed once, plus once per join, of which there are at most count - 1. */
    j->heap = dcrf_own(owned, count, 2 * sizeof *j->heap);
    if (owned->is_short)
        return dcrf_fail_memory(error, "joining small regions");
    measure_regions(j, regions, colours);
    TRY(dcrf_go_on(workspace, DCRF_FINDING, error));
    list_edges(j, regions, colours);
    return DCRF_OK;
}

dcrf_status dcrf_regions_join_small(int32_t *regions, size_t *count,
                                    const struct dcrf_colours *colours, size_t min_region_px,
                                    dcrf_workspace *workspace, dcrf_error *error) {
    DCRF_AT_END(dcrf_disown) struct dcrf_owned owned = {0};
    struct joining j;
    if (min_region_px <= 1 || *count <= 1)
        return DCRF_OK;
    TRY(start_joining(&j, regions, *count, colours, &owned, workspace, error));
    TRY(join_all_small(&j, min_region_px, workspace, error));
    *count = number_roots(j.parent, j.count);
    for (size_t a = 0; a < pixels_of(colours); a++)
        regions[a] = j.parent[regions[a]];
    return DCRF_OK;
}
