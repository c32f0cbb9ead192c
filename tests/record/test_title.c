/* Human names of machines: models as systems spell them, whole machines, names that users give. */
#include "base/memory.h"
#include "base/text.h"
#include "check.h"
#include "record/facts.h"
#include "record/title.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(models_lose_what_says_nothing)
{
    static const struct {
        const char *model, *title;
    } rows[] = {
        {"Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "Intel Xeon Gold 6338"},
        {"Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "Intel Xeon Platinum 8375C"},
        {"INTEL(R) XEON(R) PLATINUM 8581C CPU @ 2.30GHz", "Intel Xeon Platinum 8581C"},
        {"Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "Intel Xeon E5-2690 v4"},
        {"Intel(R) Xeon(R) CPU @ 2.20GHz", "Intel Xeon"},
        {"Intel(R) Xeon(R) Processor", "Intel Xeon"},
        {"Intel(R) Xeon(R) Processor @ 2.10GHz", "Intel Xeon"},
        {"Intel Xeon Processor (Skylake, IBRS)", "Intel Xeon (Skylake)"},
        {"Intel Xeon Processor (Cascadelake)", "Intel Xeon (Cascadelake)"},
        {"Intel(R) Xeon(R) 6787P", "Intel Xeon 6787P"},
        {"Intel(R) Xeon Phi(TM) CPU 7210 @ 1.30GHz", "Intel Xeon Phi 7210"},
        {"11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz", "Intel Core i7-1165G7"},
        {"13th Gen Intel(R) Core(TM) i9-13900K", "Intel Core i9-13900K"},
        {"Intel(R) Core(TM) Ultra 7 155H", "Intel Core Ultra 7 155H"},
        {"Intel(R) Core(TM)2 Duo CPU     T7250  @ 2.00GHz", "Intel Core2 Duo T7250"},
        {"Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", "Intel Core i5-8250U"},
        {"Intel(R) Atom(TM) CPU  C3558 @ 2.20GHz", "Intel Atom C3558"},
        {"Intel(R) Celeron(R) N4020 CPU @ 1.10GHz", "Intel Celeron N4020"},
        {"Intel(R) Pentium(R) Silver N5000 CPU @ 1.10GHz", "Intel Pentium Silver N5000"},
        {"Genuine Intel(R) 0000 @ 2.00GHz", "Intel 0000"},
        {"AMD EPYC", "AMD EPYC"},
        {"AMD EPYC 7742 64-Core Processor", "AMD EPYC 7742"},
        {"AMD EPYC 9654 96-Core Processor", "AMD EPYC 9654"},
        {"AMD EPYC-Rome Processor", "AMD EPYC-Rome"},
        {"AMD EPYC Processor (with IBPB)", "AMD EPYC"},
        {"AMD EPYC-Milan Processor", "AMD EPYC-Milan"},
        {"AMD Ryzen 9 5950X 16-Core Processor", "AMD Ryzen 9 5950X"},
        {"AMD Ryzen 7 PRO 4750U with Radeon Graphics", "AMD Ryzen 7 PRO 4750U"},
        {"AMD Ryzen 7 7840HS w/ Radeon 780M Graphics", "AMD Ryzen 7 7840HS"},
        {"AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "AMD Ryzen AI 9 HX 370"},
        {"AMD Ryzen Threadripper PRO 5995WX 64-Cores", "AMD Ryzen Threadripper PRO 5995WX"},
        {"AMD FX(tm)-8350 Eight-Core Processor", "AMD FX-8350"},
        {"AMD Opteron(tm) Processor 6376", "AMD Opteron 6376"},
        {"AMD A10-7850K Radeon R7, 12 Compute Cores 4C+8G", "AMD A10-7850K"},
        {"Hygon C86 7185 32-core Processor", "Hygon C86 7185"},
        {"ZHAOXIN KaiXian KX-6640MA@2.2+GHz", "ZHAOXIN KaiXian KX-6640MA"},
        {"ARM Neoverse-N1", "Arm Neoverse-N1"},
        {"Neoverse-V2", "Neoverse-V2"},
        {"Cortex-A72", "Cortex-A72"},
        {"Ampere(R) Altra(R) Max Processor", "Ampere Altra Max"},
        {"Apple M2", "Apple M2"},
        {"AWS Graviton3", "AWS Graviton3"},
        {"Kunpeng-920", "Kunpeng-920"},
        {"ARMv7 Processor rev 4 (v7l)", "ARMv7"},
        {"aarch64 CPU, implementer 0x41, part 0xd8f", "aarch64"},
        {"VirtualApple @ 2.50GHz", "Apple silicon"},
        {"QEMU Virtual CPU version 2.5+", "QEMU virtual CPU"},
        {"Common KVM processor", "KVM virtual CPU"},
        {"Virtual CPU 82d9ed4018dd", "virtual CPU"},
        {"DO-Premium-Intel", "DO-Premium-Intel"},
        {"Intel\xc2\xae Xeon\xc2\xae Bronze 3508U", "Intel Xeon Bronze 3508U"},
        {"  AMD\tEPYC\n7763   64-Core Processor   ", "AMD EPYC 7763"},
        {"Processor", ""},
        {"", ""},
    };
    char title[TITLE_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_EQUAL_TEXT(title_cpu(rows[i].model, title), rows[i].title);
}

TEST(a_model_of_any_length_has_room)
{
    char title[TITLE_TEXT], model[1000];
    memset(model, 'x', sizeof model - 1);
    model[sizeof model - 1] = '\0';
    CHECK_EQUAL_INT(strlen(title_cpu(model, title)), TITLE_TEXT - 1);
    for (size_t i = 0; i + 1 < sizeof model; i++)
        model[i] = i % 2 ? ' ' : '(';
    CHECK(strlen(title_cpu(model, title)) < TITLE_TEXT);
}

static void check_title(const char *machine, const char *expected)
{
    struct arena arena = {0};
    struct json *tree;
    char title[TITLE_TEXT];
    if (CHECK_OK(json_parse(&arena, "test", machine, strlen(machine), &tree)))
        CHECK_EQUAL_TEXT(machine_title(tree, title), expected);
    arena_free(&arena);
}

TEST(machines_are_told_by_their_facts)
{
    char title[TITLE_TEXT];
    CHECK_EQUAL_TEXT(machine_title(NULL, title), "");
    check_title("{}", "");
    check_title("{\"server\":\"vm\",\"cpu\":\"AMD EPYC\",\"sockets\":1,\"cores\":2,"
                "\"threads_per_core\":1}",
                "AMD EPYC, 2 cores");
    check_title("{\"cpu\":\"AMD EPYC\",\"cores\":1}", "AMD EPYC, 1 core");
    check_title("{\"cpu\":\"Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz\",\"sockets\":2,"
                "\"cores\":128,\"threads_per_core\":2}",
                "Intel Xeon Gold 6338, 2 × 32 cores");
    check_title("{\"cpu\":\"Intel(R) Xeon(R) CPU @ 2.20GHz\",\"cores\":2,\"threads_per_core\":2}",
                "Intel Xeon, 1 core");
    check_title("{\"cpu\":\"Intel(R) Xeon(R) CPU @ 2.20GHz\",\"cores\":3,\"threads_per_core\":2}",
                "Intel Xeon, 3 threads");
    check_title("{\"server\":\"here\",\"cores\":4}", "here, 4 cores");
    check_title("{\"cpu\":\"Intel(R) Xeon(R) Processor\",\"sockets\":1,\"cores\":16,"
                "\"gpu\":{\"name\":\"NVIDIA H200\"}}",
                "Intel Xeon, 16 cores, NVIDIA H200");
    check_title("{\"cpu\":\"AMD EPYC 9654 96-Core Processor\",\"sockets\":2,\"cores\":192,"
                "\"gpus\":8,\"gpu_model\":\"NVIDIA H100\"}",
                "AMD EPYC 9654, 2 × 96 cores, 8 × NVIDIA H100");
    check_title("{\"cpu\":\"AMD EPYC\",\"cores\":2,\"title\":\"lab server 3\"}", "lab server 3");
}

TEST(hostile_facts_do_no_harm)
{
    check_title("{\"cpu\":7,\"cores\":\"x\",\"title\":[],\"gpu\":3}", "");
    check_title("{\"cpu\":\"a\\u001b[2Jb\",\"cores\":1e300}", "a [2Jb");
    check_title("{\"title\":\"a\\u001b[2Jb\"}", "a\\u001b[2Jb");
    check_title("{\"cpu\":\"x\",\"cores\":-1,\"sockets\":1e6,\"threads_per_core\":1e6}", "x");
    check_title("{\"cpu\":\"x\",\"cores\":4,\"sockets\":1e6,\"threads_per_core\":1e4}",
                "x, 4 threads");
}

TEST(names_are_kept_and_removed)
{
    char folder[] = "/tmp/prony_title_XXXXXX", name[TITLE_TEXT];
    if (!CHECK(mkdtemp(folder)))
        return;
    setenv("XDG_CACHE_HOME", folder, 1);
    machine_name_find(name);
    CHECK_EQUAL_TEXT(name, "");
    CHECK_OK(machine_name_keep("lab server 3"));
    machine_name_find(name);
    CHECK_EQUAL_TEXT(name, "lab server 3");
    CHECK_STATUS(STATUS_INPUT, machine_name_keep("a\033[2Jb"));
    CHECK_MESSAGE("\\u001b");
    CHECK_STATUS(STATUS_INPUT, machine_name_keep("two\nlines"));
    CHECK_STATUS(STATUS_INPUT, machine_name_keep(" blank"));
    CHECK_STATUS(
        STATUS_INPUT,
        machine_name_keep("0123456789012345678901234567890123456789012345678901234567890"));
    CHECK_MESSAGE("at most 60");
    CHECK_STATUS(STATUS_INPUT, machine_name_keep("\xff"));
    machine_name_find(name);
    CHECK_EQUAL_TEXT(name, "lab server 3");
    CHECK_OK(machine_name_keep(""));
    CHECK_OK(machine_name_keep(""));
    machine_name_find(name);
    CHECK_EQUAL_TEXT(name, "");
    char path[200];
    snprintf(path, sizeof path, "%s/prony", folder);
    rmdir(path);
    rmdir(folder);
}

/* A tree of /sys or /proc, made for a test. */
static void put(const char *root, const char *path, const char *text)
{
    char full[600];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    if (!CHECK(file))
        return;
    fputs(text, file);
    fclose(file);
}

static void remove_tree(const char *root)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    CHECK_EQUAL_INT(system(command), 0);
}

TEST(servers_are_found_by_what_the_system_tells)
{
    char root[] = "/tmp/prony_server_XXXXXX";
    static struct facts facts;
    if (!CHECK(mkdtemp(root)))
        return;
    facts_find_server(root, root, &facts);
    CHECK_EQUAL_TEXT(facts.model, "");
    CHECK_EQUAL_INT(facts.gpus, 0);
    put(root, "class/dmi/id/sys_vendor", "Dell Inc.\n");
    put(root, "class/dmi/id/product_name", "PowerEdge R740\n");
    put(root, "bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
    put(root, "bus/pci/devices/0000:1b:00.0/class", "0x030200\n");
    put(root, "bus/pci/devices/0000:1b:00.0/numa_node", "0\n");
    put(root, "bus/pci/devices/0000:af:00.0/vendor", "0x10de\n");
    put(root, "bus/pci/devices/0000:af:00.0/class", "0x030200\n");
    put(root, "bus/pci/devices/0000:af:00.0/numa_node", "1\n");
    put(root, "bus/pci/devices/0000:00:02.0/vendor", "0x1a03\n"); /* a screen, no GPU */
    put(root, "bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    facts_find_server(root, root, &facts);
    CHECK_EQUAL_TEXT(facts.model, "Dell PowerEdge R740");
    CHECK_EQUAL_INT(facts.gpus, 2);
    CHECK_EQUAL_TEXT(facts.gpu_nodes, "0,1");
    put(root, "driver/nvidia/gpus/0000:af:00.0/information",
        "Model: \t\t NVIDIA H200\nIRQ: 7\n"); /* a container that may use one */
    facts_find_server(root, root, &facts);
    CHECK_EQUAL_INT(facts.gpus, 1);
    CHECK_EQUAL_TEXT(facts.gpu_nodes, "1");
    CHECK_EQUAL_TEXT(facts.gpu_model, "NVIDIA H200");
    put(root, "class/dmi/id/sys_vendor", "LENOVO\n");
    put(root, "class/dmi/id/product_name", "20XW005PGE\n");
    put(root, "class/dmi/id/product_version", "ThinkPad X1 Carbon Gen 9\n");
    facts_find_server(root, root, &facts);
    CHECK_EQUAL_TEXT(facts.model, "LENOVO ThinkPad X1 Carbon Gen 9");
    put(root, "class/dmi/id/sys_vendor", "To Be Filled By O.E.M.\n");
    put(root, "class/dmi/id/product_name", "System Product Name\n");
    facts_find_server(root, root, &facts);
    CHECK_EQUAL_TEXT(facts.model, "");
    remove_tree(root);
}

TEST(runtimes_are_told_apart)
{
    char root[] = "/tmp/prony_runtime_XXXXXX";
    static struct facts facts;
    if (!CHECK(mkdtemp(root)))
        return;
    put(root, "cpuinfo", "processor : 0\nflags\t\t: fpu vme hypervisor lahf\n");
    facts_find_server(root, root, &facts);
    CHECK(strstr(facts.runtime, "virtual machine"));
    put(root, "cpuinfo", "processor : 0\nflags\t\t: fpu vme lahf\n");
    facts_find_server(root, root, &facts);
    CHECK(!strstr(facts.runtime, "virtual machine"));
    put(root, "cpuinfo", "processor : 0\nFeatures : asimd\n"); /* Arm says nothing */
    put(root, "class/dmi/id/sys_vendor", "Amazon EC2\n");
    put(root, "class/dmi/id/product_name", "c7g.large\n");
    facts_find_server(root, root, &facts);
    CHECK(strstr(facts.runtime, "virtual machine"));
    put(root, "class/dmi/id/product_name", "c7g.metal\n");
    facts_find_server(root, root, &facts);
    CHECK(!strstr(facts.runtime, "virtual machine"));
    remove_tree(root);
}

CHECK_MAIN
