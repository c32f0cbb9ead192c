/* calibration_file.c: ceilings as JSON, in records and in the file where the best ones seen are
 * kept. The file names the CPU: a disk may move to another machine, and a virtual machine to
 * another host. How many cores this process may use is nothing of the CPU's: rows name their
 * threads. What cannot be understood is as if it were not there: it will be measured again. */
#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "estimate/calibrate.h"

#include <stdio.h>
#include <string.h>

enum { FILE_MOST = 1 << 20, FORMAT = 1 };

static void write_unit(const struct ceiling_row *row, struct json_writer *writer)
{
    if (row->unit[0]) {
        json_put_text(writer, "unit_name", row->unit);
        return;
    }
    json_put_text(writer, "isa", isa_name(row->isa));
    json_put_int(writer, "threads", row->threads);
    if (ceiling_is_memory(row->ceiling)) {
        json_put_text(writer, "pages", pages_name(row->pages));
    }
}

/* For a reader each row is what can be done; for the file, which is read again, what was seen with
 * that very set, and how long it was looked for. */
static void write_rows(const struct calibration *calibration, bool for_reader,
                       struct json_writer *writer)
{
    json_key(writer, "ceilings");
    json_array(writer);
    for (size_t i = 0; i < calibration->count; i++) {
        const struct ceiling_row *row = &calibration->rows[i];
        json_object(writer);
        json_put_text(writer, "ceiling", ceiling_name(row->ceiling));
        write_unit(row, writer);
        if (ceiling_is_memory(row->ceiling)) {
            json_put_uint(writer, "set_bytes", row->set_bytes);
        }
        json_put_real(writer, "per_s",
                      for_reader ? calibration_best(calibration, row) : row->per_s);
        if (!for_reader) {
            json_put_real(writer, "spent_ns", row->spent_ns);
        }
        json_end(writer);
    }
    json_end(writer);
}

void calibration_write(const struct calibration *calibration, struct json_writer *writer)
{
    json_object(writer);
    write_rows(calibration, true, writer);
    json_end(writer);
}

static bool read_row(const struct json *from, struct ceiling_row *out)
{
    *out = (struct ceiling_row){.threads = (int)json_int(from, "threads", 0),
                                .set_bytes = (uint64_t)json_int(from, "set_bytes", 0),
                                .per_s = json_real(from, "per_s", 0),
                                .spent_ns = json_real(from, "spent_ns", 0)};
    snprintf(out->unit, sizeof out->unit, "%s", json_text(from, "unit_name", ""));
    if (strcmp(json_text(from, "pages", ""), pages_name(PAGES_2M)) == 0)
        out->pages = PAGES_2M;
    bool of_cpu = isa_parse(json_text(from, "isa", ""), &out->isa, NULL) && out->threads > 0;
    return ceiling_parse(json_text(from, "ceiling", ""), &out->ceiling) &&
           (of_cpu || out->unit[0]) && out->per_s > 0;
}

/* More than this no processing unit gives, by orders of magnitude: the file was damaged, or written
 * by hand. A thread of a CPU reaches 1e13 operations, or bytes, a second; a whole GPU 1e16. */
static bool is_possible(const struct ceiling_row *row)
{
    return row->per_s <= (row->unit[0] ? 1e18 : 1e15 * row->threads);
}

static bool is_ours(const struct json *tree, const struct cpu *cpu)
{
    return json_int(tree, "format", 0) == FORMAT &&
           strcmp(json_text(tree, "cpu", ""), cpu->model) == 0 &&
           json_int(tree, "l3_bytes", -1) == (int64_t)cpu->l3_bytes;
}

enum status calibration_read(struct calibration *calibration, const char *path)
{
    struct arena arena = {0};
    struct text text = {0};
    struct json *tree;
    struct cpu cpu;
    enum status status;

    cpu_detect(&cpu);
    TRY_OR(done, file_read(path, FILE_MOST, &text));
    TRY_OR(done, json_parse(&arena, path, text_of(&text), text.length, &tree));
    const struct json *rows = is_ours(tree, &cpu) ? json_get(tree, "ceilings") : NULL;
    for (const struct json *from = rows ? rows->first : NULL; from; from = from->next) {
        struct ceiling_row row;
        if (!read_row(from, &row))
            continue;
        if (is_possible(&row))
            TRY_OR(done, calibration_merge(calibration, &row));
        else
            log_warning("%s: \"per_s\" of %s: found %g, which is not possible: it is passed over, "
                        "and measured again when it is needed",
                        path, ceiling_name(row.ceiling), row.per_s);
    }
done:
    text_free(&text);
    arena_free(&arena);
    return status == STATUS_MEMORY ? status : STATUS_OK;
}

enum status calibration_keep(struct calibration *calibration, const char *path)
{
    struct text text = {0};
    struct json_writer writer;
    struct cpu cpu;

    if (!calibration->changed)
        return STATUS_OK;
    cpu_detect(&cpu);
    TRY(calibration_read(calibration, path));
    json_begin(&writer, &text);
    json_object(&writer);
    json_put_int(&writer, "format", FORMAT);
    json_put_text(&writer, "cpu", cpu.model);
    json_put_uint(&writer, "l3_bytes", cpu.l3_bytes);
    write_rows(calibration, false, &writer);
    json_end(&writer);
    enum status status = text_done(&text);
    if (status == STATUS_OK)
        status = file_write(path, text_of(&text), text.length);
    text_free(&text);
    calibration->changed = status != STATUS_OK;
    return status;
}

enum status calibration_path(struct text *out)
{
    TRY(file_cache_folder(out));
    text_add(out, "/calibration.json");
    return text_done(out);
}
