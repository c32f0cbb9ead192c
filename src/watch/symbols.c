/* symbols.c: see symbols.h. */
#include "watch/symbols.h"

#include "base/file.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SECTIONS_MOST = 1 << 14, SEGMENTS_MOST = 256 };
static const uint64_t table_most = 1 << 28; /* bytes */

/* The file being read. */
struct elf {
    const char *path;
    struct file_reader file;
    Elf64_Shdr *sections;
    size_t section_count;
    Elf64_Phdr *segments;
    size_t segment_count;
};

static enum status read_table(const struct elf *elf, uint64_t from, uint64_t bytes, void **out)
{
    if (bytes > table_most)
        FAIL(STATUS_INPUT, "%s: found a table of %llu bytes, expected fewer", elf->path,
             (unsigned long long)bytes);
    NEED(*out = mem_alloc((size_t)bytes + 1)); /* a text in it always ends */
    return file_read_part(&elf->file, elf->path, (size_t)from, (size_t)bytes, *out);
}

static enum status read_heads(struct elf *elf)
{
    Elf64_Ehdr head;
    if (elf->file.length < sizeof head)
        FAIL(STATUS_UNSUPPORTED, "%s: found %zu bytes, expected an ELF file", elf->path,
             elf->file.length);
    TRY(file_read_part(&elf->file, elf->path, 0, sizeof head, &head));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shentsize != sizeof *elf->sections || head.e_phentsize != sizeof *elf->segments)
        FAIL(STATUS_UNSUPPORTED, "%s: found another kind of file, expected ELF of 64 bits",
             elf->path);
    elf->section_count = head.e_shnum < SECTIONS_MOST ? head.e_shnum : SECTIONS_MOST;
    elf->segment_count = head.e_phnum < SEGMENTS_MOST ? head.e_phnum : SEGMENTS_MOST;
    TRY(read_table(elf, head.e_shoff, elf->section_count * sizeof *elf->sections,
                   (void **)&elf->sections));
    return read_table(elf, head.e_phoff, elf->segment_count * sizeof *elf->segments,
                      (void **)&elf->segments);
}

/* Where in the file an address of the loaded module is; UINT64_MAX: nowhere. */
static uint64_t file_offset(const struct elf *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->segment_count; i++) {
        const Elf64_Phdr *segment = &elf->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr < segment->p_filesz)
            return address - segment->p_vaddr + segment->p_offset;
    }
    return UINT64_MAX;
}

static bool is_function(const Elf64_Sym *entry)
{
    unsigned kind = ELF64_ST_TYPE(entry->st_info);
    return (kind == STT_FUNC || kind == STT_GNU_IFUNC) && entry->st_shndx != SHN_UNDEF;
}

static enum status add_symbols(struct symbols *symbols, const struct elf *elf,
                               const Elf64_Shdr *section, int table)
{
    Elf64_Sym *entries = NULL;
    enum status status;
    if (section->sh_link >= elf->section_count)
        return STATUS_OK;
    const Elf64_Shdr *texts = &elf->sections[section->sh_link];
    const size_t count = (size_t)(section->sh_size / sizeof *entries);
    TRY_OR(done, read_table(elf, section->sh_offset, count * sizeof *entries, (void **)&entries));
    TRY_OR(done,
           read_table(elf, texts->sh_offset, texts->sh_size, (void **)&symbols->names[table]));
    struct symbol *grown =
        mem_grow(symbols->list, symbols->count + count + 1, sizeof *symbols->list);
    NEED_OR(done, grown);
    symbols->list = grown;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = file_offset(elf, entries[i].st_value);
        if (is_function(&entries[i]) && start != UINT64_MAX && entries[i].st_name < texts->sh_size)
            symbols->list[symbols->count++] = (struct symbol){
                start, entries[i].st_size, symbols->names[table] + entries[i].st_name};
    }
done:
    mem_free(entries);
    return status;
}

