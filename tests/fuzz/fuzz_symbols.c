/* fuzz_symbols.c: any bytes as an ELF file: refused or read, and what was read can be asked. */
#include "watch/symbols.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], name[64];
    struct symbols symbols;
    int fd = memfd_create("symbols", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (symbols_read(&symbols, path) == STATUS_OK) {
        for (uint64_t offset = 0; offset < 4096; offset += 16) {
            const char *found = symbols_find(&symbols, offset);
            if (found)
                symbol_readable(found, name, sizeof name);
        }
        symbols_free(&symbols);
    }
    close(fd);
    return 0;
}
