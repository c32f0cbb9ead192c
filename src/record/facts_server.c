/* facts_server.c: what a server is as a box: its model, how it runs, and which GPUs are in it. Read
 * from sysfs and procfs below folders of the caller's, so that tests can bring their own. */
#include "record/facts.h"

#include "base/file.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The first line of a small file, without blanks at its ends; "" where there is none. */
static void read_line(const char *folder, const char *name, char out[FACTS_TEXT])
{
    char path[512];
    size_t length;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file || !fgets(out, FACTS_TEXT, file))
        out[0] = '\0';
    if (file)
        fclose(file);
    for (char *at = out; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
    memmove(out, out + strspn(out, " "), strlen(out + strspn(out, " ")) + 1);
    for (length = strlen(out); length && out[length - 1] == ' '; length--)
        out[length - 1] = '\0';
}

/* What makers leave in the field when they fill in nothing. */
static bool is_filler(const char *text)
{
    static const char *const fillers[] = {
        "To Be Filled", "System Product Name", "Default string", "Not Specified",
        "None",         "System manufacturer", "Not Applicable", "OEM",
        "INVALID",      "System Version"};
    for (size_t i = 0; i < sizeof fillers / sizeof *fillers; i++)
        if (strncasecmp(text, fillers[i], strlen(fillers[i])) == 0)
            return true;
    return false;
}

/* "Dell Inc." is Dell. */
static void shorten_vendor(char *vendor)
{
    static const char *const ends[] = {", Inc", " Inc",  " Corp", " Co.",      " Ltd",
                                       " GmbH", ", LLC", " LLC",  " COMPUTER", " Technolog"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *end = strstr(vendor, ends[i]);
        if (end && end > vendor)
            *end = '\0';
    }
}

static void find_model(const char *sys, struct facts *out)
{
    char folder[512], vendor[FACTS_TEXT], product[FACTS_TEXT], version[FACTS_TEXT];
    snprintf(folder, sizeof folder, "%s/class/dmi/id", sys);
    read_line(folder, "sys_vendor", vendor);
    read_line(folder, "product_name", product);
    read_line(folder, "product_version", version);
    if (strcasecmp(vendor, "LENOVO") == 0 && version[0] && !is_filler(version))
        memcpy(product, version, sizeof product); /* the name of theirs is a number of a part */
    if (is_filler(vendor))
        vendor[0] = '\0';
    shorten_vendor(vendor);
    if (!product[0] || is_filler(product))
        snprintf(out->model, sizeof out->model, "%s", vendor);
    else if (!vendor[0] || strncasecmp(product, vendor, strlen(vendor)) == 0)
        snprintf(out->model, sizeof out->model, "%s", product);
    else
        snprintf(out->model, sizeof out->model, "%.60s %.66s", vendor, product);
}

/* Does the model name a machine that is not there? Of the CPU's flags x86 alone tells. */
static bool is_virtual_model(const char *model)
{
    static const char *const names[] = {"QEMU",
                                        "KVM",
                                        "VMware",
                                        "VirtualBox",
                                        "innotek",
                                        "Xen",
                                        "Google",
                                        "Amazon",
                                        "OpenStack",
                                        "Bochs",
                                        "Virtual Machine",
                                        "Parallels",
                                        "DigitalOcean",
                                        "Hetzner",
                                        "Alibaba Cloud ECS",
                                        "Firecracker",
                                        "Standard PC"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(model, names[i]))
            return !strstr(model, ".metal");
    return false;
}

static void find_runtime(const char *sys, const char *proc, struct facts *out)
{
    char path[512], line[8192];
    bool flags = false, is_virtual = is_virtual_model(out->model);
    snprintf(path, sizeof path, "%s/cpuinfo", proc);
    FILE *file = fopen(path, "re");
    while (file && !flags && fgets(line, sizeof line, file))
        flags = strncmp(line, "flags", 5) == 0;
    if (file)
        fclose(file);
    if (flags)
        is_virtual = strstr(line, " hypervisor") != NULL;
    snprintf(path, sizeof path, "%s/hypervisor/uuid", sys);
    is_virtual |= file_exists(path);
    const bool contained = file_exists("/.dockerenv") || file_exists("/run/.containerenv") ||
                           file_exists("/run/systemd/container") ||
                           file_exists("/run/secrets/kubernetes.io");
    const char *runtime = contained && is_virtual  ? "container in a virtual machine"
                          : contained              ? "container"
                          : is_virtual             ? "virtual machine"
                          : flags || out->model[0] ? "bare metal"
                                                   : "";
    snprintf(out->runtime, sizeof out->runtime, "%s", runtime);
}

