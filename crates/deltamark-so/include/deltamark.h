/* A model as a shared library, for `deltamark check --format so ./model.so`.
 *
 * The library exports one function, deltamark_model, which returns a description of the
 * model: how wide its states are, and functions that give the initial states, the successors of
 * a state, and a state as text. Build it with
 *
 *     cc -O2 -shared -fPIC -I DIRECTORY-OF-THIS-FILE -o model.so model.c
 *
 * A state is an array of 32-bit slots. Two states are the same if their slots are the same, so
 * slots that mean nothing must always hold the same number.
 *
 * What the functions must keep to:
 *  - The successors of a state depend on the state alone, and so does their order.
 *  - Nothing may be kept from call to call that changes what they do.
 *  - Unless DELTAMARK_ONE_THREAD is set they may be called by several threads at once.
 *  - They do not jump or throw out of a call of step or fault.
 */
#ifndef DELTAMARK_H
#define DELTAMARK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. */
#define DELTAMARK_VERSION 1

/* For `width`: states differ in length. */
#define DELTAMARK_VARIES UINT32_MAX

/* For `flags`: the functions must not be called by two threads at once. */
#define DELTAMARK_ONE_THREAD 1u

/* Where states go. It is valid during the call that it is given to. */
typedef struct deltamark_out {
    /* A state that follows (or an initial one). `width` is its number of slots. `label` says what
     * happens, or is NULL. Both are copied. */
    void (*step)(struct deltamark_out *out, const uint32_t *state, size_t width, const char *label);
    /* A step that the model declares wrong; it leads nowhere. */
    void (*fault)(struct deltamark_out *out, const char *message);
} deltamark_out;

/* A parameter, from `--param NAME=VALUE`. */
typedef struct deltamark_parameter {
    const char *name;
    const char *value;
} deltamark_parameter;

/* A model. Everything in it stays valid and unchanged until the program ends. */
typedef struct deltamark_description {
    /* DELTAMARK_VERSION */
    uint32_t version;
    /* The number of slots of a state, 1 to 65536, or DELTAMARK_VARIES. */
    uint32_t width;
    /* 0, or DELTAMARK_ONE_THREAD. */
    uint32_t flags;
    /* How many variables properties can speak of. */
    uint32_t variables;
    /* Their names; may be NULL when there are none. */
    const char *const *names;
    /* Handed to each of the functions below. */
    void *self;

    /* Gives the initial states, at least one. */
    void (*initial)(void *self, deltamark_out *out);
    /* Gives all successors of a state. */
    void (*successors)(void *self, const uint32_t *state, size_t width, deltamark_out *out);
    /* Writes the state as text, at most `size` bytes with the zero at the end, and returns the length
     * of the whole text, as snprintf does. A line `name = value` for each variable is shown best.
     * Different states must read differently. May be NULL: slots are shown as numbers then. */
    size_t (*show)(void *self, const uint32_t *state, size_t width, char *text, size_t size);
    /* The value of a variable. May be NULL when there are none. */
    int64_t (*value)(void *self, const uint32_t *state, size_t width, uint32_t variable);
} deltamark_description;

/* What the library exports. When the parameters are wrong it returns NULL and points `error` to a
 * message. A parameter that it does not know should be such an error. */
const deltamark_description *deltamark_model(const deltamark_parameter *parameters, size_t count, const char **error);

#ifdef __cplusplus
}
#endif

#endif