/* By place; of several at one place the longest first, so that a size of 0 comes last. */
static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->bytes == y->bytes ? strcmp(x->name, y->name) : x->bytes > y->bytes ? -1 : 1;
}

static enum status read_symbols(struct symbols *symbols, const struct elf *elf)
{
    bool seen[2] = {false, false};
    for (size_t i = 0; i < elf->section_count; i++) {
        const Elf64_Shdr *section = &elf->sections[i];
        if (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM)
            continue;
        int table = section->sh_type == SHT_SYMTAB;
        if (seen[table])
            continue;
        seen[table] = true;
        TRY(add_symbols(symbols, elf, section, table));
    }
    if (symbols->count)
        qsort(symbols->list, symbols->count, sizeof *symbols->list, compare_symbols);
    return STATUS_OK;
}

enum status symbols_read(struct symbols *symbols, const char *path)
{
    struct elf elf = {.path = path};
    *symbols = (struct symbols){0};
    TRY(file_open(&elf.file, path));
    enum status status = read_heads(&elf);
    if (status == STATUS_OK)
        status = read_symbols(symbols, &elf);
    file_close(&elf.file);
    mem_free(elf.sections);
    mem_free(elf.segments);
    if (status != STATUS_OK)
        symbols_free(symbols);
    return status;
}

void symbols_free(struct symbols *symbols)
{
    mem_free(symbols->list);
    mem_free(symbols->names[0]);
    mem_free(symbols->names[1]);
    *symbols = (struct symbols){0};
}

const char *symbols_find(const struct symbols *symbols, uint64_t offset)
{
    enum { BACK = 16 }; /* functions may lie in each other, as hand-written kernels do */
    size_t low = 0, high = symbols->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (offset < symbols->list[middle].start)
            high = middle;
        else
            low = middle + 1;
    }
    for (size_t i = low; i > 0 && i + BACK > low; i--) {
        const struct symbol *symbol = &symbols->list[i - 1];
        if (offset - symbol->start < symbol->bytes || (i == low && offset == symbol->start))
            return symbol->name;
    }
    return NULL;
}

/* What C++ calls it, by the C++ library where there is one; mem_free frees it. */
static char *demangle(const char *name)
{
    typedef char *demangler(const char *, char *, size_t *, int *);
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static demangler *function;
    static bool asked;
    int failed = 1;
    pthread_mutex_lock(&lock);
    if (!asked) {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
        if (library)
            *(void **)(void *)&function = dlsym(library, "__cxa_demangle");
        asked = true;
    }
    pthread_mutex_unlock(&lock);
    char *readable = function ? function(name, NULL, NULL, &failed) : NULL;
    return failed ? NULL : readable;
}

/* Leaves out what stands in brackets, and what stands before the name: the type of the result. */
static void shorten(const char *from, char *out, size_t room)
{
    size_t at = 0;
    int depth = 0;
    for (const char *c = from; *c && at + 1 < room; c++) {
        bool name = text_starts(c, "(anonymous namespace)") && depth == 0;
        if (name) {
            c += strlen("(anonymous namespace)") - 1;
            at -= at >= 2 && out[at - 1] == ':' ? 2 : 0; /* its "::" */
        } else if (*c == '<' || *c == '(') {
            if (*c == '(' && depth == 0 && at > 0)
                break; /* the arguments: the name is over */
            depth++;
        } else if ((*c == '>' || *c == ')') && depth > 0) {
            depth--;
        } else if (depth == 0 && *c == ' ' && !text_starts(from, "operator")) {
            at = 0;
        } else if (depth == 0) {
            out[at++] = *c;
        }
    }
    out[at] = '\0';
}

void symbol_readable(const char *name, char *out, size_t room)
{
    char *readable = text_starts(name, "_Z") ? demangle(name) : NULL;
    size_t length = strlen(name);
    if (readable)
        shorten(readable, out, room);
    mem_free(readable);
    if (readable && *out)
        return;
    length = length < room ? length : room - 1;
    memcpy(out, name, length);
    out[length] = '\0';
}