/* Is the device at this address of the bus a GPU that computes: a display or 3D controller of
 * NVIDIA or AMD? */
static bool is_gpu(const char *folder)
{
    char vendor[FACTS_TEXT], class[FACTS_TEXT];
    read_line(folder, "vendor", vendor);
    read_line(folder, "class", class);
    return (strcmp(vendor, "0x10de") == 0 || strcmp(vendor, "0x1002") == 0) &&
           (strncmp(class, "0x0300", 6) == 0 || strncmp(class, "0x0302", 6) == 0 ||
            strncmp(class, "0x0380", 6) == 0);
}

/* One GPU more, on the NUMA node that its folder names; "?" where it does not. */
static void add_gpu(const char *folder, struct facts *out)
{
    char node[FACTS_TEXT];
    const size_t used = strlen(out->gpu_nodes);
    read_line(folder, "numa_node", node);
    snprintf(out->gpu_nodes + used, sizeof out->gpu_nodes - used, "%s%.8s", out->gpus ? "," : "",
             node[0] && node[0] != '-' ? node : "?");
    out->gpus++;
}

/* "Model: \t\t NVIDIA H200" */
static void find_gpu_model(const char *folder, struct facts *out)
{
    static const char key[] = "Model:";
    char path[512], line[FACTS_TEXT];
    snprintf(path, sizeof path, "%s/information", folder);
    FILE *file = fopen(path, "re");
    while (file && !out->gpu_model[0] && fgets(line, sizeof line, file))
        if (strncmp(line, key, sizeof key - 1) == 0) {
            const char *name = line + sizeof key - 1;
            name += strspn(name, " \t");
            snprintf(out->gpu_model, sizeof out->gpu_model, "%.*s", (int)strcspn(name, "\n"), name);
        }
    if (file)
        fclose(file);
}

enum { GPUS_MOST = 64, ADDRESS = 24 /* "0000:1b:00.0" */ };

static int compare_addresses(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The devices of a folder, in the order of the bus: their count, at most GPUS_MOST. */
static int list_devices(const char *folder, bool (*wanted)(const char *folder),
                        char out[GPUS_MOST][ADDRESS])
{
    char path[700];
    int count = 0;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= ADDRESS || count == GPUS_MOST)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!wanted || wanted(path))
            memcpy(out[count++], entry->d_name, strlen(entry->d_name) + 1);
    }
    if (entries)
        closedir(entries);
    qsort(out, (size_t)count, sizeof *out, compare_addresses);
    return count;
}

/* NVIDIA's driver lists those that a container may use, the bus all of the server's. */
static void find_gpus(const char *sys, const char *proc, struct facts *out)
{
    char driver[400], bus[400], path[500], devices[GPUS_MOST][ADDRESS];
    snprintf(driver, sizeof driver, "%s/driver/nvidia/gpus", proc);
    snprintf(bus, sizeof bus, "%s/bus/pci/devices", sys);
    int count = list_devices(driver, NULL, devices);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", driver, devices[i]);
        find_gpu_model(path, out);
    }
    if (!count)
        count = list_devices(bus, is_gpu, devices);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", bus, devices[i]);
        add_gpu(path, out);
    }
}

void facts_find_server(const char *sys, const char *proc, struct facts *out)
{
    out->model[0] = out->runtime[0] = out->gpu_model[0] = out->gpu_nodes[0] = '\0';
    out->gpus = 0;
    find_model(sys, out);
    find_runtime(sys, proc, out);
    find_gpus(sys, proc, out);
}
