/* platform_xml.c: a platform as SimGrid's file. A cluster of single units is SimGrid's <cluster>. A
 * server of several units is a zone of its own, which a router joins to its cluster's; clusters are
 * zones that lines join. Routing costs the same for any number of servers. */
#include "simulate/platform.h"

#include <stdio.h>

static const double no_limit = 1e15; /* B/s */

int platform_servers(const struct platform *platform, int workers)
{
    return (workers + platform->units - 1) / platform->units;
}

bool platform_near(const struct platform *platform, int workers)
{
    return platform->here || (!*platform->file && platform_servers(platform, workers) == 1);
}

const char *platform_host(int worker, char text[PLATFORM_HOST])
{
    snprintf(text, PLATFORM_HOST, "u%d", worker);
    return text;
}

const char *platform_feeder(const struct platform *platform, int worker, char text[PLATFORM_HOST])
{
    if (platform->units == 1)
        return platform_host(worker, text);
    snprintf(text, PLATFORM_HOST, "f%d", worker / platform->units);
    return text;
}

/* Both ways apart. Half of the latency: a route has such a link at both ends. */
static void add_link(struct text *out, const char *kind, int index, struct platform_link link)
{
    text_printf(out,
                "<link id=\"%s%d\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" "
                "sharing_policy=\"SPLITDUPLEX\"/>\n",
                kind, index, link.bytes_per_s, link.latency_s / 2);
}

/* A route one way: up the links of one end, down those of the other. */
struct way {
    const char *tag, *from, *to;
    int from_index, to_index;
    const char *up, *down; /* kinds of links; NULL: none */
    const char *gateway;   /* of zones: the kind of the routers; NULL: between hosts */
};

static void add_way(struct text *out, const struct way *way)
{
    text_printf(out, "<%s src=\"%s%d\" dst=\"%s%d\"", way->tag, way->from, way->from_index, way->to,
                way->to_index);
    if (way->gateway)
        text_printf(out, " gw_src=\"%s%d\" gw_dst=\"%s%d\"", way->gateway, way->from_index,
                    way->gateway, way->to_index);
    text_add(out, " symmetrical=\"NO\">");
    if (way->up)
        text_printf(out, "<link_ctn id=\"%s%d\" direction=\"UP\"/>", way->up, way->from_index);
    if (way->down)
        text_printf(out, "<link_ctn id=\"%s%d\" direction=\"DOWN\"/>", way->down, way->to_index);
    text_printf(out, "</%s>\n", way->tag);
}

static double speed_of(const struct platform *platform)
{
    return platform->feed > 0 ? platform->feed : no_limit;
}

/* Units of one server: links to each other, and to the router. */
static void add_server(const struct platform *platform, int server, int workers, struct text *out)
{
    const int from = server * platform->units;
    const int end = from + platform->units < workers ? from + platform->units : workers;
    const char *outward = platform->outside_each ? "out" : "in";
    const struct platform_link each = {platform->outside.bytes_per_s, 0};
    text_printf(out, "<zone id=\"s%d\" routing=\"Full\">\n", server);
    for (int u = from; u < end; u++)
        text_printf(out, "<host id=\"u%d\" speed=\"%.17gf\"/>\n", u, no_limit);
    text_printf(out, "<host id=\"f%d\" speed=\"%.17gf\"/>\n<router id=\"r%d\"/>\n", server,
                speed_of(platform), server);
    for (int u = from; u < end; u++) {
        add_link(out, "in", u, platform->inside);
        if (platform->outside_each)
            add_link(out, "out", u, each);
    }
    for (int u = from; u < end; u++) {
        for (int v = from; v < end; v++)
            if (u != v)
                add_way(out, &(struct way){"route", "u", "u", u, v, "in", "in", NULL});
        add_way(out, &(struct way){"route", "u", "r", u, server, outward, NULL, NULL});
        /* the link is the unit's, so it is named by hand */
        text_printf(out,
                    "<route src=\"r%d\" dst=\"u%d\" symmetrical=\"NO\"><link_ctn id=\"%s%d\" "
                    "direction=\"DOWN\"/></route>\n",
                    server, u, outward, u);
    }
    text_add(out, "</zone>\n");
}

/* A server's way to its cluster's hub and back. */
static void add_port_ways(int server, int cluster, struct text *out)
{
    for (int back = 0; back < 2; back++)
        text_printf(out,
                    "<zoneRoute src=\"%s%d\" dst=\"%s%d\" gw_src=\"%s%d\" gw_dst=\"%s%d\" "
                    "symmetrical=\"NO\"><link_ctn id=\"port%d\" direction=\"%s\"/></zoneRoute>\n",
                    back ? "h" : "s", back ? cluster : server, back ? "s" : "h",
                    back ? server : cluster, back ? "g" : "r", back ? cluster : server,
                    back ? "r" : "g", back ? server : cluster, server, back ? "DOWN" : "UP");
}

static void add_cluster(const struct platform *platform, int cluster, int from, int end,
                        int workers, struct text *out)
{
    if (platform->units == 1) {
        text_printf(out,
                    "<cluster id=\"c%d\" prefix=\"u\" suffix=\"\" radical=\"%d-%d\" "
                    "speed=\"%.17gf\" bw=\"%.17gBps\" lat=\"%.17gs\" router_id=\"g%d\"/>\n",
                    cluster, from, end - 1, speed_of(platform), platform->outside.bytes_per_s,
                    platform->outside.latency_s / 2, cluster);
        return;
    }
    struct platform_link port = platform->outside;
    if (platform->outside_each)
        port.bytes_per_s *= platform->units;
    text_printf(out,
                "<zone id=\"c%d\" routing=\"DijkstraCache\">\n<zone id=\"h%d\" routing=\"Full\">"
                "<router id=\"g%d\"/></zone>\n",
                cluster, cluster, cluster);
    for (int s = from; s < end; s++)
        add_server(platform, s, workers, out);
    for (int s = from; s < end; s++)
        add_link(out, "port", s, port);
    for (int s = from; s < end; s++) /* SimGrid has routes behind links */
        add_port_ways(s, cluster, out);
    text_add(out, "</zone>\n");
}

enum status platform_write(const struct platform *platform, int workers, struct text *out)
{
    const int servers = platform_servers(platform, workers);
    const int clusters = platform->clusters < servers ? platform->clusters : servers;
    text_add(out, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM "
                  "\"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n");
    if (clusters > 1)
        text_add(out, "<zone id=\"all\" routing=\"Full\">\n");
    for (int c = 0; c < clusters; c++)
        add_cluster(platform, c, (int)((long)servers * c / clusters),
                    (int)((long)servers * (c + 1) / clusters), workers, out);
    for (int c = 0; clusters > 1 && c < clusters; c++)
        add_link(out, "line", c, platform->between);
    for (int c = 0; c < clusters; c++)
        for (int d = 0; d < clusters; d++)
            if (c != d)
                add_way(out, &(struct way){"zoneRoute", "c", "c", c, d, "line", "line", "g"});
    if (clusters > 1)
        text_add(out, "</zone>\n");
    text_add(out, "</platform>\n");
    return text_done(out);
}
