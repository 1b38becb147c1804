/* N processes in a ring hand a token around; who holds it may take a break.
 *
 * Slot 0: who holds the token. Slot 1: one bit for each process that is on a break.
 * With --param N=n there are n * 2^n states.
 */
#include "deltamark.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t processes = 4;

static void initial(void *self, deltamark_out *out) {
    (void)self;
    uint32_t state[2] = {0, 0};
    out->step(out, state, 2, NULL);
}

static void successors(void *self, const uint32_t *state, size_t width, deltamark_out *out) {
    (void)self, (void)width;
    uint32_t next[2] = {(state[0] + 1) % processes, state[1]};
    out->step(out, next, 2, "hand over");
    next[0] = state[0];
    next[1] = state[1] ^ (1u << state[0]);
    out->step(out, next, 2, next[1] > state[1] ? "take a break" : "come back");
}

static size_t show(void *self, const uint32_t *state, size_t width, char *text, size_t size) {
    (void)self, (void)width;
    return (size_t)snprintf(text, size, "holder = %u\non_break = %u", state[0], state[1]);
}

static int64_t value(void *self, const uint32_t *state, size_t width, uint32_t variable) {
    (void)self, (void)width;
    return state[variable];
}

static const char *const names[] = {"holder", "on_break"};

static const deltamark_description model = {
    .version = DELTAMARK_VERSION,
    .width = 2,
    .variables = 2,
    .names = names,
    .initial = initial,
    .successors = successors,
    .show = show,
    .value = value,
};

const deltamark_description *deltamark_model(const deltamark_parameter *parameters, size_t count, const char **error) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(parameters[i].name, "N") != 0) {
            *error = "the only parameter is N";
            return NULL;
        }
        char *end;
        long n = strtol(parameters[i].value, &end, 10);
        if (*end != 0 || n < 1 || n > 24) {
            *error = "N is a number from 1 to 24";
            return NULL;
        }
        processes = (uint32_t)n;
    }
    return &model;
}
