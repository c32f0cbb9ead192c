/* endpoints.h: the endpoints of the API, as docs/api.md describes them. */
#ifndef PRONY_GUIDE_ENDPOINTS_H
#define PRONY_GUIDE_ENDPOINTS_H

#include "guide/call.h"
#include "record/profile_line.h"

enum status endpoint_axes(struct call *call);
enum status endpoint_glossary(struct call *call);
enum status endpoint_status(struct call *call);
enum status endpoint_values(struct call *call);
enum status endpoint_records(struct call *call);
enum status endpoint_record(struct call *call);
enum status endpoint_query(struct call *call);
enum status endpoint_scaling(struct call *call);
enum status endpoint_compare(struct call *call);
enum status endpoint_machines(struct call *call);
enum status endpoint_roofline(struct call *call);
enum status endpoint_networks(struct call *call);
enum status endpoint_network(struct call *call);
enum status endpoint_overview(struct call *call);
enum status endpoint_answers(struct call *call);
enum status endpoint_answer(struct call *call);
enum status endpoint_profiles(struct call *call);
enum status endpoint_profile(struct call *call);
enum status endpoint_timeline(struct call *call);
enum status endpoint_live(struct call *call);

/* The profile whose number is the rest of the path; else the answer is 400 or 404. It lives in the
 * call's arena. */
enum status call_profile(struct call *call, int64_t *id, struct record *record,
                         struct profile_line *profile);

#endif
