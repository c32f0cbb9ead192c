/* Which kind of storage: by file system, by device, by what lies below a device. */
#include "bench/job/storage.h"
#include "bench/sweep/entry.h"
#include "check.h"

#include <sys/stat.h>
#include <unistd.h>

TEST(file_systems_tell_networks_and_memory)
{
    CHECK_EQUAL_TEXT(storage_of_system(0x01021994), "memory"); /* tmpfs */
    CHECK_EQUAL_TEXT(storage_of_system(0x6969), "network");    /* NFS */
    CHECK_EQUAL_TEXT(storage_of_system((long)0xff534d42), "network");
    CHECK_EQUAL_TEXT(storage_of_system((int)0xff534d42), "network"); /* where a long has a sign */
    CHECK_EQUAL_TEXT(storage_of_system(0xef53), "");                 /* ext4: its disk does */
    CHECK_EQUAL_TEXT(storage_of_system(0x794c7630), "");             /* overlay */
}

static char root[] = "/tmp/prony_storage_XXXXXX";

static void make(const char *path)
{
    char full[600];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + sizeof root; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
}

static void put(const char *path, const char *text)
{
    char full[600];
    make(path);
    snprintf(full, sizeof full, "%s/%s", root, path);
    FILE *file = fopen(full, "w");
    if (!CHECK(file))
        return;
    fputs(text, file);
    fclose(file);
}

/* dev/block/8:1 leads to the folder of the device. */
static void lead(const char *number, const char *to)
{
    char from[600], target[600];
    snprintf(from, sizeof from, "dev/block/%s", number);
    make(from);
    snprintf(from, sizeof from, "%s/dev/block/%s", root, number);
    snprintf(target, sizeof target, "%s/%s", root, to);
    CHECK_EQUAL_INT(symlink(target, from), 0);
}

static void make_devices(void)
{
    char from[600], to[600];
    put("devices/nvme0n1/queue/rotational", "0\n");
    put("devices/nvme0n1/nvme0n1p2/partition", "2\n");
    put("devices/nvme1n1/device/model", "Amazon Elastic Block Store              \n");
    put("devices/sda/queue/rotational", "1\n");
    put("devices/sda/sda1/partition", "1\n");
    put("devices/sdb/queue/rotational", "0\n");
    put("devices/vda/queue/rotational", "1\n");
    put("devices/dm-0/queue/rotational", "0\n");
    make("devices/dm-0/slaves/sda1");
    snprintf(from, sizeof from, "%s/devices/dm-0/slaves/sda1", root);
    snprintf(to, sizeof to, "%s/devices/sda/sda1", root);
    CHECK_EQUAL_INT(symlink(to, from), 0);
    put("devices/sdc/size", "1\n");
    lead("259:0", "devices/nvme0n1");
    lead("259:2", "devices/nvme0n1/nvme0n1p2");
    lead("259:3", "devices/nvme1n1");
    lead("8:1", "devices/sda/sda1");
    lead("8:16", "devices/sdb");
    lead("8:32", "devices/sdc");
    lead("254:0", "devices/vda");
    lead("253:0", "devices/dm-0");
    lead("7:7", "devices/nothing");
}

TEST(devices_tell_their_kind)
{
    char command[100];
    if (!CHECK(mkdtemp(root)))
        return;
    make_devices();
    CHECK_EQUAL_TEXT(storage_of_device(root, 259, 0), "nvme");
    CHECK_EQUAL_TEXT(storage_of_device(root, 259, 2), "nvme");
    CHECK_EQUAL_TEXT(storage_of_device(root, 259, 3), "network"); /* as a cloud shows its own */
    CHECK_EQUAL_TEXT(storage_of_device(root, 8, 1), "hdd");
    CHECK_EQUAL_TEXT(storage_of_device(root, 8, 16), "ssd");
    CHECK_EQUAL_TEXT(storage_of_device(root, 253, 0), "hdd"); /* LVM on it */
    CHECK_EQUAL_TEXT(storage_of_device(root, 254, 0), "");    /* a guest cannot tell */
    CHECK_EQUAL_TEXT(storage_of_device(root, 8, 32), "");     /* nor who is not told */
    CHECK_EQUAL_TEXT(storage_of_device(root, 7, 7), "");
    CHECK_EQUAL_TEXT(storage_of_device(root, 1, 1), "");
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK_EQUAL_INT(system(command), 0);
}

TEST(records_name_the_disk)
{
    struct point point;
    point_start(&point);
    point_choose(&point, CHOICE_data_real_disk);
    CHECK(entry_on_disk(&point));
    CHECK_OK(entry_name_storage(&point, "")); /* nobody tells: it stays a disk */
    CHECK_EQUAL_TEXT(point.data, "real/disk");
    CHECK_OK(entry_name_storage(&point, "nvme"));
    CHECK_EQUAL_TEXT(point.data, "real/nvme");
    CHECK(entry_on_disk(&point));
    CHECK_OK(entry_name_storage(&point, "nvme")); /* asked for as what it is */
    CHECK_STATUS(STATUS_UNSUPPORTED, entry_name_storage(&point, "hdd"));
    CHECK_MESSAGE("lie on hdd here, not on nvme");
    CHECK_STATUS(STATUS_UNSUPPORTED, entry_name_storage(&point, ""));
    point_choose(&point, CHOICE_data_real_dram);
    CHECK(!entry_on_disk(&point));
    CHECK_OK(entry_name_storage(&point, NULL));
    CHECK_EQUAL_TEXT(point.data, "real/dram");
}

CHECK_MAIN
