/* answers.h: the endpoints of the API, as docs/api.md describes them. */
#ifndef PRONY_GUIDE_ANSWERS_H
#define PRONY_GUIDE_ANSWERS_H

#include "guide/call.h"

enum status answer_axes(struct call *call);
enum status answer_status(struct call *call);
enum status answer_values(struct call *call);
enum status answer_records(struct call *call);
enum status answer_record(struct call *call);
enum status answer_query(struct call *call);

#endif
