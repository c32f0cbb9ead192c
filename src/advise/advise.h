/* advise.h: what would make a run faster, by how much, and why nothing else would.
 *
 * Each rule (rules.def) looks at the trace and makes one change on a copy of its replay; the
 * replay's time says what the change gains. The surest and largest is taken, then what is left is
 * looked at again, so that nothing is counted twice. A gain is left out when it is small, within
 * the noise, or from a trace that the replay does not reproduce. Then one sentence says what bounds
 * the run. */
#ifndef PRONY_ADVISE_ADVISE_H
#define PRONY_ADVISE_ADVISE_H

#include "advise/replay.h"

enum rule_word { RULE_EXPECTED, RULE_UP_TO, RULE_AT_LEAST };

enum rule_key {
#define RULE(key, id, word, low, high, title, action) RULE_##key,
#include "advise/rules.def"
    RULES_OF_TRACES, /* those before it look at traces; from here on own networks are changed */
    RULES_BEFORE = RULES_OF_TRACES - 1,
#define OWN(key, id, axis, word, low, high, title, action) RULE_own_##key,
#include "advise/rules.def"
    RULES
};

struct rule {
    const char *key, *id;
    const char *axis; /* that it changes, of our own networks; NULL: it looks at traces */
    enum rule_word word;
    double low, high;
    const char *title, *action;
};
extern const struct rule rules[RULES];

/* Of the run, for which no gain is promised. */
enum notice_key {
#define NOTICE(key, id, title, action) NOTICE_##key,
#include "advise/rules.def"
    NOTICES
};
struct notice {
    const char *key; /* of facts of the trace: what was told */
    const char *id, *title, *action;
};
extern const struct notice notices[NOTICES];

const char *rule_word_name(enum rule_word word); /* "expected" */

/* When a gain is shown. */
#define ADVICE_LEAST 1.05  /* × */
#define ADVICE_NOISE 2.0   /* times the spread of the step's time */
#define ADVICE_REPLAY 0.05 /* how far the replay may be from the window */
enum {
    ADVICE_STEPS = 10,
    ADVICE_STEPS_MOST = 200,    /* the last ones: more say no more, and take memory */
    ADVICE_SAMPLES = 200,       /* fewer, and nothing is found: that says little */
    ADVICE_SAMPLES_LEAST = 30,  /* fewer say nothing of a share */
    ADVICE_SEEN_NS = 2000000000 /* of waiting */
};

/* The range of a rule's gain g, 1 + low (g - 1) … 1 + high (g - 1): that of its row, or what
 * proofs made of it. */
struct rule_range {
    double low, high;
    int64_t proofs; /* that corrected it; 0: it is that of the row */
};
/* Fills `ranges`, of RULES, with those of the rows. */
void rule_ranges(struct rule_range *ranges);

struct finding_of_trace {
    const struct rule *rule;
    double gain, low, high; /* of the program, × with only what was said before it changed */
    int64_t proofs;         /* that low and high come from; 0: from the rule's row */
    uint32_t site;          /* the user's line; 0: not one */
    const char *evidence;   /* in the advice's arena */
};

struct advice {
    struct steps steps;
    struct budget budget;
    double step_ns; /* unwatched where the trace knows it */
    double spread;  /* of it, as a share */
    bool unwatched;
    double replay;  /* replay's check ÷ window; 0: it cannot be replayed */
    size_t samples; /* in the window */
    double seen_ns; /* that threads were seen, running or waiting */
    struct rule_range ranges[RULES];
    struct finding_of_trace findings[RULES];
    size_t count;
    double together;    /* the gain of all findings but those that are only upper bounds */
    const char *silent; /* why nothing can be said at all; NULL: it was looked at */
    const char *bound;  /* what bounds the run */
    struct arena arena;
};

/* An advice without findings; `ranges` of RULES, or NULL: those of the rows. */
void advice_begin(const struct rule_range *ranges, struct advice *advice);
/* Only steps, budget and times: no rule is asked. */
enum status advise_budget(const struct trace *trace, struct advice *advice);
enum status advise(const struct trace *trace, const struct rule_range *ranges,
                   struct advice *advice);
/* Fills advice->bound; after the findings. */
enum status advice_bound(const struct trace *trace, struct advice *advice);
/* Is the gain worth a word? */
bool advice_worth(const struct advice *advice, double gain);
void advice_free(struct advice *advice); /* zeroed is fine */

#endif
