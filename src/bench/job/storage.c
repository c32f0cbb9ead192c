/* storage.c: see storage.h. */
#include "bench/job/storage.h"

#include "base/text.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

enum { DEPTH_MOST = 8 /* of devices that lie on devices */ };

const char *storage_of_system(long type)
{
    static const struct {
        unsigned type; /* 32 bits, whatever a long is */
        const char *kind;
    } systems[] = {
        {0x01021994, "memory"},  /* tmpfs */
        {0x858458f6, "memory"},  /* ramfs */
        {0x6969, "network"},     /* NFS */
        {0xff534d42, "network"}, /* CIFS */
        {0xfe534d42, "network"}, /* SMB 2 */
        {0x00c36400, "network"}, /* Ceph */
        {0x0bd00bd0, "network"}, /* Lustre */
        {0x47504653, "network"}, /* GPFS */
        {0x01021997, "network"}, /* 9P, as of hosts */
        {0x5346414f, "network"}, /* AFS */
        {0x19830326, "network"}, /* BeeGFS */
    };
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++)
        if (systems[i].type == (unsigned)type)
            return systems[i].kind;
    return "";
}

/* The first line of a file of sysfs; "" where there is none. */
static void read_line(const char *folder, const char *name, char out[64])
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length < (int)sizeof path ? fopen(path, "re") : NULL;
    if (!file || !fgets(out, 64, file))
        out[0] = '\0';
    if (file)
        fclose(file);
    out[strcspn(out, "\n")] = '\0';
}

/* Clouds show disks of their network as NVMe. */
static const char *kind_of_nvme(const char *folder)
{
    char model[64];
    read_line(folder, "device/model", model);
    const bool remote = text_starts(model, "Amazon Elastic Block Store") ||
                        text_starts(model, "nvme_card-pd") || text_starts(model, "MSFT NVMe");
    return remote ? "network" : "nvme";
}

/* A disk, by the folder that sysfs has of it. */
static const char *kind_of_disk(const char *folder)
{
    char rotational[64];
    const char *name = strrchr(folder, '/') + 1;
    if (text_starts(name, "nvme"))
        return kind_of_nvme(folder);
    if (text_starts(name, "ram") || text_starts(name, "zram") || text_starts(name, "pmem"))
        return "memory";
    if (text_starts(name, "rbd") || text_starts(name, "nbd"))
        return "network";
    if (text_starts(name, "vd") || text_starts(name, "xvd"))
        return ""; /* what its host has below it no guest can tell */
    read_line(folder, "queue/rotational", rotational);
    return strcmp(rotational, "0") == 0 ? "ssd" : strcmp(rotational, "1") == 0 ? "hdd" : "";
}

/* A partition lies in the folder of its disk; a mapped device (LVM, RAID, encrypted) has `slaves`,
 * of which the first is looked at. */
static const char *kind_of_folder(const char *folder, int depth)
{
    char path[PATH_MAX + 300], real[PATH_MAX];
    struct stat info;
    snprintf(path, sizeof path, "%s/partition", folder);
    if (stat(path, &info) == 0) {
        snprintf(real, sizeof real, "%s", folder);
        *strrchr(real, '/') = '\0';
        return kind_of_disk(real);
    }
    snprintf(path, sizeof path, "%s/slaves", folder);
    DIR *below = opendir(path);
    const char *found = NULL;
    for (struct dirent *entry; below && !found && (entry = readdir(below)) != NULL;) {
        if (entry->d_name[0] == '.' || depth == DEPTH_MOST)
            continue;
        snprintf(path, sizeof path, "%s/slaves/%s", folder, entry->d_name);
        if (realpath(path, real))
            found = kind_of_folder(real, depth + 1);
    }
    if (below)
        closedir(below);
    return found ? found : kind_of_disk(folder);
}

const char *storage_of_device(const char *sys, unsigned major, unsigned minor)
{
    char path[PATH_MAX], real[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/dev/block/%u:%u", sys, major, minor);
    if (length >= (int)sizeof path || !realpath(path, real))
        return "";
    return kind_of_folder(real, 0);
}

/* The device that a mount lies on where the file system numbers its files by itself (btrfs); the
 * lines of mountinfo are "ID PARENT 0:43 ROOT POINT OPTIONS … - TYPE /dev/nvme0n1p2 …". */
static const char *storage_of_mount(unsigned major, unsigned minor)
{
    char line[4096], number[32], device[PATH_MAX];
    const char *found = "";
    struct stat info;
    FILE *file = fopen("/proc/self/mountinfo", "re");
    snprintf(number, sizeof number, " %u:%u ", major, minor);
    while (file && !found[0] && fgets(line, sizeof line, file)) {
        const char *source = strstr(line, " - ");
        if (strstr(line, number) && source && sscanf(source, " - %*s %4000s", device) == 1 &&
            device[0] == '/' && stat(device, &info) == 0 && S_ISBLK(info.st_mode))
            found = storage_of_device("/sys", major(info.st_rdev), minor(info.st_rdev));
    }
    if (file)
        fclose(file);
    return found;
}

const char *storage_of_file(int file)
{
    struct statfs system;
    struct stat info;
    const char *kind = fstatfs(file, &system) == 0 ? storage_of_system((long)system.f_type) : "";
    if (kind[0] || fstat(file, &info) != 0)
        return kind;
    kind = storage_of_device("/sys", major(info.st_dev), minor(info.st_dev));
    return kind[0] ? kind : storage_of_mount(major(info.st_dev), minor(info.st_dev));
}
