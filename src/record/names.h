/* names.h: the words that JSON lines and the store use for the enums of record.h, and what people
 * call a framework. */
#ifndef PRONY_RECORD_NAMES_H
#define PRONY_RECORD_NAMES_H

enum { RECORD_KINDS = 5, RECORD_STATUSES = 3, RECORD_VERDICTS = 3, RECORD_COMPARISONS = 4 };
extern const char *const record_kinds[RECORD_KINDS];
extern const char *const record_statuses[RECORD_STATUSES];
extern const char *const record_verdicts[RECORD_VERDICTS];
extern const char *const record_comparisons[RECORD_COMPARISONS]; /* of enum verdict */

extern const char record_unavailable[]; /* what a meter without a value starts with */

const char *framework_title(const char *framework); /* "PyTorch"; without a row, the key itself */

#endif
