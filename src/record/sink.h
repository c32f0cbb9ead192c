/* sink.h: where a bench puts its records. cli/ makes it a file, a store or both, so that bench/ and
 * store/ never see each other. */
#ifndef PRONY_RECORD_SINK_H
#define PRONY_RECORD_SINK_H

#include "record/record.h"

struct sink {
    /* Called once a record, when it is complete; `line` is what record_write made of it, without
     * the newline. When it returns, the record is where it belongs. */
    enum status (*write)(void *context, const char *line, const struct record *record);
    void *context;
};

#endif
