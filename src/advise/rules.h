/* rules.h: what a rule gets and what it gives. */
#ifndef PRONY_ADVISE_RULES_H
#define PRONY_ADVISE_RULES_H

#include "advise/advise.h"

/* What is known when rules are asked. */
struct look {
    const struct trace *trace;
    const struct advice *advice;
    const struct replay *base; /* as the run was, unwatched; NULL: it cannot be replayed */
    double window_ns;          /* of `base` */
    int64_t loader_ns;         /* of the window: the GPU idles while the host makes a batch */
    bool loader_seen;          /* by marks or samples, not only by where the gap stands */
    uint32_t loader_site;
};

/* What a rule found. It says `gain` itself where it is not a matter of the replay. */
struct rule_found {
    bool applies;
    double gain;     /* 0: run the changed replay */
    bool assumed;    /* a ceiling of the machine is not known: the range is wide */
    double low_gain; /* > 0: the low end, of a smaller change */
    double least;    /* > 0: the gain that so few samples make sure; it has to be worth a word */
    uint32_t site;
    struct text evidence;
};

/* `change` is a copy of the replay as it is now, changes that were taken before included; NULL
 * where there is none. */
typedef enum status rule_look(const struct look *look, struct replay *change,
                              struct rule_found *found);
#define RULE(key, id, word, low, high, title, action) rule_look rule_##key;
#include "advise/rules.def"

/* Figures that several rules use. */
bool look_in_window(const struct look *look, const struct span *span);
double look_per_step(const struct look *look, double sum);
void look_add_rate(struct text *text, double bytes, double ns); /* "7.1 GB/s" */
/* Is the stack one of a data loader of PyTorch or TensorFlow? */
bool look_under_loader(const struct trace *trace, uint32_t site);
/* Finds the loader's time: by its spans, by samples, else by the gaps before copies to the GPU. */
enum status look_for_loader(struct look *look);

#endif
