#include "scraper/schedule.h"

#include <stdlib.h>

/* The time that a target has for its response once it has sampled. */
#define ANSWER_MS 1000

void schedule_init(struct schedule *s)
{
    *s = (struct schedule){.heap = NULL};
}

void schedule_done(struct schedule *s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->heap[i].item->place = 0;
    }
    free(s->heap);
    schedule_init(s);
}

static void put(struct schedule *s, size_t at, struct schedule_node node)
{
    s->heap[at] = node;
    node.item->place = (uint32_t)at + 1;
}

/* Finds the place for a node, starting at the free place `at`. */
static void settle(struct schedule *s, size_t at, struct schedule_node node)
{
    for (; at > 0 && node.due_ms < s->heap[(at - 1) / 2].due_ms; at = (at - 1) / 2) {
        put(s, at, s->heap[(at - 1) / 2]);
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < s->n && s->heap[child + 1].due_ms < s->heap[child].due_ms) {
            child++;
        }
        if (child >= s->n || node.due_ms <= s->heap[child].due_ms) {
            break;
        }
        put(s, at, s->heap[child]);
        at = child;
    }
    put(s, at, node);
}

bool schedule_add(struct schedule *s, struct schedule_item *item, int64_t due_ms)
{
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 64 : s->cap * 2;
        struct schedule_node *heap = reallocarray(s->heap, cap, sizeof(*heap));
        if (heap == NULL) {
            return false;
        }
        s->heap = heap;
        s->cap = cap;
    }
    s->n++;
    settle(s, s->n - 1, (struct schedule_node){.due_ms = due_ms, .item = item});
    return true;
}

void schedule_remove(struct schedule *s, struct schedule_item *item)
{
    if (item->place == 0) {
        return;
    }
    size_t at = item->place - 1;
    item->place = 0;
    s->n--;
    if (at < s->n) {
        settle(s, at, s->heap[s->n]);
    }
}

void schedule_move(struct schedule *s, struct schedule_item *item, int64_t due_ms)
{
    settle(s, item->place - 1, (struct schedule_node){.due_ms = due_ms, .item = item});
}

struct schedule_item *schedule_head(const struct schedule *s, int64_t *ret_due_ms)
{
    if (s->n == 0) {
        return NULL;
    }
    *ret_due_ms = s->heap[0].due_ms;
    return s->heap[0].item;
}

int64_t schedule_due(const struct schedule *s, const struct schedule_item *item)
{
    return s->heap[item->place - 1].due_ms;
}

int64_t schedule_first(int64_t now_ms, int64_t wall_offset_ms, int64_t interval_ms, uint64_t hash)
{
    int64_t phase = (int64_t)(hash % (uint64_t)interval_ms);
    int64_t wall = (now_ms + wall_offset_ms) % interval_ms;
    if (wall < 0) {
        wall += interval_ms; /* the wall clock is before 1970 */
    }
    int64_t wait = phase - wall;
    return now_ms + (wait < 0 ? wait + interval_ms : wait);
}

int64_t schedule_resume(int64_t now_ms, int64_t first_ms, int64_t interval_ms, int64_t sampling_ms)
{
    bool open = now_ms - (first_ms - interval_ms) < sampling_ms;
    bool fits = now_ms + sampling_ms + ANSWER_MS <= first_ms;
    return open && fits ? now_ms : first_ms;
}

struct schedule_tick schedule_tick(int64_t due_ms, int64_t now_ms, int64_t interval_ms)
{
    int64_t late = now_ms - due_ms;
    if (late < interval_ms) {
        return (struct schedule_tick){.run = true, .next_ms = due_ms + interval_ms};
    }
    int64_t missed = late / interval_ms + 1;
    return (struct schedule_tick){
        .next_ms = due_ms + missed * interval_ms,
        .missed = (uint64_t)missed,
    };
}
