/* optimiser.h: how parameters are learnt: the optimiser with its settings, the schedule of its
 * rate, and the update of every parameter that has a gradient, as ops. The recipe says what is done
 * with these.
 *
 * They are said in the same words in a network's text and in a flag:
 *     optimiser adam rate=0.001 beta1=0.8        --optimiser adam:rate=0.001,beta1=0.8
 *     schedule cosine period=1000 least=0.1      --schedule cosine:period=1000,least=0.1 */
#ifndef PRONY_NN_OPTIMISER_H
#define PRONY_NN_OPTIMISER_H

#include "nn/network.h"

struct reader;

/* A row of optimisers.def. */
struct optimiser_kind {
    const char *name;
    enum op_kind op;
    const char *states, *fixed, *settings, *help;
};

const struct optimiser_kind *optimiser_kinds(int32_t *count);
struct optimiser optimiser_usual(void); /* sgd with its defaults */

/* A row of recipes.def. */
struct recipe_kind {
    const char *name;
    enum recipe_id id;
    const char *networks, *settings, *help;
};

const struct recipe_kind *recipe_kinds(int32_t *count);
struct recipe recipe_usual(void); /* feed_forward */
double recipe_value(const struct recipe *recipe, const char *setting);

/* The value of a setting ("rate", "clip", "beta1"); 0 when this optimiser has none of that name. */
double optimiser_value(const struct optimiser *optimiser, const char *setting);

/* After the word `optimiser` or `schedule`: reads the rest of the line. */
enum status optimiser_read(struct reader *reader, struct optimiser *out);
enum status schedule_read(struct reader *reader, struct schedule *out);
enum status recipe_read(struct reader *reader, struct recipe *out);

/* A flag's value. NULL or "" leaves *out as it is, so that a flag goes before the network's text.
 */
enum status optimiser_parse(const char *flag, struct optimiser *out);
enum status schedule_parse(const char *flag, struct schedule *out);
enum status recipe_parse(const char *flag, struct recipe *out);

struct update_options {
    struct optimiser optimiser; /* zeroed: sgd */
    struct schedule schedule;   /* zeroed: constant */
    const char *prefix;         /* of its own state: "" or "generator." */
    double rate;                /* multiplies the control block's rate; 1 in the usual case */
    bool accumulate;            /* gradients are cleared after use */
};

void update_emit(struct draft *draft, const struct update_options *options);

#endif
